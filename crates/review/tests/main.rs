//! The integration tests of this crate: one program, linked once.

mod server;
mod session;
mod support;
