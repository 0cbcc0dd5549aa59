//! The likelihood over plain slices.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "vector code counts its registers; closures and slice copies hide them from it"
)]

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
mod simd;
pub mod sobol;
pub mod taylor;
mod tile;

pub use draws::{Draws, Sampling};
pub use fused::Targets;
pub use key::{NoiseKey, Stream, split_mix};
pub use latent::{BadTemperature, Covariance, Latent, LatentGrad, Temperature};
pub use simd::Vectors;
