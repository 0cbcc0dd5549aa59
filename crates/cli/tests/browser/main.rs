//! Pages as people see them, in a real browser.
//!
//! Needs Chromium and its driver, so it is run by itself:
//! `cargo test --release --workspace --features aleator-cli/browser --test browser`

#[path = "../../../review/tests/support/mod.rs"]
mod audits;
mod driver;
#[path = "../support/mod.rs"]
mod support;
mod wire;

mod harness;
mod report;
mod review;
