//! The learned noise of a run: which classes annotators confuse.
//!
//! The covariance of an example's utilities is Σ(x) = diag(d²) + V Vᵀ; Σ̄ is its mean over a split.
//! Under the softmax, a constant added to all utilities changes no probability, so the likelihood
//! depends on Σ only through the centred C Σ C with C = I − 11ᵀ/K. It is reported in units of τ²,
//! with its correlations and the probability that one utility exceeds another.
//!
//! [`Covariances`] reads the predictions of a split in pieces, or where these hold no loadings, the
//! sums that were taken while the split was evaluated. Except for
//! [`average_covariance`](Covariances::average_covariance), nothing of size N × K or K × K is held
//! in memory. Results depend neither on threads nor on the memory limit.

mod against;
mod best;
mod latents;
mod matrix;
mod named;
mod open;
mod pairs;
mod seeds;
mod sums;
mod tables;
mod ties;

pub use against::{Case, Comparison, Ranks};
pub use aleator_covariance::{Measure, Tie};
pub use best::Best;
pub use latents::Latents;
pub use matrix::{CovarianceMatrix, LARGEST_MATRIX};
pub use named::{NamedPair, PairExample};
pub use open::Covariances;
pub(crate) use open::{largest, pieces};
pub use pairs::{ClassPair, Relation, TopPairs};
pub use seeds::{SeedNoise, SeedPair, Spread};
pub use tables::{write_cases, write_pairs, write_ranks, write_seed_pairs, write_ties};
pub use ties::ExampleTies;

/// The progress of a long computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is counted.
    pub what: &'static str,
    /// How many are done.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}

/// Called with the progress.
pub type Observer<'a> = &'a mut dyn FnMut(Step);

/// A covariance in units of τ² below this changes no log-probability by as much as half of it (the
/// second-order expansion), and nothing that is printed.
const NO_EFFECT: f64 = 1e-4;
