//! `audit`: which labels are wrong, and what they should be.

mod embeddings;
mod evidence;
mod examples;
mod features;
mod probabilities;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_data::{Sources, Thumbnails};
use aleator_report::audit::{Audit, analyse};
use aleator_run::recipe::{HeldOut, Method};
use aleator_run::{PICTURES, Recipe, pictured_data, write_file};
use aleator_train::group::{self, Group, Kind, Member};
use aleator_train::{check_recipe, load_run};

use crate::workflow::group::finish as finish_runs;
use crate::{Error, Event, Experiment, Watch};
use embeddings::RunExamples;

pub(crate) use embeddings::finish_embeddings;
pub use probabilities::audit_probabilities;

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
    folds: usize,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    let group = group_of(experiment, folds)?;
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
    folds: usize,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    if load_run(run)?.0.info().input_shape.len() != 3 {
        if checkpoint.is_some() {
            let message = "was trained on features, so its audit uses no checkpoint";
            return Err(Error::invalid(message).at(run.display().to_string()));
        }
        return audit(&Experiment::of_run(run, sets, seed)?, folds, out, watch);
    }
    let examples = RunExamples::of(run, seed, checkpoint)?;
    let group = examples.create_audit(sets, folds, out)?;
    watch.note("embedding the images with the network of the run; labels are judged by that");
    examples.write(out, watch)?;
    finish(out, &group, &open(&group)?, watch)
}

/// One run for each fold; one entry for all where labels are judged without folds.
fn group_of(experiment: &Experiment, folds: usize) -> Result<Group, Error> {
    if needs_no_folds(&experiment.recipe) {
        let seed = experiment.only_seed("an audit")?;
        let (name, recipe) = (WITHOUT_FOLDS.to_string(), experiment.recipe.clone());
        return Ok(Group::new(Kind::Audit, vec![Member { name, recipe, seed }])?);
    }
    if folds < 2 {
        return Err(Error::invalid(format!(
            "{folds} folds: at least 2 are needed, so that each has others to learn from"
        )));
    }
    let seed = experiment.only_seed("an audit")?;
    let member = |fold: usize| {
        let mut recipe = experiment.recipe.clone();
        recipe.data.test = Some(HeldOut::Fold { fold, folds, seed: 0 });
        Member { name: format!("fold-{fold}"), recipe, seed }
    };
    Ok(Group::new(Kind::Audit, (0..folds).map(member).collect())?)
}

/// The folds of an audit, where nothing else is said.
pub const AUDIT_FOLDS: usize = 5;

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
    let mut recipe = group.members[0].recipe.clone();
    let pictures = pictures(out)?;
    let (mut audit, scale) = if needs_no_folds(&recipe) {
        let seed = group.members[0].seed;
        let found = evidence::audit_features(sources, &recipe, seed, pictures.as_ref(), watch);
        found.map_err(|error| match error {
            Error::Interrupted(reason) => Error::Interrupted(format!(
                "{reason}; continue with `aleator resume {}`",
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
