//! Two views of every example of a part.
//!
//! Images are varied twice where batches are prepared. Other inputs are varied here, after they are
//! normalised, by words that are named by seed, step, example and view.

use aleator_data::{Batch, Targets};
use aleator_kernels::quantile::inverse_normal_cdf;
use aleator_kernels::split_mix;
use aleator_model::BatchNoise;
use aleator_run::recipe::ViewKind;
use burn::tensor::{Tensor, TensorData};

use super::mixing::{Use, word_seed};
use super::{Survey, given};
use crate::TrainError;
use crate::outputs::floats;
use crate::state::State;
use crate::step::Part;

/// Both views of the examples of a part, [B, N] each. `spreads` are the standard deviations of the
/// features, for noise.
pub(super) fn two(part: &Part<'_>, kind: ViewKind, spreads: &[f32]) -> [Tensor<2>; 2] {
    match kind {
        ViewKind::Augmentation => {
            let second = part.second_view.clone().expect("two views were asked for");
            [part.inputs.clone(), second]
        }
        ViewKind::Noise { strength } => {
            let noisy = |feature: usize, value: f32, word: u64| {
                let normal = inverse_normal_cdf((word >> 32) as u32);
                value + strength as f32 * spreads[feature] * normal
            };
            [0, 1].map(|view| vary(part, view, noisy))
        }
        ViewKind::Dropout { rate } => {
            let dropped = |_: usize, value: f32, word: u64| {
                let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
                if unit < rate { 0.0 } else { value / (1.0 - rate) as f32 }
            };
            [0, 1].map(|view| vary(part, view, dropped))
        }
    }
}

/// The inputs of a part, each number changed by its feature, itself, and a word of its own.
fn vary(part: &Part<'_>, view: u64, change: impl Fn(usize, f32, u64) -> f32) -> Tensor<2> {
    let [count, width] = part.inputs.dims();
    let mut values = floats(part.inputs.clone());
    for (row, values) in values.chunks_exact_mut(width).enumerate() {
        let words = split_mix(word_seed(part, row, Use::View(view)));
        for ((feature, value), word) in values.iter_mut().enumerate().zip(words) {
            *value = change(feature, *value, word);
        }
    }
    Tensor::from_data(TensorData::new(values, [count, width]), &part.inputs.device())
}

/// The examples of a part once for each view: first all as the first view shows them.
pub(super) fn batch_of(part: &Part<'_>, views: usize) -> Batch {
    let mut batch = part.batch.clone();
    let classes_of = |row: usize| {
        let classes = given(&part.batch.targets, row).into_iter();
        classes.map(|(class, weight)| (class as u32, weight as f32))
    };
    for _ in 1..views {
        batch.examples.extend_from_slice(&part.batch.examples);
        // Draws of the second view are not those of the first.
        let keys = part.batch.keys.iter();
        batch.keys.extend(keys.map(|key| split_mix(*key).next().expect("it has no end")));
        match (&mut batch.targets, &part.batch.targets) {
            (Targets::Classes(all), Targets::Classes(classes)) => all.extend(classes),
            (Targets::Sparse(all), _) => {
                (0..part.weights.len()).for_each(|row| all.push(classes_of(row)));
            }
            (Targets::Classes(_), Targets::Sparse(_)) => unreachable!("a copy is of its kind"),
        }
    }
    batch
}

/// The part of [`batch_of`], whose inputs are these views.
pub(super) fn part_of<'a>(part: &Part<'_>, batch: &'a Batch, views: Vec<Tensor<2>>) -> Part<'a> {
    let count = batch.examples.len();
    Part {
        batch,
        inputs: Tensor::cat(views, 0),
        second_view: None,
        noise: BatchNoise { ids: batch.keys.clone(), ..part.noise.clone() },
        weights: vec![1.0 / count as f32; count],
    }
}

/// The standard deviation of each feature of the training examples, as the network takes them.
///
/// # Errors
/// When inputs cannot be read.
pub(super) fn spreads(state: &State, survey: &Survey<'_>) -> Result<Vec<f32>, TrainError> {
    let split = &survey.data.train;
    let width = split.inputs.shape().len();
    let (mut mean, mut squares) = (vec![0.0f64; width], vec![0.0f64; width]);
    let mut example = vec![0.0; width];
    for (before, row) in split.rows.iter().enumerate() {
        split.inputs.read(*row, &mut example)?;
        state.normalization.apply(&mut example);
        for ((mean, squares), value) in mean.iter_mut().zip(&mut squares).zip(&example) {
            let away = f64::from(*value) - *mean;
            *mean += away / (before + 1) as f64;
            *squares += away * (f64::from(*value) - *mean);
        }
    }
    let deviation = |squares: &f64| (squares / split.len() as f64).sqrt() as f32;
    Ok(squares.iter().map(deviation).collect())
}
