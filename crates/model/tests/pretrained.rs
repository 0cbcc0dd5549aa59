//! Networks from files: golden features by other implementations, and files that do not fit.

use std::path::{Path, PathBuf};

use crate::support::{assert_close, config, values};
use aleator_model::params;
use aleator_model::{
    BackboneConfig, Classifier, ClassifierConfig, HetLinearConfig, ImageNetwork, Link, Noise,
    NormConfig, WeightsError, load_network, published_tensors, recognise_network,
};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, TensorView};

/// `units`, `weight` and `images` of tests/golden/formula.py.
fn units(name: &str, count: usize) -> Vec<f64> {
    let hash = |seed: u32, byte: u8| (seed ^ u32::from(byte)).wrapping_mul(16_777_619);
    let seed = name.bytes().fold(2_166_136_261, hash);
    let unit = |index: usize| {
        let mut word = (index as u32).wrapping_mul(2_654_435_761).wrapping_add(seed);
        for (shift, factor) in [(16, 2_246_822_507), (13, 3_266_489_909)] {
            word = (word ^ (word >> shift)).wrapping_mul(factor);
        }
        f64::from((word ^ (word >> 16)) >> 8) / f64::from(1 << 23) - 1.0
    };
    (0..count).map(unit).collect()
}

fn weight(key: &str, shape: &[usize]) -> Vec<f32> {
    let fan_in: usize = shape.iter().skip(1).product();
    let value = |unit: f64| match key {
        _ if shape.len() == 4 => unit * (6.0 / fan_in as f64).sqrt(),
        _ if key.ends_with("weight") => 1.0 + 0.2 * unit,
        _ if key.ends_with("running_var") => 1.0 + 0.5 * unit,
        _ => 0.2 * unit,
    };
    units(key, shape.iter().product()).into_iter().map(|unit| value(unit) as f32).collect()
}

fn images(batch: usize, height: usize, width: usize) -> Tensor<2> {
    let values: Vec<f32> =
        units("images", batch * 3 * height * width).into_iter().map(|unit| unit as f32).collect();
    Tensor::from_data(TensorData::new(values, [batch, 3 * height * width]), &Device::flex())
}

fn model(network: ImageNetwork, epsilon: f32, image: [usize; 3], hidden: &[usize]) -> Classifier {
    let norm = NormConfig { momentum: 0.9, epsilon };
    of(BackboneConfig::Image { network, image, norm, hidden: hidden.to_vec() })
}

fn of(backbone: BackboneConfig) -> Classifier {
    let feature_dim = backbone.feature_dim();
    let output = HetLinearConfig { feature_dim, ..config(Noise::Diagonal, Link::Softmax) };
    ClassifierConfig { backbone, output, frozen: false }.init(&Device::flex())
}

struct Entry {
    key: String,
    shape: Vec<usize>,
    kind: Dtype,
    bytes: Vec<u8>,
}

impl Entry {
    fn f32(key: impl Into<String>, shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { key: key.into(), shape: shape.to_vec(), kind: Dtype::F32, bytes }
    }
}

fn write(path: &Path, entries: &[Entry]) {
    let views = entries.iter().map(|Entry { key, shape, kind, bytes }| {
        (key.as_str(), TensorView::new(*kind, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None, path).unwrap();
}

/// A file of weights by the formula.
fn entries(model: &Classifier) -> Vec<Entry> {
    let entry = |(key, shape): (String, Vec<usize>)| {
        let values = weight(&key, &shape);
        Entry::f32(key, &shape, &values)
    };
    published_tensors(model).into_iter().map(entry).collect()
}

fn golden(name: &str) -> Vec<serde_json::Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(case: &serde_json::Value, field: &str) -> usize {
    case[field].as_u64().unwrap() as usize
}

/// Every 16th feature of two images, as the golden file has them.
fn assert_features(model: &Classifier, case: &serde_json::Value) {
    let (height, width) = (number(case, "height"), number(case, "width"));
    let features = model.features(images(2, height, width));
    let [_, columns] = features.dims();
    let rows = case["every_16th"].as_array().unwrap();
    for (found, expected) in values(features).chunks_exact(columns).zip(rows) {
        let found: Vec<f32> = found.iter().step_by(16).copied().collect();
        let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
        let expected: Vec<f32> = expected.into_iter().map(|value| value as f32).collect();
        // f32 against f64 through up to two hundred layers.
        let size = expected.iter().fold(1.0f32, |size, value| size.max(value.abs()));
        let scaled = |values: &[f32]| values.iter().map(|value| value / size).collect::<Vec<_>>();
        assert_close(&scaled(&found), &scaled(&expected), 2e-5);
    }
}

#[test]
fn efficientnet_lite0_from_a_file_equals_an_independent_implementation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    for case in golden("lite0.json") {
        let image = [3, number(&case, "height"), number(&case, "width")];
        let fresh = model(ImageNetwork::EfficientNetLite0, 1e-3, image, &[]);
        write(&path, &entries(&fresh));
        assert_features(&load_network(fresh, &path).unwrap(), &case);
    }
}

#[test]
fn a_file_says_which_network_it_is_of() {
    use ImageNetwork as N;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let networks = [
        N::ResNet18,
        N::ResNet34,
        N::ResNet20,
        N::ResNet56,
        N::WideResNet28x2,
        N::EfficientNetLite0,
    ];
    for (network, channels) in networks.into_iter().zip([3, 1].into_iter().cycle()) {
        write(&path, &entries(&model(network, 1e-5, [channels, 32, 32], &[])));
        let found = recognise_network(&path).unwrap();
        assert_eq!((found.network, found.channels), (network, channels));
    }
}

#[test]
fn a_file_that_fits_no_network_is_refused_with_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let refused = |entries: &[Entry], words: &[&str]| {
        write(&path, entries);
        let message = recognise_network(&path).unwrap_err().to_string();
        for word in words.iter().chain(&["weights.safetensors"]) {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    };
    refused(&[Entry::f32("odd.weight", &[2], &[0.0; 2])], &["odd.weight [2]", "aleator embed"]);
    refused(&[], &["no tensor"]);
    refused(&[Entry::f32("network.Mlp.layers.0.bias", &[1], &[0.0])], &["aleator transfer"]);
    // One block fewer than ResNet-20.
    let mut short = entries(&model(ImageNetwork::ResNet20, 1e-5, [3, 32, 32], &[]));
    short.retain(|entry| !entry.key.starts_with("stages.2.blocks.2."));
    refused(&short, &["basic blocks [3, 3, 2]", "16 channels"]);
}

#[test]
fn residual_and_inception_networks_equal_the_published_implementations() {
    for case in golden("published.json") {
        let name = case["network"].as_str().unwrap();
        println!("{name}");
        let image = [3, number(&case, "height"), number(&case, "width")];
        let epsilon = case["epsilon"].as_f64().unwrap() as f32;
        let fresh = model(ImageNetwork::from_name(name).unwrap(), epsilon, image, &[]);
        let mut parameters = params::read(&fresh);
        for (parameter, (key, shape)) in parameters.iter_mut().zip(published_tensors(&fresh)) {
            parameter.values = weight(&key, &shape);
        }
        assert_features(&params::write(fresh, &parameters), &case);
    }
}

fn small() -> Classifier {
    model(ImageNetwork::ResNet20, 1e-5, [3, 8, 8], &[5])
}

/// The network's parameters as the file gave them, the head's as they were.
#[test]
fn dense_layers_are_turned_round_and_the_head_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let model = small();
    let mut all = entries(&model);
    for (key, shape) in [
        ("fc.weight", vec![10, 64]),
        ("classifier.bias", vec![10]),
        ("head.fc.weight", vec![2]),
        ("norm.num_batches_tracked", vec![]),
    ] {
        let count = shape.iter().product();
        all.push(Entry::f32(key, &shape, &vec![0.0; count]));
    }
    write(&path, &all);
    let before = params::read(&model);
    let after = params::read(&load_network(model, &path).unwrap());
    for (before, after) in before.iter().zip(&after) {
        if before.name.starts_with("output.") {
            assert_eq!(before, after);
        } else {
            assert_ne!(before.values, after.values, "{}", before.name);
        }
    }
    let hidden = after.iter().find(|it| it.name == "network.Image.hidden.0.weight").unwrap();
    assert_eq!(hidden.shape, [64, 5]);
    let stored = weight("hidden.0.weight", &[5, 64]);
    assert_eq!(hidden.values[3 * 5 + 2], stored[2 * 64 + 3]);
}

#[test]
fn half_precision_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    for kind in [Dtype::F16, Dtype::BF16] {
        let model = small();
        let narrow = |entry: Entry| {
            let values = weight(&entry.key, &entry.shape);
            let bytes = |value: f32| match kind {
                Dtype::F16 => half::f16::from_f32(value).to_le_bytes(),
                _ => half::bf16::from_f32(value).to_le_bytes(),
            };
            Entry { kind, bytes: values.into_iter().flat_map(bytes).collect(), ..entry }
        };
        write(&path, &entries(&model).into_iter().map(narrow).collect::<Vec<_>>());
        let stem = params::read(&load_network(model, &path).unwrap()).swap_remove(0);
        // bf16 has eight bits.
        assert_close(&stem.values, &weight("stem.conv.weight", &[16, 3, 3, 3]), 4e-3);
    }
}

#[test]
fn a_checkpoint_of_ours_gives_its_network_to_another_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let backbone = BackboneConfig::Mlp { inputs: 4, hidden: vec![3] };
    let trained = of(backbone.clone());
    let mut parameters = params::read(&trained);
    parameters.iter_mut().flat_map(|it| &mut it.values).for_each(|value| *value = 0.25);
    let mut all: Vec<Entry> =
        parameters.iter().map(|it| Entry::f32(&it.name, &it.shape, &it.values)).collect();
    all.push(Entry::f32("normalization.center", &[4], &[0.0; 4]));
    write(&path, &all);
    let output = HetLinearConfig {
        feature_dim: 3,
        classes: 9,
        ..config(Noise::LowRank { rank: 2 }, Link::Softmax)
    };
    let fresh = ClassifierConfig { backbone, output, frozen: true }.init(&Device::flex());
    let before = params::read(&fresh);
    for (before, after) in before.iter().zip(params::read(&load_network(fresh, &path).unwrap())) {
        let loaded = after.name.starts_with("network.");
        assert_eq!(after.values.iter().all(|value| *value == 0.25), loaded, "{}", after.name);
        assert!(loaded || *before == after);
    }
    // Tensors of another network are noticed.
    all.push(Entry::f32("network.Mlp.layers.1.bias", &[2], &[0.0; 2]));
    write(&path, &all);
    refused(trained, &path, &["network.Mlp.layers.1.bias", "not part of the network"]);
}

#[track_caller]
fn refused(model: Classifier, path: &Path, words: &[&str]) {
    let message = load_network(model, path).unwrap_err().to_string();
    let file = path.file_name().unwrap().to_str().unwrap();
    for word in words.iter().chain([&file]) {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

#[test]
fn a_file_that_does_not_fit_is_refused_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let with = |change: &dyn Fn(&mut Vec<Entry>), words: &[&str]| {
        let model = small();
        let mut all = entries(&model);
        change(&mut all);
        write(&path, &all);
        refused(model, &path, words);
    };
    let key = "stages.1.blocks.2.conv1.weight";
    let find = |all: &[Entry]| all.iter().position(|it| it.key == key).unwrap();
    with(
        &|all| drop(all.remove(find(all))),
        &[key, "[32, 32, 3, 3]", "missing", "0 others", "docs/weights.md"],
    );
    with(
        &|all| all.iter_mut().for_each(|it| it.key = format!("module.{}", it.key)),
        &["stem.conv.weight", "missing", "`module.hidden.0.bias`"],
    );
    with(
        &|all| all.push(Entry::f32("stem.bias", &[1], &[0.0])),
        &["stem.bias", "not part of the network"],
    );
    with(
        &|all| {
            let at = find(all);
            all[at].shape = vec![32, 32, 9];
        },
        &[key, "[32, 32, 3, 3]", "[32, 32, 9]"],
    );
    with(
        &|all| {
            let at = find(all);
            all[at].kind = Dtype::I32;
        },
        &[key, "I32", "F32, F16 or BF16"],
    );
    with(
        &|all| {
            let at = find(all);
            all[at].bytes[4 * 7..4 * 8].copy_from_slice(&f32::NAN.to_le_bytes());
        },
        &[key, "number 7 is NaN"],
    );
    with(
        &|all| {
            let at = all.iter().position(|it| it.key == "norm.running_var").unwrap();
            all[at].bytes[..4].copy_from_slice(&(-1f32).to_le_bytes());
        },
        &["norm.running_var", "variance 0 is -1"],
    );
    with(
        &|all| {
            let at = all.iter().position(|it| it.key == "hidden.0.weight").unwrap();
            all[at].shape = vec![64, 5];
        },
        &["hidden.0.weight", "[5, 64]", "[64, 5]"],
    );
}

#[test]
fn a_file_that_is_not_safetensors_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.pth");
    refused(small(), &path, &["could not be read"]);
    std::fs::write(&path, b"PK\x03\x04 a pickle in a zip").unwrap();
    refused(small(), &path, &["safetensors", "docs/weights.md"]);
    // A header that promises more than the file holds.
    std::fs::write(&path, [&(1u64 << 62).to_le_bytes()[..], b"{}"].concat()).unwrap();
    let error = load_network(small(), &path).unwrap_err();
    assert!(matches!(error, WeightsError::File { .. }), "{error}");
    refused(of(BackboneConfig::None { inputs: 4 }), &path, &["could not be read"]);
}
