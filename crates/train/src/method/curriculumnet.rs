//! CurriculumNet (Guo et al. 2018): examples in dense places of their class come first.
//!
//! After some epochs of plain training the examples of each given class are divided by the density
//! of the network's features: d is a quantile of the Euclidean distances between examples of the
//! class, the density of an example is the share of the class nearer than d, and k-means with three
//! centres divides the densities into clean, noisy and very noisy examples. Training goes on with
//! the clean ones, then also with the noisy ones, then with all, each sort with a weight of its own;
//! the loss is divided by the number of examples that have one.
//!
//! Distances are to at most 1,000 examples of the class, evenly spread over its rows, so that the
//! work grows with the number of examples and not with its square. The authors reduce features to
//! 256 principal components first, and train a new network with the curriculum.

use aleator_run::recipe;
use rayon::prelude::*;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, Start, Survey, given, update_networks};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct CurriculumNet(pub recipe::CurriculumNet);

/// The sort of each example, `[N]`: 0 clean, 1 noisy, 2 very noisy.
const SORTS: &str = "curriculumnet.sorts";
/// Distances are to at most this many examples of a class.
const MOST: usize = 1_000;

impl Method for CurriculumNet {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.memory = vec![NamedTensor::zeros(SORTS, &[start.examples])];
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        if epoch != self.0.after {
            return Ok(());
        }
        let train = &survey.data.train;
        let mut features = vec![];
        survey.features(state, train, &mut |rows| features.extend(rows))?;
        let width = features.len() / train.len();
        let labels = survey.labels(train);
        for class in 0..train.classes {
            let examples: Vec<usize> =
                (0..labels.len()).filter(|row| labels[*row] as usize == class).collect();
            let rows: Vec<&[f32]> =
                examples.iter().map(|example| &features[example * width..][..width]).collect();
            let sorts = sorts(&densities(&rows, self.0.quantile));
            state.memory[0].values.change(|values| {
                examples.iter().zip(sorts).for_each(|(row, sort)| values[*row] = f32::from(sort));
            });
        }
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let sorts = state.memory[0].values.read();
        let weights = self.weights(part.batch.epoch);
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let weight = weights[sorts[part.batch.examples[row]] as usize];
            rows.push(f32::from(u8::from(weight > 0.0)));
            let mut targets = vec![0.0; log_probs.len()];
            let given = given(&part.batch.targets, row);
            given.iter().for_each(|(class, own)| targets[*class] += weight * own);
            ExampleLoss::against(targets)
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, mut sum: Contribution, rate: f64) {
        sum.average_over_kept();
        update_networks(state, &sum, rate);
    }
}

impl CurriculumNet {
    /// The weight of each sort in an epoch.
    fn weights(&self, epoch: usize) -> [f64; 3] {
        let recipe::CurriculumNet { after, noisy_after, all_after, weights, .. } = self.0;
        let since = [after, noisy_after, all_after];
        let of = |sort: usize| match epoch {
            _ if epoch < after => 1.0,
            _ if epoch < since[sort] => 0.0,
            _ => weights[sort],
        };
        [0, 1, 2].map(of)
    }
}

/// The share of some of the rows that are nearer to each row than a quantile of their distances.
fn densities(rows: &[&[f32]], quantile: f64) -> Vec<f64> {
    let count = rows.len().min(MOST);
    let others: Vec<&[f32]> = (0..count).map(|at| rows[at * rows.len() / count]).collect();
    let square =
        |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
    let mut between: Vec<f32> = others
        .par_iter()
        .flat_map_iter(|one| others.iter().map(|other| square(one, other)))
        .collect();
    if between.is_empty() {
        return vec![];
    }
    let at = ((quantile * between.len() as f64) as usize).min(between.len() - 1);
    let (_, bound, _) = between.select_nth_unstable_by(at, f32::total_cmp);
    let bound = *bound;
    let near = |row: &&[f32]| {
        let near = others.iter().filter(|other| square(row, other) < bound).count();
        near as f64 / count as f64
    };
    rows.par_iter().map(near).collect()
}

/// 0 for densities of the highest of three clusters, 2 for those of the lowest: k-means from the
/// lowest, the middle and the highest density. Where all are equal they are of the first.
fn sorts(densities: &[f64]) -> Vec<u8> {
    let low = densities.iter().copied().fold(f64::INFINITY, f64::min);
    let high = densities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low >= high {
        return vec![0; densities.len()];
    }
    let mut centres = [high, 0.5 * (low + high), low];
    let nearest = |centres: &[f64; 3], density: f64| {
        let distance = |sort: &u8| (density - centres[*sort as usize]).abs();
        (0..3).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    };
    loop {
        let mut sums = [(0.0, 0.0); 3];
        for density in densities {
            let (sum, count) = &mut sums[nearest(&centres, *density) as usize];
            (*sum, *count) = (*sum + density, *count + 1.0);
        }
        let moved: [f64; 3] = std::array::from_fn(|sort| match sums[sort] {
            (_, 0.0) => centres[sort],
            (sum, count) => sum / count,
        });
        if moved == centres {
            return densities.iter().map(|density| nearest(&centres, *density)).collect();
        }
        centres = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_far_from_their_class_are_the_noisy_ones() {
        // Forty on a grid near the origin, three at some distance, two far away.
        let mut rows: Vec<Vec<f32>> =
            (0..40).map(|at| vec![(at % 8) as f32 / 10.0, (at / 8) as f32 / 10.0]).collect();
        rows.extend([vec![1.3, 0.2], vec![1.3, 0.3], vec![-0.6, 0.2]]);
        rows.extend([vec![9.0, 9.0], vec![-9.0, 9.0]]);
        let views: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let densities = densities(&views, 0.6);
        let found = sorts(&densities);
        assert_eq!(found[43..], [2, 2], "{densities:?}");
        assert!(found[..40].iter().all(|sort| *sort < 2), "{found:?}");
        assert!(found[40..43].iter().all(|sort| *sort > 0), "{densities:?} {found:?}");
        // No example of a sort is less dense than one of the next.
        let of = |sort: u8| {
            let pairs = found.iter().zip(&densities);
            pairs.filter(move |(own, _)| **own == sort).map(|(_, density)| *density)
        };
        for sort in [0, 1] {
            let least = of(sort).fold(f64::INFINITY, f64::min);
            assert!(of(sort + 1).all(|density| density < least), "{densities:?} {found:?}");
        }
    }

    #[test]
    fn few_and_equal_examples_are_clean() {
        let row: &[f32] = &[1.0, 2.0];
        assert_eq!(sorts(&densities(&[row; 3], 0.6)), [0; 3]);
        assert_eq!(sorts(&densities(&[row], 0.6)), [0]);
        assert_eq!(sorts(&densities(&[], 0.6)), [0u8; 0]);
    }

    #[test]
    fn stages_add_the_noisier_examples() {
        let settings = recipe::CurriculumNet {
            after: 2,
            noisy_after: 4,
            all_after: 6,
            quantile: 0.6,
            weights: [1.0, 0.5, 0.25],
        };
        let found = [0, 2, 4, 6].map(|epoch| CurriculumNet(settings).weights(epoch));
        assert_eq!(found, [[1.0; 3], [1.0, 0.0, 0.0], [1.0, 0.5, 0.0], [1.0, 0.5, 0.25]]);
    }
}
