//! From a recipe to the configuration of a model.

use aleator_data::InputShape;
use aleator_model as model;
use aleator_run::recipe::{self, Recipe};

/// What the data decide of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What one example is.
    pub input: InputShape,
    /// K.
    pub classes: usize,
}

/// The model of a recipe, for data of this shape.
pub fn classifier(recipe: &Recipe, seed: u64, shape: &Shape) -> model::ClassifierConfig {
    let inputs = shape.input.len();
    let backbone = match (&recipe.network.layers, &shape.input) {
        (recipe::Layers::Mlp { hidden }, _) => {
            model::BackboneConfig::Mlp { inputs, hidden: hidden.clone() }
        }
        (
            recipe::Layers::Conv { channels },
            InputShape::Image { channels: depth, height, width },
        ) => {
            let image = [*depth, *height, *width];
            model::BackboneConfig::Conv { image, channels: channels.clone() }
        }
        (
            recipe::Layers::Image { network, norm_momentum, norm_epsilon, hidden },
            InputShape::Image { channels, height, width },
        ) => model::BackboneConfig::Image {
            network: *network,
            image: [*channels, *height, *width],
            norm: model::NormConfig {
                momentum: *norm_momentum as f32,
                epsilon: *norm_epsilon as f32,
            },
            hidden: hidden.clone(),
        },
        (recipe::Layers::None | recipe::Layers::Conv { .. } | recipe::Layers::Image { .. }, _) => {
            model::BackboneConfig::None { inputs }
        }
    };
    let head = &recipe.head;
    let output = model::HetLinearConfig {
        feature_dim: backbone.feature_dim(),
        classes: shape.classes,
        noise: head.noise,
        link: head.link,
        temperature: head.temperature,
        diag_scale: head.diag_scale,
        samples: head.samples,
        draws: head.draws,
        seed,
    };
    model::ClassifierConfig { backbone, output, frozen: recipe.network.frozen }
}
