//! Several labels at once: what a joint likelihood says of sets of labels.

use aleator_kernels::multilabel::{
    Conditional, Joint, LabelSet, conditional, joint_log_probs, most_probable_set,
};
use aleator_kernels::{Covariance, Latent, NoiseLaw, Sampling, Targets, Temperature, Vectors};
use aleator_model::BatchNoise;
use aleator_run::Predictions;
use rayon::prelude::*;

/// The joint distribution of the labels of some examples.
pub(crate) struct JointLabels<'a> {
    latent: Latent<'a>,
    temperature: Temperature,
    sampling: Sampling<'a>,
}

impl<'a> JointLabels<'a> {
    /// Of predictions with their loadings, under the noise that they were made with.
    ///
    /// # Panics
    /// If the temperature is not one; a head has none such.
    pub fn new(predictions: &'a Predictions, noise: &'a BatchNoise) -> Self {
        let Predictions { classes, rank, mean, temperature, .. } = predictions;
        let covariance = match predictions {
            Predictions { diag_scale: Some(diag_scale), loadings: Some(loadings), .. } => {
                Covariance::LowRank { diag_scale, loadings, rank: *rank }
            }
            Predictions {
                diag_scale: Some(diag_scale),
                loading_scale: Some(loading_scale),
                shared_loadings: Some(shared_loadings),
                ..
            } => Covariance::SharedLowRank {
                diag_scale,
                loading_scale,
                shared_loadings,
                rank: *rank,
            },
            Predictions { diag_scale: Some(diag_scale), .. } => Covariance::Diagonal { diag_scale },
            _ => Covariance::None,
        };
        let batch = predictions.examples();
        let BatchNoise { key, ids, samples, draws } = noise;
        Self {
            latent: Latent { batch, classes: *classes, mean, covariance },
            temperature: Temperature::try_from(*temperature).expect("a head has a temperature"),
            sampling: Sampling {
                key: *key,
                ids,
                samples: *samples,
                draws: *draws,
                law: NoiseLaw::Normal,
            },
        }
    }

    /// log P of all labels of each example, `[N]`.
    ///
    /// # Errors
    /// The rows of examples whose utilities are not finite.
    pub fn log_probs(&self, targets: Targets<'_>) -> Result<Vec<f32>, Vec<usize>> {
        let Self { latent, temperature, sampling } = self;
        joint_log_probs(latent, *temperature, sampling, targets, Vectors::Detected)
            .map_err(|error| error.rows)
    }

    /// The most probable set of each example, given some labels.
    pub fn sets(&self, observed: Joint<'_>) -> Vec<LabelSet> {
        let Self { latent, temperature, sampling } = self;
        let of_row = |row| most_probable_set(latent, *temperature, sampling, row, observed);
        (0..latent.batch).into_par_iter().map(of_row).collect()
    }

    /// The labels of each example, given some of them.
    pub fn given(&self, observed: Joint<'_>) -> Vec<Conditional> {
        let Self { latent, temperature, sampling } = self;
        let of_row = |row| conditional(latent, *temperature, sampling, row, observed);
        (0..latent.batch).into_par_iter().map(of_row).collect()
    }
}
