//! Batches of images, decoded on other threads while the network computes.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use aleator_data::DataError;
use rayon::prelude::*;

use crate::embed::Job;
use crate::error::EmbedError;

/// Batches that are prepared ahead of the network.
const AHEAD: usize = 2;

/// Images that were decoded together.
pub(crate) struct ImageBatch {
    /// The rows of the batch.
    pub rows: Range<usize>,
    /// Rows that are not in `values`, with the error.
    pub damaged: Vec<(usize, String)>,
    /// The numbers of the others, one image after the other.
    pub values: Vec<f32>,
}

/// Calls `take` with every batch of the images from `first` on, until it breaks. The threads of `rayon` prepare the batches in the
/// background, in memory that is used again.
pub(crate) fn each(
    job: &Job,
    first: usize,
    batch: usize,
    mut take: impl FnMut(&mut ImageBatch) -> Result<ControlFlow<()>, EmbedError>,
) -> Result<ControlFlow<()>, EmbedError> {
    let (send, ready) = sync_channel(AHEAD);
    let (used, unused) = channel();
    thread::scope(|scope| {
        let prepare = move || prepare_all(job, first, batch, &send, &unused);
        let started = thread::Builder::new().name("images".into()).spawn_scoped(scope, prepare);
        started.map_err(|error| {
            EmbedError::Runtime(format!("no thread can be started: {error}; lower --threads"))
        })?;
        // Dropped when the loop ends, so that the preparation stops.
        for prepared in ready {
            let mut prepared = prepared?;
            if take(&mut prepared)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // It is not needed when all batches are prepared.
            let _ = used.send(prepared.values);
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn prepare_all(
    job: &Job,
    first: usize,
    batch: usize,
    send: &SyncSender<Result<ImageBatch, DataError>>,
    unused: &Receiver<Vec<f32>>,
) {
    let total = job.source.inputs.len();
    for first in (first..total).step_by(batch) {
        let memory = unused.try_recv().unwrap_or_default();
        let prepared = prepare(job, first..total.min(first.saturating_add(batch)), memory);
        let failed = prepared.is_err();
        if send.send(prepared).is_err() || failed {
            return;
        }
    }
}

fn prepare(job: &Job, rows: Range<usize>, mut values: Vec<f32>) -> Result<ImageBatch, DataError> {
    let image = job.preprocessing.numbers();
    values.resize(rows.len() * image, 0.0);
    let read = |(row, out)| match job.preprocessing.read(&job.source.inputs, row, out) {
        Ok(()) => Ok(None),
        Err(error @ DataError::Invalid { .. }) => Ok(Some((row, error.to_string()))),
        // A failing disk does not mean that the image is damaged.
        Err(other) => Err(other),
    };
    let rows_and_places = rows.clone().into_par_iter().zip(values.par_chunks_mut(image));
    let results: Vec<_> = rows_and_places.map(read).collect::<Result<_, _>>()?;
    let mut kept = 0;
    for (at, damaged) in results.iter().enumerate() {
        if damaged.is_some() {
            continue;
        }
        if kept < at {
            values.copy_within(at * image..(at + 1) * image, kept * image);
        }
        kept += 1;
    }
    values.truncate(kept * image);
    let damaged = results.into_iter().flatten().collect();
    Ok(ImageBatch { rows, damaged, values })
}
