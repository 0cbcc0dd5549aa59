//! The integration tests of this crate: one program, linked once.

mod absolute_paths;
mod bad_label_noise;
mod bad_recipes;
mod bad_splits;
mod covariance_file;
mod documents;
mod finished;
#[cfg(unix)]
mod links;
mod method_presets;
mod paper;
mod paper_table;
mod predictions_file;
mod recipes;
mod run_directory;
mod support;
mod sweeps;
mod tasks;
mod writing;
