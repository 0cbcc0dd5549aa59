//! The joint likelihood of several labels.

#![allow(clippy::needless_range_loop, reason = "indices are the examples of the formulas")]

use crate::support::{Case, Kind, Random, assert_close, for_cases};
use aleator_kernels::fused::LossGrad;
use aleator_kernels::{
    Covariance, Draws, Latent, LatentGrad, NoiseKey, NoiseLaw, Sampling, Targets, Temperature,
    Vectors, multilabel,
};

fn loss(case: &Case, labels: &[f32], weights: &[f32], vectors: Vectors) -> LossGrad {
    let (latent, targets) = (case.latent(), Targets::Dense(labels));
    let grad = LatentGrad::from_buffers(&latent, |len| vec![f32::NAN; len]);
    multilabel::joint_loss_and_grad(
        &latent,
        case.tau(),
        &case.sampling(),
        targets,
        weights,
        vectors,
        grad,
    )
    .unwrap()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// Hard labels in even cases, soft ones in odd.
fn labels_of(case: &Case, random: &mut Random) -> Vec<f32> {
    let labels = random.vector(case.batch * case.classes, 0.0, 1.0);
    let round = case.samples.is_multiple_of(2);
    labels.into_iter().map(|label| if round { label.round() } else { label }).collect()
}

#[test]
fn fused_joint_loss_equals_the_reference() {
    for_cases(60, |case, random| {
        let labels = labels_of(case, random);
        let weights = random.vector(case.batch, 0.5, 1.5);
        for vectors in [Vectors::Detected, Vectors::Portable] {
            let found = loss(case, &labels, &weights, vectors);
            // K terms, each with the error of its utility.
            let tolerance = case.classes as f64 * case.tolerance();
            // Weights are exponentials of the terms; u/τ enters the slope once more.
            let slope = 20.0 * tolerance / case.temperature.min(1.0) as f64;
            let mut temperature = 0.0;
            let mut shared = vec![0.0; found.grad.shared_loadings.len()];
            for row in 0..case.batch {
                let (example, noise, at) =
                    (case.reference(row), case.noise(row), case.entries(row));
                let own = wide(&labels[at.clone()]);
                let expected = -example.joint_log_prob(&noise, &own);
                assert_close("loss", &found.losses[row..=row], &[expected], tolerance);
                let weight = -weights[row] as f64;
                let grad = example.joint_backward(&noise, &own);
                let scaled = |values: &[f64]| values.iter().map(|g| g * weight).collect::<Vec<_>>();
                assert_close("mean", &found.grad.mean[at.clone()], &scaled(&grad.mean), slope);
                let flat = scaled(&grad.loadings.concat());
                match case.kind {
                    Kind::LowRank => {
                        let range = at.start * case.rank..at.end * case.rank;
                        assert_close("loadings", &found.grad.loadings[range], &flat, slope);
                    }
                    Kind::Shared => {
                        let scale = &case.loading_scale[at.clone()];
                        for (entry, (sum, grad)) in shared.iter_mut().zip(&flat).enumerate() {
                            *sum += grad * scale[entry / case.rank] as f64;
                        }
                    }
                    Kind::None | Kind::Diagonal => {}
                }
                if case.kind != Kind::None {
                    let diag = scaled(&grad.diag_scale);
                    assert_close("diag", &found.grad.diag_scale[at], &diag, slope);
                }
                temperature += weight * grad.temperature;
            }
            assert_close("shared", &found.grad.shared_loadings, &shared, 3.0 * slope);
            let many = (case.batch * case.classes) as f64 / case.temperature.min(1.0) as f64;
            assert_close("tau", &[found.grad.temperature], &[temperature], many * slope);
        }
    });
}

#[test]
fn the_loss_is_the_negative_log_probability() {
    for_cases(12, |case, random| {
        let labels = labels_of(case, random);
        let found = loss(case, &labels, &vec![1.0; case.batch], Vectors::Detected);
        let targets = Targets::Dense(&labels);
        let log_probs = multilabel::joint_log_probs(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            targets,
            Vectors::Detected,
        )
        .unwrap();
        let negative: Vec<f32> = log_probs.iter().map(|log_prob| -log_prob).collect();
        assert_eq!(found.losses, negative);
    });
}

#[test]
fn one_class_has_the_loss_of_the_closed_form() {
    let case = Case { draws: Draws::Sobol, ..Case::new(Kind::LowRank, 3, 1, 2, 4096) };
    let labels = [1.0, 0.0, 1.0];
    let (latent, tau, weights) = (case.latent(), case.tau(), [1.0; 3]);
    let joint = loss(&case, &labels, &weights, Vectors::Detected);
    let targets = Targets::Dense(&labels);
    let exact =
        multilabel::loss_and_grad(&latent, tau, targets, &weights, Vectors::Detected).unwrap();
    // 4096 Sobol' points: the error is far below Monte Carlo's 1/64.
    assert_close("loss", &joint.losses, &wide(&exact.losses), 4e-3);
    assert_close("mean", &joint.grad.mean, &wide(&exact.grad.mean), 4e-3);
    assert_close("loadings", &joint.grad.loadings, &wide(&exact.grad.loadings), 8e-3);
}

#[test]
fn the_probabilities_of_all_label_sets_sum_to_one() {
    for (kind, classes) in [(Kind::LowRank, 5), (Kind::Shared, 3), (Kind::Diagonal, 2)] {
        let case = Case::new(kind, 1, classes, 2, 64);
        let sets = 0..1usize << classes;
        let log_prob = |set: usize| {
            let labels: Vec<f32> = (0..classes).map(|class| (set >> class & 1) as f32).collect();
            loss(&case, &labels, &[1.0], Vectors::Detected).losses[0] as f64
        };
        let total: f64 = sets.map(|set| (-log_prob(set)).exp()).sum();
        // 2^K terms, each with a relative error of a few 10⁻⁷ for every class.
        assert!((total - 1.0).abs() < 1e-5, "{kind:?}: {total}");
    }
}

#[test]
fn extreme_utilities_stay_finite() {
    let tau = Temperature::try_from(0.05).unwrap();
    for (mean, diag_scale) in [(1e9, 0.0), (-1e9, 1.0), (0.0, 1e9), (300.0, 1e-20)] {
        let mean = [mean, -mean, mean];
        let covariance = Covariance::Diagonal { diag_scale: &[diag_scale; 3] };
        let latent = Latent { batch: 1, classes: 3, mean: &mean, covariance };
        let key = NoiseKey { seed: 0, step: 0 };
        let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
        let sampling = Sampling { key, ids: &[0], samples: 40, draws, law };
        for labels in [[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]] {
            let out = multilabel::joint_loss_and_grad(
                &latent,
                tau,
                &sampling,
                Targets::Dense(&labels),
                &[1.0],
                Vectors::Detected,
                LatentGrad::zeros(&latent),
            )
            .unwrap();
            let grad = [&out.grad.mean[..], &out.grad.diag_scale, &out.losses].concat();
            assert!(grad.iter().all(|value| value.is_finite()), "{mean:?} {diag_scale}: {grad:?}");
        }
    }
}

#[test]
fn any_number_of_threads_and_any_company_give_the_same_bits() {
    for (kind, classes) in [(Kind::LowRank, 7), (Kind::Shared, 50), (Kind::Diagonal, 40)] {
        let case = Case::new(kind, 19, classes, 3, 100);
        let labels = labels_of(&case, &mut Random(3));
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| loss(&case, &labels, &[0.25; 19], Vectors::Detected))
        };
        assert_eq!(on(1), on(3), "{kind:?}");
    }
}

/// Label sets of a population in which classes 0 and 1 go together and class 2 against them, and
/// the covariances that gradient descent finds from their frequencies.
///
/// The marginals fix the variances alone: their gradient by a loading is parallel to it, so that
/// its sign stays that of the start (deviation D18).
#[test]
fn the_joint_loss_learns_covariances_that_the_marginals_cannot() {
    const CLASSES: usize = 3;
    const SETS: usize = 1 << CLASSES;
    let labels: Vec<f32> =
        (0..SETS).flat_map(|set| (0..CLASSES).map(move |c| (set >> c & 1) as f32)).collect();
    let mean = [0.4, -0.3, 0.1];
    let truth = [1.5, 1.2, -1.0];
    let start = [0.8, -0.8, -0.8];
    let tau = Temperature::try_from(1.0).unwrap();
    let targets = Targets::Dense(&labels);
    let with = |loadings: &[f32; CLASSES], work: &mut dyn FnMut(&Latent, &Sampling)| {
        let rows = |values: &[f32; CLASSES]| values.repeat(SETS);
        let (mean, loadings, diag_scale) = (rows(&mean), rows(loadings), rows(&[0.2; CLASSES]));
        let covariance =
            Covariance::LowRank { diag_scale: &diag_scale, loadings: &loadings, rank: 1 };
        let latent = Latent { batch: SETS, classes: CLASSES, mean: &mean, covariance };
        let key = NoiseKey { seed: 1, step: 0 };
        let (draws, law) = (Draws::Sobol, NoiseLaw::Normal);
        let sampling = Sampling { key, ids: &[0; SETS], samples: 1024, draws, law };
        work(&latent, &sampling);
    };
    let mut frequencies = vec![];
    with(&truth, &mut |latent, sampling| {
        let log_probs =
            multilabel::joint_log_probs(latent, tau, sampling, targets, Vectors::Detected);
        frequencies = log_probs.unwrap().iter().map(|log_prob| log_prob.exp()).collect();
    });
    let fit = |joint: bool| {
        let mut loadings = start;
        for _ in 0..400 {
            let mut step = [0.0; CLASSES];
            with(&loadings, &mut |latent, sampling| {
                let vectors = Vectors::Detected;
                let out = if joint {
                    let grad = LatentGrad::zeros(latent);
                    multilabel::joint_loss_and_grad(
                        latent,
                        tau,
                        sampling,
                        targets,
                        &frequencies,
                        vectors,
                        grad,
                    )
                } else {
                    multilabel::loss_and_grad(latent, tau, targets, &frequencies, vectors)
                };
                for (at, grad) in out.unwrap().grad.loadings.iter().enumerate() {
                    step[at % CLASSES] += grad;
                }
            });
            loadings.iter_mut().zip(step).for_each(|(loading, step)| *loading -= 2.0 * step);
        }
        loadings
    };
    let [a, b, c] = fit(true);
    let sign = a.signum(); // V and −V are the same covariance
    for (found, expected) in [a, b, c].iter().zip(truth) {
        assert!((sign * found - expected).abs() < 0.05, "{:?} for {truth:?}", [a, b, c]);
    }
    let marginal = fit(false);
    let signs = |loadings: &[f32]| loadings.iter().map(|v| v.signum()).collect::<Vec<_>>();
    assert_eq!(signs(&marginal), signs(&start), "{marginal:?}");
}

/// Against all sets: of random latents with strong correlations at most 1 in 100 is not the best,
/// and those are hardly less probable.
#[test]
fn the_most_probable_set_is_the_best_of_all() {
    let (classes, cases) = (6, 200);
    let mut missed = 0;
    for seed in 0..cases {
        let mut random = Random(seed);
        let case = Case {
            temperature: 0.5,
            mean: random.vector(classes, -1.0, 1.0),
            diag_scale: random.vector(classes, 0.0, 1.0),
            loadings: random.vector(classes * 2, -3.0, 3.0),
            ..Case::new(Kind::LowRank, 1, classes, 2, 200)
        };
        let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
        // Given nothing, or that the first class is on and the last is off.
        let observed: &[(usize, bool)] =
            if seed % 2 == 0 { &[] } else { &[(0, true), (classes - 1, false)] };
        let set = |bits: usize| -> Vec<(usize, bool)> {
            (0..classes).map(|class| (class, bits >> class & 1 == 1)).collect()
        };
        let log_prob = |labels: &[(usize, bool)]| {
            multilabel::joint_log_prob(&latent, tau, &sampling, 0, labels)
        };
        let agrees = |labels: &Vec<(usize, bool)>| observed.iter().all(|it| labels.contains(it));
        let all = (0..1 << classes).map(set).filter(agrees);
        let (best, of_best) = all
            .map(|labels| (labels.clone(), log_prob(&labels)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap();
        let found = multilabel::most_probable_set(&latent, tau, &sampling, 0, observed);
        let labels: Vec<(usize, bool)> = found.on.iter().copied().enumerate().collect();
        let expected = log_prob(&labels) - log_prob(observed);
        assert!((found.log_prob - expected).abs() < 1e-6, "{} {expected}", found.log_prob);
        if labels != best {
            missed += 1;
            assert!(log_prob(&labels) > of_best - 0.5, "{} {of_best}", log_prob(&labels));
        }
    }
    assert!(missed <= 2, "{missed} of {cases} are not the best");
}
