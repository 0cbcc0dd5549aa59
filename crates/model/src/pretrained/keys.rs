//! Our parameters' paths → the keys of published weights. `docs/weights.md` shows them as tables.

/// The key of a parameter, from its path in the network.
pub(super) fn published(path: &str) -> String {
    let (layer, field) = path.rsplit_once('.').unwrap_or(("", path));
    let field = match field {
        "scale" => "weight",
        "shift" => "bias",
        "running_variance" => "running_var",
        same => same,
    };
    let (kind, layer) = split_kind(layer);
    let layer = match kind {
        Kind::EfficientNetLite => efficientnet_lite(layer),
        Kind::InceptionResNet => inception_resnet(layer),
        Kind::Plain => layer.to_string(),
    };
    format!("{layer}.{field}")
}

/// Which table applies.
enum Kind {
    EfficientNetLite,
    InceptionResNet,
    /// Layers are called as in our own files, without what stands before them there.
    Plain,
}

fn split_kind(layer: &str) -> (Kind, &str) {
    let plain = ["Image.trunk.Residual.", "Image.", "Mlp.", "Conv."];
    if let Some(rest) = layer.strip_prefix("Image.trunk.EfficientNetLite.") {
        (Kind::EfficientNetLite, rest)
    } else if let Some(rest) = layer.strip_prefix("Image.trunk.InceptionResNet.") {
        (Kind::InceptionResNet, rest)
    } else {
        let rest = plain.iter().find_map(|start| layer.strip_prefix(start));
        (Kind::Plain, rest.unwrap_or(layer))
    }
}

/// The names of `efficientnet_pytorch` and its relatives.
fn efficientnet_lite(layer: &str) -> String {
    match layer.split('.').collect::<Vec<&str>>().as_slice() {
        ["stem", "conv"] => "_conv_stem".to_string(),
        ["stem", "norm"] => "_bn0".to_string(),
        ["last", "conv"] => "_conv_head".to_string(),
        ["last", "norm"] => "_bn1".to_string(),
        ["blocks", block, part, "conv"] => format!("_blocks.{block}._{part}_conv"),
        ["blocks", block, part, "norm"] => {
            let norm = match *part {
                "expand" => "_bn0",
                "depthwise" => "_bn1",
                _ => "_bn2",
            };
            format!("_blocks.{block}.{norm}")
        }
        _ => layer.to_string(),
    }
}

/// The names of `timm`.
fn inception_resnet(layer: &str) -> String {
    const STEM: [&str; 5] = ["conv2d_1a", "conv2d_2a", "conv2d_2b", "conv2d_3b", "conv2d_4a"];
    let parts: Vec<&str> = layer.split('.').collect();
    let part = |name: &str| if name == "norm" { "bn" } else { "conv" }.to_string();
    match parts.as_slice() {
        ["stem", index, rest] => {
            let stem = index.parse().ok().and_then(|index: usize| STEM.get(index));
            format!("{}.{}", stem.unwrap_or(index), part(rest))
        }
        ["last", rest] => format!("conv2d_7b.{}", part(rest)),
        [mixed, "branches", branch, "layers", at, rest] => {
            format!("{mixed}.{}.{}", inception_branch(mixed, branch, at), part(rest))
        }
        [blocks, block, "up"] => format!("{}.conv2d", inception_block(blocks, block)),
        [blocks, block, "branches", branch, "layers", at, rest] => {
            let block = inception_block(blocks, block);
            format!("{block}.{}.{}", inception_branch(blocks, branch, at), part(rest))
        }
        _ => layer.to_string(),
    }
}

fn inception_block(blocks: &str, block: &str) -> String {
    match (blocks, block) {
        ("blocks_35", block) => format!("repeat.{block}"),
        ("blocks_17", block) => format!("repeat_1.{block}"),
        (_, "9") => "block8".to_string(), // the one without rectifier
        (_, block) => format!("repeat_2.{block}"),
    }
}

/// Branches of one convolution have no index, one after a pooling counts it.
fn inception_branch(parent: &str, branch: &str, at: &str) -> String {
    match (parent, branch) {
        ("mixed_7a", _) => format!("branch{branch}.{at}"),
        (_, "0") => "branch0".to_string(),
        ("mixed_5b", "3") => "branch3.1".to_string(),
        _ => format!("branch{branch}.{at}"),
    }
}

#[cfg(test)]
mod tests {
    use super::published;

    #[test]
    fn keys_are_those_of_the_published_files() {
        for (path, key) in [
            ("Image.trunk.Residual.stem.conv.weight", "stem.conv.weight"),
            (
                "Image.trunk.Residual.stages.0.blocks.1.norm1.scale",
                "stages.0.blocks.1.norm1.weight",
            ),
            (
                "Image.trunk.Residual.stages.0.blocks.0.downsample.conv.weight",
                "stages.0.blocks.0.downsample.conv.weight",
            ),
            ("Image.trunk.Residual.norm.running_variance", "norm.running_var"),
            ("Image.hidden.0.weight", "hidden.0.weight"),
            ("Mlp.layers.1.bias", "layers.1.bias"),
            ("Image.trunk.EfficientNetLite.stem.norm.shift", "_bn0.bias"),
            (
                "Image.trunk.EfficientNetLite.blocks.3.project.norm.running_mean",
                "_blocks.3._bn2.running_mean",
            ),
            ("Image.trunk.InceptionResNet.stem.3.conv.weight", "conv2d_3b.conv.weight"),
            (
                "Image.trunk.InceptionResNet.mixed_5b.branches.3.layers.0.norm.shift",
                "mixed_5b.branch3.1.bn.bias",
            ),
            (
                "Image.trunk.InceptionResNet.mixed_7a.branches.0.layers.1.conv.weight",
                "mixed_7a.branch0.1.conv.weight",
            ),
            ("Image.trunk.InceptionResNet.blocks_8.9.up.bias", "block8.conv2d.bias"),
            (
                "Image.trunk.InceptionResNet.blocks_17.4.branches.1.layers.2.norm.running_mean",
                "repeat_1.4.branch1.2.bn.running_mean",
            ),
        ] {
            assert_eq!(published(path), key, "{path}");
        }
    }
}
