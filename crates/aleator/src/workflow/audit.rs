//! `audit`: which labels are wrong, and what they should be.

mod embeddings;
mod evidence;
mod examples;
mod features;
mod probabilities;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_data::{Sources, Thumbnails};
use aleator_report::audit::{Acceptance, Audit, ReviewRecord, analyse};
use aleator_run::recipe::{HeldOut, KeptPredictions, Method};
use aleator_run::{
    PICTURES, Recipe, RunError, lock_folder, pictured_data, read_json, write_file, write_json,
};
use aleator_train::group::{self, Group, Kind, Member};
use aleator_train::{check_recipe, load_run};
use serde::{Deserialize, Serialize};

use crate::workflow::group::finish_locked as finish_runs;
use crate::{Error, Event, Experiment, Watch};
use embeddings::RunExamples;

pub(crate) use embeddings::finish_embeddings;
pub use probabilities::audit_probabilities;

/// How an audit is made, apart from what is audited.
///
/// ```
/// use aleator::AuditOptions;
///
/// let five_folds: AuditOptions = 5.into();
/// assert_eq!(five_folds, AuditOptions { folds: Some(5), accept: None });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AuditOptions {
    /// The number of folds, where labels are judged in folds; `None` takes [`AUDIT_FOLDS`].
    pub folds: Option<usize>,
    /// The probability from which on suggestions are to be accepted afterwards, from 0.5 to 1. It
    /// is recorded for [`to_accept`]; the audit itself accepts nothing.
    pub accept: Option<f64>,
}

impl From<usize> for AuditOptions {
    /// This number of folds, and nothing accepted.
    fn from(folds: usize) -> Self {
        Self { folds: Some(folds), accept: None }
    }
}

/// Divides the data into folds, judges the labels of each by a model that was trained on the
/// others, and ranks them: the label that is most surely wrong comes first.
///
/// Writes `issues.csv`, `classes.csv`, `pairs.csv`, `annotators.csv`, `ambiguous_examples.csv` and
/// `audit.json` next to the runs of the folds, and for features `near_duplicates.csv` and
/// `outliers.csv`.
///
/// # Errors
/// When there are fewer than two folds or more folds than examples, the experiment has several
/// seeds, or as [`fit`](crate::fit()).
pub fn audit(
    experiment: &Experiment,
    options: impl Into<AuditOptions>,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    let options = options.into();
    let group = group_of(experiment, options, watch)?;
    let sources = match &experiment.arrays {
        Some(arrays) => arrays.clone(),
        None => Arc::new(open(&group)?),
    };
    // Checked before anything is written. The last fold is the smallest: if it has examples, all
    // have.
    if needs_no_folds(&experiment.recipe) {
        evidence::check(&sources)?;
    }
    if let Some(last) = group.members.last() {
        check_recipe(&last.recipe, &sources.divide(&last.recipe.data)?)?;
    }
    group::create(out, &group)?;
    options.record(out)?;
    finish(out, &group, &sources, watch)
}

/// Audits the data of a trained run. Where the run was trained on images, its network embeds them
/// once, and only heads are trained for the folds; otherwise as [`audit`]. Each of `sets` overrides
/// a key of what is trained, as in `"schedule.epochs=5"`; `seed` replaces the run's. `checkpoint` is
/// the step of other weights than those that were evaluated; the audit then names it.
///
/// # Errors
/// When a setting changes the data of a run on images, its checkpoint is damaged, one is named for a
/// run on features, or as [`audit`].
pub fn audit_run(
    run: &Path,
    sets: &[String],
    seed: Option<u64>,
    checkpoint: Option<usize>,
    options: impl Into<AuditOptions>,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    let options = options.into();
    if load_run(run)?.0.info().input_shape.len() != 3 {
        if checkpoint.is_some() {
            let message = "was trained on features, so its audit uses no checkpoint";
            return Err(Error::invalid(message).at(run.display().to_string()));
        }
        return audit(&Experiment::of_run(run, sets, seed)?, options, out, watch);
    }
    let examples = RunExamples::of(run, seed, checkpoint)?;
    let group = examples.create_audit(sets, options, out, watch)?;
    options.record(out)?;
    watch.note("embedding the images with the network of the run; labels are judged by that");
    examples.write(out, watch)?;
    finish(out, &group, &open(&group)?, watch)
}

/// One run for each fold; one entry for all where labels are judged without folds.
fn group_of(
    experiment: &Experiment,
    options: AuditOptions,
    watch: &mut Watch<'_>,
) -> Result<Group, Error> {
    if needs_no_folds(&experiment.recipe) {
        if let Some(folds) = options.folds {
            watch.warn(&format!(
                "{folds} folds have no effect: these labels are judged by all other examples and \
                 by training dynamics, without folds; a recipe such as features-full judges in \
                 folds"
            ));
        }
        let seed = experiment.only_seed("an audit")?;
        let (name, recipe) = (WITHOUT_FOLDS.to_string(), experiment.recipe.clone());
        return Ok(Group::new(Kind::Audit, vec![Member { name, recipe, seed }])?);
    }
    let folds = options.folds.unwrap_or(AUDIT_FOLDS);
    if folds < 2 {
        return Err(Error::invalid(format!(
            "{folds} folds: at least 2 are needed, so that each has others to learn from"
        )));
    }
    let seed = experiment.only_seed("an audit")?;
    let member = |fold: usize| {
        let mut recipe = experiment.recipe.clone();
        recipe.data.test = Some(HeldOut::Fold { fold, folds, seed: 0 });
        // The audit reads them.
        recipe.evaluation.predictions = KeptPredictions::All;
        Member { name: format!("fold-{fold}"), recipe, seed }
    };
    Ok(Group::new(Kind::Audit, (0..folds).map(member).collect())?)
}

/// The folds of an audit, where nothing else is said.
pub const AUDIT_FOLDS: usize = 5;

/// `accept.json`: what is to be accepted when the audit is complete.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToAccept {
    threshold: f64,
}

impl ToAccept {
    const NAME: &str = "accept.json";
}

impl AuditOptions {
    /// Records what is left to do after the audit, so that `resume` can do it.
    fn record(self, out: &Path) -> Result<(), Error> {
        let to_accept = self.accept.map(|threshold| ToAccept { threshold });
        to_accept.map_or(Ok(()), |it| Ok(write_json(&out.join(ToAccept::NAME), &it)?))
    }
}

/// The probability from which on the suggestions of an audit are still to be accepted:
/// [`AuditOptions::accept`], unless something was accepted since.
///
/// ```no_run
/// use aleator::review::Session;
///
/// let audit = "audit".as_ref();
/// if let Some(threshold) = aleator::to_accept(audit)? {
///     let mut session = Session::open(audit)?;
///     session.accept_above(threshold);
///     session.write_corrected()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When a record cannot be read, or holds something else.
pub fn to_accept(audit: &Path) -> Result<Option<f64>, Error> {
    let path = audit.join(ToAccept::NAME);
    let accepted = ReviewRecord::load(audit)?.and_then(|record| record.accept);
    if accepted.is_some() || !path.exists() {
        return Ok(None);
    }
    let ToAccept { threshold } = read_json(&path)?;
    if Acceptance::is_threshold(threshold) {
        return Ok(Some(threshold));
    }
    let message = format!("threshold must be {}, found {threshold}", Acceptance::RANGE);
    Err(RunError::damaged(&path, message).into())
}

/// The only member of an audit without folds; it has no directory.
const WITHOUT_FOLDS: &str = "all";

/// Whether labels are judged in one go, by all other examples and by training dynamics.
fn needs_no_folds(recipe: &Recipe) -> bool {
    matches!(recipe.method, Method::Dynamics { .. })
}

/// The data of all folds.
pub(crate) fn open(group: &Group) -> Result<Sources, Error> {
    let recipe = &group.members[0].recipe;
    Ok(Sources::open(&recipe.data, recipe.head.link)?)
}

/// The images behind the embeddings of an audit of a run; without them it goes on.
fn pictures(out: &Path) -> Result<Option<Thumbnails>, Error> {
    if !out.join(PICTURES).is_file() {
        return Ok(None);
    }
    let data = pictured_data(out)?;
    Ok(data.and_then(|data| Thumbnails::open(&data).ok().flatten()))
}

/// Trains what is missing of the folds, judges the labels, and writes the findings.
pub(crate) fn finish(
    out: &Path,
    group: &Group,
    sources: &Sources,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    let _lock = lock_folder(out)?;
    let mut recipe = group.members[0].recipe.clone();
    let pictures = pictures(out)?;
    let (mut audit, scale) = if needs_no_folds(&recipe) {
        let seed = group.members[0].seed;
        let found = evidence::audit_features(sources, &recipe, seed, pictures.as_ref(), watch);
        found.map_err(|error| match error {
            Error::Interrupted(reason) => Error::Interrupted(format!(
                "{reason}, and nothing of it is kept: `aleator resume {}` judges them from the \
                 beginning",
                out.display()
            )),
            other => other,
        })?
    } else {
        finish_runs(out, group, Some(sources), watch)?;
        let source = examples::of(sources, &recipe, pictures.as_ref())?;
        let dirs: Vec<PathBuf> =
            group.members.iter().map(|member| out.join(&member.name)).collect();
        let audit = analyse(&dirs, &source, &mut |step| {
            let (done, total) = (step.done, step.total);
            watch.event(Event::Progress { what: "labels judged", done, total });
        })?;
        (audit, features::scale(&recipe, &dirs[0])?)
    };
    audit.summary.checkpoint = embeddings::named_checkpoint(out)?;
    features::compare(&mut audit, sources, &recipe, scale, watch)?;
    recipe.data.test = None;
    write_file(&out.join("recipe.toml"), recipe.to_toml().as_bytes())?;
    audit.save(out)?;
    Ok(audit)
}
