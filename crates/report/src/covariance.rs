//! What a run's noise says of its classes: which ones annotators take for each other.
//!
//! The covariance of an example's utilities is Σ(x) = diag(d²) + V Vᵀ; Σ̄ is its mean over a split.
//! Under the softmax a constant that is added to all utilities changes nothing, so that Σ itself
//! is not determined by any labels. What is: the centred C Σ C with C = I − 11ᵀ/K, in units of τ²,
//! its correlations, and how likely one utility is to exceed another.
//!
//! [`Covariances`] reads the predictions of a split piece by piece. Nothing of size N × K or K × K
//! is held beyond a block, unless [`average_covariance`](Covariances::average_covariance) is asked
//! for. Results do not depend on threads or on the memory that is allowed.

mod against;
mod best;
mod gram;
mod low_rank;
mod matrix;
mod moments;
mod open;
mod pairs;
mod tables;
mod ties;

pub use against::{Case, Comparison, Ranks};
pub use best::{Best, Ranked};
pub use matrix::{CovarianceMatrix, LARGEST_MATRIX};
pub use open::Covariances;
pub(crate) use open::{largest, pieces};
pub use pairs::{ClassPair, Relation, TopPairs};
pub use tables::{TiesTable, write_cases, write_pairs, write_ranks};
pub use ties::{ExampleTies, Tie};

use serde::{Deserialize, Serialize};

/// By what covariances are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Σ, as the paper has it.
    Raw,
    /// C Σ C / τ²: what the labels determine.
    Centred,
    /// The correlation of C Σ C.
    Correlation,
}

/// How far a long computation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is counted.
    pub what: &'static str,
    /// Of them done.
    pub done: usize,
    /// Of so many.
    pub total: usize,
}

/// Who is told how far it is.
pub type Observer<'a> = &'a mut dyn FnMut(Step);

/// Below this share of what they are computed from, differences are the rounding of 32-bit floats.
const ROUNDING: f64 = 1e-6;
