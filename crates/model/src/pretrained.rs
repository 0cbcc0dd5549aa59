//! Pretrained networks from safetensors files, ours and those of others.

mod keys;
mod recognise;

use std::collections::BTreeSet;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

pub use recognise::{PublishedNetwork, recognise_network};

use crate::classifier::Classifier;
use crate::params::{self, Parameter, RUNNING_VARIANCE};
use crate::weights::{WeightsError, transposed};

/// In front of the parameters of a network, in a model and in its checkpoints.
const NETWORK: &str = "network.";

/// The model with the network of a file; the head stays as it is.
///
/// A file with keys `network.…` is a checkpoint of ours, of a model with the same network and any
/// head. Any other is expected in PyTorch's manner of naming, with the keys that
/// [`published_tensors`] lists; `docs/weights.md` has them as tables, and the line of Python that
/// makes such a file. Numbers may be f32, f16 or bf16.
///
/// ```no_run
/// use aleator_model::{Classifier, load_network};
/// # fn load(model: Classifier) -> Result<(), Box<dyn std::error::Error>> {
/// let model = load_network(model, "efficientnet_lite0.safetensors".as_ref())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When the file cannot be read or is not safetensors; when a tensor is missing, unknown, of
/// another shape or type, or holds numbers that cannot be weights. The message names the file,
/// the key, what was expected and found. Keys of a classifier (`fc.*`, `classifier.*`, …) and
/// `*.num_batches_tracked` are ignored.
pub fn load_network(model: Classifier, path: &Path) -> Result<Classifier, WeightsError> {
    let fail = |reason: String| WeightsError::File { path: path.display().to_string(), reason };
    let bytes = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| fail(error.to_string()))?;
    let file = File { path, tensors };
    let mut parameters = params::read(&model);
    let network = |parameter: &Parameter| parameter.name.starts_with(NETWORK);
    if !parameters.iter().any(network) {
        return Err(fail("the model's network has no weights that could be loaded".to_string()));
    }
    let ours = file.tensors.names().iter().any(|key| key.starts_with(NETWORK));
    let naming = if ours { Naming::Ours } else { Naming::Published };
    let wanted: Vec<ExpectedTensor> =
        parameters.iter().filter(|it| network(it)).map(|it| naming.expected(it)).collect();
    file.check_keys(&wanted, naming)?;
    for (parameter, wanted) in parameters.iter_mut().filter(|it| network(it)).zip(&wanted) {
        let values = file.values(wanted)?;
        file.check_values(parameter, &wanted.key, &values)?;
        parameter.values = match wanted.transposed {
            true => transposed(&values, wanted.shape[0], wanted.shape[1]),
            false => values,
        };
    }
    Ok(params::write(model, &parameters))
}

/// The keys and shapes that a file of published weights must have for the network of this
/// model, in the order of its parameters.
///
/// ```
/// use aleator_model::*;
/// # let output = HetLinearConfig {
/// #     feature_dim: 64, classes: 3, noise: Noise::None, link: Link::Softmax,
/// #     likelihood: Likelihood::Marginal,
/// #     temperature: HeadTemperature::Fixed(Temperature::try_from(1.0).unwrap()),
/// #     diag_scale: DiagScale::Softplus, samples: 1, draws: Draws::Antithetic, seed: 0,
/// # };
/// let backbone = BackboneConfig::Image {
///     network: ImageNetwork::ResNet20,
///     image: [3, 32, 32],
///     norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
///     hidden: vec![],
/// };
/// let config = ClassifierConfig { backbone, output, frozen: false };
/// let tensors = published_tensors(&config.init(&burn::tensor::Device::flex()));
/// assert_eq!(tensors[0], ("stem.conv.weight".to_string(), vec![16, 3, 3, 3]));
/// assert_eq!(tensors[1].0, "stages.0.blocks.0.norm1.weight");
/// ```
pub fn published_tensors(model: &Classifier) -> Vec<(String, Vec<usize>)> {
    let parameters = params::read(model);
    let network = parameters.iter().filter(|parameter| parameter.name.starts_with(NETWORK));
    network
        .map(|parameter| Naming::Published.expected(parameter))
        .map(|it| (it.key, it.shape))
        .collect()
}

/// Whose keys a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// A checkpoint: the parameters' own names.
    Ours,
    /// PyTorch's manner.
    Published,
}

/// What a file must hold for a parameter.
struct ExpectedTensor {
    key: String,
    shape: Vec<usize>,
    /// PyTorch keeps dense layers as [out, in].
    transposed: bool,
}

struct File<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl Naming {
    fn expected(self, parameter: &Parameter) -> ExpectedTensor {
        let mut shape = parameter.shape.clone();
        let name = parameter.name.as_str();
        match self {
            Self::Ours => ExpectedTensor { key: name.to_string(), shape, transposed: false },
            Self::Published => {
                let transposed = shape.len() == 2;
                if transposed {
                    shape.reverse();
                }
                let path = name.strip_prefix(NETWORK).unwrap_or(name);
                ExpectedTensor { key: keys::published(path), shape, transposed }
            }
        }
    }

    /// Whether a key belongs to something that is not loaded.
    fn passes_over(self, key: &str) -> bool {
        const CLASSIFIERS: [&str; 6] =
            ["fc.", "_fc.", "classifier.", "classif.", "head.", "last_linear."];
        match self {
            Self::Ours => !key.starts_with(NETWORK),
            Self::Published => {
                key.ends_with("num_batches_tracked")
                    || CLASSIFIERS.iter().any(|start| key.starts_with(start))
            }
        }
    }
}

impl File<'_> {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// All that is wanted is there, and nothing else.
    fn check_keys(&self, wanted: &[ExpectedTensor], naming: Naming) -> Result<(), WeightsError> {
        let found: BTreeSet<&str> = self.tensors.names().into_iter().collect();
        let expected: BTreeSet<&str> = wanted.iter().map(|wanted| wanted.key.as_str()).collect();
        let mut missing = wanted.iter().filter(|wanted| !found.contains(wanted.key.as_str()));
        let mut extra = found
            .iter()
            .copied()
            .filter(|key| !expected.contains(key) && !naming.passes_over(key))
            .filter(|key| !is_scale(key, &expected));
        if let Some(first) = missing.next() {
            return Err(WeightsError::MissingKey {
                path: self.name(),
                key: first.key.clone(),
                shape: first.shape.clone(),
                others: missing.count(),
                unknown: extra.next().unwrap_or("no other key").to_string(),
            });
        }
        if let Some(key) = extra.next() {
            return Err(WeightsError::ExtraKey { path: self.name(), key: key.to_string() });
        }
        let scales = found.iter().filter(|key| !expected.contains(**key));
        scales
            .filter(|key| is_scale(key, &expected))
            .try_for_each(|key| self.check_scale_of_one(key))
    }

    /// Inception-ResNet-v2 has norms without scale; other implementations keep one of 1.
    fn check_scale_of_one(&self, key: &str) -> Result<(), WeightsError> {
        let values = self.numbers(key, &self.view(key)?)?;
        match values.iter().find(|value| **value != 1.0) {
            None => Ok(()),
            Some(value) => Err(self.bad_value(
                key,
                format!("norms of this network have no scale, so all must be 1, found {value}"),
            )),
        }
    }

    fn values(&self, wanted: &ExpectedTensor) -> Result<Vec<f32>, WeightsError> {
        let view = self.view(&wanted.key)?;
        if view.shape() != wanted.shape {
            return Err(WeightsError::KeyShape {
                path: self.name(),
                key: wanted.key.clone(),
                expected: wanted.shape.clone(),
                found: view.shape().to_vec(),
            });
        }
        self.numbers(&wanted.key, &view)
    }

    fn view(&self, key: &str) -> Result<TensorView<'_>, WeightsError> {
        let fail = |reason: String| WeightsError::File { path: self.name(), reason };
        self.tensors.tensor(key).map_err(|error| fail(error.to_string()))
    }

    fn numbers(&self, key: &str, view: &TensorView) -> Result<Vec<f32>, WeightsError> {
        let pairs = || view.data().chunks_exact(2).map(|bytes| [bytes[0], bytes[1]]);
        match view.dtype() {
            Dtype::F32 => {
                let words = view.data().chunks_exact(4);
                Ok(words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
            }
            Dtype::F16 => Ok(pairs().map(|b| half::f16::from_le_bytes(b).to_f32()).collect()),
            Dtype::BF16 => Ok(pairs().map(|b| half::bf16::from_le_bytes(b).to_f32()).collect()),
            other => Err(WeightsError::KeyType {
                path: self.name(),
                key: key.to_string(),
                found: format!("{other:?}"),
            }),
        }
    }

    fn check_values(
        &self,
        parameter: &Parameter,
        key: &str,
        values: &[f32],
    ) -> Result<(), WeightsError> {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(self.bad_value(key, format!("number {at} is {}", values[at])));
        }
        let variance = parameter.name.ends_with(RUNNING_VARIANCE);
        match values.iter().position(|value| variance && *value < 0.0) {
            Some(at) => Err(self.bad_value(key, format!("variance {at} is {}", values[at]))),
            None => Ok(()),
        }
    }

    fn bad_value(&self, key: &str, reason: String) -> WeightsError {
        WeightsError::KeyValue { path: self.name(), key: key.to_string(), reason }
    }
}

/// Whether a key that is not expected is the scale of a norm that is.
fn is_scale(key: &str, expected: &BTreeSet<&str>) -> bool {
    key.strip_suffix("weight")
        .is_some_and(|layer| expected.contains(format!("{layer}running_mean").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other implementations keep a scale of 1 in the norms of Inception-ResNet-v2, which have
    /// none.
    #[test]
    fn scales_where_the_network_has_none_must_be_one() {
        let wanted =
            |key: &str| ExpectedTensor { key: key.to_string(), shape: vec![1], transposed: false };
        let wanted = [wanted("conv2d_1a.bn.bias"), wanted("conv2d_1a.bn.running_mean")];
        let outcome = |scale: f32| {
            let (one, scale) = (1f32.to_le_bytes(), scale.to_le_bytes());
            let view = |bytes| TensorView::new(Dtype::F32, vec![1], bytes).unwrap();
            let tensors = [
                (wanted[0].key.as_str(), view(&one)),
                (wanted[1].key.as_str(), view(&one)),
                ("conv2d_1a.bn.weight", view(&scale)),
            ];
            let bytes = safetensors::serialize(tensors, None).unwrap();
            let tensors = SafeTensors::deserialize(&bytes).unwrap();
            let file = File { path: Path::new("weights.safetensors"), tensors };
            file.check_keys(&wanted, Naming::Published)
        };
        outcome(1.0).unwrap();
        let message = outcome(0.5).unwrap_err().to_string();
        for word in ["weights.safetensors", "conv2d_1a.bn.weight", "all must be 1", "0.5"] {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    }
}
