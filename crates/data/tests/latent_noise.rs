//! Labels drawn from a latent model: their law, in closed form where there is one.

use aleator_data::{Ids, InputShape, Inputs, noise};
use aleator_metrics::normal_cdf;
use aleator_run::recipe::{LabelNoise, NoiseKind, NoiseLaw};

const EXAMPLES: usize = 200_000;

/// The shares of the given labels of examples of one class.
fn shares(label: u32, classes: usize, kind: NoiseKind) -> Vec<f64> {
    let inputs = Inputs::in_memory(vec![0.0; EXAMPLES], InputShape::Features(1));
    let noise = LabelNoise { seed: 4, kind };
    let labels = vec![label; EXAMPLES];
    let given = noise::corrupt(&labels, classes, &Ids::Rows(EXAMPLES), &inputs, &noise).unwrap();
    let mut shares = vec![0.0; classes];
    given.iter().for_each(|label| shares[*label as usize] += 1.0 / EXAMPLES as f64);
    shares
}

fn latent(
    margin: f64,
    scale: f64,
    law: NoiseLaw,
    covariances: &[(usize, usize, f64)],
) -> NoiseKind {
    NoiseKind::Latent { margin, scale, law, covariances: covariances.to_vec() }
}

fn assert_shares(found: &[f64], expected: &[f64]) {
    for (class, (found, expected)) in found.iter().zip(expected).enumerate() {
        // Five standard errors, of both if the other was simulated as well.
        let allowed = 5.0 * (2.0 * expected * (1.0 - expected) / EXAMPLES as f64).sqrt() + 1e-4;
        assert!((found - expected).abs() < allowed, "class {class}: {found}, {expected}");
    }
}

#[test]
fn gumbel_noise_of_scale_one_gives_the_softmax() {
    let (margin, classes) = (2.0f64, 6);
    let total = margin.exp() + 5.0;
    let mut softmax = vec![1.0 / total; classes];
    softmax[3] = margin.exp() / total;
    assert_shares(&shares(3, classes, latent(margin, 1.0, NoiseLaw::Gumbel, &[])), &softmax);
    // A class in a pair without covariance is drawn by itself, from the same law.
    let paired = latent(margin, 1.0, NoiseLaw::Gumbel, &[(3, 5, 0.0), (0, 5, 0.0)]);
    assert_shares(&shares(3, classes, paired), &softmax);
}

/// Var(u₀ − u₁) = 2s², and 4∣c∣ more if what they share has opposite signs.
#[test]
fn two_classes_flip_by_the_variance_of_their_difference() {
    let (margin, scale) = (1.5, 0.8);
    for (covariance, variance) in [(0.0, 1.28), (-1.2, 1.28 + 4.8), (2.0, 1.28)] {
        let flip = normal_cdf(-margin / f64::sqrt(variance));
        for pair in [(0, 1, covariance), (1, 0, covariance)] {
            let kind = latent(margin, scale, NoiseLaw::Normal, &[pair]);
            assert_shares(&shares(1, 2, kind), &[flip, 1.0 - flip]);
        }
    }
}

/// Against the model drawn as it is written, one utility for each class.
#[test]
fn shares_are_those_of_the_model_drawn_class_by_class() {
    const CLASSES: usize = 12;
    let (margin, scale) = (2.0, 0.7);
    let pairs = [(3, 8, -1.5), (8, 5, 0.8), (0, 1, 2.0)];
    let mut random = Random(9);
    for label in [3, 5, 7] {
        let mut expected = vec![0.0; CLASSES];
        for _ in 0..EXAMPLES {
            let mut utility: Vec<f64> = (0..CLASSES).map(|_| scale * random.normal()).collect();
            utility[label] += margin;
            for (a, b, covariance) in pairs {
                let z = random.normal() * f64::sqrt(f64::abs(covariance));
                utility[a] += z;
                utility[b] += z * f64::signum(covariance);
            }
            let best = (0..CLASSES).max_by(|a, b| utility[*a].total_cmp(&utility[*b])).unwrap();
            expected[best] += 1.0 / EXAMPLES as f64;
        }
        let kind = latent(margin, scale, NoiseLaw::Normal, &pairs);
        assert_shares(&shares(label as u32, CLASSES, kind), &expected);
    }
}

#[test]
fn without_noise_every_label_stays() {
    let found = shares(2, 5, latent(0.0, 0.0, NoiseLaw::Normal, &[]));
    assert!((found[2] - 1.0).abs() < 1e-9, "{found:?}");
}

/// SplitMix64 and Box–Muller: not the generator under test.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
