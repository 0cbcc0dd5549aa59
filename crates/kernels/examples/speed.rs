use aleator_kernels::*;
use std::time::Instant;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (b, k, r, s) = (a[0], a[1], a[2], a[3]);
    let threads = a.get(4).copied().unwrap_or(2);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    let f = |n: usize, m: f32| {
        (0..n).map(|i| ((i * 7919 % 1000) as f32 / 1000.0 - 0.5) * m).collect::<Vec<f32>>()
    };
    let (mean, d, v) = (
        f(b * k, 2.0),
        f(b * k, 1.0).iter().map(|x| x.abs() + 0.3).collect::<Vec<_>>(),
        f(b * k * r, 1.0),
    );
    let cov = if r == 0 {
        Covariance::Diagonal { diag_scale: &d }
    } else {
        Covariance::LowRank { diag_scale: &d, loadings: &v, rank: r }
    };
    let latent = Latent { batch: b, classes: k, mean: &mean, covariance: cov };
    let ids: Vec<u64> = (0..b as u64).collect();
    let labels: Vec<usize> = (0..b).map(|i| i * 31 % k).collect();
    let w = vec![1.0 / b as f32; b];
    let tau = Temperature::try_from(0.9).unwrap();
    for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
        let sampling =
            Sampling { key: NoiseKey { seed: 0, step: 0 }, ids: &ids, samples: s, draws };
        let mut best = f64::MAX;
        let mut loss = 0.0;
        for _ in 0..7 {
            let t = Instant::now();
            let o = fused::loss_and_grad(
                &latent,
                tau,
                &sampling,
                Targets::Classes(&labels),
                &w,
                Vectors::Detected,
            );
            best = best.min(t.elapsed().as_secs_f64());
            loss = o.losses.iter().sum::<f32>() / b as f32;
        }
        let t = Instant::now();
        let mut lp = vec![0.0; b * k];
        fused::log_probs(&latent, tau, &sampling, Vectors::Detected, &mut lp);
        let f = t.elapsed().as_secs_f64();
        let l2: f32 =
            -labels.iter().enumerate().map(|(i, y)| lp[i * k + y]).sum::<f32>() / b as f32;
        println!(
            "{draws:?} {:.2} ms, {:.3} ns/entry  loss {loss} fwd {l2} {:.1} ms",
            best * 1e3,
            best * 1e9 / (b * k * s) as f64,
            f * 1e3
        );
    }
}
