//! The covariances of the utilities of many examples: their average, and those of single examples.
//!
//! The covariance of an example is Σ(x) = diag(d²) + V Vᵀ, and Σ̄ its mean over a split. All that an
//! analysis needs of it is added up example by example, from a file or from the batches of an
//! evaluation, by the same code and to the same bits:
//!
//! | module | |
//! |---|---|
//! | `low_rank` | d and V of some examples, and products with V |
//! | `gram` | mean V Vᵀ, block by block |
//! | `moments` | the diagonal and the row means, which centre Σ̄ |
//! | `flips` | how often the noise lifts one class above another |
//! | `tie` | one class of one example with all others |
//! | `recorder` | all of these while a split is evaluated, as a [`CovarianceFile`] |
//!
//! [`CovarianceFile`]: aleator_run::CovarianceFile

mod flips;
mod gram;
mod low_rank;
mod moments;
mod recorder;
mod tie;

pub use flips::RateSums;
pub use gram::{Block, Gram, columns, columns_are_centred, examples_of_a_product, plan};
pub use low_rank::{Loadings, LowRank, SharedFactors};
pub use moments::{Entries, Entry, Moments};
pub use recorder::CovarianceRecorder;
pub use tie::{Measure, Tie, Units, map_ties};

/// Differences below this share of their terms are rounding of 32-bit floats.
const ROUNDING: f64 = 1e-6;
