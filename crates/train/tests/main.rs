//! The integration tests of this crate: one program, linked once.

mod checkpoints;
mod damage;
mod epochs;
mod evaluation;
mod groups;
mod image_presets;
mod kept;
mod methods;
mod methods_on_digits;
mod networks;
mod optimizer;
mod support;
mod training;
mod tuning;
