//! Predictions without sampling, next to the sampled ones of a run.

use aleator_kernels::{
    Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors, approximate, fused, taylor,
};
use aleator_run::{Field, RunDir, Split};
use serde::Serialize;

use crate::covariance::{Covariances, Observer, Step, pieces};
use crate::error::ReportError;

/// A way to compute p from a Normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prediction {
    /// As the run predicts.
    Sampled,
    /// With as many samples and other noise: what sampling itself is uncertain by.
    SampledAgain,
    /// The second-order expansion, as a distribution (deviation D9).
    Expansion,
    /// Each mean shrunk by its own variance.
    Probit,
    /// All differences of two means, each shrunk by its variance.
    MeanField,
}

impl Prediction {
    /// All of them, the run's own first.
    pub const ALL: [Self; 5] =
        [Self::Sampled, Self::SampledAgain, Self::Expansion, Self::Probit, Self::MeanField];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::SampledAgain => "sampled again",
            Self::Expansion => "expansion",
            Self::Probit => "probit",
            Self::MeanField => "mean field",
        }
    }

    /// log p, `[n, K]`.
    fn log_probs(
        self,
        latent: &Latent,
        tau: Temperature,
        first: usize,
        samples: usize,
    ) -> Vec<f32> {
        match self {
            Self::Expansion => taylor::log_probs(latent, tau),
            Self::Probit => approximate::probit(latent, tau),
            Self::MeanField => approximate::mean_field(latent, tau),
            Self::Sampled | Self::SampledAgain => {
                let ids: Vec<u64> = (first..first + latent.batch).map(|id| id as u64).collect();
                // Training starts at step 0, and evaluation has a step of its own.
                let key = NoiseKey { seed: 0, step: NoiseKey::EVALUATION_STEP - 1 };
                let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
                let sampling = Sampling { key, ids: &ids, samples, draws, law };
                let mut out = vec![0.0; latent.batch * latent.classes];
                fused::log_probs(latent, tau, &sampling, Vectors::Detected, &mut out)
                    .unwrap_or_else(|error| panic!("{error}"));
                out
            }
        }
    }
}

/// The scores of one way to predict, and its distance from the run's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictionScores {
    /// The way.
    pub prediction: Prediction,
    /// The share of examples whose label is the most probable class.
    pub top1: f64,
    /// The mean of −log p of the labels.
    pub nll: f64,
    /// The mean total variation ½ Σ_c ∣p − p sampled∣.
    pub error: f64,
    /// The largest ∣p − p sampled∣ of any example and class.
    pub largest_error: f64,
}

/// Compares all ways on a split; scores are against the given labels, without examples that have
/// not exactly one.
///
/// # Errors
/// When the run is not evaluated, has the sigmoid link (whose probabilities are exact) or no noise,
/// or its predictions lack the loadings.
pub fn compare_predictions(
    run: &RunDir,
    split: Split,
    samples: usize,
    observer: Observer,
) -> Result<Vec<PredictionScores>, ReportError> {
    let mut covariances = Covariances::open(run, split)?;
    let tau = covariances.link_temperature()?;
    let mut sums = Prediction::ALL.map(|prediction| (prediction, Sums::default()));
    let total = covariances.examples().len();
    for rows in pieces(&covariances.reader) {
        let latents = covariances.latents(rows.clone())?;
        let own = covariances.reader.read(Field::LogProbs, rows.clone())?;
        let label = |row: usize| match covariances.examples()[row].label.as_deref() {
            Some([label]) => Some(*label as usize),
            _ => None,
        };
        let labels: Vec<Option<usize>> = rows.clone().map(label).collect();
        for (prediction, sums) in &mut sums {
            match prediction {
                Prediction::Sampled => sums.add(&own, &own, &labels),
                _ => {
                    let found = prediction.log_probs(&latents.view(), tau, rows.start, samples);
                    sums.add(&found, &own, &labels);
                }
            }
        }
        observer(Step { what: "examples: predictions without sampling", done: rows.end, total });
    }
    Ok(sums.into_iter().map(|(prediction, sums)| sums.scores(prediction)).collect())
}

#[derive(Default)]
struct Sums {
    examples: f64,
    labelled: f64,
    right: f64,
    nll: f64,
    error: f64,
    largest_error: f64,
}

impl Sums {
    fn add(&mut self, found: &[f32], own: &[f32], labels: &[Option<usize>]) {
        let classes = found.len() / labels.len().max(1);
        let rows = found.chunks_exact(classes).zip(own.chunks_exact(classes));
        for ((found, own), label) in rows.zip(labels) {
            let prob = |log: &f32| f64::from(*log).exp();
            let errors = found.iter().zip(own).map(|(a, b)| (prob(a) - prob(b)).abs());
            let (total, largest) = errors.fold((0.0, 0.0), |(sum, most), e| (sum + e, e.max(most)));
            self.examples += 1.0;
            self.error += total / 2.0;
            self.largest_error = largest.max(self.largest_error);
            let Some(label) = *label else { continue };
            self.labelled += 1.0;
            self.nll -= f64::from(found[label]);
            let best = aleator_metrics::classification::argmax(found);
            self.right += f64::from(u8::from(best == label));
        }
    }

    fn scores(&self, prediction: Prediction) -> PredictionScores {
        PredictionScores {
            prediction,
            top1: self.right / self.labelled,
            nll: self.nll / self.labelled,
            error: self.error / self.examples,
            largest_error: self.largest_error,
        }
    }
}
