//! The integration tests of this crate: one program, linked once.

mod recorder;
