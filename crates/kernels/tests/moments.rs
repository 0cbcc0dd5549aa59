//! Moments, tails and independence of the draws; mean and covariance of the utilities.

#![allow(clippy::needless_range_loop, reason = "indices are the classes of the formulas")]

use crate::support::{Case, Kind};
use aleator_kernels::fused::drawn_noise;
use aleator_kernels::{Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, fused};

/// Many draws of ε_K of few or many classes (both layouts), of one example after another.
fn draws(classes: usize, count: usize, kind: Draws, law: NoiseLaw) -> Vec<f32> {
    let scale = vec![1.0; classes];
    let mean = vec![0.0; classes];
    let covariance = Covariance::Diagonal { diag_scale: &scale };
    let latent = Latent { batch: 1, classes, mean: &mean, covariance };
    let samples = 4096;
    let mut out = Vec::with_capacity(count);
    for id in 0.. {
        let key = NoiseKey { seed: 77, step: 0 };
        let sampling = Sampling { key, ids: &[id], samples, draws: kind, law };
        out.extend(drawn_noise(&latent, &sampling, 0).diag_draws);
        if out.len() >= count {
            out.truncate(count);
            return out;
        }
    }
    unreachable!()
}

fn count() -> usize {
    if std::env::var_os("ALEATOR_SLOW").is_some() { 400_000_000 } else { 20_000_000 }
}

/// P(|z| > t) of a standard normal.
fn tail(t: f64) -> f64 {
    // Numerical integration of the density; 1e-10 relative is far below the sampling error.
    let step = 1e-4;
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    2.0 * (0..100_000).map(|i| density(t + (i as f64 + 0.5) * step) * step).sum::<f64>()
}

#[test]
fn moments_and_tails_to_five_sigma_are_those_of_a_normal() {
    for classes in [10, 100] {
        let draws = draws(classes, count(), Draws::Independent, NoiseLaw::Normal);
        let n = draws.len() as f64;
        let moment = |power: i32| draws.iter().map(|z| (*z as f64).powi(power)).sum::<f64>() / n;
        // Five standard errors; the variance of z^p is E[z^2p] − E[z^p]².
        for (power, expected, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (6, 15.0, 10_170.0)]
        {
            let allowed = 5.0 * f64::sqrt(variance / n);
            let found = moment(power);
            assert!((found - expected).abs() < allowed, "E z^{power} = {found}, allowed {allowed}");
        }
        for t in [1.0, 2.0, 3.0, 4.0, 4.5, 5.0] {
            let expected = tail(t) * n;
            for (name, found) in [
                ("both", draws.iter().filter(|z| z.abs() as f64 > t).count() as f64),
                ("upper", 2.0 * draws.iter().filter(|z| **z as f64 > t).count() as f64),
            ] {
                let allowed = 5.0 * (2.0 * expected).sqrt() + 1.0;
                assert!(
                    (found - expected).abs() < allowed,
                    "{name} tail {t}: {found} for {expected}"
                );
            }
        }
        let largest = draws.iter().fold(0.0f32, |a, z| a.max(z.abs()));
        assert!(largest < 6.67, "{largest}"); // √(64 ln 2)
    }
}

/// Against the distribution function on 256 equally probable cells, by a χ² test.
#[test]
fn cells_are_equally_probable() {
    let laws = [NoiseLaw::Normal, NoiseLaw::Gumbel, NoiseLaw::Logistic];
    for (classes, law) in [10, 100].into_iter().flat_map(|classes| laws.map(|law| (classes, law))) {
        let draws = draws(classes, 4_000_000, Draws::Independent, law);
        const CELLS: usize = 256;
        let mut counts = [0u64; CELLS];
        for z in &draws {
            let p = below(law, *z as f64);
            counts[((p * CELLS as f64) as usize).min(CELLS - 1)] += 1;
        }
        let expected = draws.len() as f64 / CELLS as f64;
        let chi2: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum();
        // χ² with 255 degrees of freedom: mean 255, standard deviation √510.
        assert!((chi2 - 255.0).abs() < 5.0 * 510f64.sqrt(), "{law:?}: χ² = {chi2}");
    }
}

/// P(ε < z).
fn below(law: NoiseLaw, z: f64) -> f64 {
    match law {
        NoiseLaw::Normal => phi(z),
        NoiseLaw::Gumbel => (-(-z).exp()).exp(),
        NoiseLaw::Logistic => 1.0 / (1.0 + (-z).exp()),
    }
}

/// The largest utility decides, so both tails must be right however they are drawn.
#[test]
fn gumbel_and_logistic_tails_are_right_with_all_kinds_of_draws() {
    for (law, kind) in [NoiseLaw::Gumbel, NoiseLaw::Logistic]
        .into_iter()
        .flat_map(|law| [Draws::Independent, Draws::Antithetic, Draws::Sobol].map(|d| (law, d)))
    {
        let draws = draws(10, 4_000_000, kind, law);
        let n = draws.len() as f64;
        for t in [-8.0, -2.5, -2.0, -1.0, 0.0, 1.0, 3.0, 6.0, 9.0, 12.0] {
            let (probability, upper) = match (law, t > 0.0) {
                (_, false) => (below(law, t), false),
                (NoiseLaw::Gumbel, true) => (-(-f64::exp(-t)).exp_m1(), true),
                (_, true) => (below(law, -t), true),
            };
            let beyond = |z: &&f32| if upper { **z as f64 > t } else { (**z as f64) < t };
            let found = draws.iter().filter(beyond).count() as f64;
            let expected = probability * n;
            // Five standard errors; draws in pairs have at most twice the variance.
            let allowed = 5.0 * (2.0 * expected).sqrt() + 1.0;
            let message = format!("{law:?}, {kind:?}, beyond {t}: {found} for {expected}");
            assert!((found - expected).abs() < allowed, "{message}");
        }
    }
}

/// Φ by Simpson's rule on the density from 0.
fn phi(z: f64) -> f64 {
    let n = 64;
    let h = z / n as f64;
    let density = |x: f64| (-0.5 * x * x).exp();
    let sum: f64 = (0..=n)
        .map(|i| {
            density(i as f64 * h) * if i == 0 || i == n { 1.0 } else { (2 + 2 * (i % 2)) as f64 }
        })
        .sum();
    0.5 + sum * h / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let cov = |x: &[f64], mx: f64, y: &[f64], my: f64| {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / n
    };
    cov(a, ma, b, mb) / (cov(a, ma, a, ma) * cov(b, mb, b, mb)).sqrt()
}

/// Streams, classes, neighbouring samples, examples, steps and seeds are uncorrelated, and so
/// are their squares: the reference code shares one scalar among the classes (deviation D2), or
/// makes one stream the prefix of another (deviation D4).
#[test]
fn every_two_sequences_of_draws_are_independent() {
    let samples = 20_000;
    for classes in [10, 40] {
        let case = Case::new(Kind::LowRank, 2, classes, 8, samples);
        let (first, second) = (case.noise(0), case.noise(1));
        let step = Case { key: NoiseKey { step: 12, ..case.key }, ..case.clone() }.noise(0);
        let seed = Case { key: NoiseKey { seed: 6, ..case.key }, ..case.clone() }.noise(0);
        let column = |rows: &[Vec<f64>], k: usize| rows.iter().map(|r| r[k]).collect::<Vec<f64>>();
        let mut sequences = vec![];
        for k in 0..classes {
            sequences.push(column(&first.diag_draws, k));
        }
        for r in 0..8 {
            sequences.push(column(&first.factor_draws, r));
        }
        for other in [&second, &step, &seed] {
            for k in 0..2 {
                sequences.push(column(&other.diag_draws, k));
                sequences.push(column(&other.factor_draws, k));
            }
        }
        let mut lagged = column(&first.diag_draws, 0);
        lagged.rotate_left(1);
        sequences.push(lagged);
        // Some thousand pairs: five standard errors leave a false alarm of 1e-3 at most.
        let allowed = 5.0 / (samples as f64).sqrt();
        for i in 0..sequences.len() {
            for j in 0..i {
                let (a, b) = (&sequences[i], &sequences[j]);
                let found = correlation(a, b);
                assert!(found.abs() < allowed, "sequences {i} and {j}: {found}");
                let square = |x: &[f64]| x.iter().map(|x| x * x).collect::<Vec<f64>>();
                let found = correlation(&square(a), &square(b));
                assert!(found.abs() < allowed, "squares of {i} and {j}: {found}");
            }
        }
    }
}

/// E[u] = μ and Cov[u] = diag(d²) + V Vᵀ, for every kind of draw and both layouts.
#[test]
fn utilities_have_the_mean_and_covariance_of_the_latent() {
    let samples = 200_000;
    for (kind, classes) in
        [(Kind::LowRank, 4), (Kind::Shared, 4), (Kind::Diagonal, 4), (Kind::LowRank, 34)]
    {
        for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
            let case = Case { draws, ..Case::new(kind, 1, classes, 2, samples) };
            let example = case.reference(0);
            let mut sums = [0.0f64; 4];
            let mut products = [0.0f64; 16];
            fused::for_each_utility_block(&case.latent(), &case.sampling(), 0, |_, block| {
                for u in block.chunks_exact(classes) {
                    for i in 0..4 {
                        let a = u[i] as f64 - example.mean[i];
                        sums[i] += a;
                        for j in 0..4 {
                            products[i * 4 + j] += a * (u[j] as f64 - example.mean[j]);
                        }
                    }
                }
            });
            let n = samples as f64;
            for i in 0..4 {
                let variance = |k: usize| {
                    let norm: f64 = example.loadings[k].iter().map(|v| v * v).sum();
                    example.diag_scale[k].powi(2) + norm
                };
                let allowed = 5.0 * (variance(i) / n).sqrt();
                assert!((sums[i] / n).abs() < allowed, "{kind:?} {draws:?} mean {i}");
                for j in 0..4 {
                    let dot: f64 = example.loadings[i]
                        .iter()
                        .zip(&example.loadings[j])
                        .map(|(a, b)| a * b)
                        .sum();
                    let expected = dot + if i == j { example.diag_scale[i].powi(2) } else { 0.0 };
                    // Var(u_i u_j) ≤ 2 Σ_ii Σ_jj; antithetic pairs carry half the information.
                    let allowed = 5.0 * (4.0 * variance(i) * variance(j) / n).sqrt();
                    let found = products[i * 4 + j] / n;
                    assert!(
                        (found - expected).abs() < allowed,
                        "{kind:?} {draws:?} {i}{j}: {found} {expected}"
                    );
                }
            }
        }
    }
}

/// The purpose of the better draws (deviation D10): a smaller variance of the estimate at equal S.
#[test]
fn antithetic_and_sobol_draws_reduce_the_variance_of_the_estimate() {
    let variance = |draws: Draws| {
        let base = Case { draws, ..Case::new(Kind::LowRank, 1, 10, 3, 128) };
        let estimates: Vec<f64> = (0..400)
            .map(|seed| {
                let case = Case { key: NoiseKey { seed, step: 0 }, ..base.clone() };
                let mut out = vec![0.0; 10];
                let vectors = aleator_kernels::Vectors::Detected;
                fused::log_probs(&case.latent(), case.tau(), &case.sampling(), vectors, &mut out)
                    .unwrap();
                (out[0] as f64).exp()
            })
            .collect();
        let mean = estimates.iter().sum::<f64>() / 400.0;
        estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 399.0
    };
    let independent = variance(Draws::Independent);
    // The ratio of two such variances has a standard error of about a tenth of itself.
    assert!(variance(Draws::Antithetic) < independent / 1.2);
    assert!(variance(Draws::Sobol) < independent / 8.0);
}
