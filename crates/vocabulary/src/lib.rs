//! The terms that recipes, models and kernels share, each defined once.
//!
//! | module | terms |
//! |---|---|
//! | `head` | [`Noise`], [`Link`], [`Likelihood`], [`DiagScale`], [`Draws`], [`NoiseLaw`] |
//! | `temperature` | [`Temperature`], [`HeadTemperature`] |
//! | `image_network` | [`ImageNetwork`] |
//!
//! The feature `serde` gives every term the form that it has in recipes and `run.json`.

mod head;
mod image_network;
mod temperature;

pub use head::{DiagScale, Draws, Likelihood, Link, Noise, NoiseLaw};
pub use image_network::ImageNetwork;
pub use temperature::{BadTemperature, HeadTemperature, Temperature};
