//! The Normal on the utilities: the output of a head.

use std::collections::BTreeSet;

pub use aleator_vocabulary::Temperature;
use rayon::prelude::*;

/// Σ(x), in the form in which a head computes it.
#[derive(Clone, Copy, Debug)]
pub enum Covariance<'a> {
    /// No noise: plain softmax or sigmoid of the mean.
    None,
    /// diag(d²).
    Diagonal {
        /// d(x), [B, K].
        diag_scale: &'a [f32],
    },
    /// diag(d²) + V Vᵀ with V from the features.
    LowRank {
        /// d(x), [B, K].
        diag_scale: &'a [f32],
        /// V(x), [B, K, R].
        loadings: &'a [f32],
        /// R.
        rank: usize,
    },
    /// diag(d²) + diag(v) V Vᵀ diag(v) with V shared by all inputs.
    SharedLowRank {
        /// d(x), [B, K].
        diag_scale: &'a [f32],
        /// v(x), [B, K].
        loading_scale: &'a [f32],
        /// V, [K, R].
        shared_loadings: &'a [f32],
        /// R.
        rank: usize,
    },
}

/// u ~ N(μ(x), Σ(x)) for each example of a batch.
///
/// ```
/// use aleator_kernels::{Covariance, Latent};
///
/// let latent = Latent {
///     batch: 1,
///     classes: 2,
///     mean: &[0.5, -0.5],
///     covariance: Covariance::Diagonal { diag_scale: &[1.0, 2.0] },
/// };
/// assert!(latent.check().is_ok());
/// assert_eq!(latent.rank(), 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Latent<'a> {
    /// B.
    pub batch: usize,
    /// K.
    pub classes: usize,
    /// μ(x), [B, K].
    pub mean: &'a [f32],
    /// Σ(x).
    pub covariance: Covariance<'a>,
}

impl<'a> Latent<'a> {
    /// R, zero without factors.
    pub fn rank(&self) -> usize {
        match self.covariance {
            Covariance::None | Covariance::Diagonal { .. } => 0,
            Covariance::LowRank { rank, .. } | Covariance::SharedLowRank { rank, .. } => rank,
        }
    }

    /// Whether there is noise to integrate over.
    pub fn is_noisy(&self) -> bool {
        !matches!(self.covariance, Covariance::None)
    }

    /// Checks the shapes, and that every number is finite: one that is not would otherwise vanish,
    /// because the vector maximum of it and another number is the other number.
    ///
    /// # Errors
    /// The examples with numbers that are not finite.
    ///
    /// # Panics
    /// When a slice does not have the shape that `batch`, `classes` and `rank` give it.
    pub fn check(&self) -> Result<(), NotFinite> {
        assert!(self.classes > 0, "classes must be at least 1, found 0");
        let (entries, rank) = (self.batch * self.classes, self.rank());
        let parts = self.parts();
        for (name, values) in &parts {
            let (shape, expected) = match *name {
                "loadings" => ("[B, K, R]", entries * rank),
                "shared_loadings" => ("[K, R]", self.classes * rank),
                _ => ("[B, K]", entries),
            };
            let found = values.len();
            assert!(found == expected, "{name} must be {shape} = {expected} long, found {found}");
        }
        if let Covariance::LowRank { .. } | Covariance::SharedLowRank { .. } = self.covariance {
            assert!(rank > 0, "rank must be at least 1; without factors use Diagonal");
        }
        match parts.iter().find(|(_, values)| !all_finite(values)) {
            None => Ok(()),
            Some(_) => Err(self.not_finite(&parts)),
        }
    }

    /// # Panics
    /// When [`Latent::check`] finds something.
    pub(crate) fn expect_finite(&self) {
        self.check().unwrap_or_else(|error| panic!("{error}"));
    }

    /// The slices by name.
    fn parts(&self) -> Vec<(&'static str, &'a [f32])> {
        let mut parts = vec![("mean", self.mean)];
        match self.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => parts.push(("diag_scale", diag_scale)),
            Covariance::LowRank { diag_scale, loadings, .. } => {
                parts.extend([("diag_scale", diag_scale), ("loadings", loadings)]);
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, .. } => {
                parts.extend([("diag_scale", diag_scale), ("loading_scale", loading_scale)]);
                parts.push(("shared_loadings", shared_loadings));
            }
        }
        parts
    }

    fn not_finite(&self, parts: &[(&'static str, &[f32])]) -> NotFinite {
        let mut rows = BTreeSet::new();
        let mut first = None;
        for (name, values) in parts {
            let bad = |(_, value): &(usize, &f32)| !value.is_finite();
            for (at, value) in values.iter().enumerate().filter(bad) {
                let of_class = if name.ends_with("loadings") { at / self.rank() } else { at };
                let (row, class) = (of_class / self.classes, of_class % self.classes);
                first.get_or_insert_with(|| {
                    format!("{name} must be finite: example {row}, class {class} is {value}")
                });
                match *name {
                    // They belong to every example.
                    "shared_loadings" => rows.extend(0..self.batch),
                    _ => drop(rows.insert(row)),
                }
            }
        }
        NotFinite { rows: rows.into_iter().collect(), message: first.unwrap_or_default() }
    }

    /// The parameters of one example.
    pub(crate) fn example(&self, row: usize) -> Example<'a> {
        let classes = self.classes;
        let of = |values: &'a [f32]| &values[row * classes..(row + 1) * classes];
        let (diag_scale, loadings) = match self.covariance {
            Covariance::None => (None, Loadings::None),
            Covariance::Diagonal { diag_scale } => (Some(of(diag_scale)), Loadings::None),
            Covariance::LowRank { diag_scale, loadings, rank } => {
                let size = classes * rank;
                let own = &loadings[row * size..(row + 1) * size];
                (Some(of(diag_scale)), Loadings::Own { loadings: own, rank })
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, rank } => {
                let scale = of(loading_scale);
                let loadings = Loadings::Shared { scale, loadings: shared_loadings, rank };
                (Some(of(diag_scale)), loadings)
            }
        };
        Example { mean: of(self.mean), diag_scale, loadings }
    }
}

pub(crate) fn all_finite(values: &[f32]) -> bool {
    const EXPONENT: u32 = 0x7f80_0000;
    let largest = |values: &[f32]| {
        values.iter().fold(0, |largest: u32, value| largest.max(value.to_bits() & !(1 << 31)))
    };
    values.par_chunks(1 << 16).all(|part| largest(part) < EXPONENT)
}

/// Utilities that are not finite: weights or inputs have left the range of f32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFinite {
    /// The examples, ascending.
    pub rows: Vec<usize>,
    /// The first such number, with its name, example and class.
    pub message: String,
}

impl core::fmt::Display for NotFinite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for NotFinite {}

/// V of one example, its own or the shared one scaled by class.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loadings<'a> {
    None,
    Own { loadings: &'a [f32], rank: usize },
    Shared { scale: &'a [f32], loadings: &'a [f32], rank: usize },
}

impl Loadings<'_> {
    pub fn rank(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Own { rank, .. } | Self::Shared { rank, .. } => *rank,
        }
    }

    /// Row `class` of V(x), each entry multiplied by `factor`.
    pub fn row(&self, class: usize, factor: f32) -> impl Iterator<Item = f32> {
        let (scale, row): (f32, &[f32]) = match self {
            Self::None => (0.0, &[]),
            Self::Own { loadings, rank } => (factor, &loadings[class * rank..][..*rank]),
            Self::Shared { scale, loadings, rank } => {
                (factor * scale[class], &loadings[class * rank..][..*rank])
            }
        };
        row.iter().map(move |loading| scale * loading)
    }
}

/// The Normal of one example.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example<'a> {
    pub mean: &'a [f32],
    pub diag_scale: Option<&'a [f32]>,
    pub loadings: Loadings<'a>,
}

impl Example<'_> {
    /// The largest mean.
    pub fn largest_mean(&self) -> f32 {
        self.mean.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// Σ_kk, the variance of one utility.
    pub fn variance(&self, class: usize) -> f32 {
        let diag = self.diag_scale.map_or(0.0, |d| d[class] * d[class]);
        diag + self.loadings.row(class, 1.0).map(|loading| loading * loading).sum::<f32>()
    }
}

/// Gradients in the shapes of a [`Latent`]; parts that its covariance does not have are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentGrad {
    /// ∂/∂μ, [B, K].
    pub mean: Vec<f32>,
    /// ∂/∂d, [B, K].
    pub diag_scale: Vec<f32>,
    /// ∂/∂V(x), [B, K, R].
    pub loadings: Vec<f32>,
    /// ∂/∂v(x), [B, K].
    pub loading_scale: Vec<f32>,
    /// ∂/∂V of the shared loadings, [K, R], summed over the batch.
    pub shared_loadings: Vec<f32>,
    /// ∂/∂τ, summed over the batch.
    pub temperature: f32,
}

impl LatentGrad {
    /// Zeros in the shapes of `latent`.
    pub fn zeros(latent: &Latent) -> Self {
        Self::from_buffers(latent, |len| vec![0.0; len])
    }

    /// Buffers from `take(len)` in the shapes of `latent`, with any contents, for
    /// [`loss_and_grad_into`](crate::fused::loss_and_grad_into), which overwrites them.
    pub fn from_buffers(latent: &Latent, mut take: impl FnMut(usize) -> Vec<f32>) -> Self {
        let entries = latent.batch * latent.classes;
        let mut grad = Self {
            mean: take(entries),
            diag_scale: Vec::new(),
            loadings: Vec::new(),
            loading_scale: Vec::new(),
            shared_loadings: Vec::new(),
            temperature: 0.0,
        };
        if latent.is_noisy() {
            grad.diag_scale = take(entries);
        }
        match latent.covariance {
            Covariance::None | Covariance::Diagonal { .. } => {}
            Covariance::LowRank { rank, .. } => grad.loadings = take(entries * rank),
            Covariance::SharedLowRank { rank, .. } => {
                grad.loading_scale = take(entries);
                grad.shared_loadings = take(latent.classes * rank);
            }
        }
        grad
    }

    /// # Panics
    /// If the buffers do not have the shapes of `latent`.
    pub(crate) fn check(&self, latent: &Latent) {
        let lengths = |grad: &Self| {
            [
                &grad.mean,
                &grad.diag_scale,
                &grad.loadings,
                &grad.loading_scale,
                &grad.shared_loadings,
            ]
            .map(Vec::len)
        };
        let mut wanted = vec![];
        Self::from_buffers(latent, |len| {
            wanted.push(len);
            Vec::new()
        });
        let found: Vec<usize> = lengths(self).into_iter().filter(|len| *len > 0).collect();
        wanted.retain(|len| *len > 0);
        assert_eq!(found, wanted, "gradient buffers must have the lengths of the latent's parts");
    }
}
