//! Images that cannot be decoded: found before the first step, left out, and noted in the record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aleator_data::DataSet;
use aleator_run::{SetAside, Split};

use crate::error::TrainError;
use crate::{Event, Observer};

/// How often whoever waits is told how far it is.
const PAUSE: Duration = Duration::from_millis(100);

/// Decodes every image once; returns those that cannot be, or `None` when `stop` was raised.
pub(crate) fn checked(
    data: &DataSet,
    stop: &AtomicBool,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<SetAside>>, TrainError> {
    let (done, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = |now: usize, all: usize| {
        done.fetch_max(now, Ordering::Relaxed);
        total.store(all, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    let found = std::thread::scope(|scope| {
        let worker = scope.spawn(|| data.check_images(&progress));
        while !worker.is_finished() {
            std::thread::park_timeout(PAUSE);
            let all = total.load(Ordering::Relaxed);
            if all > 0 {
                observer(Event::Checking { done: done.load(Ordering::Relaxed), total: all });
            }
        }
        worker.join()
    });
    let found = found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(found.into_iter().map(noted).collect()))
}

fn noted(found: aleator_data::SetAside) -> SetAside {
    let split = Split::ALL.into_iter().find(|split| split.name() == found.split);
    SetAside { split: split.unwrap_or(Split::Train), id: found.id, reason: found.reason }
}

/// The data without these examples.
pub fn without(data: DataSet, set_aside: &[SetAside]) -> Result<DataSet, TrainError> {
    let one = |one: &SetAside| aleator_data::SetAside {
        split: one.split.name(),
        id: one.id.clone(),
        reason: one.reason.clone(),
    };
    let set_aside: Vec<aleator_data::SetAside> = set_aside.iter().map(one).collect();
    Ok(data.leave_out(&set_aside)?)
}
