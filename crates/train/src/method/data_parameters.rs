//! Data parameters (Saxena et al. 2019): every class, every example, or both have a temperature of
//! their own, which is learned; a label that does not fit is cooled out of the loss.
//!
//! With σ = exp(s_class) + exp(s_instance), each where it is wanted, the loss is that of the
//! utilities divided by σ, which is that of μ/σ and Σ/σ². The s are moved by gradient descent with
//! momentum and a decay of their own and stay within bounds; those that a step does not touch keep
//! value and momentum. Prediction knows nothing of them.
//!
//! The gradient of s_class is that of the mean over the step. That of s_instance is that of the
//! example's own loss: the authors' rates, which are for the mean over a batch of 128, are to be
//! divided by 128.

use aleator_model::{Covariance, FeatureNoise, Latent};
use aleator_run::recipe::{self, DataParameter};
use burn::tensor::{Tensor, TensorData};

use super::{Method, Start, given, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct DataParameters(pub recipe::DataParameters);

/// s and its momentum, `[K]` and `[N]`.
const CLASSES: [&str; 2] = ["data_parameters.classes", "data_parameters.classes_momentum"];
const INSTANCES: [&str; 2] = ["data_parameters.instances", "data_parameters.instances_momentum"];

/// Temperatures of one sort: what the recipe says, and where memory has them.
struct Sort {
    settings: DataParameter,
    at: usize,
}

impl Method for DataParameters {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let [classes, instances] = self.sorts();
        let sizes =
            [(CLASSES, classes, start.shape.classes), (INSTANCES, instances, start.examples)];
        for (names, sort, size) in sizes {
            let Some(Sort { settings, .. }) = sort else { continue };
            let first = vec![settings.start.ln() as f32; size];
            state.memory.push(NamedTensor::vector(names[0], &first));
            state.memory.push(NamedTensor::zeros(names[1], &[size]));
        }
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let mut forward = model.forward(part.inputs.clone());
        let classes: Vec<usize> =
            (0..part.weights.len()).map(|row| label(&given(&part.batch.targets, row))).collect();
        let temperatures: Vec<f64> = part
            .batch
            .examples
            .iter()
            .zip(&classes)
            .map(|(example, class)| self.temperature(state, *class, *example))
            .collect();
        let factors: Vec<f32> = temperatures.iter().map(|value| (1.0 / value) as f32).collect();
        let data = TensorData::new(factors, [classes.len(), 1]);
        let factors = Tensor::<2>::from_data(data, &forward.latent.mean.device()).require_grad();
        forward.latent = scaled(forward.latent, &factors);
        let loss = model.loss(forward, part.targets(), &part.weights, &part.noise, None)?;
        let (contribution, slopes) = Contribution::with_slopes(part, network, loss, &factors);
        let by_example = slopes.iter().zip(&part.weights).zip(&temperatures).zip(&classes);
        let rows = by_example.flat_map(|(((slope, weight), temperature), class)| {
            // By σ in place of 1/σ, of the example alone.
            let slope = -f64::from(*slope) / f64::from(*weight) / (temperature * temperature);
            [slope as f32, *class as f32]
        });
        Ok(Contribution { rows: rows.collect(), ..contribution })
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        let rows: Vec<(f64, usize)> =
            sum.rows.chunks_exact(2).map(|row| (f64::from(row[0]), row[1] as usize)).collect();
        let [classes, instances] = self.sorts();
        if let Some(sort) = classes {
            let mut slopes = vec![];
            for (slope, class) in &rows {
                let mean = slope / rows.len() as f64;
                match slopes.iter_mut().find(|(known, _)| known == class) {
                    Some((_, sum)) => *sum += mean,
                    None => slopes.push((*class, mean)),
                }
            }
            self.step(state, &sort, slopes);
        }
        if let Some(sort) = instances {
            let slopes = sum.examples.iter().zip(&rows).map(|(example, row)| (*example, row.0));
            self.step(state, &sort, slopes.collect());
        }
        update_networks(state, &sum, rate);
    }
}

impl DataParameters {
    /// Temperatures of classes, and of examples.
    fn sorts(&self) -> [Option<Sort>; 2] {
        let recipe::DataParameters { classes, instances, .. } = self.0;
        let behind = if classes.is_some() { 2 } else { 0 };
        [(classes, 0), (instances, behind)]
            .map(|(settings, at)| settings.map(|settings| Sort { settings, at }))
    }

    /// σ of an example.
    fn temperature(&self, state: &State, class: usize, example: usize) -> f64 {
        let sorts = self.sorts().into_iter().zip([class, example]);
        let one = |(sort, index): (Option<Sort>, usize)| {
            Some(f64::from(state.memory[sort?.at].values.read()[index]).exp())
        };
        sorts.filter_map(one).sum()
    }

    /// Moves the s of these indices by the slopes of the loss by σ.
    fn step(&self, state: &mut State, sort: &Sort, slopes: Vec<(usize, f64)>) {
        let recipe::DataParameters { momentum, bound, .. } = self.0;
        let DataParameter { rate, decay, .. } = sort.settings;
        let [values, buffers] = &mut state.memory[sort.at..sort.at + 2] else {
            unreachable!("s and its momentum")
        };
        values.values.change(|values| {
            buffers.values.change(|buffers| {
                for (index, slope) in slopes {
                    let old = f64::from(values[index]);
                    let gradient = slope * old.exp() + decay * old;
                    let moved = momentum * f64::from(buffers[index]) + gradient;
                    buffers[index] = moved as f32;
                    if rate > 0.0 {
                        let bound = bound.ln();
                        values[index] = (old - rate * moved).clamp(-bound, bound) as f32;
                    }
                }
            });
        });
    }
}

/// The class whose temperature an example has: the given one, or that of the largest weight.
fn label(given: &[(usize, f64)]) -> usize {
    let heavier = |best: (usize, f64), own: &(usize, f64)| if own.1 > best.1 { *own } else { best };
    given.iter().fold((0, f64::NEG_INFINITY), heavier).0
}

/// The Normal of utilities times a factor for each example, [B, 1].
fn scaled(latent: Latent, factors: &Tensor<2>) -> Latent {
    let two = |tensor: Tensor<2>| tensor * factors.clone();
    let covariance = match latent.covariance {
        Covariance::None => Covariance::None,
        Covariance::Diagonal { diag_scale } => Covariance::Diagonal { diag_scale: two(diag_scale) },
        Covariance::LowRank { diag_scale, loadings } => Covariance::LowRank {
            diag_scale: two(diag_scale),
            loadings: loadings * factors.clone().unsqueeze_dim(2),
        },
        Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
            Covariance::SharedLowRank {
                diag_scale: two(diag_scale),
                loading_scale: two(loading_scale),
                shared_loadings,
            }
        }
        Covariance::OnFeatures(noise) => Covariance::OnFeatures(FeatureNoise {
            diag_scale: two(noise.diag_scale),
            loading_scale: two(noise.loading_scale),
            ..noise
        }),
    };
    Latent { mean: two(latent.mean), covariance, temperature: latent.temperature }
}
