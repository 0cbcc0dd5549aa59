//! Arrays in memory as the parts that the judgement reads.

use std::sync::Arc;

use aleator_run::{FORMAT, Link, Noise, Predictions, PredictionsFile, RunInfo, SplitCounts};
use sha2::{Digest, Sha256};

use super::arrays::{ModelOutput, check_log_probs, check_predictions, refused};
use super::parts::{Example, Part, Task};
use super::self_confidence;
use crate::covariance::Covariances;
use crate::error::ReportError;

impl ModelOutput {
    /// Predictions as a model of ours gives them, and what the probabilities were divided by.
    pub(super) fn predictions(
        self,
        examples: &[Example],
        classes: usize,
        link: Link,
    ) -> Result<(Predictions, Option<Vec<f64>>), ReportError> {
        match self {
            Self::Predictions(predictions) => {
                check_predictions(&predictions, classes, link)?;
                Ok((predictions, None))
            }
            Self::LogProbs(mut log_probs) => {
                check_log_probs(&log_probs, classes, link)?;
                let (log_probs_off, mean, confidence) = match link {
                    Link::Softmax => {
                        let labels: Vec<&[u32]> =
                            examples.iter().map(|example| &example.labels[..]).collect();
                        let confidence = self_confidence::divide(&mut log_probs, classes, &labels);
                        // The logarithm of an impossible class is −∞; a mean is finite.
                        let mean = log_probs.iter().map(|log_p| log_p.max(f32::MIN)).collect();
                        (None, mean, Some(confidence))
                    }
                    Link::Sigmoid => {
                        log_probs.iter_mut().for_each(|log_p| *log_p = log_p.min(0.0));
                        let off = |log_p: &f32| (-f64::from(*log_p).exp()).ln_1p();
                        let mean = log_probs.iter().map(|log_p| {
                            let log_odds = (f64::from(*log_p) - off(log_p)) as f32;
                            log_odds.clamp(f32::MIN, f32::MAX)
                        });
                        let mean = mean.collect();
                        let off = log_probs.iter().map(|log_p| off(log_p) as f32).collect();
                        (Some(off), mean, None)
                    }
                };
                let predictions = Predictions {
                    classes,
                    rank: 0,
                    temperature: 1.0,
                    log_probs,
                    log_probs_off,
                    mean,
                    diag_scale: None,
                    loadings: None,
                    loading_scale: None,
                    shared_loadings: None,
                };
                Ok((predictions, confidence))
            }
        }
    }
}

/// One part for each fold, with its rows of the predictions.
pub(super) fn divide(
    predictions: Predictions,
    examples: &[Example],
    folds: usize,
    task: &Task,
) -> Result<Vec<Part>, ReportError> {
    let mut members = vec![vec![]; folds];
    examples.iter().enumerate().for_each(|(at, example)| members[example.part].push(at));
    if let Some(fold) = members.iter().position(Vec::is_empty) {
        let message = format!("fold {fold} of {folds} has no example; number the folds from 0");
        return Err(refused("folds", message));
    }
    let open =
        |some: &Arc<Predictions>| PredictionsFile::in_memory(Arc::clone(some), "predictions");
    let all = Arc::new(predictions);
    // Refuses arrays of the wrong size before rows of them are selected.
    open(&all)?;
    let one = |rows: Vec<usize>| {
        let own = if folds == 1 { Arc::clone(&all) } else { Arc::new(select(&all, &rows)) };
        let covariances = match task.link {
            Link::Softmax => {
                let listed = rows.iter().map(|at| examples[*at].row.clone()).collect();
                Covariances::in_memory(open(&own)?, listed, info(task, rows.len()))
            }
            Link::Sigmoid => None,
        };
        Ok(Part { file: open(&own)?, examples: rows, covariances })
    };
    members.into_iter().map(one).collect()
}

/// Some rows of predictions.
fn select(all: &Predictions, rows: &[usize]) -> Predictions {
    let picked = |values: &[f32], width: usize| -> Vec<f32> {
        rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
    };
    let Predictions { classes, rank, temperature, .. } = *all;
    let of = |values: &Option<Vec<f32>>, width| values.as_ref().map(|it| picked(it, width));
    Predictions {
        classes,
        rank,
        temperature,
        log_probs: picked(&all.log_probs, classes),
        log_probs_off: of(&all.log_probs_off, classes),
        mean: picked(&all.mean, classes),
        diag_scale: of(&all.diag_scale, classes),
        loadings: of(&all.loadings, classes * rank),
        loading_scale: of(&all.loading_scale, classes),
        shared_loadings: all.shared_loadings.clone(),
    }
}

pub(super) fn noise(predictions: &Predictions) -> Noise {
    let rank = predictions.rank;
    match predictions {
        Predictions { diag_scale: None, .. } => Noise::None,
        Predictions { loadings: Some(_), .. } => Noise::LowRank { rank },
        Predictions { loading_scale: Some(_), .. } => Noise::SharedLowRank { rank },
        _ => Noise::Diagonal,
    }
}

/// A run that exists in memory only.
fn info(task: &Task, examples: usize) -> RunInfo {
    RunInfo {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: 0,
        fingerprint: task.fingerprint.clone(),
        link: task.link,
        noise: task.noise,
        class_names: task.class_names.clone(),
        input_shape: vec![],
        examples: SplitCounts { train: 0, validation: 0, test: examples },
        set_aside: vec![],
        pretrained: None,
    }
}

/// Identifies labels by SHA-256 of class names, ids and labels. Decisions of a review stay valid
/// when other predictions judge the same labels, so predictions are no part of it.
pub(super) fn fingerprint(class_names: &[String], examples: &[Example]) -> String {
    let mut hasher = Sha256::new();
    let mut text = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    class_names.iter().for_each(|name| text(name));
    for example in examples {
        text(&example.row.id);
        text(&format!("{:?} {:?}", example.row.label, example.votes));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
