//! Batches prepared ahead of use by threads, in the same order for any number of threads.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Batch, Job};
use crate::error::DataError;

/// Batches that each worker may have ready beyond the one it works on.
const AHEAD: usize = 2;

/// Large batches are prepared by fewer workers and less far ahead, to hold about this many bytes.
const MOST_BYTES: usize = 1 << 30;

/// The number of workers, and how far each is ahead, for batches of this size.
fn bounded(workers: usize, batch_bytes: usize) -> (usize, usize) {
    let most = (MOST_BYTES / batch_bytes.max(1)).max(1);
    let workers = workers.min(most);
    (workers, (most / workers.max(1) - 1).min(AHEAD))
}

/// An iterator of batches. After an error it ends. Dropping it stops its threads.
pub struct Batches {
    job: Job,
    /// The batches that have not been returned.
    indices: Range<usize>,
    /// Worker w prepares every W-th batch from the w-th on; none when the caller prepares.
    workers: Vec<Worker>,
    next_worker: usize,
    stop: Arc<AtomicBool>,
    /// Why a thread could not be started.
    failed: Option<DataError>,
}

struct Worker {
    batches: Receiver<Result<Batch, DataError>>,
    thread: JoinHandle<()>,
}

impl Batches {
    pub(super) fn new(job: Job, indices: Range<usize>, workers: usize) -> Self {
        let (workers, ahead) = bounded(workers, job.batch_bytes());
        let count = workers.min(indices.len());
        let mut batches = Self {
            job,
            indices: indices.clone(),
            workers: vec![],
            next_worker: 0,
            stop: Arc::new(AtomicBool::new(false)),
            failed: None,
        };
        for index in 0..count {
            let (sender, receiver) = sync_channel(ahead);
            let (job, stop) = (batches.job.clone(), Arc::clone(&batches.stop));
            let indices = indices.clone().skip(index).step_by(count);
            let thread = thread::Builder::new().name("batches".into());
            match thread.spawn(move || work(&job, indices, &sender, &stop)) {
                Ok(thread) => batches.workers.push(Worker { batches: receiver, thread }),
                Err(error) => {
                    let message = format!(
                        "thread {} of {count} could not be started ({error}); lower the number",
                        index + 1
                    );
                    batches.failed = Some(DataError::invalid("training.workers", message));
                    break;
                }
            }
        }
        batches
    }

    fn receive(&mut self) -> Result<Batch, DataError> {
        let index = self.next_worker;
        self.next_worker = (index + 1) % self.workers.len();
        match self.workers[index].batches.recv() {
            Ok(batch) => batch,
            // Its thread ended before its last batch: it can only have panicked.
            Err(_) => {
                let worker = self.workers.swap_remove(index);
                let reason = match worker.thread.join() {
                    Ok(()) => "it ended early".to_string(),
                    Err(panic) => message_of(panic.as_ref()),
                };
                Err(DataError::invalid("batches", format!("a worker thread failed: {reason}")))
            }
        }
    }

    /// Ends the threads; those in the middle of a batch notice at its next example.
    fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.indices = 0..0;
        for Worker { batches, thread } in self.workers.drain(..) {
            // A worker that waits to send is woken when the receiver is dropped.
            drop(batches);
            // A panic was either reported by `next`, or nobody wants its batch any more.
            let _ = thread.join();
        }
    }
}

fn work(
    job: &Job,
    indices: impl Iterator<Item = usize>,
    sender: &SyncSender<Result<Batch, DataError>>,
    stop: &AtomicBool,
) {
    for index in indices {
        let Some(batch) = job.prepare(index, stop).transpose() else { return };
        let failed = batch.is_err();
        if sender.send(batch).is_err() || failed {
            return;
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_string()
}

impl Iterator for Batches {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.indices.next()?;
        let batch = match self.failed.take() {
            Some(error) => Err(error),
            None if self.workers.is_empty() => self.job.prepare(index, &self.stop).transpose()?,
            None => self.receive(),
        };
        if batch.is_err() {
            self.finish();
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.indices.len(), Some(self.indices.len()))
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_batches_are_not_prepared_far_ahead() {
        assert_eq!(bounded(4, 1 << 20), (4, AHEAD));
        // 1,024 images of 224 pixels.
        assert_eq!(bounded(4, 1024 * 3 * 224 * 224 * 4), (1, 0));
        assert_eq!(bounded(2, 300 << 20), (2, 0));
        assert_eq!(bounded(1, 300 << 20), (1, 2));
        assert_eq!(bounded(0, 1), (0, AHEAD));
    }
}
