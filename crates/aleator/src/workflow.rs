//! Everything but the layer: what the `aleator` command does, as functions.

mod analyse;
mod audit;
mod class_name;
mod demo;
mod embed;
mod error;
mod evaluate;
mod experiment;
mod finetune;
mod fit;
mod group;
mod move_data;
mod page;
mod parameters;
mod predict;
mod resume;
mod sweep;
pub mod theory;
mod transfer;
mod tune;
mod watch;

pub use analyse::{
    AnalyseSettings, Findings, PairFindings, SeedFindings, Strongest, analyse, analyse_pair,
    analyse_seeds, seed_runs,
};
pub use audit::{AUDIT_FOLDS, AuditOptions, audit, audit_probabilities, audit_run, to_accept};
pub use demo::{DEMO_AUDIT, DEMO_CORRECTED, DEMO_TRUE, Demo, LearnedConfusion, demo};
pub use embed::{EmbedSettings, EmbeddedFile, EmbeddingNetwork, embed};
pub use error::Error;
pub use evaluate::{evaluate, evaluate_on};
pub use experiment::Experiment;
pub use fit::{Fit, fit};
pub use group::TrainedRun;
pub use move_data::move_data;
pub use page::{ReportSettings, report};
pub use parameters::{KnownShape, ModelSize, count_parameters};
pub use predict::{Examples, PredictionColumns, PredictionFile, Predictor, write_json_line};
pub use resume::{Resumed, resume};
pub use sweep::{sweep, sweep_on_path};
pub use transfer::{TaskPlan, TaskScore, Transfer, TransferSettings, plan_transfer, transfer};
pub use tune::{Grid, Trial, Tuning, tune};
pub use watch::{Event, Watch};

pub use aleator_data::array::Array as LabelArray;
pub use aleator_data::{ArrayInputs, ArraySplit, Arrays, ColumnNames};
pub use aleator_report::ensemble::ensemble;
pub use aleator_train::{EvaluateSettings, NewScores};
pub use {
    aleator_data as data, aleator_embed as embeddings, aleator_metrics as metrics,
    aleator_report as report, aleator_review as review, aleator_run as run, aleator_train as train,
};
