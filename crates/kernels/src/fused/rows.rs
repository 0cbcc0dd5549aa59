//! Gradients split by example, and their computation from the moments of a tile.

use crate::latent::{Example, LatentGrad, Loadings};
use crate::tile::{Moments, Tile};

/// One example's part of the gradients.
pub(crate) struct RowGrad<'a> {
    pub mean: &'a mut [f32],
    pub diag_scale: &'a mut [f32],
    pub loadings: &'a mut [f32],
    pub loading_scale: &'a mut [f32],
    /// Its term of the gradient of the shared loadings, which the caller adds up.
    pub shared_loadings: &'a mut [f32],
}

/// Splits a buffer into one piece for each example; an empty buffer gives empty pieces.
pub(crate) fn pieces(buffer: &mut [f32], batch: usize) -> impl Iterator<Item = &mut [f32]> {
    let size = buffer.len() / batch.max(1);
    let mut rest = buffer;
    (0..batch).map(move |_| rest.split_off_mut(..size).expect("batch pieces of equal size"))
}

/// The gradients of each example, and the sum over the batch of the shared loadings.
pub(crate) fn split_rows(grad: &mut LatentGrad, batch: usize) -> (Vec<RowGrad<'_>>, &mut [f32]) {
    let mut diag_scale = pieces(&mut grad.diag_scale, batch);
    let mut loadings = pieces(&mut grad.loadings, batch);
    let mut loading_scale = pieces(&mut grad.loading_scale, batch);
    let rows = pieces(&mut grad.mean, batch)
        .map(|mean| RowGrad {
            mean,
            diag_scale: diag_scale.next().unwrap_or_default(),
            loadings: loadings.next().unwrap_or_default(),
            loading_scale: loading_scale.next().unwrap_or_default(),
            shared_loadings: Default::default(),
        })
        .collect();
    (rows, &mut grad.shared_loadings)
}

/// Turns moments into gradients and returns ∂/∂τ.
///
/// The likelihood depends on the parameters only through u/τ, so by Euler's theorem
/// τ ∂τ = −(Σ μ ∂μ + Σ d ∂d + Σ V ∂V); subtracting the largest mean as `origin`, to which softmax
/// is invariant, avoids cancellation in that sum. Other likelihoods have the origin zero.
pub(crate) fn write_grad<T: Tile>(
    tile: &T,
    parts: &[(&Moments, f32)],
    example: &Example,
    temperature: f32,
    origin: f32,
    out: &mut RowGrad,
) -> f64 {
    let rank = example.loadings.rank();
    let mut loadings = vec![0.0; rank];
    let mut euler = 0.0f64;
    // By factor, so that the sums are not one chain of dependent additions.
    let mut euler_factors = vec![0.0f64; rank];
    for class in 0..example.mean.len() {
        let (mut mean, mut diag_scale) = (0.0, 0.0);
        loadings.fill(0.0);
        for (moments, coefficient) in parts {
            let factor = coefficient / temperature;
            let moment = |column: usize| factor * tile.moment(moments, class, column);
            mean += moment(0);
            diag_scale += moment(tile.columns());
            loadings.iter_mut().zip(1..).for_each(|(sum, column)| *sum += moment(column));
        }
        out.mean[class] = mean;
        euler += (example.mean[class] as f64 - origin as f64) * mean as f64;
        if let Some(scale) = example.diag_scale {
            out.diag_scale[class] = diag_scale;
            euler += (scale[class] * diag_scale) as f64;
        }
        let row = example.loadings.row(class, 1.0);
        for (sum, (loading, grad)) in euler_factors.iter_mut().zip(row.zip(&loadings)) {
            *sum += (loading * grad) as f64;
        }
        match example.loadings {
            Loadings::None => {}
            Loadings::Own { .. } => out.loadings[class * rank..][..rank].copy_from_slice(&loadings),
            Loadings::Shared { scale, loadings: shared_loadings, .. } => {
                let own = &shared_loadings[class * rank..][..rank];
                out.loading_scale[class] = own.iter().zip(&loadings).map(|(v, g)| v * g).sum();
                let shared = out.shared_loadings[class * rank..].iter_mut().zip(&loadings);
                shared.for_each(|(shared, part)| *shared = scale[class] * part);
            }
        }
    }
    -(euler + euler_factors.iter().sum::<f64>()) / temperature as f64
}
