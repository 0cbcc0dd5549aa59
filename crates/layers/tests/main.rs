//! The integration tests of this crate: one program, linked once.

mod batch_norm;
mod convolution;
mod dense;
mod neighbours;
mod support;
