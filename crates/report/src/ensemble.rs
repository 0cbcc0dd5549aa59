//! Deep ensembles: the mean of the members' probabilities, from their files.

use std::ops::Range;
use std::path::{Path, PathBuf};

use aleator_metrics::{
    EVALUATION_FORMAT, Evaluation, LogProbs, SplitAccumulator, SplitEvaluation, TrueClass,
    TrueClassSample, Truth,
};
use aleator_run::{
    AtomicFolder, CreateRun, EVALUATION, EnsembleFile, EvaluatedRun, ExampleRow, Field, Link,
    MeanPredictions, Predictions, PredictionsFile, PredictionsWriter, RunDir, RunError, Split,
    SplitReader, read_text,
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
    let recipe = first.recipe_path();
    let recipe = read_text(&recipe).map_err(RunError::io("read", &recipe))?;
    let directory = new_directory(out)?;
    let run = RunDir::create(directory.path(), &CreateRun { recipe, info: first.info().clone() })?;
    let split = |split: Split| average(&runs, split, &run.predictions_path(split));
    let (validation, true_class) = split(Split::Validation)?;
    let has_test = first.info().examples.test > 0;
    let test = has_test.then(|| split(Split::Test)).transpose()?.map(|(scores, _)| scores);
    let evaluation = Evaluation {
        format: EVALUATION_FORMAT,
        weights: "ensemble".to_string(),
        step: None,
        class_names: first.info().class_names.clone(),
        calibration: None,
        true_class,
        validation,
        test,
        other_weights: None,
    };
    run.write_examples(examples)?;
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

/// Writes the mean probabilities of one split, piece by piece; returns their scores and their law of
/// the true class.
fn average(
    runs: &[RunDir],
    split: Split,
    path: &Path,
) -> Result<(SplitEvaluation, Option<TrueClass>), ReportError> {
    let first = &runs[0];
    let readers = runs.iter().map(|run| SplitReader::open(run, split));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let (total, classes) = (readers[0].file.examples(), readers[0].file.classes());
    if total == 0 {
        return Err(RunError::damaged(readers[0].file.path(), "holds no examples").into());
    }
    let is_known = readers[0].examples.iter().all(|row| row.clean_label.is_some());
    let mut scores = SplitAccumulator::new(None);
    let mut true_class = TrueClassSample::new(total, classes);
    let mut writer = PredictionsWriter::create(path, total)?;
    let mut joint = Some(vec![]);
    for rows in readers[0].pieces(classes, usize::MAX) {
        let mut members = vec![];
        for reader in &mut readers {
            members.push(probabilities(&mut reader.file, rows.clone(), first.info().link)?);
        }
        let mut mean = MeanPredictions::new(&members[0]);
        members[1..].iter().for_each(|member| mean.add(member));
        let mean = mean.finish();
        let examples = &readers[0].examples[rows];
        let given = truth(examples, first, |row| row.label.as_deref())?;
        let clean = is_known
            .then(|| truth(examples, first, |row| row.clean_label.as_deref()))
            .transpose()?;
        true_class.add(&mean.mean, &given);
        writer.push(&mean)?;
        let Predictions { log_probs: on, log_probs_off: off, joint_log_probs, .. } = mean;
        scores.add(&LogProbs { classes, on, off }, &given, clean.as_ref());
        joint = joint.zip(joint_log_probs).map(|(all, piece)| [all, piece].concat());
    }
    writer.commit()?;
    let mut scores = scores.finish();
    if let Some(joint) = joint {
        scores.given = scores.given.with_joint(&joint, None);
    }
    Ok((scores, true_class.fit()))
}

/// What a run predicts for some examples, without its covariance.
fn probabilities(
    file: &mut PredictionsFile,
    rows: Range<usize>,
    link: Link,
) -> Result<Predictions, RunError> {
    let first = rows.start;
    let member = Predictions {
        classes: file.classes(),
        rank: 0,
        temperature: file.temperature(),
        log_probs: file.read(Field::LogProbs, rows.clone())?.unwrap_or_default(),
        log_probs_off: file.read(Field::LogProbsOff, rows.clone())?,
        mean: file.read(Field::Mean, rows.clone())?.unwrap_or_default(),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: file.read(Field::JointLogProbs, rows)?,
    };
    check_probabilities(&member, link, first)
        .map_err(|message| RunError::damaged(file.path(), message))?;
    Ok(member)
}

/// Checks that these are probabilities as the link gives them, of the examples from `first` on.
fn check_probabilities(member: &Predictions, link: Link, first: usize) -> Result<(), String> {
    /// Rounding lifts the logarithm of a probability above 0 by far less.
    const ROUNDING: f32 = 1e-3;
    let all = member.log_probs.iter().chain(member.log_probs_off.iter().flatten());
    if let Some(value) = all.clone().find(|value| **value > ROUNDING) {
        return Err(format!("{value} is not the logarithm of a probability"));
    }
    let impossible = |values: &[f32]| values.iter().all(|value| *value == f32::NEG_INFINITY);
    let wrong = match (link, &member.log_probs_off) {
        (Link::Softmax, Some(_)) => {
            Some("log_probs_off is for head.link = \"sigmoid\"".to_string())
        }
        (Link::Sigmoid, None) => Some("log_probs_off is missing".to_string()),
        (Link::Softmax, None) => {
            let row = member.log_probs.chunks_exact(member.classes).position(impossible);
            row.map(|row| format!("row {} has no class that is possible", first + row))
        }
        (Link::Sigmoid, Some(off)) => {
            let mut pairs = member.log_probs.iter().zip(off);
            let at = pairs.position(|(on, off)| impossible(&[*on, *off]));
            let row = at.map(|at| first + at / member.classes);
            row.map(|row| format!("row {row} can be neither on nor off"))
        }
    };
    wrong.map_or(Ok(()), Err)
}

/// The labels that predictions are measured against.
fn truth(
    rows: &[ExampleRow],
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
