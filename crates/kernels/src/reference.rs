//! The method as the paper writes it: f64, one example, plain loops, explicit noise.
//!
//! Slow on purpose. Every fast function of this crate is tested against this file.

/// u = μ + d ⊙ ε_K + V ε_R of one example, with link temperature τ.
#[derive(Clone, Debug)]
pub struct Example {
    /// μ, `[K]`.
    pub mean: Vec<f64>,
    /// d, `[K]`.
    pub diag_scale: Vec<f64>,
    /// V, `[K][R]`. For shared loadings V(x) = diag(v) V, see [`Example::shared`].
    pub loadings: Vec<Vec<f64>>,
    /// τ.
    pub temperature: f64,
}

/// Explicit noise: ε_K `[S][K]` and ε_R `[S][R]`.
#[derive(Clone, Debug)]
pub struct Noise {
    /// ε_K.
    pub diag_draws: Vec<Vec<f64>>,
    /// ε_R.
    pub factor_draws: Vec<Vec<f64>>,
}

/// Gradients with respect to the fields of an [`Example`].
#[derive(Clone, Debug)]
pub struct Grad {
    /// ∂μ.
    pub mean: Vec<f64>,
    /// ∂d.
    pub diag_scale: Vec<f64>,
    /// ∂V.
    pub loadings: Vec<Vec<f64>>,
    /// ∂τ.
    pub temperature: f64,
}

impl Example {
    /// The parameter-efficient form: V(x) = diag(v(x)) V.
    pub fn shared(mut self, loading_scale: &[f64], shared_loadings: &[Vec<f64>]) -> Self {
        let row = |(v, row): (&f64, &Vec<f64>)| row.iter().map(|loading| v * loading).collect();
        self.loadings = loading_scale.iter().zip(shared_loadings).map(row).collect();
        self
    }

    /// Utilities of each sample, `[S][K]`.
    pub fn utilities(&self, noise: &Noise) -> Vec<Vec<f64>> {
        let draws = noise.diag_draws.iter().zip(&noise.factor_draws);
        draws
            .map(|(diag, factors)| {
                (0..self.mean.len())
                    .map(|k| {
                        self.mean[k]
                            + self.diag_scale[k] * diag[k]
                            + dot(&self.loadings[k], factors)
                    })
                    .collect()
            })
            .collect()
    }

    /// log softmax(u_s/τ), `[S][K]`.
    pub fn sample_log_probs(&self, noise: &Noise) -> Vec<Vec<f64>> {
        let log_softmax = |utility: &Vec<f64>| {
            let scaled: Vec<f64> = utility.iter().map(|u| u / self.temperature).collect();
            let total = log_sum_exp(&scaled);
            scaled.iter().map(|u| u - total).collect()
        };
        self.utilities(noise).iter().map(log_softmax).collect()
    }

    /// `log p_c = log (1/S) Σ_s softmax(u_s/τ)_c` (paper, Eq. 3), `[K]`.
    pub fn log_probs(&self, noise: &Noise) -> Vec<f64> {
        let samples = self.sample_log_probs(noise);
        mean_over_samples(&samples)
    }

    /// P(argmax u = c) as the share of samples; classes that tie share a sample, `[K]`.
    pub fn choice_probs(&self, noise: &Noise) -> Vec<f64> {
        let utilities = self.utilities(noise);
        let mut probs = vec![0.0; self.mean.len()];
        for utility in &utilities {
            let largest = utility.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let won: Vec<usize> = (0..probs.len()).filter(|k| utility[*k] == largest).collect();
            won.iter().for_each(|k| probs[*k] += 1.0 / (won.len() * utilities.len()) as f64);
        }
        probs
    }

    /// The gradient of Σ_c upstream_c log p_c.
    pub fn backward(&self, noise: &Noise, upstream: &[f64]) -> Grad {
        let samples = self.sample_log_probs(noise);
        let marginal = mean_over_samples(&samples);
        let count = samples.len() as f64;
        let grad_utilities = samples.iter().map(|sample| {
            // p_sc / (S p_c): how much of p_c this sample makes, the responsibility.
            let pull: Vec<f64> = (0..sample.len())
                .map(|c| upstream[c] * (sample[c] - marginal[c]).exp() / count)
                .collect();
            let total: f64 = pull.iter().sum();
            (0..sample.len())
                .map(|k| (pull[k] - sample[k].exp() * total) / self.temperature)
                .collect()
        });
        self.chain(noise, &grad_utilities.collect::<Vec<_>>())
    }

    /// Sampled sigmoid link: (log p_c, log(1 − p_c)) with p_c = (1/S) Σ_s sigmoid(u_sc/τ), `[K]` each.
    pub fn sigmoid_log_probs(&self, noise: &Noise) -> (Vec<f64>, Vec<f64>) {
        let both = |sign: f64| {
            let samples: Vec<Vec<f64>> = self
                .utilities(noise)
                .iter()
                .map(|u| u.iter().map(|u| log_sigmoid(sign * u / self.temperature)).collect())
                .collect();
            mean_over_samples(&samples)
        };
        (both(1.0), both(-1.0))
    }

    /// The gradient of Σ_c (on_c log p_c + off_c log(1 − p_c)) under the sampled sigmoid link.
    pub fn sigmoid_backward(&self, noise: &Noise, on: &[f64], off: &[f64]) -> Grad {
        let (log_p, log_q) = self.sigmoid_log_probs(noise);
        let count = noise.diag_draws.len() as f64;
        let grad = |utility: Vec<f64>| {
            let entries = utility.iter().enumerate();
            entries
                .map(|(c, u)| {
                    let x = u / self.temperature;
                    let log_slope = log_sigmoid(x) + log_sigmoid(-x);
                    let pull = on[c] * (log_slope - log_p[c]).exp();
                    let push = off[c] * (log_slope - log_q[c]).exp();
                    (pull - push) / (count * self.temperature)
                })
                .collect()
        };
        let grads: Vec<Vec<f64>> = self.utilities(noise).into_iter().map(grad).collect();
        self.chain(noise, &grads)
    }

    /// log P(all labels) = log (1/S) Σ_s Π_c σ(u_sc/τ)^y_c (1 − σ(u_sc/τ))^(1 − y_c).
    pub fn joint_log_prob(&self, noise: &Noise, labels: &[f64]) -> f64 {
        log_sum_exp(&self.joint_of_samples(noise, labels)) - (noise.diag_draws.len() as f64).ln()
    }

    /// The gradient of [`Example::joint_log_prob`].
    pub fn joint_backward(&self, noise: &Noise, labels: &[f64]) -> Grad {
        let joint = self.joint_of_samples(noise, labels);
        let total = log_sum_exp(&joint);
        let grad = |(utility, joint): (&Vec<f64>, &f64)| {
            let entries = utility.iter().zip(labels);
            let slope = |(u, y): (&f64, &f64)| y - log_sigmoid(u / self.temperature).exp();
            entries.map(|entry| (joint - total).exp() * slope(entry) / self.temperature).collect()
        };
        let utilities = self.utilities(noise);
        self.chain(noise, &utilities.iter().zip(&joint).map(grad).collect::<Vec<_>>())
    }

    /// log P(all labels ∣ u_s), `[S]`.
    fn joint_of_samples(&self, noise: &Noise, labels: &[f64]) -> Vec<f64> {
        let log_prob = |(u, y): (&f64, &f64)| {
            let x = u / self.temperature;
            y * log_sigmoid(x) + (1.0 - y) * log_sigmoid(-x)
        };
        let utilities = self.utilities(noise);
        utilities.iter().map(|u| u.iter().zip(labels).map(log_prob).sum()).collect()
    }

    /// From ∂u_s to the parameters: ∂μ = Σ_s g_s, ∂d = Σ_s g_s ⊙ ε_K, ∂V = Σ_s g_s ε_Rᵀ, and τ
    /// through u/τ.
    fn chain(&self, noise: &Noise, grad_utilities: &[Vec<f64>]) -> Grad {
        let (classes, rank) = (self.mean.len(), self.loadings.first().map_or(0, Vec::len));
        let mut grad = Grad {
            mean: vec![0.0; classes],
            diag_scale: vec![0.0; classes],
            loadings: vec![vec![0.0; rank]; classes],
            temperature: 0.0,
        };
        let utilities = self.utilities(noise);
        for (s, g) in grad_utilities.iter().enumerate() {
            for k in 0..classes {
                grad.mean[k] += g[k];
                grad.diag_scale[k] += g[k] * noise.diag_draws[s][k];
                for r in 0..rank {
                    grad.loadings[k][r] += g[k] * noise.factor_draws[s][r];
                }
                grad.temperature -= g[k] * utilities[s][k] / self.temperature;
            }
        }
        grad
    }
}

/// log Σ exp, safe for any magnitude.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + values.iter().map(|value| (value - largest).exp()).sum::<f64>().ln()
}

/// log sigmoid(x), accurate in both tails.
pub fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

fn mean_over_samples(samples: &[Vec<f64>]) -> Vec<f64> {
    let count = (samples.len() as f64).ln();
    (0..samples[0].len())
        .map(|c| log_sum_exp(&samples.iter().map(|sample| sample[c]).collect::<Vec<_>>()) - count)
        .collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
