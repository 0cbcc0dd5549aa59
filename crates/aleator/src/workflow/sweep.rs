//! `sweep`: a recipe over all combinations of some keys.

use std::path::Path;

use aleator_run::Resolved;
use aleator_train::group::{self, Group, Kind};

use crate::workflow::experiment::absolute;
use crate::workflow::group::start;
use crate::{Error, TrainedRun, Watch};

/// Trains the points of a sweep, which [`load_sweep`](aleator_run::load_sweep) reads.
///
/// ```no_run
/// use aleator::run::load_sweep;
/// use aleator::{Watch, sweep};
///
/// let points = load_sweep("ranks.toml".as_ref(), &[])?;
/// for run in sweep(points, "sweep".as_ref(), &mut Watch::silent())? {
///     println!("{}: {:.4}", run.name, run.evaluation.validation.given.nll);
/// }
/// # Ok::<(), aleator::Error>(())
/// ```
///
/// # Errors
/// As [`fit`](crate::fit).
pub fn sweep(
    points: Vec<Resolved>,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Vec<TrainedRun>, Error> {
    let mut members = vec![];
    for point in points {
        members.extend(group::members(&point.name, &absolute(point.recipe)?));
    }
    start(out, &Group::new(Kind::Sweep, members)?, None, watch)
}
