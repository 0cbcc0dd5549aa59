//! `demo`: the whole job on digits that ship inside the program.

mod labels;

use std::path::Path;

use aleator_report::audit::Audit;
use aleator_report::confusion::{Confusions, Pair};
use aleator_run::{GroupFile, Predictions, Recipe, RunDir, Split, check_own_folder, lock_folder};
use aleator_train::group::{self, Group, Kind};

use crate::workflow::audit;
use crate::workflow::group::finish_locked as finish_runs;
use crate::{AuditOptions, Error, Experiment, TrainedRun, Watch};
use labels::LabelFiles;

/// What the demonstration compares: a name and a preset.
const HEADS: [(&str, &str); 3] =
    [("none", "digits-none"), ("diagonal", "digits-diagonal"), ("full", "digits-full")];

/// The seeds of each.
const SEEDS: [u64; 3] = [0, 1, 2];

/// What [`demo`] found and trained, and what its full noise model has learned.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Three runs of each noise model, of [`DEMO_CORRECTED`] and of [`DEMO_TRUE`].
    pub runs: Vec<TrainedRun>,
    /// All confusions of the training labels, the most frequent first.
    pub confusions: Vec<LearnedConfusion>,
    /// Which labels are wrong; without the test examples.
    pub audit: Audit,
}

/// Where the audit is, in the directory of the demonstration.
pub const DEMO_AUDIT: &str = "audit";

/// The runs of the full noise model on labels with the suggestion of each suspect in its place.
pub const DEMO_CORRECTED: &str = "corrected-labels";

/// The runs of the full noise model on the true labels: the most that corrections can reach.
pub const DEMO_TRUE: &str = "true-labels";

/// A confusion in the training labels, and what the full noise model, which never saw a true
/// label, makes of it on examples that it has not seen.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedConfusion {
    /// The true class.
    pub class: String,
    /// The class that is given in its place.
    pub given: String,
    /// How often, in the training labels.
    pub rate: f64,
    /// The mean probability that the model gives to it.
    pub expected: f64,
    /// The place of this probability among those of all pairs, from 1.
    pub rank: usize,
    /// The same by the noise alone, whatever the means are.
    pub rank_by_noise: usize,
}

/// Audits digits with wrong labels, trains three noise models with three seeds each on these labels,
/// and the last of them on the labels that the audit corrects and on the true ones.
///
/// Test examples have true labels, and neither the audit nor any training sees them.
///
/// # Errors
/// As [`fit`](crate::fit()).
pub fn demo(out: &Path, watch: &mut Watch<'_>) -> Result<Demo, Error> {
    let mut members = vec![];
    let mut add = |name: &str, mut recipe: Recipe| {
        recipe.seeds = SEEDS.to_vec();
        members.extend(group::members(name, &recipe));
    };
    for (name, preset) in HEADS {
        add(name, Experiment::load(preset, &[], None)?.recipe);
    }
    let full = full()?.recipe;
    add(DEMO_CORRECTED, LabelFiles::of(out)?.to_train(&full));
    let mut without_noise = full;
    without_noise.data.noise = None;
    add(DEMO_TRUE, without_noise);
    let group = Group::new(Kind::Demo, members)?;
    group::create(out, &group)?;
    finish(out, &group, watch)
}

/// The full noise model on the labels that are partly wrong.
fn full() -> Result<Experiment, Error> {
    let [.., (_, preset)] = HEADS;
    Experiment::load(preset, &[], Some(SEEDS[0]))
}

/// Does what is missing: the audit, the corrected labels and the runs.
pub(crate) fn finish(out: &Path, group: &Group, watch: &mut Watch<'_>) -> Result<Demo, Error> {
    let _lock = lock_folder(out)?;
    let (files, experiment) = (LabelFiles::of(out)?, full()?);
    files.write_given(&experiment.recipe)?;
    let to_audit = Experiment::auditing(files.to_audit(&experiment.recipe).data, SEEDS[0])?;
    let audit = audit_digits(&to_audit, out, watch)?;
    files.write_corrected(&experiment.recipe, &audit)?;
    let runs = finish_runs(out, group, None, watch)?;
    let confusions = learned_confusions(&runs)?;
    Ok(Demo { runs, confusions, audit })
}

/// Compares the confusions of the labels with those that the noise model expects.
fn learned_confusions(runs: &[TrainedRun]) -> Result<Vec<LearnedConfusion>, Error> {
    let (mut expected, mut by_noise) = (vec![], vec![]);
    let (mut rows, mut names) = (vec![], vec![]);
    for run in runs.iter().filter(|run| run.name.starts_with("full/")) {
        let run = RunDir::open(&run.dir)?;
        let predictions = Predictions::load(&run.predictions_path(Split::Test))?;
        expected.push(Confusions::expected(&predictions));
        by_noise.push(Confusions::by_noise(&predictions));
        rows = run.read_examples()?;
        names = run.info().class_names.clone();
    }
    let mean = |all: &[Confusions]| {
        Confusions::mean(all).ok_or_else(|| Error::invalid("no run has the full noise model"))
    };
    let (expected, by_noise) = (mean(&expected)?, mean(&by_noise)?);
    let training = rows.iter().filter(|row| row.split == Split::Train);
    let in_labels = Confusions::of_labels(training, names.len());
    let (by_expectation, by_noise) = (expected.pairs(), by_noise.pairs());
    let learned = |pair: &Pair| LearnedConfusion {
        class: names[pair.from].clone(),
        given: names[pair.to].clone(),
        rate: pair.rate,
        expected: expected.rate(pair.from, pair.to),
        rank: rank(pair, &by_expectation),
        rank_by_noise: rank(pair, &by_noise),
    };
    Ok(in_labels.pairs().iter().map(learned).collect())
}

/// Audits the labels, or finishes an audit that was stopped.
fn audit_digits(
    experiment: &Experiment,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    check_own_folder(out, DEMO_AUDIT)?;
    let dir = out.join(DEMO_AUDIT);
    if dir.join(GroupFile::NAME).exists() {
        let group = group::open(&dir)?;
        return audit::finish(&dir, &group, &audit::open(&group)?, watch);
    }
    audit::audit(experiment, AuditOptions::default(), &dir, watch)
}

fn rank(pair: &Pair, among: &[Pair]) -> usize {
    let same = |other: &Pair| (other.from, other.to) == (pair.from, pair.to);
    1 + among.iter().position(same).unwrap_or(among.len())
}
