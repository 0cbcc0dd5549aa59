//! `[network]`.

use std::path::PathBuf;

use crate::recipe::{ImageNetwork, Layers, Network, Normalize};
use crate::recipe_error::RecipeError;
use crate::section::{Field, Section};

#[derive(Clone, Copy)]
enum Kind {
    None,
    Mlp,
    Conv,
    Image(ImageNetwork),
}

pub(super) fn network(section: &Section) -> Result<Network, RecipeError> {
    let normalize = section.required("normalize", "global")?.choice(&[
        ("none", Normalize::None),
        ("global", Normalize::Global),
        ("per-feature", Normalize::PerFeature),
    ])?;
    let layers = layers(section)?;
    let pretrained = section.optional("pretrained");
    let frozen = section.optional("frozen");
    if let (Layers::None, Some(field)) = (&layers, pretrained.as_ref().or(frozen.as_ref())) {
        return Err(field.impossible(format!(
            "{} is for networks with layers, and network.kind is \"none\"; remove it",
            field.key
        )));
    }
    Ok(Network {
        normalize,
        layers,
        pretrained: pretrained.map(|path| path.path().map(PathBuf::from)).transpose()?,
        frozen: frozen.map_or(Ok(false), |frozen| frozen.boolean())?,
    })
}

fn layers(section: &Section) -> Result<Layers, RecipeError> {
    const NORM: [&str; 2] = ["norm_momentum", "norm_epsilon"];
    let field = section.required("kind", "mlp")?;
    let images = ImageNetwork::ALL.map(|network| (network.name(), Kind::Image(network)));
    let small = [("none", Kind::None), ("mlp", Kind::Mlp), ("conv", Kind::Conv)];
    let kind = field.choice(&[&small[..], &images].concat())?;
    section.refuse(
        match kind {
            Kind::None => &["hidden", "channels", NORM[0], NORM[1]][..],
            Kind::Mlp => &["channels", NORM[0], NORM[1]],
            Kind::Conv => &["hidden", NORM[0], NORM[1]],
            Kind::Image(_) => &["channels"],
        },
        &field,
    )?;
    Ok(match kind {
        Kind::None => Layers::None,
        Kind::Mlp => Layers::Mlp { hidden: widths(&section.required("hidden", "[256]")?)? },
        Kind::Conv => Layers::Conv { channels: widths(&section.required("channels", "[32,64]")?)? },
        Kind::Image(network) => Layers::Image {
            network,
            norm_momentum: section.required(NORM[0], "0.9")?.below_one()?,
            norm_epsilon: section.required(NORM[1], "1e-5")?.positive()?,
            hidden: section.optional("hidden").map_or(Ok(vec![]), |field| widths(&field))?,
        },
    })
}

/// Units or channels of each layer.
fn widths(field: &Field) -> Result<Vec<usize>, RecipeError> {
    const MAX_LAYERS: usize = 64;
    const MAX_WIDTH: usize = 1 << 16;
    field.short_list(MAX_LAYERS)?.iter().map(|width| width.size(1, MAX_WIDTH)).collect()
}
