//! A small web page on this computer, on which a person decides about the labels that an audit
//! suspects.
//!
//! ```text
//! audit directory → Session (queue, decisions) ⇄ Server ⇄ browser
//!                      └→ decisions.jsonl → corrected.csv, ambiguous.csv
//! ```
//!
//! Every decision is on the disk before the page shows the next suspect; everything else is
//! derived from the decisions. The server listens to this computer alone, and answers only those
//! who know the token in the address that it prints.

mod corrected;
mod decision;
mod error;
mod http;
mod journal;
mod pictures;
mod queue;
mod server;
mod session;
mod token;
mod views;

pub use decision::Decision;
pub use error::ReviewError;
pub use pictures::Pictures;
pub use queue::{Filter, Scope};
pub use server::Server;
pub use session::{Progress, Session};
