//! The integration tests of this crate: one program, linked once.

mod accumulator;
mod calibration;
mod classification;
mod evaluation;
mod multilabel;
mod ranking;
mod significance;
mod summary;
mod support;
mod true_class;
