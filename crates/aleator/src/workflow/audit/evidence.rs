//! An audit of embeddings and tables without folds: every label is judged by all other examples in
//! closed form, and by how training goes with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use aleator_data::{DenseRows, InputShape, Labels, Sources, Split, Thumbnails};
use aleator_report::audit::{
    Audit, AuditInput, AuditLabels, AuditSettings, Judgement, ModelOutput, PlantedErrors,
    TrainingDynamics, judge,
};
use aleator_report::covariance::Step;
use aleator_run::recipe::Normalize;
use aleator_run::{Predictions, Recipe};
use aleator_train::{TrainError, dynamics, label_sets, leave_one_out};
use rayon::prelude::*;

use super::examples::votes;
use crate::{Error, Event, Watch};

/// Refuses photographs, and tables of more probabilities than fit into memory.
pub fn check(sources: &Sources) -> Result<(), Error> {
    let (shape, numbers) = (sources.shape(), sources.shape().len());
    if matches!(shape, InputShape::Image { .. }) && numbers > MOST_PIXELS {
        return Err(Error::invalid(format!(
            "features-audit compares examples by their numbers, and {shape} are {numbers} numbers \
             each; embed images of this size first (`aleator embed`), or audit a trained run"
        )));
    }
    let (examples, classes) = (sources.len(), sources.class_names().len());
    if examples.saturating_mul(classes) > MOST_PROBABILITIES {
        return Err(Error::invalid(format!(
            "features-audit holds the probabilities of {classes} classes for {examples} examples in \
             memory, which are too many; give a recipe that judges in folds, as in `aleator audit \
             features-shared --data …`"
        )));
    }
    Ok(())
}

/// Numbers of an image at most: 64 × 64 pixels in colour. Those of larger photographs say little.
const MOST_PIXELS: usize = 64 * 64 * 3;
/// 1 GiB of f32; several such tables are held.
const MOST_PROBABILITIES: usize = 1 << 28;

/// Judges the labels of all examples of a recipe's training source; says how features were scaled
/// for it.
pub fn audit_features(
    sources: &Sources,
    recipe: &Recipe,
    seed: u64,
    pictures: Option<&Thumbnails>,
    watch: &mut Watch<'_>,
) -> Result<(Audit, Normalize), Error> {
    let examples = sources.training_source(&recipe.data)?;
    let stop = watch.stop();
    watch.note("comparing every example with all others");
    let others = leave_one_out(&examples, stop)?.ok_or_else(stopped)?;
    watch.note(&format!("features are scaled: {}", others.normalize.in_words()));
    let normalize = others.normalize;
    let input = input(sources, &examples, others.log_probs, pictures);
    let settings = &AuditSettings::STANDARD;
    let judgement = match input.labels {
        AuditLabels::Single(_) => {
            let planted = PlantedErrors::new(input, settings, &mut |_| {})?;
            let trainings = Trainings { recipe, seed, normalize, examples: &examples };
            let dynamics = trainings.dynamics(planted.labels(), watch)?;
            planted.judge(dynamics, &mut |step| show(watch, step))?
        }
        _ => judge_annotators(input, &examples, watch)?,
    };
    let mut audit = judgement.audit;
    audit.summary.fingerprint = sources.fingerprint().to_string();
    Ok((audit, normalize))
}

/// Judges what annotators said, then once more with what they say together.
fn judge_annotators(
    input: AuditInput,
    examples: &Split,
    watch: &mut Watch<'_>,
) -> Result<Judgement, Error> {
    let settings = &AuditSettings::STANDARD;
    let mut found = judge(input.clone(), settings, &mut |step| show(watch, step))?;
    if found.audit.summary.annotator_concentration.is_some() {
        watch.note("comparing every example with what all annotators say together of the others");
        for _ in 0..CONSENSUS_ROUNDS {
            let output = with_consensus(examples, &input.output, &found, watch.stop())?;
            let input = AuditInput { output, ..input.clone() };
            found = judge(input, settings, &mut |step| show(watch, step))?;
        }
    }
    Ok(found)
}

/// How often a second model is fitted to the consensus, and the consensus made anew with it.
const CONSENSUS_ROUNDS: usize = 2;

/// The predictions of what is true by two models, of which the one was fitted to all annotations
/// and the other to what was found to be true. The posterior sharpens the mean of the utilities
/// (a = 2), as the first model predicts labels and not the truth; the second one predicts the
/// truth, so that it needs none, and each counts for a half.
fn with_consensus(
    examples: &Split,
    output: &ModelOutput,
    found: &Judgement,
    stop: &AtomicBool,
) -> Result<ModelOutput, Error> {
    let ModelOutput::LogProbs(log_probs) = output else {
        unreachable!("all other examples give probabilities")
    };
    let values = found.posterior_matrix().into_iter().map(|value| value as f32).collect();
    let labels = Labels::Soft(DenseRows { classes: examples.classes, values });
    let consensus = Split { labels, ..examples.clone() };
    let truth = leave_one_out(&consensus, stop)?.ok_or_else(stopped)?.log_probs;
    let one_half = 0.5 / AuditSettings::STANDARD.sharpness as f32;
    let mean = log_probs.iter().zip(&truth).map(|(label, truth)| 0.5 * label + one_half * truth);
    Ok(ModelOutput::Predictions(Predictions {
        classes: examples.classes,
        rank: 0,
        temperature: 1.0,
        mean: mean.collect(),
        log_probs: log_probs.clone(),
        log_probs_off: None,
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    }))
}

fn show(watch: &mut Watch<'_>, step: Step) {
    let (done, total) = (step.done, step.total);
    watch.event(Event::Progress { what: "labels judged", done, total });
}

fn stopped() -> Error {
    Error::Interrupted("stopped before the labels were judged".to_string())
}

fn input(
    sources: &Sources,
    examples: &Split,
    log_probs: Vec<f32>,
    pictures: Option<&Thumbnails>,
) -> AuditInput {
    let given: Vec<u32> = label_sets(examples).into_iter().map(|label| label[0]).collect();
    let labels = match &examples.labels {
        Labels::Annotations(all) => AuditLabels::Votes {
            votes: (0..examples.len()).map(|at| votes(all, at)).collect(),
            annotators: all.annotator_names.clone(),
            labels: Some(given),
        },
        _ => AuditLabels::Single(given),
    };
    let ids: Vec<String> =
        (0..examples.len()).map(|at| examples.ids.name(at).into_owned()).collect();
    let paths = pictures.and_then(|all| ids.iter().map(|id| all.path(id)).collect());
    let output = ModelOutput::LogProbs(log_probs);
    AuditInput {
        ids: Some(ids),
        paths,
        clean_labels: examples.clean_labels.clone(),
        ..AuditInput::new(sources.class_names().to_vec(), labels, output)
    }
}

/// The trainings whose dynamics are evidence.
struct Trainings<'a> {
    recipe: &'a Recipe,
    seed: u64,
    normalize: Normalize,
    examples: &'a Split,
}

impl Trainings<'_> {
    /// Trains on the given labels and on each set of planted ones, several at once.
    fn dynamics(
        &self,
        planted: &[Vec<u32>],
        watch: &mut Watch<'_>,
    ) -> Result<TrainingDynamics, Error> {
        let (stop, steps, total) = (watch.stop(), AtomicUsize::new(0), AtomicUsize::new(0));
        let train = |(run, labels): (usize, Option<&Vec<u32>>)| {
            let mut examples = self.examples.clone();
            examples.weights = None;
            if let Some(labels) = labels {
                examples.labels = Labels::Single(labels.clone());
            }
            let seed = self.seed.wrapping_add(run as u64);
            let examples = Arc::new(examples);
            dynamics(self.recipe, seed, self.normalize, &examples, stop, &mut |_, all| {
                steps.fetch_add(1, Ordering::Relaxed);
                total.store(all, Ordering::Relaxed);
            })
        };
        let runs: Vec<(usize, Option<&Vec<u32>>)> =
            [None].into_iter().chain(planted.iter().map(Some)).enumerate().collect();
        let found: Result<Vec<Option<Vec<f32>>>, TrainError> = thread::scope(|scope| {
            let train_all = || runs.par_iter().copied().map(&train).collect();
            let Ok(work) = thread::Builder::new().spawn_scoped(scope, train_all) else {
                // Without another thread there is no progress to be seen.
                return train_all();
            };
            while !work.is_finished() {
                thread::sleep(Duration::from_millis(50));
                let total = total.load(Ordering::Relaxed) * runs.len();
                if total > 0 {
                    let done = steps.load(Ordering::Relaxed);
                    watch.event(Event::Progress { what: "steps of training", done, total });
                }
            }
            work.join().expect("trainings do not panic")
        });
        let mut found = found?.into_iter();
        let given = found.next().flatten().ok_or_else(stopped)?;
        let planted = found.collect::<Option<Vec<Vec<f32>>>>().ok_or_else(stopped)?;
        Ok(TrainingDynamics { given, planted })
    }
}
