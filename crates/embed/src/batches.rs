//! Batches of images, decoded on other threads while the network computes.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use aleator_data::{DataError, Inputs};
use rayon::prelude::*;

use crate::prepare::Preprocessing;

/// Batches that are prepared ahead of the network.
const AHEAD: usize = 2;

/// Images that were decoded together.
pub(crate) struct Prepared {
    /// The rows of the batch.
    pub rows: Range<usize>,
    /// Rows that are not in `values`, with the error.
    pub damaged: Vec<(usize, String)>,
    /// The numbers of the others, one image after the other.
    pub values: Vec<f32>,
}

/// Which images, in batches of which size.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    pub inputs: &'a Inputs,
    pub preprocessing: Preprocessing,
    pub first: usize,
    pub batch: usize,
}

/// The batches in order; their memory is reused if it is given back.
pub(crate) struct Batches {
    ready: Receiver<Result<Prepared, DataError>>,
    used: Sender<Vec<f32>>,
}

impl Batches {
    /// Calls `take` with the batches, which the threads of `rayon` prepare in the background.
    pub(crate) fn with<T>(plan: Plan, take: impl FnOnce(&Self) -> T) -> T {
        let (send, ready) = sync_channel(AHEAD);
        let (used, unused) = channel();
        thread::scope(|scope| {
            scope.spawn(move || plan.prepare_all(&send, &unused));
            // Dropped when `take` returns, so that the preparation stops.
            let batches = Self { ready, used };
            take(&batches)
        })
    }

    /// The next batch; `None` after the last.
    pub(crate) fn next(&self) -> Option<Result<Prepared, DataError>> {
        self.ready.recv().ok()
    }

    /// Memory that is no longer needed.
    pub(crate) fn give_back(&self, values: Vec<f32>) {
        // It is not needed when all batches are prepared.
        let _ = self.used.send(values);
    }
}

impl Plan<'_> {
    fn prepare_all(
        &self,
        send: &SyncSender<Result<Prepared, DataError>>,
        unused: &Receiver<Vec<f32>>,
    ) {
        let total = self.inputs.len();
        for first in (self.first..total).step_by(self.batch) {
            let memory = unused.try_recv().unwrap_or_default();
            let prepared = self.prepare(first..total.min(first + self.batch), memory);
            let failed = prepared.is_err();
            if send.send(prepared).is_err() || failed {
                return;
            }
        }
    }

    fn prepare(&self, rows: Range<usize>, mut values: Vec<f32>) -> Result<Prepared, DataError> {
        let image = self.preprocessing.numbers();
        values.resize(rows.len() * image, 0.0);
        let read = |(row, out): (usize, &mut [f32])| match self.preprocessing.read(
            self.inputs,
            row,
            out,
        ) {
            Ok(()) => Ok(None),
            Err(DataError::Invalid { path, message }) => {
                Ok(Some((row, format!("{}: {message}", path.display()))))
            }
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
        Ok(Prepared { rows, damaged, values })
    }
}
