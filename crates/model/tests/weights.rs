//! Weights on disk, and those of the reference layers.

use crate::support::{assert_close, config, matrix, noise, numbers, tau, values};
use aleator_model::{
    Array, DenseArrays, HeadConfig, HeadTemperature, HetLinearConfig, Link, Noise, ReferenceLayer,
    WeightsError,
};
use burn::module::Module;
use burn::tensor::Device;

const ALL: [Noise; 5] = [
    Noise::None,
    Noise::Diagonal,
    Noise::LowRank { rank: 2 },
    Noise::SharedLowRank { rank: 2 },
    Noise::OnFeatures { rank: 2 },
];

#[test]
fn saved_weights_load_to_the_same_logits_under_stable_keys() {
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    for (kind, keys) in ALL.into_iter().zip([
        vec!["head.mean.bias", "head.mean.weight"],
        vec![
            "head.diag_scale.bias",
            "head.diag_scale.weight",
            "head.mean.bias",
            "head.mean.weight",
        ],
        vec![
            "head.diag_scale.bias",
            "head.diag_scale.weight",
            "head.loadings.bias",
            "head.loadings.weight",
            "head.mean.bias",
            "head.mean.weight",
        ],
        vec![
            "head.diag_scale.bias",
            "head.diag_scale.weight",
            "head.loading_scale.bias",
            "head.loading_scale.weight",
            "head.mean.bias",
            "head.mean.weight",
            "head.shared_loadings",
        ],
        vec![
            "head.diag_scale.bias",
            "head.diag_scale.weight",
            "head.loading_scale.bias",
            "head.loading_scale.weight",
            "head.mean.bias",
            "head.mean.weight",
            "head.shared_loadings",
        ],
    ]) {
        let config = config(kind, Link::Softmax);
        let layer = config.init(&device);
        let path = folder.path().join("weights.safetensors");
        layer.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
        let mut found: Vec<&str> = header.as_object().unwrap().keys().map(String::as_str).collect();
        found.retain(|key| *key != "__metadata__");
        found.sort_unstable();
        assert_eq!(found, keys);

        let other = HetLinearConfig { seed: 99, ..config }.init(&device);
        let x = matrix(3, 5, 2, &device);
        let noise = noise(3, 32, aleator_model::Draws::Independent);
        let before = values(layer.forward_with(x.clone(), &noise));
        assert_ne!(before, values(other.forward_with(x.clone(), &noise)));
        let loaded = other.load(&path).unwrap();
        assert_eq!(before, values(loaded.forward_with(x, &noise)));
    }
}

#[test]
fn a_learned_temperature_is_saved_with_the_weights() {
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let temperature = HeadTemperature::Learned { low: tau(0.3), high: tau(3.0) };
    let layer =
        HetLinearConfig { temperature, ..config(Noise::Diagonal, Link::Softmax) }.init(&device);
    layer.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("\"head.temperature_logit\""));
    layer.load(&path).unwrap();
    let fixed = config(Noise::Diagonal, Link::Softmax).init(&device);
    fixed.save(&path).unwrap();
    let message = layer.load(&path).unwrap_err().to_string();
    assert!(message.contains("temperature_logit"), "{message}");
}

#[test]
fn a_file_that_does_not_fit_is_refused_by_name() {
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    let small = config(Noise::Diagonal, Link::Softmax);
    small.init(&device).save(&path).unwrap();
    let wide = HetLinearConfig { classes: 7, ..small.clone() }.init(&device);
    let message = wide.load(&path).unwrap_err().to_string();
    assert!(message.contains("weights.safetensors") && message.contains("mean"), "{message}");
    let full = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let message = full.load(&path).unwrap_err().to_string();
    assert!(message.contains("loadings"), "{message}");

    std::fs::write(&path, b"not a safetensors file").unwrap();
    assert!(matches!(small.init(&device).load(&path), Err(WeightsError::Load { .. })));
    let nowhere = folder.path().join("no-such-file.safetensors");
    let message = small.init(&device).load(&nowhere).unwrap_err().to_string();
    assert!(message.contains("no-such-file.safetensors"), "{message}");
    let no_folder = folder.path().join("no-such-folder/weights.safetensors");
    assert!(matches!(small.init(&device).save(&no_folder), Err(WeightsError::Save { .. })));
}

fn array(shape: &[usize], seed: u64) -> Array {
    Array { values: numbers(shape.iter().product(), seed), shape: shape.to_vec() }
}

fn dense(inputs: usize, outputs: usize, seed: u64) -> DenseArrays {
    DenseArrays { kernel: array(&[inputs, outputs], seed), bias: array(&[outputs], seed + 1) }
}

fn head_config(noise: Noise) -> HeadConfig {
    let config = config(noise, Link::Softmax);
    HeadConfig {
        feature_dim: 5,
        classes: 4,
        noise,
        temperature: config.temperature,
        diag_scale: config.diag_scale,
        seed: 0,
    }
}

/// W r + b of one row, output `k`.
fn affine(layer: &DenseArrays, row: &[f32], k: usize) -> f32 {
    let outputs = layer.bias.values.len();
    let dot: f32 =
        row.iter().enumerate().map(|(d, x)| x * layer.kernel.values[d * outputs + k]).sum();
    dot + layer.bias.values[k]
}

/// Arrays of the reference layers' shapes give the latent that those layers compute.
#[test]
fn reference_weights_give_the_reference_latent() {
    let device = Device::flex();
    let x = matrix(3, 5, 2, &device);
    let rows = values(x.clone());
    let row = &rows[5..10];
    let reference = ReferenceLayer {
        loc: dense(5, 4, 10),
        diag: Some(dense(5, 4, 20)),
        scale: Some(dense(5, 8, 30)),
        shared: None,
    };
    let noise = Noise::LowRank { rank: 2 };
    let latent = reference.import(&head_config(noise), &device).unwrap().forward(x.clone());
    let mean: Vec<f32> = (0..4).map(|k| affine(&reference.loc, row, k)).collect();
    assert_close(&values(latent.mean.clone())[4..8], &mean, 1e-5);
    let scale = reference.scale.as_ref().unwrap();
    let diag = reference.diag.as_ref().unwrap();
    let loading = |k: usize, r: usize| affine(scale, row, k * 2 + r); // reshaped to [K, R]
    let softplus = |x: f32| (1.0 + x.exp()).ln() + 1e-3;
    let sigma: Vec<f32> = (0..16)
        .map(|at| {
            let (i, j) = (at / 4, at % 4);
            let low = loading(i, 0) * loading(j, 0) + loading(i, 1) * loading(j, 1);
            low + if i == j { softplus(affine(diag, row, i)).powi(2) } else { 0.0 }
        })
        .collect();
    assert_close(&values(latent.covariance(1)), &sigma, 1e-4);
}

/// Deviation D3: the reference's shared loadings have a bias, which moves the mean by v(x) ⊙ b.
#[test]
fn the_bias_of_shared_loadings_moves_to_the_mean() {
    let device = Device::flex();
    let x = matrix(3, 5, 2, &device);
    let rows = values(x.clone());
    let row = &rows[10..15];
    let reference = ReferenceLayer {
        loc: dense(5, 4, 10),
        diag: Some(dense(5, 4, 20)),
        scale: Some(dense(5, 4, 30)),
        shared: Some(dense(2, 4, 40)),
    };
    let noise = Noise::SharedLowRank { rank: 2 };
    let latent = reference.import(&head_config(noise), &device).unwrap().forward(x);
    let scale = reference.scale.as_ref().unwrap();
    let shared = reference.shared.as_ref().unwrap();
    let mean: Vec<f32> = (0..4)
        .map(|k| affine(&reference.loc, row, k) + affine(scale, row, k) * shared.bias.values[k])
        .collect();
    assert_close(&values(latent.mean.clone())[8..12], &mean, 1e-5);
    let loading = |k: usize, r: usize| affine(scale, row, k) * shared.kernel.values[r * 4 + k];
    let expected = loading(0, 0) * loading(3, 0) + loading(0, 1) * loading(3, 1);
    assert_close(&values(latent.covariance(2))[3..4], &[expected], 1e-5);
}

/// Deviation D6: v(x) has K entries; the paper's own count for ImageNet-21k, 44,756,307 parameters
/// of W_v and b_v, is that of K = 21,843 and D = 2,048.
#[test]
fn the_scale_of_shared_loadings_has_one_entry_for_each_class() {
    let (features, classes) = (2048, 21_843);
    assert_eq!(features * classes + classes, 44_756_307);
    let device = Device::flex();
    let layer = config(Noise::SharedLowRank { rank: 2 }, Link::Softmax).init(&device);
    // Three dense layers of 5 × 4 + 4, and 4 × 2 shared loadings.
    assert_eq!(layer.num_params(), 3 * 24 + 8);
}

/// Deviation D12: the weights that a layer starts from depend on its seed alone, and lie within
/// ±1/√D.
#[test]
fn initial_weights_repeat_and_have_the_spread_of_a_linear_layer() {
    let device = Device::flex();
    let weights = |seed| {
        let config = HetLinearConfig { seed, ..config(Noise::Diagonal, Link::Softmax) };
        values(config.init(&device).forward(matrix(3, 5, 2, &device)))
    };
    assert_eq!(weights(1), weights(1));
    assert_ne!(weights(1), weights(2));
    let dense = aleator_model::Dense::init(400, 300, 5, &device);
    let values = values(dense.weight.val());
    let bound = 1.0 / (400f32).sqrt();
    assert!(values.iter().all(|w| w.abs() <= bound));
    let variance = values.iter().map(|w| w * w).sum::<f32>() / values.len() as f32;
    // A uniform's variance is bound²/3; 120,000 draws are within 2 % of it.
    assert!((variance * 3.0 / (bound * bound) - 1.0).abs() < 0.02);
}

#[test]
fn reference_arrays_of_a_wrong_shape_or_missing_are_refused_by_name() {
    let device = Device::flex();
    let reference = ReferenceLayer { loc: dense(5, 3, 1), diag: None, scale: None, shared: None };
    let message = reference.import(&head_config(Noise::None), &device).unwrap_err().to_string();
    assert!(
        message.contains("`loc_layer`") && message.contains("[5, 4]") && message.contains("[5, 3]"),
        "{message}"
    );
    let reference = ReferenceLayer { loc: dense(5, 4, 1), diag: None, scale: None, shared: None };
    for (noise, layer) in [
        (Noise::Diagonal, "`scale_layer`"),
        (Noise::LowRank { rank: 2 }, "`diag_layer`"),
        (Noise::SharedLowRank { rank: 2 }, "`diag_layer`"),
    ] {
        let message = reference.import(&head_config(noise), &device).unwrap_err().to_string();
        assert!(message.contains(layer), "{message}");
    }
    let reference = ReferenceLayer { diag: Some(dense(5, 4, 2)), ..reference };
    let noise = Noise::SharedLowRank { rank: 2 };
    let message = reference.import(&head_config(noise), &device).unwrap_err().to_string();
    assert!(message.contains("`scale_layer_heteroscedastic`"), "{message}");
}

/// The reference's diagonal layer calls the layer of d(x) `scale_layer`.
#[test]
fn the_scale_layer_of_diagonal_noise_is_taken_under_its_own_name() {
    let device = Device::flex();
    let x = matrix(3, 5, 2, &device);
    let scale = dense(5, 4, 20);
    let named_diag = ReferenceLayer {
        loc: dense(5, 4, 10),
        diag: Some(scale.clone()),
        scale: None,
        shared: None,
    };
    let named_scale = ReferenceLayer { diag: None, scale: Some(scale), ..named_diag.clone() };
    let covariance = |reference: &ReferenceLayer| {
        let head = reference.import(&head_config(Noise::Diagonal), &device).unwrap();
        values(head.forward(x.clone()).covariance(1))
    };
    assert_eq!(covariance(&named_scale), covariance(&named_diag));
}

/// Deviation D24: with two classes the reference has one utility u and p(class 1) = E sigmoid(u/τ),
/// which is the softmax of the utilities (0, u).
#[test]
fn a_reference_layer_of_two_classes_becomes_the_second_of_two_utilities() {
    let device = Device::flex();
    let x = matrix(3, 5, 2, &device);
    let rows = values(x.clone());
    let reference = ReferenceLayer {
        loc: dense(5, 1, 10),
        diag: None,
        scale: Some(dense(5, 1, 20)),
        shared: None,
    };
    let config = HeadConfig { classes: 2, ..head_config(Noise::Diagonal) };
    let latent = reference.import(&config, &device).unwrap().forward(x);
    let scale = reference.scale.as_ref().unwrap();
    let mean = values(latent.mean.clone());
    for (at, row) in rows.chunks(5).enumerate() {
        assert_close(&mean[2 * at..2 * at + 2], &[0.0, affine(&reference.loc, row, 0)], 1e-5);
        let deviation = (1.0 + affine(scale, row, 0).exp()).ln() + 1e-3;
        // Softplus leaves class 0 the smallest scale, 10⁻³.
        let expected = [1e-6, 0.0, 0.0, deviation * deviation];
        assert_close(&values(latent.covariance(at)), &expected, 1e-5);
    }
    // Factors need more than two classes in the reference, so one output is no layer of theirs.
    let factors = HeadConfig { noise: Noise::LowRank { rank: 2 }, ..config };
    let message = reference.import(&factors, &device).unwrap_err().to_string();
    assert!(message.contains("`loc_layer` must be [5, 2]"), "{message}");
}
