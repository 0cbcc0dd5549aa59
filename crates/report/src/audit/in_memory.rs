//! Arrays in memory as the parts that the judgement reads.

use std::sync::Arc;

use aleator_run::{Link, Noise, Predictions, PredictionsFile, RunError, Split, SplitReader};
use sha2::{Digest, Sha256};

use super::arrays::{ModelOutput, check_log_probs, check_predictions, require};
use super::parts::{Example, Part};
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
        let mut log_probs = match self {
            Self::LogProbs(log_probs) => log_probs,
            Self::Predictions(predictions) => {
                check_predictions(&predictions, classes, link)?;
                return Ok((predictions, None));
            }
        };
        check_log_probs(&log_probs, classes, link)?;
        let (log_probs_off, mean, confidence) = match link {
            Link::Softmax => {
                let labels: Vec<&[u32]> = examples.iter().map(|it| &it.labels[..]).collect();
                let confidence = self_confidence::divide(&mut log_probs, classes, &labels);
                // The logarithm of an impossible class is −∞; a mean is finite.
                let mean = log_probs.iter().map(|log_p| log_p.max(f32::MIN)).collect();
                (None, mean, Some(confidence))
            }
            Link::Sigmoid => {
                log_probs.iter_mut().for_each(|log_p| *log_p = log_p.min(0.0));
                let off = |log_p: &f32| (-f64::from(*log_p).exp()).ln_1p();
                let log_odds = |log_p: &f32| (f64::from(*log_p) - off(log_p)) as f32;
                let mean = log_probs.iter().map(|it| log_odds(it).clamp(f32::MIN, f32::MAX));
                let off = log_probs.iter().map(|log_p| off(log_p) as f32);
                (Some(off.collect()), mean.collect(), None)
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
            joint_log_probs: None,
        };
        Ok((predictions, confidence))
    }
}

/// One part for each fold, with its rows of the predictions.
pub(super) fn divide(
    predictions: Predictions,
    examples: &[Example],
    folds: usize,
    link: Link,
) -> Result<Vec<Part>, ReportError> {
    let mut members = vec![vec![]; folds];
    examples.iter().enumerate().for_each(|(at, example)| members[example.part].push(at));
    for (fold, members) in members.iter().enumerate() {
        require(!members.is_empty(), "folds", || {
            format!("fold {fold} of {folds} has no example; number the folds from 0")
        })?;
    }
    let open = |some: &Arc<Predictions>| {
        let file = PredictionsFile::in_memory(Arc::clone(some), "predictions")?;
        Ok(SplitReader { examples: vec![], file, split: Split::Test })
    };
    let all = Arc::new(predictions);
    // Refuses arrays of the wrong size before rows of them are selected.
    open(&all)?;
    let one = |positions: Vec<usize>| {
        let own = if folds == 1 { Arc::clone(&all) } else { Arc::new(select(&all, &positions)) };
        let covariances = match link {
            Link::Softmax => Covariances::in_memory(open(&own)?),
            Link::Sigmoid => None,
        };
        Ok(Part { reader: open(&own)?, positions, covariances })
    };
    members.into_iter().map(one).collect::<Result<_, RunError>>().map_err(Into::into)
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
        joint_log_probs: of(&all.joint_log_probs, 1),
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
