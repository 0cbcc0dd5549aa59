//! Measures speed and memory of the parts of Aleator.
//!
//! | module | contents |
//! |---|---|
//! | `head` | one training step of a head, or its likelihood alone |
//! | `limits`, `parts` | the likelihood compared with the sum of its parts |
//! | `problem`, `batch` | the sizes of a head, as flags; a layer of these sizes with a random batch |
//! | `convolution` | convolutions and their gradients |
//! | `resnet20` | training steps of a ResNet-20, as in `peers/resnet20_torch.py` |
//! | `step` | training steps of the published networks |
//! | `clock`, `memory` | what the operating system reports |
//!
//! The Python programs next to this crate compare the figures with those of PyTorch.

mod batch;
mod clock;
mod convolution;
mod head;
mod limits;
mod memory;
mod parts;
mod problem;
mod resnet20;
mod step;

// Some parts of the likelihood are timed by themselves. They are private to `aleator-kernels`, so
// their source is compiled here a second time.
#[allow(dead_code, reason = "only a part of each file is timed")]
#[path = "../../crates/kernels/src/key.rs"]
mod key;
#[path = "../../crates/kernels/src/normal.rs"]
mod normal;
#[allow(
    dead_code,
    clippy::manual_memcpy,
    clippy::needless_range_loop,
    reason = "only a part is timed; aleator-kernels allows the loops"
)]
#[path = "../../crates/kernels/src/simd.rs"]
mod simd;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Measure speed and memory of the parts of Aleator.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Threads to compute with
    #[arg(long, global = true, default_value_t = 2, value_parser = problem::at_least_one)]
    threads: usize,
}

#[derive(Subcommand)]
enum Benchmark {
    /// One training step: forward, loss and all parameter gradients through the public layer
    Head(head::HeadArgs),
    /// The likelihood and the sum of its parts: normals, exponentials, multiply-adds
    Limits(limits::LimitsArgs),
    /// Convolutions and their gradients, one shape for each line of the input
    Convolution,
    /// Training steps of a ResNet-20 on 32 × 32 images, one batch size for each line of the input
    Resnet20,
    /// Training steps of a published network with the paper's head
    Step(step::StepArgs),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    rayon::ThreadPoolBuilder::new()
        .num_threads(cli.threads)
        .build_global()
        .context("the thread pool could not be started")?;
    match &cli.benchmark {
        Benchmark::Head(args) => head::run(args, cli.threads),
        Benchmark::Limits(args) => limits::run(args, cli.threads),
        Benchmark::Convolution => convolution::run(),
        Benchmark::Resnet20 => resnet20::run(),
        Benchmark::Step(args) => step::run(args),
    }
}
