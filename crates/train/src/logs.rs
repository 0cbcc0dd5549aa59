//! `metrics.jsonl` and the TensorBoard file, written side by side.

use std::time::{SystemTime, UNIX_EPOCH};

use aleator_metrics::Summary;
use aleator_run::{EventFile, MetricsLog, RunDir};
use serde::Serialize;

use crate::checkpoint::LogPositions;
use crate::error::TrainError;
use crate::step::StepReport;

pub(crate) struct Logs {
    metrics: MetricsLog,
    events: EventFile,
}

/// A line of `metrics.jsonl` for a step.
#[derive(Serialize)]
struct StepLine {
    step: usize,
    epoch: usize,
    loss: f64,
    accuracy: f64,
    gradient_norm: f64,
    learning_rate: f64,
}

/// A line of `metrics.jsonl` for the end of an epoch.
#[derive(Serialize)]
struct EpochLine {
    step: usize,
    epoch: usize,
    validation_nll: f64,
    validation_top1: f64,
    validation_ece: f64,
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
        let StepReport { loss, accuracy, gradient_norm } = *report;
        let line = StepLine { step, epoch, loss, accuracy, gradient_norm, learning_rate };
        self.metrics.append(&line)?;
        let scalars = [
            ("train/loss", loss as f32),
            ("train/accuracy", accuracy as f32),
            ("train/gradient_norm", gradient_norm as f32),
            ("train/learning_rate", learning_rate as f32),
        ];
        Ok(self.events.scalars(step as i64, now(), &scalars)?)
    }

    pub fn epoch(
        &mut self,
        step: usize,
        epoch: usize,
        summary: &Summary,
    ) -> Result<(), TrainError> {
        let line = EpochLine {
            step,
            epoch,
            validation_nll: summary.nll,
            validation_top1: summary.top1,
            validation_ece: summary.ece,
        };
        self.metrics.append(&line)?;
        let scalars = [
            ("validation/nll", summary.nll as f32),
            ("validation/top1", summary.top1 as f32),
            ("validation/ece", summary.ece as f32),
        ];
        Ok(self.events.scalars(step as i64, now(), &scalars)?)
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
