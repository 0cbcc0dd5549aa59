//! The likelihood over plain slices.

pub mod dense;
mod draws;
pub mod fused;
mod key;
mod latent;
pub mod multilabel;
mod normal;
mod probit;
pub mod reference;
mod simd;
pub mod sobol;
pub mod taylor;
mod tile;

pub use draws::{Draws, Sampling};
pub use fused::Targets;
pub use key::{NoiseKey, Stream};
pub use latent::{BadTemperature, Covariance, Latent, LatentGrad, Temperature};
pub use simd::{LANES, Vectors};
