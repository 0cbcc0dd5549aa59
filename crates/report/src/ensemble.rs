//! Deep ensembles: the mean of the members' probabilities, from their files.

use std::path::{Path, PathBuf};

use aleator_metrics::{EVALUATION_FORMAT, Evaluation, LogProbs, SplitEvaluation, TrueClass, Truth};
use aleator_run::{
    AtomicFolder, CreateRun, EVALUATION, EnsembleFile, EvaluatedRun, ExampleRow, Field, Link,
    MeanPredictions, Predictions, RunDir, RunError, Split, SplitReader, read_text,
};

use crate::error::ReportError;
use crate::task::task_difference;

/// Averages the probabilities of evaluated runs, writes them and their evaluation as a run
/// directory of its own, and returns the evaluation.
pub fn ensemble(dirs: &[PathBuf], out: &Path) -> Result<Evaluation, ReportError> {
    if dirs.len() < 2 {
        return Err(ReportError::TooFew(dirs.len()));
    }
    let runs: Vec<RunDir> = dirs.iter().map(|dir| RunDir::open(dir)).collect::<Result<_, _>>()?;
    let first = runs.first().ok_or(ReportError::TooFew(0))?;
    let examples = first.read_examples()?;
    for other in &runs[1..] {
        let theirs = other.read_examples()?;
        let reason = task_difference(first.info(), other.info())
            .or_else(|| example_difference(&examples, &theirs));
        if let Some(reason) = reason {
            return Err(ReportError::different(first.path(), other, "averaged with", reason));
        }
    }
    let split = |split: Split| {
        let predictions = average(&runs, split)?;
        let scores = measure(&predictions, split, first, &examples)?;
        Ok::<_, ReportError>((predictions, scores))
    };
    let (validation, validation_scores) = split(Split::Validation)?;
    let given = truth(&rows_of(&examples, Split::Validation), first, |row| row.label.as_deref())?;
    let true_class = TrueClass::fit(&validation.mean, validation.classes, &given);
    let has_test = first.info().examples.test > 0;
    let (test, test_scores) = has_test.then(|| split(Split::Test)).transpose()?.unzip();
    let evaluation = Evaluation {
        format: EVALUATION_FORMAT,
        weights: "ensemble".to_string(),
        step: None,
        class_names: first.info().class_names.clone(),
        calibration: None,
        true_class,
        validation: validation_scores,
        test: test_scores,
    };
    let recipe = first.recipe_path();
    let recipe = read_text(&recipe).map_err(RunError::io("read", &recipe))?;
    let directory = new_directory(out)?;
    let run = RunDir::create(directory.path(), &CreateRun { recipe, info: first.info().clone() })?;
    run.write_examples(examples)?;
    validation.save(&run.predictions_path(Split::Validation))?;
    if let Some(test) = &test {
        test.save(&run.predictions_path(Split::Test))?;
    }
    EnsembleFile::of(dirs, out)?.save(run.path())?;
    run.write_json(EVALUATION, &evaluation)?;
    directory.commit()?;
    Ok(evaluation)
}

/// A temporary directory that is renamed to `out` when the ensemble is complete.
fn new_directory(out: &Path) -> Result<AtomicFolder, RunError> {
    let is_empty = out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if out.symlink_metadata().is_ok() && !is_empty {
        return Err(RunError::Exists { path: out.to_path_buf() });
    }
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent).map_err(RunError::io("create", parent))?;
    }
    AtomicFolder::create(out)
}

/// [`ensemble`], unless it has been written before.
pub fn ensemble_once(dirs: &[PathBuf], out: &Path) -> Result<Evaluation, ReportError> {
    if out.join(EVALUATION).exists() {
        return Ok(EvaluatedRun::open(out)?.evaluation);
    }
    ensemble(dirs, out)
}

/// How the examples that two runs held out differ, if they do.
fn example_difference(ours: &[ExampleRow], theirs: &[ExampleRow]) -> Option<String> {
    let held_out = |row: &&ExampleRow| row.split != Split::Train;
    let ours: Vec<&ExampleRow> = ours.iter().filter(held_out).collect();
    let theirs: Vec<&ExampleRow> = theirs.iter().filter(held_out).collect();
    if ours.len() != theirs.len() {
        return Some(format!("they held out {} and {} examples", ours.len(), theirs.len()));
    }
    let (a, b) = ours.iter().zip(&theirs).find(|(a, b)| a != b)?;
    Some(format!("one has example {:?} where the other has {:?}", a.id, b.id))
}

/// The mean probabilities of one split.
fn average(runs: &[RunDir], split: Split) -> Result<Predictions, ReportError> {
    let (first, others) = runs.split_first().ok_or(ReportError::TooFew(0))?;
    let mut mean = MeanPredictions::new(&probabilities(first, split)?);
    for other in others {
        mean.add(&probabilities(other, split)?);
    }
    Ok(mean.finish())
}

/// What a run predicts, without its covariance.
fn probabilities(run: &RunDir, split: Split) -> Result<Predictions, RunError> {
    let mut file = SplitReader::open(run, split)?.file;
    let all = 0..file.examples();
    let temperature = file.temperature();
    let member = Predictions {
        classes: file.classes(),
        rank: 0,
        temperature,
        log_probs: file.read(Field::LogProbs, all.clone())?.unwrap_or_default(),
        log_probs_off: file.read(Field::LogProbsOff, all.clone())?,
        mean: file.read(Field::Mean, all.clone())?.unwrap_or_default(),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: file.read(Field::JointLogProbs, all)?,
    };
    check_probabilities(&member, run.info().link)
        .map_err(|message| RunError::damaged(file.path(), message))?;
    Ok(member)
}

/// Checks that these are probabilities as the link gives them, of at least one example.
fn check_probabilities(member: &Predictions, link: Link) -> Result<(), String> {
    /// Rounding lifts the logarithm of a probability above 0 by far less.
    const ROUNDING: f32 = 1e-3;
    let all = member.log_probs.iter().chain(member.log_probs_off.iter().flatten());
    if let Some(value) = all.clone().find(|value| **value > ROUNDING) {
        return Err(format!("{value} is not the logarithm of a probability"));
    }
    let impossible = |values: &[f32]| values.iter().all(|value| *value == f32::NEG_INFINITY);
    let wrong = match (link, &member.log_probs_off) {
        _ if member.examples() == 0 => Some("holds no examples".to_string()),
        (Link::Softmax, Some(_)) => {
            Some("log_probs_off is for head.link = \"sigmoid\"".to_string())
        }
        (Link::Sigmoid, None) => Some("log_probs_off is missing".to_string()),
        (Link::Softmax, None) => {
            let row = member.log_probs.chunks_exact(member.classes).position(impossible);
            row.map(|row| format!("row {row} has no class that is possible"))
        }
        (Link::Sigmoid, Some(off)) => {
            let mut pairs = member.log_probs.iter().zip(off);
            let at = pairs.position(|(on, off)| impossible(&[*on, *off]));
            at.map(|at| format!("row {} can be neither on nor off", at / member.classes))
        }
    };
    wrong.map_or(Ok(()), Err)
}

fn measure(
    predictions: &Predictions,
    split: Split,
    run: &RunDir,
    examples: &[ExampleRow],
) -> Result<SplitEvaluation, RunError> {
    let rows = rows_of(examples, split);
    let log_probs = LogProbs {
        classes: predictions.classes,
        on: predictions.log_probs.clone(),
        off: predictions.log_probs_off.clone(),
    };
    let given = truth(&rows, run, |row| row.label.as_deref())?;
    let is_known = rows.iter().all(|row| row.clean_label.is_some());
    let clean =
        is_known.then(|| truth(&rows, run, |row| row.clean_label.as_deref())).transpose()?;
    let all = SplitEvaluation::new(&log_probs, &given, clean.as_ref(), None);
    Ok(match &predictions.joint_log_probs {
        Some(joint) => SplitEvaluation { given: all.given.with_joint(joint, None), ..all },
        None => all,
    })
}

fn rows_of(examples: &[ExampleRow], split: Split) -> Vec<&ExampleRow> {
    examples.iter().filter(|row| row.split == split).collect()
}

/// The labels that predictions are measured against.
fn truth(
    rows: &[&ExampleRow],
    run: &RunDir,
    label: fn(&ExampleRow) -> Option<&[u32]>,
) -> Result<Truth, RunError> {
    let (link, classes) = (run.info().link, run.info().class_names.len() as u32);
    let expected = if link == Link::Softmax { "one class" } else { "classes" };
    let mut labels: Vec<&[u32]> = vec![];
    for row in rows {
        let label = label(row).filter(|label| link == Link::Sigmoid || label.len() == 1);
        labels.push(label.ok_or_else(|| {
            let message =
                format!("example {:?} needs labels of {expected} below {classes}", row.id);
            RunError::damaged(&run.examples_path(), message)
        })?);
    }
    let is_on = |label: &&[u32]| (0..classes).map(|class| label.contains(&class)).collect();
    Ok(match link {
        Link::Softmax => Truth::Classes(labels.concat()),
        Link::Sigmoid => Truth::MultiHot(labels.iter().flat_map::<Vec<bool>, _>(is_on).collect()),
    })
}
