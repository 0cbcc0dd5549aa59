//! The integration tests of this crate: one program, linked once.

mod bad_input;
mod classifier;
mod convolution;
#[cfg(feature = "wgpu")]
mod devices;
#[cfg(not(feature = "wgpu"))]
mod feature_noise;
mod golden;
mod het_linear;
mod networks;
mod params;
mod pretrained;
mod support;
mod weights;
