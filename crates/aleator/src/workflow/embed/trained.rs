//! The network of a trained run as an extractor of embeddings.

use std::path::Path;

use aleator_data::InputShape;
use aleator_embed::{EmbedError, Extractor, Identity, Images, InputSpec, Layout};
use aleator_run::recipe::Framing;
use aleator_train::{FeatureExtractor, hash_file, load_run};

use crate::workflow::error::Error;

/// The layers before the head of a run that was trained on images.
pub struct TrainedNetwork {
    network: FeatureExtractor,
    spec: InputSpec,
    identity: Identity,
    /// How the run saw images.
    pub framing: Framing,
}

impl TrainedNetwork {
    /// Opens the run at `path`, with the weights that were evaluated last or those of a step.
    pub fn open(path: &Path, checkpoint: Option<usize>) -> Result<Self, Error> {
        let (run, recipe) = load_run(path)?;
        let network = FeatureExtractor::new(&run, &recipe, checkpoint)?;
        let InputShape::Image { channels, height, width } = network.shape else {
            return Err(Error::invalid(format!(
                "{}: the run was trained on features, not on images",
                path.display()
            )));
        };
        let mut identity = Identity::from([
            ("model", path.file_name().map_or("run".into(), |name| name.to_string_lossy().into())),
            ("model_blake3", hash_file(&network.weights_file)?),
            ("runtime", "aleator".to_string()),
        ]);
        identity.extend(checkpoint.map(|step| ("checkpoint", step.to_string())));
        let spec = InputSpec {
            layout: Layout::ChannelsFirst,
            channels,
            height: Some(height),
            width: Some(width),
            batch: None,
        };
        Ok(Self { network, spec, identity, framing: recipe.data.framing })
    }
}

impl Extractor for TrainedNetwork {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn input(&self) -> InputSpec {
        self.spec
    }

    fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
        Ok(self.network.extract(images.values.to_vec()))
    }
}
