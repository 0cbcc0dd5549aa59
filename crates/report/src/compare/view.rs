//! Which numbers of a run are compared.

use aleator_metrics::{SplitEvaluation, Summary};
use aleator_run::Split;
use serde::Deserialize;

use super::error::CompareError;
use super::measure::Measure;
use super::rows::{Part, Row, SeedRun};
use super::score::Values;

/// Which labels predictions are measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Labels {
    /// The labels in the data, some of them wrong.
    Given,
    /// The true labels.
    Clean,
}

impl Labels {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given labels",
            Self::Clean => "clean labels",
        }
    }
}

/// One of the summaries in `evaluation.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Validation or test.
    pub split: Split,
    /// The labels that predictions are measured against.
    pub labels: Labels,
    /// At the temperature that was fitted to the validation split.
    pub calibrated: bool,
}

/// The requested numbers; open choices depend on what the runs have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Default: test if the runs have a test split, otherwise validation.
    pub split: Option<Split>,
    /// Default: clean if every run has them, otherwise given.
    pub labels: Option<Labels>,
    /// Calibrated numbers, which are measured against the given labels.
    pub calibrated: bool,
}

impl Wanted {
    /// Numbers that all rows have.
    pub fn choose(&self, rows: &[Row]) -> Result<View, CompareError> {
        let split = self.choose_split(rows)?;
        let lacks = |has: fn(&SplitEvaluation) -> bool| {
            let part = |part: &&Part| of_split(part, split).is_none_or(|it| !has(it));
            parts(rows).find(part).map(|part| part.run.dir.path().to_path_buf())
        };
        if self.calibrated {
            if self.labels == Some(Labels::Clean) {
                return Err(CompareError::CalibratedIsGiven);
            }
            if let Some(dir) = lacks(|it| it.calibrated.is_some()) {
                return Err(CompareError::NotCalibrated { dir });
            }
            return Ok(View { split, labels: Labels::Given, calibrated: true });
        }
        let without_clean = lacks(|it| it.clean.is_some());
        let labels = match (self.labels, without_clean) {
            (Some(Labels::Clean), Some(dir)) => {
                return Err(CompareError::NoCleanLabels { dir, split: split.name() });
            }
            (Some(labels), _) => labels,
            (None, None) => Labels::Clean,
            (None, Some(_)) => Labels::Given,
        };
        Ok(View { split, labels, calibrated: false })
    }

    fn choose_split(&self, rows: &[Row]) -> Result<Split, CompareError> {
        let without = parts(rows).find(|part| part.run.evaluation.test.is_none());
        match (self.split, without) {
            (Some(Split::Train), _) => Err(CompareError::TrainIsNotMeasured),
            (Some(Split::Validation), _) => Ok(Split::Validation),
            (_, None) => Ok(Split::Test),
            (None, Some(_)) if parts(rows).all(|part| part.run.evaluation.test.is_none()) => {
                Ok(Split::Validation)
            }
            (_, Some(part)) => {
                Err(CompareError::NoTestSplit { dir: part.run.dir.path().to_path_buf() })
            }
        }
    }
}

impl View {
    /// How many examples are measured; of a transfer, over all tasks.
    pub fn examples(&self, run: &SeedRun) -> usize {
        run.parts.iter().filter_map(|part| self.summary(part)).map(|it| it.examples).sum()
    }

    /// A row's values of a measure; of a transfer, each is the mean over its tasks. Empty if a run
    /// lacks the measure.
    pub fn values(&self, row: &Row, measure: Measure) -> Values {
        let of_run = |run: &SeedRun| -> Option<f64> {
            let value = |part| measure.read(self.summary(part)?);
            let values: Option<Vec<f64>> = run.parts.iter().map(value).collect();
            aleator_metrics::significance::mean(&values?)
        };
        let values: Option<Vec<f64>> = row.runs.iter().map(of_run).collect();
        Values { values: values.unwrap_or_default(), seeds: row.seeds() }
    }

    fn summary<'a>(&self, part: &'a Part) -> Option<&'a Summary> {
        let split = of_split(part, self.split)?;
        match (self.calibrated, self.labels) {
            (true, _) => split.calibrated.as_ref(),
            (false, Labels::Given) => Some(&split.given),
            (false, Labels::Clean) => split.clean.as_ref(),
        }
    }
}

fn of_split(part: &Part, split: Split) -> Option<&SplitEvaluation> {
    match split {
        Split::Train => None,
        Split::Validation => Some(&part.run.evaluation.validation),
        Split::Test => part.run.evaluation.test.as_ref(),
    }
}

fn parts(rows: &[Row]) -> impl Iterator<Item = &Part> {
    rows.iter().flat_map(|row| &row.runs).flat_map(|run| &run.parts)
}
