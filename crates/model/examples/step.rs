//! Time and memory of training steps of a network:
//!
//! ```text
//! cargo run --release -p aleator-model --example step -- resnet-50 224 2 3
//! ```
//!
//! Arguments: network, image size, batch, steps. The head is the paper's, R = 15.

use std::error::Error;
use std::time::Instant;

use aleator_model::{
    BackboneConfig, BatchNoise, ClassifierConfig, DiagScale, Draws, HeadTemperature,
    HetLinearConfig, ImageNetwork, Link, Noise, NoiseKey, NormConfig, Targets, Temperature, params,
};
use burn::tensor::{Device, Distribution, Tensor};

const USAGE: &str = "step NETWORK IMAGE_SIZE BATCH STEPS";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, size, batch, steps] = arguments.as_slice() else {
        return Err(format!("four arguments are needed: {USAGE}").into());
    };
    let network = ImageNetwork::from_name(network).ok_or("no such network")?;
    let (size, batch, steps): (usize, usize, u64) = (size.parse()?, batch.parse()?, steps.parse()?);
    let config = config(network, size);
    config.backbone.check()?;
    let device = Device::flex().autodiff();
    let start = Instant::now();
    let model = config.init(&device);
    println!("fresh weights: {:.2} s", start.elapsed().as_secs_f64());
    let learned = params::learned(&params::read(&model));
    println!("{learned} learned numbers; memory {} MB", peak_memory());
    let inputs = Tensor::<2>::random([batch, 3 * size * size], Distribution::Default, &device);
    for step in 0..steps {
        let noise = BatchNoise {
            key: NoiseKey { seed: 0, step },
            ids: (0..batch as u64).collect(),
            samples: 1000,
            draws: Draws::Antithetic,
        };
        let (classes, weights) = (vec![0; batch], vec![1.0 / batch as f32; batch]);
        let start = Instant::now();
        let forward = model.forward(inputs.clone());
        let outcome = model
            .loss(forward, Targets::Classes(&classes), &weights, &noise, None)
            .map_err(|_| "not finite")?;
        let forward = start.elapsed().as_secs_f64();
        drop(outcome.loss.backward());
        let total = start.elapsed().as_secs_f64();
        println!("step {step}: forward {forward:.3} s, backward {:.3} s", total - forward);
    }
    println!("peak memory {} MB", peak_memory());
    Ok(())
}

fn config(network: ImageNetwork, size: usize) -> ClassifierConfig {
    let backbone = BackboneConfig::Image {
        network,
        image: [3, size, size],
        norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
        hidden: vec![],
    };
    let output = HetLinearConfig {
        feature_dim: backbone.feature_dim(),
        classes: 1000,
        noise: Noise::LowRank { rank: 15 },
        link: Link::Softmax,
        temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).expect("0.9 is positive")),
        diag_scale: DiagScale::Softplus,
        samples: 1000,
        draws: Draws::Antithetic,
        seed: 0,
    };
    ClassifierConfig { backbone, output, frozen: false }
}

/// The most memory that this process has held, in MB; 0 where the system does not tell.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
