//! The integration tests of this crate: one program, linked once.

mod running;
mod server;
mod session;
mod support;
