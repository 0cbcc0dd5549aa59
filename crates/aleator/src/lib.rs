//! Classifiers for labels that are partly wrong.
//!
//! In place of the last dense layer, Aleator puts a multivariate Normal on the utilities of the
//! classes, with a mean and a low-rank covariance that depend on the input: label noise that is
//! larger for some inputs, and that ties together the classes which annotators confuse (Collier
//! et al., *Correlated Input-Dependent Label Noise in Large-Scale Image Classification*, CVPR
//! 2021).
//!
//! # The drop-in layer
//! Replace `Linear` by [`HetLinear`] and change nothing else: any cross-entropy on its output is
//! the right loss.
//!
//! ```
//! use aleator::burn::module::Module;
//! use aleator::burn::nn::loss::CrossEntropyLossConfig;
//! use aleator::burn::nn::{Linear, LinearConfig};
//! use aleator::burn::tensor::{Device, Int, Tensor, activation::relu};
//! use aleator::{
//!     DiagScale, Draws, HeadTemperature, HetLinear, HetLinearConfig, Link, Noise, Temperature,
//! };
//!
//! #[derive(Module, Debug)]
//! struct Model {
//!     hidden: Linear,
//!     output: HetLinear, // was: Linear
//! }
//!
//! impl Model {
//!     fn forward(&self, x: Tensor<2>) -> Tensor<2> {
//!         self.output.forward(relu(self.hidden.forward(x)))
//!     }
//! }
//!
//! let device = Device::flex().autodiff();
//! let model = Model {
//!     hidden: LinearConfig::new(64, 32).init(&device),
//!     output: HetLinearConfig {
//!         feature_dim: 32,
//!         classes: 10,
//!         noise: Noise::LowRank { rank: 6 },
//!         link: Link::Softmax,
//!         temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
//!         diag_scale: DiagScale::Softplus,
//!         samples: 1000,
//!         draws: Draws::Antithetic,
//!         seed: 0,
//!     }
//!     .init(&device),
//! };
//! let labels = Tensor::<1, Int>::from_ints([3, 7], &device);
//! let logits = model.forward(Tensor::ones([2, 64], &device));
//! let loss = CrossEntropyLossConfig::new().init(&device).forward(logits, labels);
//! let grads = loss.backward();
//! # let _ = grads;
//! ```
//!
//! [`HetLinear::loss`] is the same number with all gradients from one fused pass: at 1,000 classes
//! the likelihood takes 0.4 of the time of `forward` and its backward pass. [`HetLinear::predict`] gives log-probabilities, their variance over the noise, and the
//! Normal itself: mean, and the covariance of any example.
//!
//! # Underneath
//! [`kernels`] is the likelihood over plain slices, without a tensor library: fused softmax,
//! exact multilabel probabilities, joint and conditional probabilities of label sets, the
//! second-order expansion, and the draws.

pub use aleator_kernels as kernels;
pub use aleator_model::*;
pub use burn;
