//! Classifiers for labels that are partly wrong.
//!
//! In place of the last dense layer, Aleator puts a multivariate Normal on the utilities of the
//! classes, with a mean and a low-rank covariance that depend on the input: label noise that is
//! larger for some inputs, and that ties together the classes which annotators confuse (Collier
//! et al., *Correlated Input-Dependent Label Noise in Large-Scale Image Classification*, CVPR
//! 2021).
//!
//! Three programs show the three ways to use it. What the `aleator` command trains, predicts, judges
//! and writes comes from functions of this crate; the command parses, shows progress and prints.
//!
//! # Fit and predict on arrays
//! [`fit`] trains a recipe on arrays in memory, on files or on images, writes a run directory, and
//! can be stopped and resumed at any point. [`Predictor`] gives `[N, K]` arrays.
//!
//! ```
//! use aleator::{
//!     ArrayInputs, ArraySplit, Arrays, Experiment, LabelArray, Predictor, Watch, fit,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two clouds of points; one label in eleven is wrong.
//! let class = |row: usize| row % 2;
//! let point = |row: usize| [(4 * class(row)) as f32 + (row % 7) as f32 / 7.0, (row % 5) as f32];
//! let values: Vec<f32> = (0..400).flat_map(point).collect();
//! let labels = (0..400).map(|row| (class(row) + usize::from(row % 11 == 0)) as i64 % 2);
//!
//! let arrays = Arrays::new(ArraySplit::new(
//!     ArrayInputs::Features { values: values.clone(), width: 2 },
//!     LabelArray::numbers(labels),
//! ));
//! let experiment = Experiment::on_arrays(arrays, "features-full", &[], None)?;
//!
//! # let dir = tempfile::tempdir()?;
//! # let out = dir.path().join("run");
//! let fitted = fit(&experiment, &out, &mut Watch::silent())?;
//! println!("validation NLL {:.3}", fitted.runs[0].evaluation.validation.given.nll);
//!
//! let predictor = Predictor::open(&out)?;
//! let prediction = predictor.predict(&predictor.rows(values)?)?;
//! let most_likely = prediction.classes(); // the index of the most likely class of each row
//! let right = most_likely.iter().enumerate().filter(|(row, found)| **found == class(*row)).count();
//! assert!(right > 380);
//! # Ok(())
//! # }
//! ```
//!
//! # Find wrong labels
//! [`audit`] judges every label without having learned it, and ranks them: by all other examples and
//! by training dynamics with the preset `features-audit`, in folds with any other recipe. With out-of-sample probabilities of another model, call
//! [`judge`](report::audit::judge) directly.
//!
//! ```
//! use aleator::{ArrayInputs, ArraySplit, Arrays, Experiment, LabelArray, Watch, audit};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let class = |row: usize| row % 2;
//! let point = |row: usize| [(4 * class(row)) as f32 + (row % 7) as f32 / 7.0, (row % 5) as f32];
//! let labels = (0..400).map(|row| (class(row) + usize::from(row % 23 == 3)) as i64 % 2);
//! let arrays = Arrays::new(ArraySplit::new(
//!     ArrayInputs::Features { values: (0..400).flat_map(point).collect(), width: 2 },
//!     LabelArray::numbers(labels),
//! ));
//! let experiment = Experiment::on_arrays(arrays, "features-full", &[], None)?;
//!
//! # let dir = tempfile::tempdir()?;
//! # let out = dir.path().join("audit");
//! let audit = audit(&experiment, 3, &out, &mut Watch::silent())?;
//! let worst = &audit.issues[0]; // most surely wrong first
//! println!("{}: given {:?}, suggested {:?}", worst.id, worst.given, worst.suggested);
//! assert_eq!(worst.id.parse::<usize>()? % 23, 3);
//! # Ok(())
//! # }
//! ```
//!
//! # The layer in a model of your own
//! Replace `Linear` by [`HetLinear`] and change nothing else: any cross-entropy on its output is
//! the right loss.
//!
//! ```
//! use aleator::burn::module::Module;
//! use aleator::burn::nn::loss::CrossEntropyLossConfig;
//! use aleator::burn::nn::{Linear, LinearConfig};
//! use aleator::burn::tensor::{Device, Int, Tensor, activation::relu};
//! use aleator::{
//!     DiagScale, Draws, HeadTemperature, HetLinear, HetLinearConfig, Likelihood, Link, Noise,
//!     Temperature,
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
//!         likelihood: Likelihood::Marginal,
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
//! the likelihood takes 0.4 of the time of `forward` and its backward pass.
//! [`HetLinear::predict`] gives log-probabilities, their variance over the noise, and the Normal
//! itself: mean, and the covariance of any example.
//!
//! # Underneath
//! [`kernels`] is the likelihood over plain slices, without a tensor library: fused softmax,
//! exact multilabel probabilities, joint and conditional probabilities of label sets, the
//! second-order expansion, and the draws.
//!
//! # Modules
//! | item | file |
//! |---|---|
//! | [`Experiment`], [`Watch`], [`Error`] | what every workflow takes and returns: `workflow/{experiment,watch,error}.rs` |
//! | [`fit`], [`resume`], [`evaluate`], [`Predictor`] | one file each in `workflow/` |
//! | [`tune`], [`sweep`], [`transfer`], [`demo`] | groups of runs, over `group.rs` |
//! | [`audit`], [`audit_run`], [`audit_probabilities`] | `audit.rs` and `audit/` |
//! | [`analyse`], [`analyse_pair`], [`ensemble`], [`report`](fn@report) | over finished runs: `analyse.rs`, `page.rs` |
//! | [`study_temperature`], [`draw_coefficients`], [`compare_predictions`] | `theory.rs` |
//! | [`embed`] | `embed.rs` |
//!
//! The feature `workflows` (on by default) has everything but the layer; without it the crate
//! needs far fewer dependencies.

pub use aleator_kernels as kernels;
pub use aleator_model::*;
pub use burn;

#[cfg(feature = "workflows")]
mod workflow;
#[cfg(feature = "workflows")]
pub use workflow::*;
