//! The division and co-refinement of DivideMix (Li et al. 2020): two networks, each of which says
//! for the other which labels are probably right.
//!
//! After some epochs of plain training, before every epoch, each network's losses −log q_y of all
//! training examples, brought to the range from 0 to 1, are divided by a mixture of two Normals; w is
//! the posterior of the one with the smaller mean. A network takes the w of the other. Where w is
//! above a threshold the target of an example is sharpen(w y + (1 − w) q) with q the mean of its own
//! predictions for the views of the example, elsewhere sharpen of the mean prediction of both
//! networks; sharpen raises to the power 1/T and normalises. Views are mixed with the next one of the
//! part by λ of Beta(α, α), or 1 − λ where that is more. The loss is the mean of −Σ t log q over the
//! views of the first sort, plus λ_u times the mean of ‖q − t‖² / K over those of the second, plus
//! KL(uniform ‖ mean of q), which keeps all classes in use. λ_u grows linearly over the epochs of the
//! ramp.
//!
//! Targets are guessed without a trace: what the norms of a network find meanwhile is forgotten,
//! where the published code lets it into the running statistics. The authors evaluate the sum of the
//! logits of both networks; `evaluation.networks = "all"` takes the mean of their probabilities,
//! which is defined for every noise.

use aleator_data::Views;
use aleator_model::BatchNoise;
use aleator_run::recipe::{self, ViewKind};
use burn::tensor::Tensor;

use super::co_teaching::noises;
use super::example_loss::{ExampleLoss, contribution_of, cross_entropy};
use super::mixing::{Mix, dense_targets};
use super::mixture::{smaller_component, to_unit_range};
use super::views;
use super::{Method, Start, Survey, update_networks};
use crate::TrainError;
use crate::network::Network;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct DivideMix(pub recipe::DivideMix);

/// w by the losses of each network, `[N, 2]`; 1 before the first division.
const CLEAN: &str = "dividemix.clean";

/// The standard deviation of each feature, `[N]`, where views differ by noise.
const SPREADS: &str = "dividemix.spreads";

impl Method for DivideMix {
    fn views(&self) -> Views {
        match self.view_kind() {
            Some(ViewKind::Augmentation) => Views::TwoFrom { epoch: self.0.warm_up },
            Some(ViewKind::Noise { .. } | ViewKind::Dropout { .. }) | None => Views::One,
        }
    }

    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.add_network(start.recipe, start.seed, start.shape);
        let mut clean = NamedTensor::zeros(CLEAN, &[start.examples, 2]);
        clean.values.change(|values| values.fill(1.0));
        state.memory = vec![clean];
        if let Some(ViewKind::Noise { .. }) = self.view_kind() {
            state.memory.push(NamedTensor::zeros(SPREADS, &[start.shape.input.len()]));
        }
    }

    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        if let Some(ViewKind::Noise { .. }) = self.view_kind() {
            let found = views::spreads(state, survey)?;
            state.memory[1].values.change(|spreads| spreads.copy_from_slice(&found));
        }
        Ok(())
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        if epoch < self.0.warm_up {
            return Ok(());
        }
        for network in 0..2 {
            let mut losses = survey.losses(state, network)?;
            to_unit_range(&mut losses);
            let clean = smaller_component(&losses);
            state.memory[0].values.change(|values| {
                let places = values.iter_mut().skip(network).step_by(2);
                places.zip(clean).for_each(|(place, clean)| *place = clean as f32);
            });
        }
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        if part.batch.epoch < self.0.warm_up {
            return of_both(state, part, |_, network, noise| plain(network, part, noise));
        }
        let seen = self.seen(state, part);
        let count = part.batch.examples.len();
        let views = seen.len();
        let batch = views::batch_of(part, views);
        let part_of_views = views::part_of(part, &batch, seen);
        let in_part =
            |rows: Vec<usize>| -> Vec<usize> { rows.into_iter().map(|row| row % count).collect() };
        let predicted = predictions(state, &part_of_views, views).map_err(in_part)?;
        let found = of_both(state, &part_of_views, |own, network, noise| {
            let task = self.task(state, part, &part_of_views, own, &predicted);
            let inputs = task.mix.inputs(&part_of_views.inputs);
            contribution_of(network, &part_of_views, inputs, noise, |log_probs, classes| {
                task.losses(log_probs, classes)
            })
        });
        let mut contribution = found.map_err(in_part)?;
        contribution.examples.truncate(count);
        contribution.hits /= views as f64;
        Ok(contribution)
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        update_networks(state, &sum, rate);
    }
}

/// What both networks add to a step; the loss is that of the first.
fn of_both(
    state: &State,
    part: &Part<'_>,
    mut each: impl FnMut(usize, &Network, &BatchNoise) -> Result<Contribution, Vec<usize>>,
) -> Result<Contribution, Vec<usize>> {
    let [first, second] = noises(part);
    let mut both = each(0, &state.networks[0], &first)?;
    both.networks.extend(each(1, &state.networks[1], &second)?.networks);
    Ok(both)
}

fn plain(
    network: &Network,
    part: &Part<'_>,
    noise: &BatchNoise,
) -> Result<Contribution, Vec<usize>> {
    let model = network.model();
    let forward = model.forward(part.inputs.clone());
    let loss = model.loss(forward, part.targets(), &part.weights, noise, None)?;
    Ok(Contribution::new(part, network, loss))
}

/// q of both networks, [B, K] each: the means over the views, which stand one after the other.
fn predictions(state: &State, part: &Part<'_>, views: usize) -> Result<Vec<Vec<f64>>, Vec<usize>> {
    let networks = state.networks.iter().zip(noises(part));
    let predict = |(network, noise): (&Network, _)| {
        let model = network.model();
        let log_probs = model.log_probs(&model.forward(part.inputs.clone()), &noise)?;
        let log_probs = log_probs.read();
        let mut mean = vec![0.0; log_probs.len() / views];
        for view in log_probs.chunks_exact(mean.len()) {
            let pairs = mean.iter_mut().zip(view);
            pairs.for_each(|(mean, log)| *mean += f64::from(*log).exp() / views as f64);
        }
        Ok(mean)
    };
    networks.map(predict).collect()
}

/// What one network learns from a part.
struct Task {
    mix: Mix,
    /// Mixed, `[B][K]`.
    targets: Vec<Vec<f64>>,
    /// Whether the label of an example is taken for right.
    clean: Vec<bool>,
    unlabelled_weight: f64,
    balance: f64,
}

impl DivideMix {
    fn view_kind(&self) -> Option<ViewKind> {
        self.0.views.map(|views| views.kind)
    }

    /// The inputs of a part as each view shows them.
    fn seen(&self, state: &State, part: &Part<'_>) -> Vec<Tensor<2>> {
        let Some(kind) = self.view_kind() else { return vec![part.inputs.clone()] };
        let spreads = state.memory.get(1).map(|spreads| spreads.values.read());
        views::two(part, kind, spreads.as_deref().unwrap_or_default()).to_vec()
    }

    /// What the network `own` learns from a part and all views of its examples.
    fn task(
        &self,
        state: &State,
        part: &Part<'_>,
        part_of_views: &Part<'_>,
        own: usize,
        predicted: &[Vec<f64>],
    ) -> Task {
        let recipe::DivideMix { threshold, sharpness, alpha, balance, .. } = self.0;
        let count = part.weights.len();
        let classes = predicted[0].len() / count;
        let kept = state.memory[0].values.read();
        let trust = |row: usize| f64::from(kept[2 * part.batch.examples[row] + 1 - own]);
        let mut clean: Vec<bool> = (0..count).map(|row| trust(row) > threshold).collect();
        let mut targets = dense_targets(part, classes);
        for (row, target) in targets.iter_mut().enumerate() {
            let of = |network: usize| &predicted[network][row * classes..][..classes];
            let total: f64 = target.iter().sum();
            if total == 0.0 {
                // An example without labels has no weight.
                clean[row] = true;
                continue;
            }
            for (class, target) in target.iter_mut().enumerate() {
                *target = if clean[row] {
                    trust(row) * *target / total + (1.0 - trust(row)) * of(own)[class]
                } else {
                    0.5 * (of(0)[class] + of(1)[class])
                };
            }
            sharpen(target, sharpness);
            // An example keeps the weight that its given targets have.
            target.iter_mut().for_each(|target| *target *= total);
        }
        let seen = part_of_views.weights.len();
        let mix = match alpha {
            Some(alpha) => Mix::with_next(part_of_views, alpha),
            None => Mix { partners: (0..seen).collect(), shares: vec![1.0; seen] },
        };
        let views = seen / count;
        let (targets, clean) = (vec![targets; views].concat(), clean.repeat(views));
        let targets = mix.targets(&targets);
        let unlabelled_weight = self.unlabelled_weight(part.batch.epoch);
        Task { mix, targets, clean, unlabelled_weight, balance }
    }

    /// λ_u in an epoch after the warm-up.
    fn unlabelled_weight(&self, epoch: usize) -> f64 {
        let recipe::DivideMix { warm_up, unlabelled_weight, ramp, .. } = self.0;
        let since = epoch - warm_up;
        let progress = if since < ramp { since as f64 / ramp as f64 } else { 1.0 };
        unlabelled_weight * progress
    }
}

impl Task {
    /// The losses of the mixed examples, whose mean over the part is that of the method.
    fn losses(&self, log_probs: &[f64], classes: usize) -> Vec<ExampleLoss> {
        let count = self.clean.len();
        let right = self.clean.iter().filter(|clean| **clean).count();
        // Means over their own sort: weights are those of the mean over all.
        let shares = [right, count - right].map(|own| count as f64 / own.max(1) as f64);
        let mut means = vec![0.0; classes];
        for row in log_probs.chunks_exact(classes) {
            means.iter_mut().zip(row).for_each(|(mean, own)| *mean += own.exp() / count as f64);
        }
        let uniform = 1.0 / classes as f64;
        let imbalance: f64 = means.iter().map(|mean| uniform * (uniform / mean).ln()).sum();
        let rows = log_probs.chunks_exact(classes).zip(&self.targets).zip(&self.clean);
        let loss = |((log_probs, targets), clean): ((&[f64], &Vec<f64>), &bool)| {
            let mut slopes = vec![0.0; classes];
            let mut value = self.balance * imbalance;
            for (class, slope) in slopes.iter_mut().enumerate() {
                let prob = log_probs[class].exp();
                // −∂/∂log q of the example's share in Σ −(1/K) log mean.
                *slope += self.balance * uniform * prob / means[class];
                let error = prob - targets[class];
                if !clean {
                    let weight = self.unlabelled_weight * shares[1] / classes as f64;
                    *slope -= 2.0 * weight * error * prob;
                    value += weight * error * error;
                } else {
                    *slope += shares[0] * targets[class];
                }
            }
            if *clean {
                value += shares[0] * cross_entropy(targets, log_probs);
            }
            ExampleLoss::new(value, slopes, log_probs)
        };
        rows.map(loss).collect()
    }
}

/// Raises probabilities to the power 1/T and normalises them.
fn sharpen(probs: &mut [f64], sharpness: f64) {
    let largest = probs.iter().copied().fold(0.0, f64::max);
    probs.iter_mut().for_each(|prob| *prob = (*prob / largest).powf(1.0 / sharpness));
    let sum: f64 = probs.iter().sum();
    probs.iter_mut().for_each(|prob| *prob /= sum);
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{log_probs, log_softmax};
    use super::*;

    fn task() -> Task {
        Task {
            mix: Mix { partners: vec![0, 1, 2, 3], shares: vec![1.0; 4] },
            targets: vec![
                vec![0.9, 0.1, 0.0],
                vec![0.2, 0.5, 0.3],
                vec![0.0, 0.0, 1.0],
                vec![0.3, 0.3, 0.4],
            ],
            clean: vec![true, false, true, true],
            unlabelled_weight: 25.0,
            balance: 0.5,
        }
    }

    /// The whole loss of a part in plain loops.
    fn formula(task: &Task, logits: &[Vec<f64>]) -> f64 {
        let probs: Vec<Vec<f64>> = logits
            .iter()
            .map(|row| log_softmax(row).iter().map(|log| log.exp()).collect())
            .collect();
        let (mut labelled, mut unlabelled) = (0.0, 0.0);
        for ((probs, targets), clean) in probs.iter().zip(&task.targets).zip(&task.clean) {
            let pairs = probs.iter().zip(targets);
            if *clean {
                labelled -= pairs.map(|(prob, target)| target * prob.ln()).sum::<f64>() / 3.0;
            } else {
                unlabelled +=
                    pairs.map(|(prob, target)| (prob - target).powi(2) / 3.0).sum::<f64>();
            }
        }
        let mean = |class: usize| probs.iter().map(|row| row[class]).sum::<f64>() / 4.0;
        let penalty: f64 = (0..3).map(|class| (1.0 / 3.0 / mean(class)).ln() / 3.0).sum();
        labelled + 25.0 * unlabelled + 0.5 * penalty
    }

    #[test]
    fn the_mean_of_the_losses_and_its_slopes_are_those_of_the_formula() {
        let (task, rows) = (task(), log_probs());
        let found = task.losses(&rows.concat(), 3);
        let value = |(loss, row): (&ExampleLoss, &Vec<f64>)| {
            loss.beyond + cross_entropy(&loss.targets, row)
        };
        let mean = found.iter().zip(&rows).map(value).sum::<f64>() / 4.0;
        assert!((mean - formula(&task, &rows)).abs() < 1e-11, "{mean}");
        for (row, loss) in found.iter().enumerate() {
            let total: f64 = loss.targets.iter().sum();
            for class in 0..3 {
                let slope = (rows[row][class].exp() * total - loss.targets[class]) / 4.0;
                let moved = |by: f64| {
                    let mut rows = rows.clone();
                    rows[row][class] += by;
                    formula(&task, &rows)
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                // Differences of h = 1e-5: h² of truncation, 1e-16 / h of rounding.
                assert!((slope - expected).abs() < 1e-8, "{row} {class}: {slope} {expected}");
            }
        }
    }

    #[test]
    fn sharpening_keeps_the_order_and_the_sum() {
        let mut probs = [0.5, 0.3, 0.2];
        sharpen(&mut probs, 0.5);
        let sum = 0.25 + 0.09 + 0.04;
        for (found, expected) in probs.iter().zip([0.25 / sum, 0.09 / sum, 0.04 / sum]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        let mut same = [0.25, 0.75];
        sharpen(&mut same, 1.0);
        assert_eq!(same, [0.25, 0.75]);
    }
}
