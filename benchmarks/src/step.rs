//! Time and memory of training steps of a published network with the paper's head (R = 15):
//!
//! ```text
//! cargo run --release -p aleator-benchmarks -- step resnet-50 224 2 3
//! ```

use std::io::{Write, stdout};

use aleator_model::{
    BackboneConfig, BatchNoise, ClassifierConfig, DiagScale, Draws, HeadTemperature,
    HetLinearConfig, ImageNetwork, Likelihood, Link, Noise, NoiseKey, NormConfig, Targets,
    Temperature, params,
};
use anyhow::{Context, Result, anyhow};
use burn::tensor::{Device, Distribution, Tensor};
use clap::Args;

use crate::clock::time;
use crate::memory;
use crate::problem::at_least_one;

/// Time training steps of a published network.
#[derive(Args)]
pub struct StepArgs {
    /// The network, such as resnet-50
    network: String,
    /// Height and width of the images
    #[arg(value_parser = at_least_one)]
    image_size: usize,
    /// Images in a batch
    #[arg(value_parser = at_least_one)]
    batch: usize,
    /// Steps to run
    #[arg(value_parser = at_least_one)]
    steps: usize,
}

pub fn run(args: &StepArgs) -> Result<()> {
    let network = ImageNetwork::from_name(&args.network).with_context(|| {
        let names = ImageNetwork::ALL.map(ImageNetwork::name).join(", ");
        format!("unknown network {:?}, expected one of {names}", args.network)
    })?;
    let (size, batch) = (args.image_size, args.batch);
    let config = config(network, size);
    config.backbone.check().map_err(|message| anyhow!(message))?;
    let device = Device::flex().autodiff();
    let mut out = stdout().lock();
    let (initial, model) = time(|| config.init(&device));
    writeln!(out, "initial weights: {initial:.0} ms")?;
    let learned = params::learned(&params::read(&model));
    writeln!(out, "{learned} parameters; memory {}", memory::in_words(memory::peak_mib()))?;
    let inputs = Tensor::<2>::random([batch, 3 * size * size], Distribution::Default, &device);
    for step in 0..args.steps {
        let noise = BatchNoise {
            key: NoiseKey { seed: 0, step: step as u64 },
            ids: (0..batch as u64).collect(),
            samples: 1000,
            draws: Draws::Antithetic,
        };
        let (classes, weights) = (vec![0; batch], vec![1.0 / batch as f32; batch]);
        let (forward, outcome) = time(|| {
            let forward = model.forward(inputs.clone());
            model.loss(forward, Targets::Classes(&classes), &weights, &noise, None)
        });
        let outcome = outcome.map_err(|_| anyhow!("the loss of step {step} is not finite"))?;
        let (backward, _) = time(|| outcome.loss.backward());
        writeln!(out, "step {step}: forward {forward:.0} ms, backward {backward:.0} ms")?;
    }
    writeln!(out, "peak memory {}", memory::in_words(memory::peak_mib()))?;
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
        likelihood: Likelihood::Marginal,
        temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).expect("0.9 is positive")),
        diag_scale: DiagScale::Softplus,
        samples: 1000,
        draws: Draws::Antithetic,
        seed: 0,
    };
    ClassifierConfig { backbone, output, frozen: false }
}
