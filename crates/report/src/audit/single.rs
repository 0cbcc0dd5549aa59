//! Labels of one class: which class each example belongs to.

use std::collections::BTreeMap;

use aleator_run::Field;
use rayon::prelude::*;

use super::annotators;
use super::comparison::{self, Bounds, Compared, Comparison, Source};
use super::findings::{self, Findings, Label, WrongLabels};
use super::pair_noise::{self, PairNoise};
use super::parts::{Example, Parts, Row};
use super::planted::{self, Confusions, ErrorLaw, PlantedError, Signs};
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{ErrorComparison, Estimate, Issue};
use super::replaced;
use super::settings::AuditSettings;
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// The classes that an example may belong to, ascending, each with its probability.
pub(super) type Posterior = Vec<(u32, f64)>;

/// Judges every label; `kept` gets the posterior of every example, in the order of the data.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    kept: Option<&mut Vec<Posterior>>,
    observer: Observer,
) -> Result<Findings, ReportError> {
    let given = given(parts)?;
    let judged = match crowd(parts, settings, observer)? {
        Some(judged) => judged,
        None => compared(parts, settings, observer)?,
    };
    let Judged { posteriors, concentration, wrong, comparison } = judged;
    let Parts { task, annotators, examples, parts, .. } = parts;
    let classes = task.class_names.len();
    let labels: Vec<Label> = examples
        .iter()
        .zip(given)
        .zip(&posteriors)
        .map(|((example, given), posterior)| Label { example, given, posterior })
        .collect();
    let pairs: Vec<(u32, u32)> =
        labels.iter().map(|label| (label.given, label.suggested().0)).collect();
    let ties = pair_noise::ties(parts, &pairs, observer)?;
    let noise = PairNoise::measure(parts, classes, &posteriors, observer)?;
    let issues: Vec<Issue> =
        labels.iter().zip(&ties).map(|(label, tie)| label.issue(*tie)).collect();
    let joint = findings::joint(&labels);
    let found = Findings {
        classes: findings::classes(classes, &labels, &joint),
        pairs: findings::pairs(classes, &joint, noise.as_ref()),
        annotators: findings::annotators(annotators, &labels),
        consensus: findings::consensus(annotators, &labels),
        concentration,
        wrong: wrong.unwrap_or_else(|| counted(examples, parts.len(), &issues)),
        comparison,
        issues,
    };
    if let Some(kept) = kept {
        *kept = posteriors;
    }
    Ok(found)
}

/// The labels of all examples.
fn given(parts: &Parts) -> Result<Vec<u32>, ReportError> {
    Ok(parts.examples.iter().map(Example::given).collect::<Result<_, _>>()?)
}

/// What the predictions say of every label.
struct Judged {
    /// Of every example, in the order of the data.
    posteriors: Vec<Posterior>,
    /// κ of the annotators' confusions, where they have their own.
    concentration: Option<f64>,
    /// The number of wrong labels; `None` where the scores alone say it.
    wrong: Option<Estimate>,
    /// How the labels compare with planted errors.
    comparison: Option<ErrorComparison>,
}

/// The sum of the scores.
fn counted(examples: &[Example], parts: usize, issues: &[Issue]) -> Estimate {
    let mut wrong = WrongLabels::new(parts);
    let scores = examples.iter().zip(issues);
    scores.for_each(|(example, issue)| wrong.add(example.part, issue.score));
    wrong.estimate()
}

/// Judges by several annotators, each with a confusion of their own: their labels say together what
/// is true. `None` where annotators are not known, or are too many.
fn crowd(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Option<Judged>, ReportError> {
    if parts.annotators.len() < 2 {
        return Ok(None);
    }
    let confusion = Confusion::new(parts.task.class_names.len(), settings);
    let confusion = learn(parts, confusion, settings.passes, settings, observer)?;
    let Some(crowd) = annotators::learn(parts, &confusion, settings, observer)? else {
        return Ok(None);
    };
    let mut posteriors = vec![vec![]; parts.examples.len()];
    each_piece(parts, settings, |rows, evidence| {
        let found: Vec<Posterior> = rows
            .par_iter()
            .zip(evidence)
            .map(|(row, evidence)| {
                let (posterior, _) = crowd.posterior(evidence, &row.example.votes);
                with_classes(evidence, posterior)
            })
            .collect();
        rows.iter().zip(found).for_each(|(row, found)| posteriors[row.position] = found);
    })?;
    let concentration = Some(crowd.concentration);
    Ok(Some(Judged { posteriors, concentration, wrong: None, comparison: None }))
}

/// Labels judged without training, and errors planted among them.
#[derive(Debug)]
pub(super) struct Planting {
    given: Vec<u32>,
    confusions: Confusions,
    judged: Vec<planted::Judged>,
    pub rounds: Vec<Vec<PlantedError>>,
}

impl Planting {
    /// The labels of each round.
    pub fn labels(&self) -> Vec<Vec<u32>> {
        let labels = |errors: &Vec<PlantedError>| {
            let mut labels = self.given.clone();
            errors.iter().for_each(|error| labels[error.example] = error.label);
            labels
        };
        self.rounds.iter().map(labels).collect()
    }
}

/// Learns the confusion of the classes, judges every example by it, and draws errors.
pub(super) fn plant(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Planting, ReportError> {
    let given = given(parts)?;
    let confusion = Confusion::new(parts.task.class_names.len(), settings);
    let by_example = learn(parts, confusion, settings.passes, settings, observer)?;
    let by_class = of_class_alone(settings);
    let by_class = learn(parts, by_example.clone(), FEWER_PASSES, &by_class, observer)?;
    let confusions = Confusions { by_example, by_class };
    let mut judged: Vec<Option<planted::Judged>> = given.iter().map(|_| None).collect();
    each_piece(parts, settings, |rows, evidence| {
        let found: Vec<planted::Judged> = rows
            .par_iter()
            .zip(evidence)
            .map(|(row, evidence)| {
                let [_, log_probs] = row.fields;
                planted::judge(evidence, log_probs, &confusions, given[row.position])
            })
            .collect();
        rows.iter().zip(found).for_each(|(row, found)| judged[row.position] = Some(found));
    })?;
    let judged: Vec<planted::Judged> = judged.into_iter().flatten().collect();
    let laws: Vec<ErrorLaw> = judged.iter().map(|one| one.law).collect();
    let rounds = planted::draw(parts, &confusions, settings, &given, &laws)?;
    Ok(Planting { given, confusions, judged, rounds })
}

/// Judges by comparison with planted errors.
fn compared(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Judged, ReportError> {
    let planting = match parts.planting.take() {
        Some(planting) => planting,
        None => plant(parts, settings, observer)?,
    };
    let bounds = bounds(parts, &planting, settings, observer)?;
    let Planting { given, judged, rounds, .. } = planting;
    let share = |doubt: fn(Signs) -> f64| {
        judged.iter().map(|one| doubt(one.signs)).sum::<f64>() / judged.len() as f64
    };
    let (share, class_share) = (share(Signs::doubt), share(Signs::class_doubt));
    let ambiguities: Vec<f64> = judged.iter().map(|one| one.ambiguity).collect();
    let mut sources = vec![Source {
        given: judged.iter().map(|one| one.signs).collect(),
        kept: vec![],
        errors: rounds.iter().flatten().map(|error| error.signs).collect(),
        posteriors: judged.into_iter().map(|one| one.posterior).collect(),
    }];
    if let Some(dynamics) = &parts.dynamics {
        let classes = parts.task.class_names.len();
        sources.push(dynamics.read(&given, &rounds, classes, settings).into());
    }
    let comparison = Comparison::new(&Compared {
        sources: &sources,
        rounds: &rounds,
        ambiguities: &ambiguities,
        share,
        class_share,
    });
    let (scores, counts) = comparison.scores(&sources);
    let weights = comparison.weights();
    let posterior = |(at, score): (usize, &f64)| {
        let parts = sources.iter().map(|source| &source.posteriors[at]).zip(&weights);
        combined(parts, given[at], *score)
    };
    Ok(Judged {
        posteriors: scores.par_iter().enumerate().map(posterior).collect(),
        concentration: None,
        wrong: Some(comparison::estimate(&scores, counts, bounds)),
        comparison: Some(comparison.record(counts, bounds)),
    })
}

/// What the number of wrong labels can hardly be below or above.
fn bounds(
    parts: &mut Parts,
    planting: &Planting,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Bounds, ReportError> {
    let Planting { given, confusions, judged, .. } = planting;
    let sum = |doubt: fn(&planted::Judged) -> f64| judged.iter().map(doubt).sum::<f64>();
    // A truth that is clearer than the predictions.
    let clearer = AuditSettings { sharpness: 1.5 * settings.sharpness, ..*settings };
    let doubts = [
        sum(|one| one.signs.doubt()),
        sum(|one| one.signs.class_doubt()),
        doubted(parts, &confusions.by_example, given, &clearer, observer)?,
    ];
    let contradicted = sum(|one| if one.is_contradicted { 1.0 } else { one.signs.doubt() });
    Ok(Bounds {
        replaced: replaced::share(parts, given)? * given.len() as f64,
        least_doubted: doubts.iter().copied().fold(f64::INFINITY, f64::min),
        most_doubted: doubts.iter().copied().fold(contradicted, f64::max),
    })
}

/// The same settings with errors that do not depend on the example.
fn of_class_alone(settings: &AuditSettings) -> AuditSettings {
    AuditSettings { label_power: 0.0, ..*settings }
}

/// Passes that start from a confusion that was learned under other settings.
const FEWER_PASSES: usize = 20;

/// The sum of the posterior probabilities of being wrong; C is learned again from `start`.
fn doubted(
    parts: &mut Parts,
    start: &Confusion,
    given: &[u32],
    settings: &AuditSettings,
    observer: Observer,
) -> Result<f64, ReportError> {
    let confusion = learn(parts, start.clone(), FEWER_PASSES, settings, observer)?;
    let mut sum = 0.0;
    each_piece(parts, settings, |rows, evidence| {
        let doubt = |(row, evidence): (&Row<2>, &Evidence)| {
            let posterior = with_classes(evidence, confusion.posterior(evidence).0);
            1.0 - findings::probability(&posterior, given[row.position])
        };
        let doubts: Vec<f64> = rows.par_iter().zip(evidence).map(doubt).collect();
        sum += doubts.iter().sum::<f64>();
    })?;
    Ok(sum)
}

/// One posterior of several, each as much as it counts, that calls the given label wrong with
/// probability `score`.
fn combined<'a>(
    parts: impl Iterator<Item = (&'a Posterior, &'a f64)>,
    given: u32,
    score: f64,
) -> Posterior {
    let mut logs: BTreeMap<u32, f64> = BTreeMap::new();
    let mut least = 0.0;
    for (posterior, weight) in parts {
        // A class that one source does not name is as improbable there as a probability can be.
        let floor = weight * 1e-12f64.ln();
        let known: BTreeMap<u32, f64> = posterior.iter().copied().collect();
        for (class, log) in &mut logs {
            *log += known.get(class).map_or(floor, |value| weight * value.max(1e-12).ln());
        }
        for (class, value) in known {
            logs.entry(class).or_insert_with(|| least + weight * value.max(1e-12).ln());
        }
        least += floor;
    }
    logs.remove(&given);
    let most = logs.values().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.values().map(|log| (log - most).exp()).sum();
    let mut all: Posterior =
        logs.into_iter().map(|(class, log)| (class, score * (log - most).exp() / sum)).collect();
    all.push((given, 1.0 - score));
    all.sort_unstable_by_key(|(class, _)| *class);
    all
}

pub(super) fn with_classes(evidence: &Evidence, posterior: Vec<f64>) -> Posterior {
    evidence.candidates.iter().map(|(class, _)| *class).zip(posterior).collect()
}

/// C, by expectation maximisation from a first guess.
fn learn(
    parts: &mut Parts,
    mut confusion: Confusion,
    passes: usize,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Confusion, ReportError> {
    let mut before = f64::NEG_INFINITY;
    for pass in 0..passes {
        let mut counts = Counts::new(&confusion);
        each_piece(parts, settings, |_, evidence| counts.add_all(evidence, &confusion))?;
        confusion = counts.updated(&confusion, settings);
        let (done, total) = (pass + 1, passes);
        observer(Step { what: "confusion of the labels", done, total });
        let change = (counts.log_likelihood - before) / parts.examples.len() as f64;
        if change.abs() < settings.tolerance {
            break;
        }
        before = counts.log_likelihood;
    }
    Ok(confusion)
}

/// Gives `take` some examples at a time, with what is known of them.
pub(super) fn each_piece(
    parts: &mut Parts,
    settings: &AuditSettings,
    mut take: impl FnMut(&[Row<2>], &[Evidence]),
) -> Result<(), ReportError> {
    parts.each_piece([Field::Mean, Field::LogProbs], |rows| {
        let evidence: Vec<Evidence> = rows.par_iter().map(|row| evidence(row, settings)).collect();
        take(rows, &evidence);
    })
}

fn evidence<'a>(row: &Row<'a, 2>, settings: &AuditSettings) -> Evidence<'a> {
    row_evidence(row, &row.example.labels, settings)
}

/// What is known of an example, if it had these labels.
pub(super) fn row_evidence<'a>(
    row: &Row<'_, 2>,
    labels: &'a [u32],
    settings: &AuditSettings,
) -> Evidence<'a> {
    let [mean, log_probs] = row.fields;
    let mean = mean.iter().map(|mean| f64::from(*mean) / row.temperature);
    Evidence::new(mean, log_probs, labels, settings)
}
