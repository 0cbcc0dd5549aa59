//! Pages as people see them, in a real browser.
//!
//! Needs Chromium and its driver, so it is run by itself:
//! `cargo test --release --workspace --features aleator-cli/browser --test browser`

mod driver;
mod wire;

mod harness;
mod report;
