//! The integration tests of this crate: one program, linked once.

mod clients;
mod journal;
mod refusals;
mod running;
mod server;
mod session;
mod support;
