//! The contract on disk: recipes in, run directories out.
//!
//! A *recipe* is a TOML file that says everything about a run. [`load`] takes the name of a
//! preset or a path, lays what the command line sets over it, and gives a [`Recipe`] that is valid
//! by construction. A *run directory* ([`RunDir`]) is what the run leaves: every program that
//! reads one needs this crate and nothing of the training.

pub mod atomic;
mod average;
mod check;
mod check_method;
mod check_split;
mod csv_file;
mod decode;
mod difference;
mod document;
mod ensemble;
mod error;
mod events;
mod examples;
mod finished;
mod group;
mod load;
mod log;
mod predictions;
mod presets;
pub mod recipe;
mod recipe_error;
mod record;
mod regular;
mod schema;
mod split_reader;
mod sweep;
mod tasks;
mod to_toml;
pub mod tuning;

pub use atomic::{
    AtomicFolder, check_vacant, read_json, remove_folder, remove_leftovers, remove_leftovers_of,
    with_default_permissions, write_file, write_file_by, write_json,
};
pub use average::{MeanPredictions, log_mean};
pub use csv_file::CsvFile;
pub use difference::Difference;
pub use document::{Document, Node, Origin, Table, Value};
pub use ensemble::EnsembleFile;
pub use error::RunError;
pub use events::EventFile;
pub use examples::{ExampleRow, read_examples, write_examples};
pub use finished::{
    AUDIT, EVALUATION, EvaluatedRun, RunGroup, RunTree, seed_of_name, without_seed,
};
pub use group::{GroupFile, GroupKind, GroupMember};
pub use load::{PICTURES, Resolved, load, load_over, pictured_data};
pub use log::MetricsLog;
pub use predictions::{
    CovarianceFile, CovarianceInfo, CovarianceSums, CovarianceWriter, Field, Predictions,
    PredictionsFile, PredictionsWriter, TieRows, TopPredictionsWriter, tensor_shapes,
};
pub use presets::{Preset, paper_recipes, presets};
pub use recipe::{Likelihood, Link, Noise, Overlay, Recipe};
pub use recipe_error::RecipeError;
pub use record::{
    CreateRun, FORMAT, RunDir, RunInfo, RunLock, SetAside, Split, SplitCounts, lock_folder,
};
pub use regular::{
    check_kind, check_own_folder, create_own_folder, open_file, open_own, read_file, read_text,
};
pub use split_reader::SplitReader;
pub use sweep::{load_sweep, load_sweep_over};
pub use tasks::{Task, Tasks, load_tasks};
