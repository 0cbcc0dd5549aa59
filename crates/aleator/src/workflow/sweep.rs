//! `sweep`: a recipe over all combinations of some keys.

use std::path::Path;

use aleator_data::ColumnNames;
use aleator_run::{Resolved, load_sweep_over};
use aleator_train::group::{self, Group, Kind};

use crate::workflow::experiment::{absolute, data_at, preset_to_train};
use crate::workflow::group::start;
use crate::{Error, TrainedRun, Watch};

/// The points of a sweep on the data at a path, as [`load_sweep`](aleator_run::load_sweep) reads
/// them where the recipe names the data; `columns` says what the columns of a table are.
///
/// ```no_run
/// use aleator::{ColumnNames, Watch, sweep, sweep_on_path};
///
/// let (watch, columns) = (&mut Watch::silent(), ColumnNames::default());
/// let points = sweep_on_path("ranks.toml".as_ref(), "x.npy".as_ref(), &columns, &[], watch)?;
/// sweep(points, "sweep".as_ref(), watch)?;
/// # Ok::<(), aleator::Error>(())
/// ```
///
/// # Errors
/// When the data are of no known format, or the sweep says something impossible.
pub fn sweep_on_path(
    sweep: &Path,
    data: &Path,
    columns: &ColumnNames,
    sets: &[String],
    watch: &mut Watch<'_>,
) -> Result<Vec<Resolved>, Error> {
    let name = sweep.to_string_lossy();
    let (_, overlay) = data_at(data, columns, Some(&name), preset_to_train, sets, watch)?;
    Ok(load_sweep_over(sweep, &overlay, sets)?)
}

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
