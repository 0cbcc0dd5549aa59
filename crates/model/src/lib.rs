//! Burn layers with a multivariate Normal on the utilities of the classes, and the networks in front
//! of them.
//!
//! A [`Classifier`] is a [`Backbone`] (inputs → features) and a [`HetLinear`] layer (features →
//! logits, loss or predictions). The layer is a [`Head`], which computes a [`Latent`] Normal and does
//! not sample, and a likelihood, which takes the Normal and the key that names the noise.
//!
//! | module | contents |
//! |---|---|
//! | `het_linear`, `predict` | [`HetLinear`], the drop-in layer; predictions and their variance |
//! | `head`, `latent` | [`Head`]: features → [`Latent`], the Normal as tensors |
//! | `likelihood` | [`Latent`] and noise → log-probabilities or loss; the only place where kernels meet autodiff |
//! | `custom_grad` | a value with its own backward rule; the only place that uses Burn's extension mechanism |
//! | `on_device`, `on_device_sigmoid` | the same likelihoods as tensor operations, for devices other than the CPU |
//! | `classifier`, `count` | [`Classifier`]: the network and the layer that are trained together; [`ParameterCounts`] |
//! | `backbone` | [`Backbone`]: one file for each family of networks |
//! | `convolution`, `batch_norm`, `dense` | the kernels of `aleator-layers` as tensor operations |
//! | `batch_statistics` | the statistics of a batch, and the running averages of batch normalisation |
//! | [`params`], `values` | parameters by name; their numbers, wherever they are |
//! | `weights` | the weights of a layer in files, and those of the reference layers |
//! | `pretrained` | weights of published networks |
//! | `recycled`, `slices` | reuse of large buffers; tensors ↔ slices |
//!
//! On the CPU everything runs on the kernels of `aleator-kernels` and `aleator-layers`. Other devices
//! use tensor operations with the same distribution of the noise; Sobol' points are identical, other
//! draws have different bits.

#![recursion_limit = "256"]

mod backbone;
mod batch_norm;
mod batch_statistics;
mod class_covariance;
mod class_space;
mod classifier;
mod convolution;
mod count;
mod custom_grad;
mod dense;
mod expansion;
mod feature_noise;
mod feature_samples;
mod head;
mod het_linear;
mod latent;
mod likelihood;
mod on_device;
mod on_device_joint;
mod on_device_sigmoid;
pub mod params;
mod predict;
mod pretrained;
mod recycled;
mod slices;
mod values;
mod weights;

pub use aleator_kernels::{NoiseKey, Targets};
pub use aleator_layers::batch_norm::Activation;
pub use aleator_vocabulary::{
    BadTemperature, DiagScale, Draws, HeadTemperature, ImageNetwork, Likelihood, Link, Noise,
    Temperature,
};
pub use backbone::{Backbone, BackboneConfig, NormConfig};
pub use batch_norm::{Normalised, normalise_batch, normalise_fixed};
pub use batch_statistics::BatchStatistics;
pub use classifier::{Classifier, ClassifierConfig, Forward, TrainingLoss};
pub use convolution::convolve;
pub use count::ParameterCounts;
pub use dense::Dense;
pub use feature_noise::FeatureNoise;
pub use head::{Head, HeadConfig};
pub use het_linear::{ExampleNoise, HetLinear, HetLinearConfig, Labels};
pub use latent::{Covariance, Latent};
pub use likelihood::{BatchNoise, WeightedLoss, sigmoid_logits, softmax_log_probs};
pub use predict::{Prediction, Scores};
pub use pretrained::{PublishedNetwork, load_network, published_tensors, recognise_network};
pub use weights::{Array, DenseArrays, ReferenceLayer, WeightsError};
