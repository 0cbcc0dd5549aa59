//! Whose weights a file holds, by the names and shapes of its tensors.

use std::collections::BTreeMap;
use std::path::Path;

use aleator_vocabulary::ImageNetwork;
use safetensors::tensor::SafeTensors;

use super::NETWORK;
use crate::backbone::ResidualSizes;
use crate::weights::WeightsError;

/// A file of published weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedNetwork {
    /// Whose weights they are.
    pub network: ImageNetwork,
    /// The channels of its images: 3 for colour, 1 for grey.
    pub channels: usize,
}

/// Looks at the tensors of a file and says which network they belong to.
///
/// The tensors that tell networks apart are looked at; [`load_network`](crate::load_network)
/// checks all of them.
///
/// ```no_run
/// use aleator_model::{ImageNetwork, recognise_network};
///
/// let found = recognise_network("efficientnet_lite0.safetensors".as_ref())?;
/// assert_eq!(found.network, ImageNetwork::EfficientNetLite0);
/// # Ok::<(), aleator_model::WeightsError>(())
/// ```
///
/// # Errors
/// When the file cannot be read, is not safetensors, is a checkpoint of ours, or fits no network;
/// the message says what it holds.
pub fn recognise_network(path: &Path) -> Result<PublishedNetwork, WeightsError> {
    let file = || path.display().to_string();
    let fail = |reason: String| WeightsError::File { path: file(), reason };
    let unknown = |reason: String| WeightsError::UnknownNetwork { path: file(), reason };
    let bytes = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| fail(error.to_string()))?;
    let shapes: Shapes = tensors.iter().map(|(key, view)| (key, view.shape().to_vec())).collect();
    if shapes.keys().any(|key| key.starts_with(NETWORK)) {
        return Err(unknown(
            "is a checkpoint of a run, which does not say how its images were prepared; `aleator \
             transfer RUN TASKS` starts from the run itself"
                .to_string(),
        ));
    }
    of_shapes(&shapes).ok_or_else(|| unknown(describe(&shapes)))
}

/// The shape of each tensor.
type Shapes<'a> = BTreeMap<&'a str, Vec<usize>>;

fn of_shapes(shapes: &Shapes<'_>) -> Option<PublishedNetwork> {
    let channels = |key: &str| shapes.get(key).and_then(|shape| shape.get(1)).copied();
    let single = [
        (ImageNetwork::EfficientNetLite0, "_conv_stem.weight", "_blocks.15._project_conv.weight"),
        (ImageNetwork::InceptionResNetV2, "conv2d_1a.conv.weight", "conv2d_7b.conv.weight"),
    ];
    for (network, first, last) in single {
        if let (Some(channels), true) = (channels(first), shapes.contains_key(last)) {
            return Some(PublishedNetwork { network, channels });
        }
    }
    let sizes = residual_sizes(shapes)?;
    let network = ImageNetwork::ALL
        .into_iter()
        .find(|network| ResidualSizes::of(*network).is_some_and(|known| known == sizes))?;
    Some(PublishedNetwork { network, channels: channels("stem.conv.weight")? })
}

/// The sizes of a residual network, from the names and shapes of its blocks.
fn residual_sizes(shapes: &Shapes<'_>) -> Option<ResidualSizes> {
    let has = |stage: usize, block: usize, layer: &str| {
        shapes.contains_key(format!("stages.{stage}.blocks.{block}.{layer}.weight").as_str())
    };
    let blocks = |stage: usize| (0..).take_while(|block| has(stage, *block, "conv1")).count();
    let depths: Vec<usize> = (0..).map(blocks).take_while(|blocks| *blocks > 0).collect();
    let first = |key: &str, axis: usize| shapes.get(key).and_then(|shape| shape.get(axis)).copied();
    Some(ResidualSizes {
        stem_kernel: first("stem.conv.weight", 2)?,
        bottleneck: has(0, 0, "conv3"),
        depths,
        width: first("stages.0.blocks.0.conv2.weight", 0)?,
    })
}

/// What a file holds that fits no network.
fn describe(shapes: &Shapes<'_>) -> String {
    const SHOWN: usize = 4;
    let shown = shapes.iter().take(SHOWN).map(|(key, shape)| format!("{key} {shape:?}"));
    let mut held = shown.collect::<Vec<_>>().join(", ");
    if shapes.len() > SHOWN {
        held += &format!(" and {} more", shapes.len() - SHOWN);
    }
    if held.is_empty() {
        held = "no tensor".to_string();
    }
    if let Some(ResidualSizes { stem_kernel, bottleneck, depths, width }) = residual_sizes(shapes) {
        let block = if bottleneck { "bottlenecks" } else { "basic blocks" };
        held += &format!(
            "; that is a residual network with a first convolution of {stem_kernel} × \
             {stem_kernel}, {block} {depths:?} and {width} channels in the first of them"
        );
    }
    let networks = ImageNetwork::ALL.map(ImageNetwork::name).join(", ");
    format!(
        "fits none of the networks {networks}; it holds {held}. docs/weights.md lists the tensors \
         of each; any other network works as an ONNX file through `aleator embed`"
    )
}
