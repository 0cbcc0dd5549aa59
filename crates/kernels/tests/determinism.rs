//! The same key gives the same bits for any number of threads and any order.

use crate::support;
use crate::support::{Case, Kind};
use aleator_kernels::{
    Draws, LatentGrad, NoiseKey, Targets, Vectors, fused,
    fused::{Buffers, LossGrad},
    multilabel,
};

fn loss(case: &Case) -> LossGrad {
    let weights = vec![0.25; case.batch];
    let targets = Targets::Classes(&case.labels);
    fused::loss_and_grad(
        &case.latent(),
        case.tau(),
        &case.sampling(),
        targets,
        &weights,
        Vectors::Detected,
    )
}

fn cases() -> Vec<Case> {
    let mut cases = vec![];
    for kind in [Kind::None, Kind::Diagonal, Kind::LowRank, Kind::Shared] {
        for classes in [7, 50] {
            for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
                cases.push(Case { draws, ..Case::new(kind, 19, classes, 3, 300) });
            }
        }
    }
    cases
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for case in cases() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| loss(&case))
        };
        let one = on(1);
        assert_eq!(one, on(2), "{:?}", case.kind);
        assert_eq!(one, on(5), "{:?}", case.kind);
    }
}

#[test]
fn an_example_gets_the_same_bits_in_any_batch_and_order() {
    for case in cases() {
        let all = loss(&case);
        let row = 13;
        let entries = case.entries(row);
        let alone = Case {
            batch: 1,
            mean: case.mean[entries.clone()].to_vec(),
            diag_scale: case.diag_scale[entries.clone()].to_vec(),
            loading_scale: case.loading_scale[entries.clone()].to_vec(),
            loadings: case.loadings[entries.start * 3..entries.end * 3].to_vec(),
            labels: vec![case.labels[row]],
            ids: vec![case.ids[row]],
            ..case.clone()
        };
        let one = loss(&alone);
        assert_eq!(one.losses[0].to_bits(), all.losses[row].to_bits(), "{:?}", case.kind);
        assert_eq!(one.grad.mean, all.grad.mean[entries.clone()]);
        if !one.grad.loadings.is_empty() {
            assert_eq!(one.grad.loadings, all.grad.loadings[entries.start * 3..entries.end * 3]);
        }
    }
}

/// The other functions that run over a batch.
#[test]
fn any_number_of_threads_gives_the_same_bits_of_predictions_and_backward_passes() {
    for case in cases() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
                let labels = vec![1.0; case.mean.len()];
                let weights = vec![0.5; case.batch];
                let prediction =
                    fused::predict(&latent, tau, &sampling, Vectors::Detected).unwrap();
                let up = &case.mean;
                let log_probs = &prediction.log_probs;
                let vectors = Vectors::Detected;
                let grad = fused::backward(&latent, tau, &sampling, vectors, log_probs, up);
                let exact = multilabel::loss_and_grad(
                    &latent,
                    tau,
                    Targets::Dense(&labels),
                    &weights,
                    vectors,
                );
                let sampled = multilabel::sampled_log_probs(&latent, tau, &sampling);
                (prediction, grad, exact, sampled)
            })
        };
        assert_eq!(on(1), on(3), "{:?}", case.kind);
    }
}

#[test]
fn previous_contents_of_gradient_buffers_do_not_matter() {
    for case in cases() {
        let weights = vec![0.25; case.batch];
        let used = LatentGrad::from_buffers(&case.latent(), |len| vec![f32::NAN; len]);
        let again = fused::loss_and_grad_into(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            Targets::Classes(&case.labels),
            &weights,
            Vectors::Detected,
            Buffers { grad: used, log_probs: None },
        );
        assert_eq!(again.unwrap(), loss(&case), "{:?}", case.kind);
    }
}

#[test]
fn noise_of_a_sample_does_not_depend_on_the_number_of_samples() {
    for kind in [Kind::LowRank, Kind::Diagonal] {
        for classes in [7, 50] {
            let few = Case::new(kind, 1, classes, 3, 90);
            let many = Case { samples: 1000, ..few.clone() };
            let (few, many) = (few.noise(0), many.noise(0));
            assert_eq!(few.diag_draws[..], many.diag_draws[..90]);
            assert_eq!(few.factor_draws[..], many.factor_draws[..90]);
        }
    }
}

#[test]
fn seed_step_and_example_each_change_the_noise() {
    let case = Case::new(Kind::LowRank, 2, 7, 3, 50);
    let base = case.noise(0);
    let seed = Case { key: NoiseKey { seed: 6, ..case.key }, ..case.clone() }.noise(0);
    let step = Case { key: NoiseKey { step: 12, ..case.key }, ..case.clone() }.noise(0);
    for other in [seed, step, case.noise(1)] {
        assert_ne!(base.diag_draws, other.diag_draws);
        assert_ne!(base.factor_draws, other.factor_draws);
    }
}

#[test]
fn utility_blocks_are_the_reference_utilities() {
    for classes in [7, 50] {
        let case = Case::new(Kind::LowRank, 2, classes, 3, 333);
        let expected: Vec<f64> =
            case.reference(1).utilities(&case.noise(1)).into_iter().flatten().collect();
        let mut found = vec![];
        fused::for_each_utility_block(&case.latent(), &case.sampling(), 1, |first, block| {
            assert_eq!(first * classes, found.len());
            found.extend_from_slice(block);
        });
        support::assert_close("utilities", &found, &expected, case.tolerance());
    }
}
