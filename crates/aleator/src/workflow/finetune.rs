//! An experiment that starts from a file of published weights.

use std::path::{Path, PathBuf};

use aleator_data::inputs::recognise::recognise;
use aleator_model::{ImageNetwork, PublishedNetwork, recognise_network};
use aleator_run::recipe::{DataOverlay, NetworkOverlay, Overlay, Pretraining};
use aleator_run::{Document, Value, check_kind, presets};

use crate::{Error, Experiment, Watch};

/// The preset for weights where none is named.
const RECIPE: &str = "finetune-full";

impl Experiment {
    /// Loads a `finetune-*` preset (or a recipe file without `network.kind`) for images at a path
    /// or named by `sets`. The network, and what it expects of its images, follow from the file of
    /// weights; its [`Pretraining`] is the table. What was found and chosen is a
    /// [`Choice`](crate::Event::Choice).
    ///
    /// `weights` is a file, or the name of a network whose file is in the current directory:
    /// `efficientnet-lite0` is `efficientnet_lite0.safetensors` or `efficientnet-lite0.safetensors`.
    ///
    /// ```no_run
    /// use aleator::{Experiment, Watch};
    ///
    /// let weights = "efficientnet_lite0.safetensors".as_ref();
    /// let photos = Some("photos".as_ref());
    /// let experiment =
    ///     Experiment::from_weights(weights, photos, None, &[], None, &mut Watch::silent())?;
    /// assert_eq!(experiment.name, "finetune-full");
    /// # Ok::<(), aleator::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file fits no network, the recipe has a network of its own, or as
    /// [`Experiment::on_path`].
    pub fn from_weights(
        weights: &Path,
        data: Option<&Path>,
        recipe: Option<&str>,
        sets: &[String],
        seed: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let recipe = recipe.unwrap_or(RECIPE);
        refuse_own_network(recipe)?;
        let weights = find_weights(weights)?;
        check_kind(&weights).map_err(Error::io(&weights))?;
        let PublishedNetwork { network, channels } =
            recognise_network(&weights).map_err(|error| Error::invalid(error.to_string()))?;
        let pretraining = Pretraining::of(network);
        let (of_data, longest_side) = match data {
            Some(path) => {
                let recognised = recognise(path)?;
                watch.choice(&recognised.explanation);
                (recognised.overlay(path), recognised.longest_side)
            }
            None => (Overlay::default(), None),
        };
        let of_network = pretraining.framing(network, longest_side);
        if let Some(Some(size)) = of_network.image_size {
            watch.choice(&format!(
                "{} holds {}; images are brought to {size} × {size} pixels",
                weights.display(),
                network.name()
            ));
        }
        watch.choice(&format!("recipe: {recipe}"));
        let data = DataOverlay {
            image_size: of_network.image_size,
            centre_crop: of_network.centre_crop,
            filter: of_network.filter,
            pixel_values: of_network.pixel_values,
            channels: Some(channels),
            ..of_data.data
        };
        let norm_epsilon = pretraining.norm_epsilon;
        let origin = format!("--weights {}", weights.display());
        let network =
            NetworkOverlay::Weights { kind: network, norm_epsilon, pretrained: Some(weights) };
        let overlay = Overlay { origin, data, network: Some(network) };
        Self::over(recipe, &overlay, sets, seed)
    }
}

/// Refuses a preset that would need weights, where none are given.
pub(super) fn refuse_without_weights(recipe: &str, sets: &[String]) -> Result<(), Error> {
    if preset_network(recipe, sets).is_none_or(|network| network.is_some()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{recipe} starts from pretrained weights: name the file by --weights FILE, as in `aleator \
         train {recipe} --data photos --weights efficientnet_lite0.safetensors`; docs/weights.md \
         says where to get one"
    )))
}

fn refuse_own_network(recipe: &str) -> Result<(), Error> {
    let Some(Some(kind)) = preset_network(recipe, &[]) else { return Ok(()) };
    let noise = recipe.rsplit(['-', '/']).next().unwrap_or_default();
    let finetune = format!("finetune-{noise}");
    let known = presets().iter().any(|preset| preset.name == finetune);
    let better = if known { finetune } else { RECIPE.to_string() };
    Err(Error::invalid(format!(
        "--weights: {recipe} has a network of its own ({kind}); take {better}, or give weights that \
         fit this network by --set network.pretrained=FILE"
    )))
}

/// The kind of network of a preset with `sets` over it, if it has one; `None` if there is no preset
/// of this name, or a set is wrong, which is said when the recipe is loaded.
fn preset_network(recipe: &str, sets: &[String]) -> Option<Option<String>> {
    let mut document = Document::preset(recipe).ok()?;
    sets.iter().try_for_each(|set| document.set(set)).ok()?;
    Some(document.get("network.kind").map(|node| match &node.value {
        Value::String(kind) => kind.clone(),
        _ => String::new(),
    }))
}

/// The file that is meant by a path or by the name of a network.
fn find_weights(given: &Path) -> Result<PathBuf, Error> {
    let network = given.to_str().and_then(ImageNetwork::from_name);
    let Some(network) = network.filter(|_| !given.exists()) else {
        return Ok(given.to_path_buf());
    };
    let name = network.name();
    let files = [name.replace('-', "_"), name.to_string()].map(|stem| stem + ".safetensors");
    let found = files.iter().map(PathBuf::from).find(|file| file.is_file());
    found.ok_or_else(|| {
        Error::invalid(format!(
            "--weights {name}: neither {} nor {} is in this directory; docs/weights.md says where \
             to get the weights of {name} and how to make such a file",
            files[0], files[1]
        ))
    })
}
