//! Losses and gradients against an independent program: `golden/make_golden.py` (numpy).

use crate::support::{assert_close, named_grads, tau, values};
use aleator_kernels::{Covariance, Latent, NoiseLaw, Sampling, fused};
use aleator_model::{
    Array, BatchNoise, DenseArrays, DiagScale, Draws, HeadConfig, HeadTemperature, HetLinear,
    HetLinearConfig, Labels, Likelihood, Link, Noise, NoiseKey, ReferenceLayer,
};
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde_json::Value;

const KEY: NoiseKey = NoiseKey { seed: 7, step: 3 };
const IDS: [u64; 3] = [11, 5, 8];
const SAMPLES: usize = 7;

fn file(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The numbers of a nested list, row-major.
fn flat(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

fn array(value: &Value) -> Array {
    let mut shape = vec![];
    let mut level = value;
    while let Value::Array(items) = level {
        shape.push(items.len());
        level = &items[0];
    }
    Array { values: flat(value), shape }
}

fn dense(params: &Value, name: &str) -> Option<DenseArrays> {
    let kernel = params.get(format!("{name}_w"))?;
    Some(DenseArrays { kernel: array(kernel), bias: array(&params[format!("{name}_b")]) })
}

/// The layer of a golden case, by way of the import of reference weights.
fn layer(case: &Value, link: Link, device: &Device) -> HetLinear {
    let params = &case["params"];
    let noise = match case["kind"].as_str().unwrap() {
        "diagonal" => Noise::Diagonal,
        "low_rank" => Noise::LowRank { rank: 2 },
        _ => Noise::SharedLowRank { rank: 2 },
    };
    let temperature = HeadTemperature::Fixed(tau(flat(&params["tau"])[0]));
    let head = HeadConfig {
        feature_dim: 5,
        classes: 4,
        noise,
        temperature,
        diag_scale: DiagScale::Softplus,
        seed: 0,
    };
    let shared = params.get("shared").map(|v| {
        let rows = array(v); // [K, R] there, [R, K] in the reference layers
        let kernel =
            (0..2).flat_map(|r| (0..4).map(move |k| (k, r))).map(|(k, r)| rows.values[k * 2 + r]);
        DenseArrays {
            kernel: Array { values: kernel.collect(), shape: vec![2, 4] },
            bias: Array { values: vec![0.0; 4], shape: vec![4] },
        }
    });
    let reference = ReferenceLayer {
        loc: dense(params, "mean").unwrap(),
        diag: dense(params, "diag"),
        scale: dense(params, "load").or(dense(params, "scale")),
        shared,
    };
    let config = HetLinearConfig {
        feature_dim: 5,
        classes: 4,
        noise,
        link,
        likelihood: Likelihood::Marginal,
        temperature,
        diag_scale: DiagScale::Softplus,
        samples: SAMPLES,
        draws: Draws::Independent,
        seed: 0,
    };
    config.init(device).with_head(reference.import(&head, device).unwrap())
}

#[test]
fn the_kernels_still_draw_the_committed_noise() {
    let noise = file("noise.json");
    let ones = vec![1.0; 24];
    let covariance = Covariance::LowRank { diag_scale: &ones[..12], loadings: &ones, rank: 2 };
    let latent = Latent { batch: 3, classes: 4, mean: &ones[..12], covariance };
    let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
    let sampling = Sampling { key: KEY, ids: &IDS, samples: SAMPLES, draws, law };
    for row in 0..3 {
        let drawn = fused::drawn_noise(&latent, &sampling, row);
        // The bits behind the draws are the same everywhere, the last digit may not be.
        assert_close(&drawn.diag_draws, &flat(&noise["eps_k"][row]), 2e-6);
        assert_close(&drawn.factor_draws, &flat(&noise["eps_r"][row]), 2e-6);
    }
}

// Other devices draw other noise of the same law, so this is for the kernels.
#[test]
fn losses_and_gradients_equal_those_of_numpy() {
    let golden = file("golden.json");
    let device = Device::flex().autodiff();
    let tensor = |name: &str, shape: [usize; 2]| {
        Tensor::<2>::from_data(TensorData::new(flat(&golden[name]), shape), &device)
    };
    let features = tensor("features", [3, 5]);
    let classes: Vec<i64> = flat(&golden["labels"]).iter().map(|label| *label as i64).collect();
    let classes = Tensor::<1, Int>::from_data(TensorData::new(classes, [3]), &device);
    let noise =
        BatchNoise { key: KEY, ids: IDS.to_vec(), samples: SAMPLES, draws: Draws::Independent };
    for case in golden["cases"].as_array().unwrap() {
        for (name, link, labels) in [
            ("softmax", Link::Softmax, Labels::Classes(classes.clone())),
            ("sigmoid", Link::Sigmoid, Labels::Dense(tensor("multi_hot", [3, 4]))),
        ] {
            let layer = layer(case, link, &device);
            let loss = layer.loss_with(features.clone(), labels, &noise);
            let expected = &case[name];
            assert_close(&values(loss.clone()), &flat(&expected["loss"]), 2e-6);
            let grads = loss.backward();
            for (key, grad) in named_grads(layer.head(), &grads) {
                let golden_key = match key.as_str() {
                    "mean.weight" => "mean_w",
                    "mean.bias" => "mean_b",
                    "diag_scale.weight" => "diag_w",
                    "diag_scale.bias" => "diag_b",
                    "loadings.weight" => "load_w",
                    "loadings.bias" => "load_b",
                    "loading_scale.weight" => "scale_w",
                    "loading_scale.bias" => "scale_b",
                    "shared_loadings" => "shared",
                    other => panic!("unknown parameter {other}"),
                };
                // f32 against f64, sums of a few dozen terms of about 1.
                assert_close(&grad, &flat(&expected["grads"][golden_key]), 2e-5);
            }
        }
    }
}
