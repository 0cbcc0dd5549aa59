//! Weights in files: safetensors, and the layers of the reference implementations.

use std::path::Path;

use burn::module::Param;
use burn::store::{ModuleSnapshot, SafetensorsStore};
use burn::tensor::{Device, Tensor, TensorData};

use crate::dense::Dense;
use crate::head::{DiagScale, Head, HeadConfig, Noise};
use crate::het_linear::HetLinear;

/// Why weights could not be saved, loaded or taken over.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file could not be written.
    #[error("{path}: weights could not be saved: {reason}")]
    Save {
        /// The file.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// The file could not be read, or does not fit the layer.
    #[error(
        "{path}: weights could not be loaded: {reason}; expected the tensors that `save` writes \
         for a layer of the same sizes"
    )]
    Load {
        /// The file.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// No reference layer has this noise.
    #[error("reference layers with noise on the features cannot be read; choose another noise")]
    OnFeatures,
    /// An array of a reference layer is missing.
    #[error("array `{name}` is missing; a layer with noise {noise:?} has it")]
    Missing {
        /// Its name.
        name: &'static str,
        /// The noise model that asked for it.
        noise: Noise,
    },
    /// An array of a reference layer has another shape.
    #[error("array `{name}` must be {expected:?}, found {found:?}")]
    Shape {
        /// Its name.
        name: &'static str,
        /// The shape that the layer needs.
        expected: Vec<usize>,
        /// The shape that was given.
        found: Vec<usize>,
    },
    /// A file of a network could not be read.
    #[error(
        "{path}: the network's weights could not be read: {reason}; expected a safetensors file \
         (docs/weights.md says how to make one from PyTorch's)"
    )]
    File {
        /// The file.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// A file whose network is not known.
    #[error("{path}: {reason}")]
    UnknownNetwork {
        /// The file.
        path: String,
        /// What it holds.
        reason: String,
    },
    /// A file of a network lacks a tensor.
    #[error(
        "{path}: tensor `{key}` of shape {shape:?} is missing, and {others} others; the file has \
         `{unknown}`. Rename its tensors as docs/weights.md says, or choose the network that the \
         file was made for"
    )]
    MissingKey {
        /// The file.
        path: String,
        /// The key that was looked for.
        key: String,
        /// The shape of its tensor.
        shape: Vec<usize>,
        /// How many more are missing.
        others: usize,
        /// A key of the file that the network does not know.
        unknown: String,
    },
    /// A file of a network has a tensor that the network does not.
    #[error(
        "{path}: tensor `{key}` is not part of the network; choose the network that the file was \
         made for, or leave the tensor out"
    )]
    ExtraKey {
        /// The file.
        path: String,
        /// The key.
        key: String,
    },
    /// A tensor of a network's file has another shape.
    #[error(
        "{path}: tensor `{key}` must be {expected:?}, found {found:?}; choose the network and the \
         number of image channels that the file was made for"
    )]
    KeyShape {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// The shape that the network needs.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// A tensor of a network's file is of a type that weights are not kept in.
    #[error(
        "{path}: tensor `{key}` is {found}, expected F32, F16 or BF16; convert it, in PyTorch \
         with `.float()`"
    )]
    KeyType {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// The type in the file.
        found: String,
    },
    /// A tensor of a network's file holds numbers that cannot be its weights.
    #[error(
        "{path}: tensor `{key}` cannot be used: {reason}; the file is damaged or of another \
         network"
    )]
    KeyValue {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl HetLinear {
    /// Writes the parameters to a safetensors file, under a temporary name first.
    ///
    /// The keys are stable: `head.mean.weight`, `head.mean.bias`, `head.diag_scale.*`,
    /// `head.loadings.*`, `head.loading_scale.*`, `head.shared_loadings`,
    /// `head.temperature_logit`, as far as the noise model has them.
    ///
    /// ```
    /// # use aleator_model::*;
    /// # let device = burn::tensor::Device::flex();
    /// # let layer = HetLinearConfig {
    /// #     feature_dim: 8, classes: 3, noise: Noise::LowRank { rank: 2 }, link: Link::Softmax,
    /// #     likelihood: Likelihood::Marginal,
    /// #     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
    /// #     diag_scale: DiagScale::Softplus, samples: 100, draws: Draws::Antithetic, seed: 0,
    /// # }.init(&device);
    /// let path = std::env::temp_dir().join("aleator-doc-example.safetensors");
    /// layer.save(&path)?;
    /// let again = layer.load(&path)?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), WeightsError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), WeightsError> {
        let mut store = SafetensorsStore::from_file(path.as_ref()).overwrite(true);
        self.save_into(&mut store).map_err(|error| WeightsError::Save {
            path: path.as_ref().display().to_string(),
            reason: error.to_string(),
        })
    }

    /// This layer with the parameters of a file; on an error nothing has changed.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        // Burn applies tensors one by one before it reports, so a copy takes the risk.
        let mut loaded = self.clone();
        let mut store = SafetensorsStore::from_file(path.as_ref());
        loaded.load_from(&mut store).map_err(|error| WeightsError::Load {
            path: path.as_ref().display().to_string(),
            reason: error.to_string(),
        })?;
        Ok(loaded)
    }
}

/// Softplus of this is zero in f32: what is left of a scale is the smallest, 10⁻³.
const NO_SOFTPLUS: f32 = -200.0;

/// An array of a reference layer: its numbers, row-major, and its shape.
#[derive(Clone, Debug)]
pub struct Array {
    /// The numbers.
    pub values: Vec<f32>,
    /// The shape.
    pub shape: Vec<usize>,
}

/// Kernel [in, out] and bias `[out]` of a dense layer of a reference implementation.
#[derive(Clone, Debug)]
pub struct DenseArrays {
    /// [in, out].
    pub kernel: Array,
    /// `[out]`.
    pub bias: Array,
}

/// The arrays of the published layers: `MCSoftmaxDense` with diagonal noise, `MCSoftmaxDenseFA` and
/// `MCSigmoidDenseFA` with factors. The TensorFlow and the JAX version name them alike (TensorFlow
/// puts the layer's own name in front) and keep kernels as [in, out].
///
/// | field | reference | kernel, bias | becomes |
/// |---|---|---|---|
/// | `loc` | `loc_layer` | [D, K], `[K]` | `mean` |
/// | `diag` | `diag_layer` | [D, K], `[K]` | `diag_scale`, before softplus |
/// | `scale` | `scale_layer`, diagonal noise | [D, K], `[K]` | `diag_scale`, before softplus |
/// | `scale` | `scale_layer`, factors | [D, K·R], [K·R] | `loadings` |
/// | `scale` | `scale_layer_heteroscedastic` | [D, K], `[K]` | `loading_scale` |
/// | `shared` | `scale_layer_homoscedastic` | [R, K], `[K]` | `shared_loadings`, transposed |
///
/// The fourth row is for `parameter_efficient=False`, the last two are for `True`. There the
/// reference gives the shared loadings a bias b, which moves the mean of the utilities by
/// v(x) ⊙ b; ours have none (deviation D3), and the import puts that term where it belongs, into
/// the mean: W_μ + W_v diag(b), b_μ + b_v ⊙ b. The distribution stays the same.
///
/// With two classes the diagonal layer has one utility, that of class 1, and a sigmoid (deviation
/// D24): arrays of one output become class 1 of two, and class 0 has the utility 0 without noise.
///
/// ```
/// use aleator_model::{
///     Array, DenseArrays, DiagScale, HeadConfig, HeadTemperature, Noise, ReferenceLayer, Temperature,
/// };
///
/// let zeros = |inputs: usize, outputs: usize| DenseArrays {
///     kernel: Array { values: vec![0.0; inputs * outputs], shape: vec![inputs, outputs] },
///     bias: Array { values: vec![0.0; outputs], shape: vec![outputs] },
/// };
/// let reference = ReferenceLayer {
///     loc: zeros(8, 3),
///     diag: Some(zeros(8, 3)),
///     scale: Some(zeros(8, 6)),
///     shared: None,
/// };
/// let config = HeadConfig {
///     feature_dim: 8,
///     classes: 3,
///     noise: Noise::LowRank { rank: 2 },
///     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
///     diag_scale: DiagScale::Softplus,
///     seed: 0,
/// };
/// let head = reference.import(&config, &burn::tensor::Device::flex())?;
/// # let _ = head;
/// # Ok::<(), aleator_model::WeightsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReferenceLayer {
    /// `loc_layer`.
    pub loc: DenseArrays,
    /// `diag_layer`; the diagonal layer has it as `scale_layer`, which may stand in either field.
    pub diag: Option<DenseArrays>,
    /// `scale_layer`, or `scale_layer_heteroscedastic` where loadings are shared.
    pub scale: Option<DenseArrays>,
    /// `scale_layer_homoscedastic`.
    pub shared: Option<DenseArrays>,
}

impl ReferenceLayer {
    /// A head with these weights. The reference puts softplus on the diagonal scale, so `config`
    /// should have [`DiagScale::Softplus`](crate::DiagScale::Softplus).
    pub fn import(&self, config: &HeadConfig, device: &Device) -> Result<Head, WeightsError> {
        let (classes, noise) = (config.classes, config.noise);
        let need = |layer: Option<&DenseArrays>, name| {
            layer.cloned().ok_or(WeightsError::Missing { name, noise })
        };
        let width = config.feature_dim;
        let no_factors = matches!(noise, Noise::None | Noise::Diagonal);
        let one_utility = no_factors && classes == 2 && self.loc.bias.shape == [1];
        let outputs = if one_utility { 1 } else { classes };
        let mut loc = self.loc.check("loc_layer", width, outputs)?;
        if one_utility {
            loc = loc.as_second_output(0.0);
        }
        let mut head = config.init(device);
        if noise != Noise::None {
            let (given, name) = match noise {
                Noise::Diagonal => (self.diag.as_ref().or(self.scale.as_ref()), "scale_layer"),
                _ => (self.diag.as_ref(), "diag_layer"),
            };
            let mut diag = need(given, name)?.check(name, width, outputs)?;
            if one_utility {
                diag = diag.as_second_output(match config.diag_scale {
                    DiagScale::Affine => 0.0,
                    DiagScale::Softplus => NO_SOFTPLUS,
                });
            }
            head.diag_scale = Some(diag.dense(device));
        }
        match noise {
            Noise::None | Noise::Diagonal => {}
            Noise::LowRank { rank } => {
                let scale = need(self.scale.as_ref(), "scale_layer")?;
                let scale = scale.check("scale_layer", width, classes * rank)?;
                head.loadings = Some(scale.dense(device));
            }
            Noise::SharedLowRank { rank } => {
                let [own, all] = ["scale_layer_heteroscedastic", "scale_layer_homoscedastic"];
                let scale = need(self.scale.as_ref(), own)?.check(own, width, classes)?;
                let shared = need(self.shared.as_ref(), all)?.check(all, rank, classes)?;
                loc.add_scaled(&scale, &shared.bias);
                let loadings = shared.kernel.transposed();
                head.loading_scale = Some(scale.dense(device));
                head.shared_loadings = Some(loadings.param(device));
            }
            Noise::OnFeatures { .. } => return Err(WeightsError::OnFeatures),
        }
        head.mean = loc.dense(device);
        Ok(head)
    }
}

impl DenseArrays {
    fn check(
        &self,
        name: &'static str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, WeightsError> {
        for (array, expected) in
            [(&self.kernel, vec![inputs, outputs]), (&self.bias, vec![outputs])]
        {
            let size: usize = expected.iter().product();
            if array.shape != expected || array.values.len() != size {
                let found = array.shape.clone();
                return Err(WeightsError::Shape { name, expected, found });
            }
        }
        Ok(self.clone())
    }

    /// A layer of one output as the second of two; the first is constant.
    fn as_second_output(&self, first: f32) -> Self {
        let width = self.kernel.shape[0];
        let kernel = self.kernel.values.iter().flat_map(|value| [0.0, *value]).collect();
        Self {
            kernel: Array { values: kernel, shape: vec![width, 2] },
            bias: Array { values: vec![first, self.bias.values[0]], shape: vec![2] },
        }
    }

    /// Adds `other` with each output multiplied by its entry of `scale`.
    fn add_scaled(&mut self, other: &Self, scale: &Array) {
        let outputs = scale.values.len();
        for (to, from) in [(&mut self.kernel, &other.kernel), (&mut self.bias, &other.bias)] {
            for (at, (to, from)) in to.values.iter_mut().zip(&from.values).enumerate() {
                *to += from * scale.values[at % outputs];
            }
        }
    }

    fn dense(&self, device: &Device) -> Dense {
        Dense { weight: self.kernel.param(device), bias: self.bias.param(device) }
    }
}

impl Array {
    fn param<const D: usize>(&self, device: &Device) -> Param<Tensor<D>> {
        Param::from_data(TensorData::new(self.values.clone(), self.shape.clone()), device)
    }

    /// A matrix the other way round.
    fn transposed(&self) -> Self {
        let (rows, columns) = (self.shape[0], self.shape[1]);
        Self { values: transposed(&self.values, rows, columns), shape: vec![columns, rows] }
    }
}

/// The numbers of a matrix column by column.
pub(crate) fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}
