//! `resume`: any workflow, continued where it stopped.

use std::path::Path;

use aleator_data::{Arrays, Sources};
use aleator_report::audit::Audit;
use aleator_train::group::{self, Kind};

use crate::workflow::group::finish;
use crate::workflow::{audit, demo, fit, transfer, tune};
use crate::{Demo, Error, Fit, TrainedRun, Transfer, Tuning, Watch};

/// What a directory turned out to hold, now complete.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Resumed {
    /// Runs of [`fit`](crate::fit()).
    Fit(Fit),
    /// Runs of [`sweep`](crate::sweep()).
    Sweep(Vec<TrainedRun>),
    /// Trials of [`tune`](crate::tune()).
    Tuning(Tuning),
    /// Tasks of [`transfer`](crate::transfer()).
    Transfer(Transfer),
    /// An audit of [`audit`](crate::audit()).
    Audit(Box<Audit>),
    /// Runs of [`demo`](crate::demo()).
    Demo(Demo),
}

/// Continues a run, a group of runs or an audit that was stopped or killed, to the same bits as
/// without the interruption. What is complete already is not computed again.
///
/// Runs on arrays in memory need the same arrays again; for data that were moved, call
/// [`move_data`](crate::move_data) first.
///
/// # Errors
/// When the directory is none of these, the data have changed, or as in the workflow itself.
pub fn resume(dir: &Path, arrays: Option<Arrays>, watch: &mut Watch<'_>) -> Result<Resumed, Error> {
    finish_all(dir, arrays, watch).map_err(|error| error.if_moved(dir))
}

fn finish_all(dir: &Path, arrays: Option<Arrays>, watch: &mut Watch<'_>) -> Result<Resumed, Error> {
    let group = group::open(dir)?;
    let link = group.members[0].recipe.head.link;
    let arrays = arrays.map(|arrays| Sources::in_memory(arrays, link)).transpose()?;
    let runs = |watch: &mut Watch<'_>| finish(dir, &group, arrays.as_ref(), watch);
    Ok(match group.kind {
        Kind::Seeds => Resumed::Fit(fit::conclude(dir, runs(watch)?)?),
        Kind::Sweep => Resumed::Sweep(runs(watch)?),
        Kind::Tune => Resumed::Tuning(tune::conclude(dir, &group.members, runs(watch)?)?),
        Kind::Transfer => Resumed::Transfer(transfer::conclude(dir, &group, runs(watch)?)?),
        Kind::Audit => {
            audit::finish_embeddings(dir, watch)?;
            let sources = arrays.map_or_else(|| audit::open(&group), Ok)?;
            Resumed::Audit(Box::new(audit::finish(dir, &group, &sources, watch)?))
        }
        Kind::Demo => Resumed::Demo(demo::finish(dir, &group, watch)?),
    })
}
