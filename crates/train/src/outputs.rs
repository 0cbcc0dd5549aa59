//! The outputs of a model as plain numbers.

use aleator_model::{Covariance, Latent};
use aleator_run::{MeanPredictions, Predictions};
use burn::tensor::Tensor;

/// The predictions of a batch; under the sigmoid link with the logarithms of the complements.
///
/// # Errors
/// The rows that hold no probabilities.
pub(crate) fn predictions(
    log_probs: Vec<f32>,
    log_probs_off: Option<Vec<f32>>,
    latent: Latent,
    keep_loadings: bool,
) -> Result<Predictions, Vec<usize>> {
    let [_, classes] = latent.dims();
    let rank = latent.rank();
    // Files hold the noise of the utilities; it is computed only where it is kept.
    let latent = if keep_loadings { latent.in_class_space() } else { latent };
    let mut all = Predictions {
        classes,
        rank: 0,
        temperature: latent.temperature.into_scalar(),
        log_probs,
        log_probs_off,
        mean: floats(latent.mean),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    };
    match latent.covariance {
        Covariance::None => {}
        Covariance::Diagonal { diag_scale } => all.diag_scale = Some(floats(diag_scale)),
        Covariance::LowRank { diag_scale, loadings } => {
            all.diag_scale = Some(floats(diag_scale));
            if keep_loadings {
                all.rank = rank;
                all.loadings = Some(floats(loadings));
            }
        }
        Covariance::OnFeatures(_) => all.diag_scale = Some(vec![0.0; all.mean.len()]),
        Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
            all.rank = rank;
            all.diag_scale = Some(floats(diag_scale));
            all.loading_scale = Some(floats(loading_scale));
            all.shared_loadings = Some(floats(shared_loadings));
        }
    }
    let bad = bad_rows(&all);
    if bad.is_empty() { Ok(all) } else { Err(bad) }
}

/// What several models predict together.
///
/// # Panics
/// If there is none.
pub(crate) fn average(members: &[Predictions]) -> Predictions {
    let mut mean = MeanPredictions::new(&members[0]);
    members[1..].iter().for_each(|member| mean.add(member));
    mean.finish()
}

/// Adds the predictions of further examples by the same model.
pub(crate) fn append(to: &mut Predictions, mut from: Predictions) {
    to.log_probs.append(&mut from.log_probs);
    to.mean.append(&mut from.mean);
    for (to, from) in [
        (&mut to.log_probs_off, from.log_probs_off),
        (&mut to.diag_scale, from.diag_scale),
        (&mut to.loadings, from.loadings),
        (&mut to.loading_scale, from.loading_scale),
        (&mut to.joint_log_probs, from.joint_log_probs),
    ] {
        if let (Some(to), Some(mut from)) = (to, from) {
            to.append(&mut from);
        }
    }
}

pub(crate) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// The rows where a number is missing, or no class is possible where one must be.
fn bad_rows(predictions: &Predictions) -> Vec<usize> {
    let Predictions { classes, log_probs, log_probs_off, .. } = predictions;
    let has_nan = |row: &[f32]| row.iter().any(|value| value.is_nan());
    let row_of = |at: usize| at * classes..(at + 1) * classes;
    let is_bad = |at: &usize| {
        let row = &log_probs[row_of(*at)];
        has_nan(row)
            || match log_probs_off {
                Some(off) => has_nan(&off[row_of(*at)]),
                None => row.iter().all(|value| *value == f32::NEG_INFINITY),
            }
    };
    (0..predictions.examples()).filter(is_bad).collect()
}
