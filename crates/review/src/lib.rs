//! The review of an audit: a local web page on which a person decides about suspect labels.
//!
//! ```text
//! audit directory → Session (queue, decisions) ⇄ Server ⇄ browser
//!                      └→ decisions.jsonl → corrected.csv, ambiguous.csv, verified.csv
//! ```
//!
//! Every decision is on disk before the page shows the next suspect; everything else follows from
//! the decisions. The server listens on the loopback interface only, and answers only requests with
//! the token from the address that it prints.
//!
//! | module | what it does |
//! |---|---|
//! | `session` | an audit with the decisions so far: [`Session`] |
//! | `journal` | `decisions.jsonl`, appended, synced and read back decision by decision |
//! | `decision` | one decision, and its line in the journal |
//! | `queue` | which issues are shown, and in which order |
//! | `corrected` | `corrected.csv`, `ambiguous.csv` and `verified.csv` |
//! | `server`, `http`, `token` | the local server, its part of HTTP, the secret in its address |
//! | `views`, `pictures` | the data and the images that the page shows |

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
