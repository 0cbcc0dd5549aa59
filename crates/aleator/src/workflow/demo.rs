//! `demo`: the whole job on digits that ship inside the program.

use std::path::Path;

use aleator_report::audit::Audit;
use aleator_report::confusion::{Confusions, Pair};
use aleator_run::{GroupFile, Predictions, RunDir, Split};
use aleator_train::group::{self, Group, Kind};

use crate::workflow::audit;
use crate::workflow::group::start;
use crate::{Error, Experiment, TrainedRun, Watch};

/// What the demonstration compares: a name and a preset.
const HEADS: [(&str, &str); 3] =
    [("none", "digits-none"), ("diagonal", "digits-diagonal"), ("full", "digits-full")];

/// The seeds of each.
const SEEDS: [u64; 3] = [0, 1, 2];

/// What [`demo`] trained, and what its full noise model has learned.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Three runs of each noise model.
    pub runs: Vec<TrainedRun>,
    /// All confusions of the training labels, the most frequent first.
    pub confusions: Vec<LearnedConfusion>,
    /// Which labels are wrong, by the full noise model.
    pub audit: Audit,
}

/// Where the audit is, in the directory of the demonstration.
pub const DEMO_AUDIT: &str = "audit";

/// The folds of the audit.
const FOLDS: usize = 5;

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

/// Trains three noise models with three seeds each on digits with wrong labels, and audits these
/// labels.
///
/// # Errors
/// As [`fit`](crate::fit()).
pub fn demo(out: &Path, watch: &mut Watch<'_>) -> Result<Demo, Error> {
    let mut members = vec![];
    for (name, preset) in HEADS {
        let mut experiment = Experiment::load(preset, &[], None)?;
        experiment.recipe.seeds = SEEDS.to_vec();
        members.extend(group::members(name, &experiment.recipe));
    }
    let runs = start(out, &Group::new(Kind::Demo, members)?, None, watch)?;
    conclude(out, runs, watch)
}

/// Compares the confusions of the labels with those that the noise model expects, and audits the
/// labels.
pub(crate) fn conclude(
    out: &Path,
    runs: Vec<TrainedRun>,
    watch: &mut Watch<'_>,
) -> Result<Demo, Error> {
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
    let confusions = in_labels.pairs().iter().map(learned).collect();
    Ok(Demo { confusions, audit: audit_digits(&out.join(DEMO_AUDIT), watch)?, runs })
}

/// Audits the labels, or finishes an audit that was stopped.
fn audit_digits(dir: &Path, watch: &mut Watch<'_>) -> Result<Audit, Error> {
    if dir.join(GroupFile::NAME).exists() {
        let group = group::open(dir)?;
        return audit::finish(dir, &group, &audit::open(&group)?, watch);
    }
    let [.., (_, full)] = HEADS;
    audit::audit(&Experiment::load(full, &[], Some(SEEDS[0]))?, FOLDS, dir, watch)
}

fn rank(pair: &Pair, among: &[Pair]) -> usize {
    let same = |other: &Pair| (other.from, other.to) == (pair.from, pair.to);
    1 + among.iter().position(same).unwrap_or(among.len())
}
