//! The likelihood of classifiers with a Normal on their utilities, over plain slices.
//!
//! u = μ + d ⊙ ε_K + V ε_R is the utility of the classes of one example; a softmax or a sigmoid of
//! u/τ, averaged over the noise ε, is their probability. A [`Latent`] holds μ, d and V of a batch,
//! and a [`Sampling`] names the noise.
//!
//! | module | contents |
//! |---|---|
//! | [`reference`](mod@reference) | the paper in f64 with plain loops; all fast functions are tested against it |
//! | `latent` | [`Latent`], [`Covariance`], [`Temperature`] and [`LatentGrad`], checked at the entry |
//! | [`fused`] | the softmax likelihood: loss and gradients in one pass, log-probabilities, predictions, samples; the argmax itself |
//! | [`feature_noise`] | noise on the features in place of the utilities |
//! | [`covariance_root`] | covariances → triangular roots, and their gradients |
//! | [`given`] | the softmax likelihood of noise that comes through a layer |
//! | `fused::rows`, `worker` | moments → gradients of an example; the memory of one thread |
//! | `tile` | some samples of one example, in two layouts: lanes are classes, or lanes are samples |
//! | `key`, `draws` | [`NoiseKey`], the name of a draw; [`Draws`], how the noise of a tile is drawn |
//! | `normal`, [`sobol`], [`quantile`] | standard normals: Box–Muller, scrambled Sobol' points, Φ⁻¹ |
//! | `laws` | Gumbel and Logistic noise |
//! | [`multilabel`] | the sigmoid likelihood: exact marginals; joint and conditional probabilities by sampling |
//! | [`probit`] | E\[sigmoid\] under a Normal in closed form |
//! | [`taylor`] | the second-order expansion of the softmax likelihood, without samples |
//! | [`approximate`] | the softmax likelihood by probits and by mean field, without samples |
//! | `simd` | sixteen lanes on any vector width, chosen at run time; exp and ln with stated errors |
//!
//! Functions run in the rayon pool that calls them and return the same bits for any number of
//! threads. Before any work is done they panic if shapes do not match or a label is out of range;
//! the message names the argument and the example. Utilities that are not finite are an error with
//! the examples, or a panic where a function returns no `Result`.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "vector code counts its registers; closures and slice copies hide them from it"
)]

pub mod approximate;
pub mod covariance_root;
mod draws;
pub mod feature_noise;
pub mod fused;
pub mod given;
mod key;
mod latent;
mod laws;
pub mod multilabel;
mod normal;
pub mod probit;
pub mod quantile;
pub mod reference;
mod simd;
pub mod sobol;
pub mod taylor;
mod tile;

pub use aleator_vocabulary::{BadTemperature, Draws, NoiseLaw, Temperature};
pub use draws::Sampling;
pub use fused::Targets;
pub use key::{NoiseKey, Stream, split_mix};
pub use latent::{Covariance, Latent, LatentGrad, NotFinite};
pub use simd::Vectors;
