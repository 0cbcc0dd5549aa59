//! Prints the noise of a small batch as JSON, for tests against programs in other languages:
//! `cargo run --release -p aleator-kernels --example noise > crates/model/tests/golden/noise.json`

use aleator_kernels::{Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, fused};

fn main() {
    let (batch, classes, rank, samples) = (3, 4, 2, 7);
    let entries = vec![1.0; batch * classes];
    let loadings = vec![1.0; batch * classes * rank];
    let covariance = Covariance::LowRank { diag_scale: &entries, loadings: &loadings, rank };
    let latent = Latent { batch, classes, mean: &entries, covariance };
    let key = NoiseKey { seed: 7, step: 3 };
    let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
    let sampling = Sampling { key, ids: &[11, 5, 8], samples, draws, law };
    let noise: Vec<_> = (0..batch).map(|row| fused::drawn_noise(&latent, &sampling, row)).collect();
    let diag: Vec<_> = noise.iter().map(|n| &n.diag_draws).collect();
    let factor: Vec<_> = noise.iter().map(|n| &n.factor_draws).collect();
    println!("{{\"eps_k\": {diag:?},\n \"eps_r\": {factor:?}}}");
}
