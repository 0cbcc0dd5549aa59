//! The likelihood of classifiers with a Normal on their utilities, over plain slices.
//!
//! u = μ + d ⊙ ε_K + V ε_R is the utility of the classes of one example; a softmax or a sigmoid of
//! u/τ, averaged over the noise ε, is their probability. A [`Latent`] holds μ, d and V of a batch,
//! a [`Sampling`] names the noise, and
//! - [`fused`] computes the softmax likelihood, its gradients, predictions and samples;
//! - [`multilabel`] the sigmoid likelihood, in closed form, and joint probabilities of labels;
//! - [`taylor`] the second-order expansion, without samples;
//! - [`dense`] the dense layers in front of them;
//! - [`reference`](mod@reference) all of it once more in f64 with plain loops, to test against.
//!
//! Functions run in the rayon pool that they are called in and give the same bits for any number
//! of threads. They panic on shapes that do not fit and labels out of range, before any work is
//! done, and say which. Utilities that are not finite are an error with the examples, or a panic
//! where a function returns no `Result`.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "vector code counts its registers; closures and slice copies hide them from it"
)]

pub mod batch_norm;
pub mod convolution;
pub mod dense;
mod draws;
pub mod fused;
mod key;
mod latent;
pub mod limits;
pub mod multilabel;
mod normal;
pub mod probit;
pub mod quantile;
pub mod reference;
mod shared;
mod simd;
pub mod sobol;
pub mod taylor;
mod tile;

pub use draws::{Draws, Sampling};
pub use fused::Targets;
pub use key::{NoiseKey, Stream, split_mix};
pub use latent::{BadTemperature, Covariance, Latent, LatentGrad, NotFinite, Temperature};
pub use simd::Vectors;
