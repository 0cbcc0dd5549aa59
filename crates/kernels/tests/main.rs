//! The integration tests of this crate: one program, linked once.

mod approximate;
mod choice;
mod determinism;
mod expansion;
mod gradient;
mod identities;
mod joint;
mod matches_reference;
mod moments;
mod multilabel;
mod support;
