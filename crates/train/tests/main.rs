//! The integration tests of this crate: one program, linked once.

mod checkpoints;
mod damage;
mod evaluation;
mod groups;
mod kept;
mod methods;
mod methods_on_digits;
mod optimizer;
mod support;
mod training;
mod tuning;
