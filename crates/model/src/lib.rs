//! Burn layers with a multivariate Normal on the utilities of the classes.

#![recursion_limit = "256"]

mod backbone;
mod batch_norm;
mod batch_statistics;
mod classifier;
mod convolution;
mod custom_grad;
mod dense;
mod head;
mod het_linear;
mod latent;
mod likelihood;
mod on_device;
mod on_device_sigmoid;
pub mod params;
mod predict;
mod pretrained;
mod recycled;
mod slices;
mod weights;

pub use aleator_kernels::NoiseKey;
pub use aleator_layers::batch_norm::Activation;
pub use aleator_vocabulary::{
    BadTemperature, DiagScale, Draws, HeadTemperature, ImageNetwork, Link, Noise, Temperature,
};
pub use backbone::{Backbone, BackboneConfig, NormConfig};
pub use batch_norm::{Normalised, normalise_batch, normalise_fixed};
pub use batch_statistics::BatchStatistics;
pub use classifier::{Classifier, ClassifierConfig, TrainingLoss};
pub use convolution::convolve;
pub use dense::Dense;
pub use head::{Head, HeadConfig};
pub use het_linear::{HetLinear, HetLinearConfig, Labels};
pub use latent::{Covariance, Latent};
pub use likelihood::{BatchNoise, sigmoid_logits, softmax_log_probs};
pub use predict::{Prediction, Scores};
pub use pretrained::{load_network, published_tensors};
pub use weights::{Array, DenseArrays, ReferenceLayer, WeightsError};
