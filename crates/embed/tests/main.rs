//! The integration tests of this crate: one program, linked once.

mod bad_models;
mod files;
mod runtimes;
mod support;
