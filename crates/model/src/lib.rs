//! Burn layers with a multivariate Normal on the utilities of the classes.
//!
//! | module | responsibility |
//! |---|---|
//! | `head`, `latent` | features → `Latent`, as Burn tensors |
//! | `likelihood` | `Latent` and noise → log-probabilities and losses: where kernels meet autodiff |
//! | `custom_grad` | a value with its own backward rule: where Burn's extension mechanism is named |
//! | `on_device`, `on_device_sigmoid` | the same likelihoods as tensor operations, for other devices |
//! | `het_linear`, `predict`, `dense` | the layers that users hold, and predictions |
//! | `backbone`, `backbone/` | inputs → features, one file for each family of networks |
//! | `classifier` | network and head: what is trained |
//! | `convolution`, `batch_norm`, `batch_statistics` | layers of networks as tensor operations; statistics of a batch |
//! | `params`, `values` | parameters by name; their numbers, wherever they are |
//! | `weights`, `pretrained` | a layer's weights in files; a network's weights from elsewhere |
//! | `recycled`, `slices` | large buffers used again; tensors as slices |
//! | `bench` | a training step on made-up data |

#![recursion_limit = "256"]

mod backbone;
mod batch_norm;
mod batch_statistics;
#[doc(hidden)]
pub mod bench;
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
mod values;
mod weights;

pub use aleator_kernels::{BadTemperature, Draws, NoiseKey, Targets, Temperature};
pub use backbone::{Backbone, BackboneConfig, ImageNetwork, NormConfig};
pub use batch_statistics::BatchStatistics;
pub use classifier::{Classifier, ClassifierConfig, Forward, TrainingLoss};
pub use dense::Dense;
pub use head::{DiagScale, Head, HeadConfig, HeadTemperature, Noise};
pub use het_linear::{HetLinear, HetLinearConfig, Labels};
pub use latent::{Covariance, Latent};
pub use likelihood::{BatchNoise, Link, WeightedLoss, sigmoid_logits, softmax_log_probs};
pub use predict::{Prediction, Scores};
pub use pretrained::{load_network, published_tensors};
pub use weights::{Array, DenseArrays, ReferenceLayer, WeightsError};
