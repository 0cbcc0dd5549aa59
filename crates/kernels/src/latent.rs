//! The Normal on the utilities: the output of a head.

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
/// latent.check();
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

    /// # Panics
    /// If a slice does not have the length that `batch`, `classes` and `rank` require, or contains a
    /// number that is not finite; the message names the example and the class.
    pub fn check(&self) {
        assert!(self.classes > 0, "classes must be at least 1, found 0");
        let entries = self.batch * self.classes;
        let check = |name: &str, shape: &str, values: &[f32], expected: usize| {
            let found = values.len();
            assert!(found == expected, "{name} must be {shape} = {expected} long, found {found}");
            self.check_finite(name, values);
        };
        check("mean", "[B, K]", self.mean, entries);
        match self.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => {
                check("diag_scale", "[B, K]", diag_scale, entries);
            }
            Covariance::LowRank { diag_scale, loadings, rank } => {
                assert!(rank > 0, "rank must be at least 1; without factors use Diagonal");
                check("diag_scale", "[B, K]", diag_scale, entries);
                check("loadings", "[B, K, R]", loadings, entries * rank);
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, rank } => {
                assert!(rank > 0, "rank must be at least 1; without factors use Diagonal");
                check("diag_scale", "[B, K]", diag_scale, entries);
                check("loading_scale", "[B, K]", loading_scale, entries);
                check("shared_loadings", "[K, R]", shared_loadings, self.classes * rank);
            }
        }
    }

    /// Without this check a NaN would get lost: the vector maximum of a NaN and a number is the
    /// number.
    fn check_finite(&self, name: &str, values: &[f32]) {
        const EXPONENT: u32 = 0x7f80_0000;
        let largest = |values: &[f32]| {
            values.iter().fold(0, |largest: u32, value| largest.max(value.to_bits() & !(1 << 31)))
        };
        if values.par_chunks(1 << 16).all(|part| largest(part) < EXPONENT) {
            return;
        }
        let at = values.iter().position(|value| !value.is_finite()).expect("one was found");
        let per_class =
            if name == "loadings" || name == "shared_loadings" { self.rank() } else { 1 };
        let (example, class) = (at / per_class / self.classes, at / per_class % self.classes);
        panic!("{name} must be finite: example {example}, class {class} is {}", values[at]);
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
