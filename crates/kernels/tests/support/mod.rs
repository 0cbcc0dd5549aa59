//! Random problems, in the form of the kernels and in that of the reference.

use aleator_kernels::reference;
use aleator_kernels::{
    Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, fused::drawn_noise,
};

/// SplitMix64: test data must not come from the generator under test.
pub struct Random(pub u64);

impl Random {
    pub fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    pub fn vector(&mut self, len: usize, low: f32, high: f32) -> Vec<f32> {
        (0..len).map(|_| low + (high - low) * self.unit()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    None,
    Diagonal,
    LowRank,
    Shared,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    pub batch: usize,
    pub classes: usize,
    pub rank: usize,
    pub samples: usize,
    pub temperature: f32,
    pub draws: Draws,
    pub law: NoiseLaw,
    pub mean: Vec<f32>,
    pub diag_scale: Vec<f32>,
    pub loadings: Vec<f32>,
    pub loading_scale: Vec<f32>,
    pub shared_loadings: Vec<f32>,
    pub labels: Vec<u32>,
    pub ids: Vec<u64>,
    pub key: NoiseKey,
}

impl Case {
    pub fn new(kind: Kind, batch: usize, classes: usize, rank: usize, samples: usize) -> Self {
        let shape = (batch * 31 + classes * 17 + rank * 7 + samples) as u64;
        let mut random = Random(shape);
        let entries = batch * classes;
        Self {
            kind,
            batch,
            classes,
            rank,
            samples,
            temperature: 0.9,
            draws: Draws::Independent,
            law: NoiseLaw::Normal,
            mean: random.vector(entries, -2.0, 2.0),
            diag_scale: random.vector(entries, -1.0, 1.0),
            loadings: random.vector(entries * rank, -1.0, 1.0),
            loading_scale: random.vector(entries, -1.0, 1.0),
            shared_loadings: random.vector(classes * rank, -1.0, 1.0),
            labels: (0..batch).map(|i| ((i * 7919) % classes) as u32).collect(),
            ids: (0..batch as u64).map(|i| 1000 + 3 * i).collect(),
            key: NoiseKey { seed: 5, step: 11 },
        }
    }

    pub fn latent(&self) -> Latent<'_> {
        let (diag_scale, rank) = (&self.diag_scale[..], self.rank);
        let covariance = match self.kind {
            Kind::None => Covariance::None,
            Kind::Diagonal => Covariance::Diagonal { diag_scale },
            Kind::LowRank => Covariance::LowRank { diag_scale, loadings: &self.loadings, rank },
            Kind::Shared => Covariance::SharedLowRank {
                diag_scale,
                loading_scale: &self.loading_scale,
                shared_loadings: &self.shared_loadings,
                rank,
            },
        };
        Latent { batch: self.batch, classes: self.classes, mean: &self.mean, covariance }
    }

    pub fn sampling(&self) -> Sampling<'_> {
        let Self { key, ref ids, samples, draws, law, .. } = *self;
        Sampling { key, ids, samples, draws, law }
    }

    pub fn tau(&self) -> Temperature {
        Temperature::try_from(self.temperature).unwrap()
    }

    pub fn entries(&self, row: usize) -> std::ops::Range<usize> {
        row * self.classes..(row + 1) * self.classes
    }

    /// One example in the form of the reference.
    pub fn reference(&self, row: usize) -> reference::Example {
        let noisy = self.kind != Kind::None;
        let diag = &self.diag_scale[self.entries(row)];
        let wide = |values: &[f32]| values.iter().map(|v| *v as f64).collect::<Vec<f64>>();
        let rows = |values: &[f32]| values.chunks(self.rank.max(1)).map(wide).collect::<Vec<_>>();
        let example = reference::Example {
            mean: wide(&self.mean[self.entries(row)]),
            diag_scale: diag.iter().map(|d| if noisy { *d as f64 } else { 0.0 }).collect(),
            loadings: vec![vec![]; self.classes],
            temperature: self.temperature as f64,
        };
        match self.kind {
            Kind::None | Kind::Diagonal => example,
            Kind::LowRank => {
                let size = self.classes * self.rank;
                let loadings = rows(&self.loadings[row * size..(row + 1) * size]);
                reference::Example { loadings, ..example }
            }
            Kind::Shared => {
                let scale = wide(&self.loading_scale[self.entries(row)]);
                example.shared(&scale, &rows(&self.shared_loadings))
            }
        }
    }

    /// The noise that the kernels draw for one example.
    pub fn noise(&self, row: usize) -> reference::Noise {
        let drawn = drawn_noise(&self.latent(), &self.sampling(), row);
        let wide = |values: &[f32]| values.iter().map(|v| *v as f64).collect::<Vec<f64>>();
        let diag_draws: Vec<Vec<f64>> = drawn.diag_draws.chunks(self.classes).map(wide).collect();
        let rank = self.latent().rank();
        let factor_draws = match rank {
            0 => vec![vec![]; diag_draws.len()],
            _ => drawn.factor_draws.chunks(rank).map(wide).collect(),
        };
        reference::Noise { diag_draws, factor_draws }
    }

    /// The error of f32: every utility is a sum of R + 2 products, each rounded to
    /// 2⁻²⁴ of its size, and log p is 1-Lipschitz in the largest error of u/τ, twice over
    /// (the utility and the normaliser). The exponentials and the sums over samples and classes
    /// add a few 1e-7 of their own.
    pub fn tolerance(&self) -> f64 {
        let largest = self.mean.iter().fold(0.0f32, |a, m| a.max(m.abs())) as f64;
        let own = if self.law == NoiseLaw::Normal { 6.0 } else { 23.0 };
        let size = (2.0 * largest + own + 6.0 * self.rank as f64) / self.temperature as f64;
        2.0 * (self.rank as f64 + 3.0) * size * 2f64.powi(-24) + 2e-6
    }
}

/// Compares up to an absolute `tolerance`, plus the rounding of the expected number to f32.
#[track_caller]
pub fn assert_close(name: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}: length");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (*found as f64 - expected).abs();
        let allowed = tolerance + expected.abs() * 2f64.powi(-22);
        let message =
            format!("{name}[{at}]: {found} is {error:e} from {expected}, allowed {allowed:e}");
        assert!(error <= allowed, "{message}");
    }
}

/// The largest magnitude.
pub fn norm(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// Checks random cases; a case that fails is printed. `ALEATOR_SLOW` checks twenty times as many.
pub fn for_cases(count: usize, check: impl Fn(&Case, &mut Random)) {
    struct Shown<'a>(&'a Case);
    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let Case {
                    kind, batch, classes, rank, samples, temperature, draws, law, key, ..
                } = self.0;
                eprintln!(
                    "failed: {kind:?}, batch {batch}, classes {classes}, rank {rank}, samples \
                     {samples}, temperature {temperature}, {draws:?}, {law:?}, {key:?}"
                );
            }
        }
    }
    let slow = std::env::var_os("ALEATOR_SLOW").is_some();
    for number in 0..if slow { 20 * count } else { count } {
        let mut random = Random(number as u64);
        let case = random.case();
        let _shown = Shown(&case);
        check(&case, &mut random);
    }
}

impl Random {
    /// A number of this range.
    pub fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        range.start + (self.unit() * range.len() as f32) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.within(0..choices.len())]
    }

    /// Shapes on both sides of every boundary: one class, the switch of layouts, odd widths.
    fn case(&mut self) -> Case {
        let kind = self.one_of(&[Kind::None, Kind::Diagonal, Kind::LowRank, Kind::Shared]);
        let draws = self.one_of(&[Draws::Independent, Draws::Antithetic, Draws::Sobol]);
        let (fewest, most) = self.one_of(&[(1, 5), (30, 36), (16, 17), (40, 120)]);
        let (batch, classes) = (self.within(1..4), self.within(fewest..most));
        let (rank, samples) = (self.within(1..9), self.within(1..150));
        let temperature = 0.05 + 19.95 * self.unit();
        let seed = self.0;
        let key = NoiseKey { seed, step: seed >> 7 };
        let law = self.one_of(&[NoiseLaw::Normal, NoiseLaw::Gumbel, NoiseLaw::Logistic]);
        Case { temperature, draws, law, key, ..Case::new(kind, batch, classes, rank, samples) }
    }
}
