//! From a recipe's words to what the other crates take.

use aleator_data::InputShape;
use aleator_kernels::Temperature;
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
            network: image_network(*network),
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
        noise: noise(head.noise),
        link: link(head.link),
        temperature: temperature(head.temperature),
        diag_scale: match head.diag_scale {
            recipe::DiagScale::Affine => model::DiagScale::Affine,
            recipe::DiagScale::Softplus => model::DiagScale::Softplus,
        },
        samples: head.samples,
        draws: draws(head.draws),
        seed,
    };
    model::ClassifierConfig { backbone, output, frozen: recipe.network.frozen }
}

fn image_network(network: recipe::ImageNetwork) -> model::ImageNetwork {
    use recipe::ImageNetwork as Named;
    match network {
        Named::ResNet18 => model::ImageNetwork::ResNet18,
        Named::ResNet34 => model::ImageNetwork::ResNet34,
        Named::ResNet50 => model::ImageNetwork::ResNet50,
        Named::ResNet101 => model::ImageNetwork::ResNet101,
        Named::ResNet152 => model::ImageNetwork::ResNet152,
        Named::ResNet20 => model::ImageNetwork::ResNet20,
        Named::ResNet56 => model::ImageNetwork::ResNet56,
        Named::WideResNet28x10 => model::ImageNetwork::WideResNet28x10,
        Named::WideResNet28x2 => model::ImageNetwork::WideResNet28x2,
        Named::InceptionResNetV2 => model::ImageNetwork::InceptionResNetV2,
        Named::EfficientNetLite0 => model::ImageNetwork::EfficientNetLite0,
    }
}

fn noise(noise: recipe::Noise) -> model::Noise {
    match noise {
        recipe::Noise::None => model::Noise::None,
        recipe::Noise::Diagonal => model::Noise::Diagonal,
        recipe::Noise::LowRank { rank } => model::Noise::LowRank { rank },
        recipe::Noise::SharedLowRank { rank } => model::Noise::SharedLowRank { rank },
    }
}

/// The model's word for a link.
pub fn link(link: recipe::Link) -> model::Link {
    match link {
        recipe::Link::Softmax => model::Link::Softmax,
        recipe::Link::Sigmoid => model::Link::Sigmoid,
    }
}

/// The model's word for a way to draw.
pub fn draws(draws: recipe::Draws) -> model::Draws {
    match draws {
        recipe::Draws::Independent => model::Draws::Independent,
        recipe::Draws::Antithetic => model::Draws::Antithetic,
        recipe::Draws::Sobol => model::Draws::Sobol,
    }
}

fn temperature(temperature: recipe::HeadTemperature) -> model::HeadTemperature {
    let checked = |value: f32| {
        Temperature::try_from(value)
            .unwrap_or_else(|error| panic!("checked by the recipe: {error}"))
    };
    match temperature {
        recipe::HeadTemperature::Fixed(value) => model::HeadTemperature::Fixed(checked(value)),
        recipe::HeadTemperature::Learned { low, high } => {
            model::HeadTemperature::Learned { low: checked(low), high: checked(high) }
        }
    }
}
