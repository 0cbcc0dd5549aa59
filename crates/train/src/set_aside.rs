//! Images that cannot be decoded: found before the first step, left out, recorded in `run.json`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aleator_data::DataSet;
use aleator_run::SetAside;

use crate::{Event, Observer, TrainError};

/// The time between two progress events.
const PAUSE: Duration = Duration::from_millis(100);

/// Decodes every image that was not decoded for another division of the same sources; returns
/// those that cannot be decoded, or `None` when `stop` was set.
pub(crate) fn undecodable(
    data: &DataSet,
    stop: &AtomicBool,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<SetAside>>, TrainError> {
    let (done, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = |now: usize, all: usize| {
        total.store(all, Ordering::Relaxed);
        done.fetch_max(now, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    let mut report = || {
        let (now, all) = (done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
        if all > 0 {
            observer(Event::Checking { done: now, total: all });
        }
    };
    let found = std::thread::scope(|scope| {
        let check = || data.check_images(&progress);
        let Ok(worker) = std::thread::Builder::new().spawn_scoped(scope, check) else {
            // Without another thread there is no progress to be seen.
            return Ok(check());
        };
        while !worker.is_finished() {
            std::thread::park_timeout(PAUSE);
            report();
        }
        worker.join()
    });
    report();
    let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok((!stop.load(Ordering::Relaxed)).then_some(found))
}
