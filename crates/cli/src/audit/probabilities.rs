//! The arguments of `aleator audit --probabilities`.

use std::path::PathBuf;

use aleator::report::audit::ProbabilityFiles;
use clap::Args;

/// Files of another model in place of a recipe.
#[derive(Args, Debug)]
#[command(next_help_heading = "Probabilities of another model")]
pub struct ProbabilityArgs {
    /// Judge by these probabilities, [N, K], instead of training models: .npy, .csv, .parquet or
    /// .safetensors. Each row must come from a model that was not trained on that example
    #[arg(long, value_name = "FILE", requires = "labels")]
    #[arg(conflicts_with_all = ["recipe", "data", "set", "seed", "folds", "whole"])]
    probabilities: Option<String>,
    /// The labels of the N examples: classes, names, or the columns of several annotators
    #[arg(long, value_name = "FILE", requires = "probabilities")]
    labels: Option<String>,
    /// The names of the classes, one per line, in the order of the probabilities
    #[arg(long, value_name = "FILE", requires = "probabilities")]
    names: Option<PathBuf>,
    /// The ids of the examples [default: numbers from 0]
    #[arg(long, value_name = "FILE", requires = "probabilities")]
    ids: Option<String>,
    /// The true labels, where they are known, to measure the ranking with
    #[arg(long, value_name = "FILE", requires = "probabilities")]
    clean: Option<String>,
    /// Each class is on or off: labels are [N, K] zeros and ones
    #[arg(long, requires = "probabilities")]
    multilabel: bool,
    /// The file of --probabilities holds natural logarithms
    #[arg(long, requires = "probabilities")]
    log_probabilities: bool,
}

impl ProbabilityArgs {
    /// The files, where probabilities are given.
    pub fn files(&self) -> Option<ProbabilityFiles> {
        Some(ProbabilityFiles {
            probabilities: self.probabilities.clone()?,
            logarithms: self.log_probabilities,
            multilabel: self.multilabel,
            labels: self.labels.clone()?,
            class_names: self.names.clone(),
            ids: self.ids.clone(),
            clean_labels: self.clean.clone(),
        })
    }
}
