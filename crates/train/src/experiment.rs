//! From a recipe to the configuration of a model.

use aleator_data::{DataSet, InputShape};
use aleator_model::{
    BackboneConfig, ClassifierConfig, HetLinearConfig, NormConfig, ParameterCounts,
};
use aleator_run::RunInfo;
use aleator_run::recipe::{Layers, Recipe};

use crate::TrainError;

/// What the data decide of a model.
#[derive(Clone, Copy)]
pub struct Shape {
    /// What one example is.
    pub input: InputShape,
    /// K.
    pub classes: usize,
}

impl Shape {
    pub fn of(data: &DataSet) -> Self {
        Self { input: data.shape, classes: data.class_names.len() }
    }

    /// That of the data of a run, which need not be there.
    pub fn of_run(info: &RunInfo) -> Self {
        let input = match info.input_shape[..] {
            [channels, height, width] => InputShape::Image { channels, height, width },
            _ => InputShape::Features(info.input_shape.iter().product()),
        };
        Self { input, classes: info.class_names.len() }
    }
}

/// How many numbers the model of a recipe learns, for inputs of this shape and this many classes.
/// No weights are made.
///
/// # Errors
/// When the network does not fit the inputs, or they are more than a machine can count.
pub fn count_parameters(
    recipe: &Recipe,
    input: InputShape,
    classes: usize,
) -> Result<ParameterCounts, TrainError> {
    let counts = checked(recipe, Shape { input, classes })?.parameters();
    counts.filter(|counts| counts.total().is_some()).ok_or_else(|| {
        TrainError::Recipe("the model has more parameters than can be counted".to_string())
    })
}

/// The model of a recipe, unless its network does not fit data of this shape.
pub fn checked(recipe: &Recipe, shape: Shape) -> Result<ClassifierConfig, TrainError> {
    let of_images = matches!(recipe.network.layers, Layers::Conv { .. } | Layers::Image { .. });
    if of_images && matches!(shape.input, InputShape::Features(_)) {
        return Err(TrainError::Recipe(format!(
            "the network of the recipe needs images, and the data are {}; use network.kind = \
             \"none\" or \"mlp\"",
            shape.input
        )));
    }
    let model = classifier(recipe, 0, shape);
    let refuse = |message| TrainError::Recipe(format!("network.kind: {message}"));
    model.backbone.check().map_err(refuse)?;
    Ok(model)
}

/// The model of a recipe, for data of this shape.
pub fn classifier(recipe: &Recipe, seed: u64, shape: Shape) -> ClassifierConfig {
    let inputs = shape.input.len();
    let image = match shape.input {
        InputShape::Image { channels, height, width } => Some([channels, height, width]),
        InputShape::Features(_) => None,
    };
    let backbone = match (&recipe.network.layers, image) {
        (Layers::Mlp { hidden }, _) => BackboneConfig::Mlp { inputs, hidden: hidden.clone() },
        (Layers::Conv { channels }, Some(image)) => {
            BackboneConfig::Conv { image, channels: channels.clone() }
        }
        (Layers::Image { network, norm_momentum, norm_epsilon, hidden }, Some(image)) => {
            let (momentum, epsilon) = (*norm_momentum as f32, *norm_epsilon as f32);
            let norm = NormConfig { momentum, epsilon };
            BackboneConfig::Image { network: *network, image, norm, hidden: hidden.clone() }
        }
        (Layers::None, _) | (_, None) => BackboneConfig::None { inputs },
    };
    let head = &recipe.head;
    let output = HetLinearConfig {
        feature_dim: backbone.feature_dim(),
        classes: shape.classes,
        noise: head.noise,
        link: head.link,
        likelihood: head.likelihood,
        temperature: head.temperature,
        diag_scale: head.diag_scale,
        samples: head.samples,
        draws: head.draws,
        seed,
    };
    ClassifierConfig { backbone, output, frozen: recipe.network.frozen }
}
