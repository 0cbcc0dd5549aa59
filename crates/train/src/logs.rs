//! `metrics.jsonl` and the TensorBoard file, written side by side.

use std::time::{SystemTime, UNIX_EPOCH};

use aleator_metrics::Summary;
use aleator_run::{EventFile, MetricsLog, RunDir};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::checkpoint::LogPositions;
use crate::{StepReport, TrainError};

pub(crate) struct Logs {
    metrics: MetricsLog,
    events: EventFile,
}

/// A number, with its names in `metrics.jsonl` and in the TensorBoard file.
type Quantity = (&'static str, &'static str, f64);

/// A line of `metrics.jsonl`.
struct Line<'a> {
    step: usize,
    epoch: usize,
    quantities: &'a [Quantity],
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("step", &self.step)?;
        map.serialize_entry("epoch", &self.epoch)?;
        for (name, _, value) in self.quantities {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Logs {
    /// Cuts both files to their length at a checkpoint.
    pub fn open_at(run: &RunDir, positions: LogPositions) -> Result<Self, TrainError> {
        let metrics = MetricsLog::open_at(&run.metrics_path(), positions.metrics)?;
        let events = match positions.events {
            0 => EventFile::create(&run.events_path(), now())?,
            position => EventFile::open_at(&run.events_path(), position)?,
        };
        Ok(Self { metrics, events })
    }

    pub fn step(
        &mut self,
        step: usize,
        epoch: usize,
        learning_rate: f64,
        report: &StepReport,
    ) -> Result<(), TrainError> {
        let quantities = [
            ("loss", "train/loss", report.loss),
            ("accuracy", "train/accuracy", report.accuracy),
            ("gradient_norm", "train/gradient_norm", report.gradient_norm),
            ("learning_rate", "train/learning_rate", learning_rate),
        ];
        self.append(step, epoch, &quantities)
    }

    pub fn epoch(&mut self, step: usize, epoch: usize, found: &Summary) -> Result<(), TrainError> {
        let quantities = [
            ("validation_nll", "validation/nll", found.nll),
            ("validation_top1", "validation/top1", found.top1),
            ("validation_ece", "validation/ece", found.ece),
        ];
        self.append(step, epoch, &quantities)
    }

    fn append(
        &mut self,
        step: usize,
        epoch: usize,
        quantities: &[Quantity],
    ) -> Result<(), TrainError> {
        self.metrics.append(&Line { step, epoch, quantities })?;
        let scalars = quantities.iter().map(|(_, tag, value)| (*tag, *value as f32));
        Ok(self.events.scalars(step as i64, now(), &scalars.collect::<Vec<_>>())?)
    }

    /// Writes both to the disk and returns their lengths.
    pub fn sync(&mut self) -> Result<LogPositions, TrainError> {
        self.metrics.sync()?;
        self.events.sync()?;
        Ok(LogPositions { metrics: self.metrics.position(), events: self.events.position() })
    }
}

/// For TensorBoard's axis of time only; no number of a run depends on it.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
