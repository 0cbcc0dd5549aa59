//! `demo`: the whole job on digits that ship inside the program.

use std::path::Path;

use aleator_train::group::{self, Group, Kind};

use crate::workflow::error::Error;
use crate::workflow::experiment::Experiment;
use crate::workflow::group::{TrainedRun, start};
use crate::workflow::watch::Watch;

/// What the demonstration compares: a name and a preset.
const HEADS: [(&str, &str); 3] =
    [("none", "digits-none"), ("diagonal", "digits-diagonal"), ("full", "digits-full")];

/// The seeds of each.
const SEEDS: [u64; 3] = [0, 1, 2];

/// Trains three noise models with three seeds each on digits with wrong labels.
///
/// # Errors
/// As [`fit`](crate::fit()).
pub fn demo(out: &Path, watch: &mut Watch<'_>) -> Result<Vec<TrainedRun>, Error> {
    let mut members = vec![];
    for (name, preset) in HEADS {
        let mut experiment = Experiment::load(preset, &[], None)?;
        experiment.recipe.seeds = SEEDS.to_vec();
        members.extend(group::members(name, &experiment.recipe));
    }
    start(out, &Group { kind: Kind::Demo, members }, None, watch)
}
