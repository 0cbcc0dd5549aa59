//! Deep ensembles: the mean of the members' probabilities, from their files.

use std::path::{Path, PathBuf};

use aleator_metrics::{EVALUATION_FORMAT, Evaluation, LogProbs, SplitEvaluation, Truth};
use aleator_run::{
    AtomicFolder, CreateRun, ExampleRow, Link, Predictions, RunDir, RunError, Split,
};

use crate::error::ReportError;

const EVALUATION: &str = "evaluation.json";

/// Averages the probabilities of evaluated runs, writes them and their evaluation as a run
/// directory of its own, and returns the evaluation.
pub fn ensemble(dirs: &[PathBuf], out: &Path) -> Result<Evaluation, ReportError> {
    if dirs.len() < 2 {
        return Err(ReportError::TooFew(dirs.len()));
    }
    let runs: Vec<RunDir> = dirs.iter().map(|dir| RunDir::open(dir)).collect::<Result<_, _>>()?;
    let (first, others) = runs.split_first().ok_or(ReportError::TooFew(0))?;
    let examples = first.read_examples()?;
    check_labels(first, &examples)?;
    for other in others {
        same_task(first, &examples, other)?;
    }
    let validation = average(&runs, Split::Validation, &examples)?;
    let test = match first.info().examples.test {
        0 => None,
        _ => Some(average(&runs, Split::Test, &examples)?),
    };
    let link = first.info().link;
    let evaluation = Evaluation {
        format: EVALUATION_FORMAT,
        weights: "ensemble".to_string(),
        step: None,
        class_names: first.info().class_names.clone(),
        calibration: None,
        validation: measure(&validation, Split::Validation, &examples, link),
        test: test.as_ref().map(|it| measure(it, Split::Test, &examples, link)),
    };
    let recipe_path = first.recipe_path();
    let recipe = std::fs::read_to_string(&recipe_path).map_err(|source| RunError::Io {
        action: "read",
        path: recipe_path,
        source,
    })?;
    let folder = new_folder(out)?;
    let run = RunDir::create(folder.path(), &CreateRun { recipe, info: first.info().clone() })?;
    run.write_examples(examples)?;
    validation.save(&run.predictions_path(Split::Validation))?;
    if let Some(test) = &test {
        test.save(&run.predictions_path(Split::Test))?;
    }
    let members: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    run.write_json("ensemble.json", &serde_json::json!({ "members": members }))?;
    run.write_json(EVALUATION, &evaluation)?;
    folder.commit()?;
    Ok(evaluation)
}

/// A folder that takes its place when the ensemble is complete, where nothing stands yet.
fn new_folder(out: &Path) -> Result<AtomicFolder, RunError> {
    let is_empty_folder = out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if out.symlink_metadata().is_ok() && !is_empty_folder {
        return Err(RunError::Exists { path: out.to_path_buf() });
    }
    if let Some(parent) = out.parent() {
        let io = |source| RunError::Io { action: "create", path: parent.to_path_buf(), source };
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    AtomicFolder::create(out)
}

/// [`ensemble`], unless it stands there already.
pub fn ensemble_once(dirs: &[PathBuf], out: &Path) -> Result<Evaluation, ReportError> {
    if out.join(EVALUATION).exists() {
        return Ok(RunDir::open(out)?.read_json(EVALUATION)?);
    }
    ensemble(dirs, out)
}

/// Runs can be averaged when they speak of the same examples and classes.
fn same_task(first: &RunDir, examples: &[ExampleRow], other: &RunDir) -> Result<(), ReportError> {
    let differ = |reason: String| {
        let (first, other) = (first.path().to_path_buf(), other.path().to_path_buf());
        Err(ReportError::Different { first, other, reason })
    };
    let (a, b) = (first.info(), other.info());
    if a.class_names != b.class_names {
        let (a, b) = (a.class_names.len(), b.class_names.len());
        return differ(format!("their classes are not the same ({a} and {b})"));
    }
    if a.link != b.link {
        return differ("one has the softmax link, the other the sigmoid link".to_string());
    }
    let held_out = |rows: &[ExampleRow]| -> Vec<ExampleRow> {
        rows.iter().filter(|row| row.split != Split::Train).cloned().collect()
    };
    let (ours, theirs) = (held_out(examples), held_out(&other.read_examples()?));
    if ours.len() != theirs.len() {
        let (ours, theirs) = (ours.len(), theirs.len());
        return differ(format!("they held out {ours} and {theirs} examples"));
    }
    match ours.iter().zip(&theirs).find(|(a, b)| a != b) {
        Some((a, b)) => differ(format!("example {:?} stands where {:?} stands", a.id, b.id)),
        None => Ok(()),
    }
}

/// The labels that are measured on must be of the run's classes, and of its kind.
fn check_labels(run: &RunDir, examples: &[ExampleRow]) -> Result<(), RunError> {
    let (classes, link) = (run.info().class_names.len(), run.info().link);
    let possible = |label: &[u32]| {
        label.iter().all(|class| (*class as usize) < classes)
            && (link == Link::Sigmoid || label.len() == 1)
    };
    let wrong = |row: &&ExampleRow| {
        let clean = row.clean_label.as_deref().is_none_or(possible);
        row.split != Split::Train && !(row.label.as_deref().is_some_and(possible) && clean)
    };
    match examples.iter().find(wrong) {
        None => Ok(()),
        Some(row) => {
            let expected = match link {
                Link::Softmax => "one class",
                Link::Sigmoid => "classes",
            };
            let message =
                format!("example {:?} needs labels of {expected} below {classes}", row.id);
            Err(RunError::Damaged { path: run.examples_path(), message })
        }
    }
}

/// The mean probabilities of one split. The means of the utilities are averaged too; a
/// covariance an average has not.
fn average(
    runs: &[RunDir],
    split: Split,
    examples: &[ExampleRow],
) -> Result<Predictions, ReportError> {
    let expected = examples.iter().filter(|row| row.split == split).count();
    let mut sum: Option<Predictions> = None;
    for run in runs {
        let path = run.predictions_path(split);
        if !path.exists() {
            let dir = run.path().to_path_buf();
            return Err(ReportError::NotEvaluated { dir, split: split.name() });
        }
        let member = Predictions::load(&path)?;
        if member.examples() != expected || member.classes != run.info().class_names.len() {
            let (found, classes) = (member.examples(), member.classes);
            let message = format!(
                "holds {found} examples of {classes} classes, expected {expected} of {}",
                run.info().class_names.len()
            );
            return Err(RunError::Damaged { path, message }.into());
        }
        if let Err(message) = check_probabilities(&member, run.info().link) {
            return Err(RunError::Damaged { path, message }.into());
        }
        sum = Some(match sum {
            None => plain(member),
            Some(sum) => add(sum, &member),
        });
    }
    let mut mean = sum.ok_or(ReportError::TooFew(0))?;
    let count = runs.len() as f32;
    let log_count = (runs.len() as f64).ln() as f32;
    mean.log_probs.iter_mut().for_each(|value| *value -= log_count);
    mean.log_probs_off.iter_mut().flatten().for_each(|value| *value -= log_count);
    mean.mean.iter_mut().for_each(|value| *value /= count);
    Ok(mean)
}

/// Whether these are probabilities of the kind that the link gives, of at least one example.
fn check_probabilities(member: &Predictions, link: Link) -> Result<(), String> {
    /// Rounding lifts the logarithm of a probability above 0 by far less.
    const ROUNDING: f32 = 1e-3;
    let all = member.log_probs.iter().chain(member.log_probs_off.iter().flatten());
    if let Some(value) = all.clone().find(|value| **value > ROUNDING) {
        return Err(format!("{value} is not the logarithm of a probability"));
    }
    let impossible = |values: &[f32]| values.iter().all(|value| *value == f32::NEG_INFINITY);
    let rows = || member.log_probs.chunks_exact(member.classes);
    match (link, &member.log_probs_off) {
        _ if member.examples() == 0 => Err("holds no examples".to_string()),
        (Link::Softmax, Some(_)) => Err("log_probs_off is for head.link = \"sigmoid\"".to_string()),
        (Link::Sigmoid, None) => Err("log_probs_off is missing".to_string()),
        (Link::Softmax, None) => match rows().position(impossible) {
            Some(row) => Err(format!("row {row} has no class that is possible")),
            None => Ok(()),
        },
        (Link::Sigmoid, Some(off)) => {
            let mut pairs = member.log_probs.iter().zip(off);
            match pairs.position(|(on, off)| impossible(&[*on, *off])) {
                Some(at) => Err(format!("row {} can be neither on nor off", at / member.classes)),
                None => Ok(()),
            }
        }
    }
}

fn plain(member: Predictions) -> Predictions {
    Predictions {
        rank: 0,
        temperature: 1.0,
        mean: member.mean.iter().map(|value| value / member.temperature).collect(),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        ..member
    }
}

fn add(mut sum: Predictions, member: &Predictions) -> Predictions {
    log_add(&mut sum.log_probs, &member.log_probs);
    if let (Some(sum), Some(member)) = (&mut sum.log_probs_off, &member.log_probs_off) {
        log_add(sum, member);
    }
    let means = sum.mean.iter_mut().zip(&member.mean);
    means.for_each(|(sum, value)| *sum += value / member.temperature);
    sum
}

/// log(eᵃ + eᵇ), in place.
fn log_add(sum: &mut [f32], other: &[f32]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        let (high, low) = (sum.max(*other) as f64, sum.min(*other) as f64);
        if low > f64::NEG_INFINITY {
            *sum = (high + (low - high).exp().ln_1p()) as f32;
        } else {
            *sum = high as f32;
        }
    }
}

fn measure(
    predictions: &Predictions,
    split: Split,
    examples: &[ExampleRow],
    link: Link,
) -> SplitEvaluation {
    let rows: Vec<&ExampleRow> = examples.iter().filter(|row| row.split == split).collect();
    let log_probs = LogProbs {
        classes: predictions.classes,
        on: predictions.log_probs.clone(),
        off: predictions.log_probs_off.clone(),
    };
    let truth = |label: fn(&ExampleRow) -> Option<&Vec<u32>>| {
        let labels: Option<Vec<&Vec<u32>>> = rows.iter().map(|row| label(row)).collect();
        labels.map(|labels| match link {
            Link::Softmax => {
                Truth::Classes(labels.iter().filter_map(|label| label.first().copied()).collect())
            }
            Link::Sigmoid => {
                let row = |label: &&Vec<u32>| {
                    let label = (*label).clone();
                    (0..predictions.classes as u32).map(move |class| label.contains(&class))
                };
                Truth::MultiHot(labels.iter().flat_map(row).collect())
            }
        })
    };
    let given = truth(|row| row.label.as_ref()).expect("labels were checked");
    let clean = truth(|row| row.clean_label.as_ref());
    SplitEvaluation::new(&log_probs, &given, clean.as_ref(), None)
}
