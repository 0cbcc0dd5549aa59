//! Groups of runs: the part that all workflows share.

use std::path::{Path, PathBuf};

use aleator_data::Sources;
use aleator_metrics::Evaluation;
use aleator_run::{RunDir, lock_folder};
use aleator_train::group::{self, Group, GroupOutcome, Member};

use crate::{Error, Watch};

/// A run that is trained and evaluated.
#[derive(Clone, Debug)]
pub struct TrainedRun {
    /// Its name in the group; empty for a single run.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
    /// Its scores on the validation and test splits.
    pub evaluation: Evaluation,
    /// The number of images that were left out because they cannot be decoded.
    pub set_aside: usize,
}

/// Trains new runs in `out`.
pub(crate) fn start(
    out: &Path,
    group: &Group,
    arrays: Option<&Sources>,
    watch: &mut Watch<'_>,
) -> Result<Vec<TrainedRun>, Error> {
    group::create(out, group)?;
    finish(out, group, arrays, watch)
}

/// Trains what is missing of runs whose directory exists, and locks the directory meanwhile.
pub(crate) fn finish(
    out: &Path,
    group: &Group,
    arrays: Option<&Sources>,
    watch: &mut Watch<'_>,
) -> Result<Vec<TrainedRun>, Error> {
    // A single run is a directory of its own, which is locked when it is there.
    let is_single = group.members.iter().any(|member| member.name.is_empty());
    let _lock = if is_single { None } else { Some(lock_folder(out)?) };
    finish_locked(out, group, arrays, watch)
}

/// The same in a directory that the caller has locked.
pub(crate) fn finish_locked(
    out: &Path,
    group: &Group,
    arrays: Option<&Sources>,
    watch: &mut Watch<'_>,
) -> Result<Vec<TrainedRun>, Error> {
    let outcome = group::finish(out, group, arrays, watch.stop(), &mut |member, event| {
        watch.training(&member.name, event);
    })?;
    let evaluations = match outcome {
        GroupOutcome::Evaluated(evaluations) => evaluations,
        GroupOutcome::Interrupted { .. } if !out.exists() => {
            let message = "stopped before the run began: nothing was written";
            return Err(Error::Interrupted(message.to_string()));
        }
        GroupOutcome::Interrupted { name, step } => {
            let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
            let dir = out.display();
            return Err(Error::Interrupted(format!(
                "saved at step {step}{of}; continue with `aleator resume {dir}`"
            )));
        }
    };
    let run = |(member, evaluation): (&Member, Evaluation)| {
        let dir = member.dir(out);
        let set_aside = RunDir::open(&dir)?.info().set_aside.len();
        Ok(TrainedRun { name: member.name.clone(), dir, evaluation, set_aside })
    };
    group.members.iter().zip(evaluations).map(run).collect()
}
