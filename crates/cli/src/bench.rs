//! `aleator bench`: speed and memory of the head and its parts.

mod head;
mod limits;

use std::time::Instant;

use aleator::bench::HeadBench;
use aleator::{DiagScale, Draws, HeadTemperature, HetLinearConfig, Link, Noise, Temperature};
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand, ValueEnum};

use crate::memory;

/// What to measure.
#[derive(Subcommand)]
pub enum Bench {
    /// One training step: forward, loss and all parameter gradients through the public layer
    Head(head::HeadArgs),
    /// The likelihood beside the sum of its parts: normals, exponentials, multiply-adds
    Limits(limits::LimitsArgs),
}

/// Threads where none are asked for.
const THREADS: usize = 2;

/// Runs a measurement and prints it.
pub fn run(bench: &Bench, threads: Option<usize>) -> Result<()> {
    let threads = threads.unwrap_or(THREADS);
    match bench {
        Bench::Head(args) => head::run(args, threads),
        Bench::Limits(args) => limits::run(args, threads),
    }
}

/// A head: link and noise model.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Model {
    /// Softmax, V(x) from the features
    SoftmaxFull,
    /// Softmax, an own scale for each class
    SoftmaxDiag,
    /// Softmax, shared loadings (parameter-efficient)
    SoftmaxPe,
    /// Sigmoid, V(x) from the features
    SigmoidFull,
    /// Sigmoid, an own scale for each class
    SigmoidDiag,
    /// Sigmoid, shared loadings (parameter-efficient)
    SigmoidPe,
    /// Plain softmax
    HomoSoftmax,
    /// Plain sigmoid
    HomoSigmoid,
}

impl Model {
    fn link(self) -> Link {
        match self {
            Self::SoftmaxFull | Self::SoftmaxDiag | Self::SoftmaxPe | Self::HomoSoftmax => {
                Link::Softmax
            }
            Self::SigmoidFull | Self::SigmoidDiag | Self::SigmoidPe | Self::HomoSigmoid => {
                Link::Sigmoid
            }
        }
    }

    fn noise(self, rank: usize) -> Noise {
        match self {
            Self::SoftmaxFull | Self::SigmoidFull => Noise::LowRank { rank },
            Self::SoftmaxDiag | Self::SigmoidDiag => Noise::Diagonal,
            Self::SoftmaxPe | Self::SigmoidPe => Noise::SharedLowRank { rank },
            Self::HomoSoftmax | Self::HomoSigmoid => Noise::None,
        }
    }
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DrawKind {
    /// Every sample on its own
    Independent,
    /// Pairs of opposite samples
    Antithetic,
    /// Scrambled Sobol' points
    Sobol,
}

/// The problem's size; the defaults are the paper's ILSVRC12 head at batch 64.
#[derive(Args, Clone, Debug)]
pub struct Shape {
    /// Link and noise model
    #[arg(long, value_enum, default_value = "softmax_full")]
    model: Model,
    /// Examples in a batch
    #[arg(long, default_value_t = 64, value_parser = at_least_one)]
    batch: usize,
    /// Width of the features
    #[arg(long, default_value_t = 2048, value_parser = at_least_one)]
    features: usize,
    /// Number of classes
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    classes: usize,
    /// Rank of the covariance
    #[arg(long, default_value_t = 15, value_parser = at_least_one)]
    rank: usize,
    /// Monte Carlo samples
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    samples: usize,
    /// Temperature of the link
    #[arg(long, default_value = "0.9", value_parser = temperature)]
    temperature: Temperature,
    /// How samples are drawn
    #[arg(long, value_enum, default_value = "independent")]
    draws: DrawKind,
    /// Repetitions to take the median and the minimum of
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    repetitions: usize,
}

/// Reads a number of things of which there must be one.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number of at least 1".into()),
    }
}

fn temperature(text: &str) -> Result<Temperature, String> {
    let value: f32 = text.parse().map_err(|_| "expected a number above 0".to_string())?;
    Temperature::try_from(value).map_err(|error| error.to_string())
}

impl Shape {
    fn config(&self) -> HetLinearConfig {
        HetLinearConfig {
            feature_dim: self.features,
            classes: self.classes,
            noise: self.model.noise(self.rank),
            link: self.model.link(),
            temperature: HeadTemperature::Fixed(self.temperature),
            diag_scale: DiagScale::Softplus,
            samples: self.samples,
            draws: match self.draws {
                DrawKind::Independent => Draws::Independent,
                DrawKind::Antithetic => Draws::Antithetic,
                DrawKind::Sobol => Draws::Sobol,
            },
            seed: 0,
        }
    }

    /// The layer and a batch, or why there is no room for them.
    fn prepare(&self) -> Result<HeadBench> {
        // In floating point, where no product can wrap around.
        let (batch, features, classes, rank) =
            (self.batch as f64, self.features as f64, self.classes as f64, self.rank as f64);
        let (layers, shared) = match self.model.noise(self.rank) {
            Noise::None => (1.0, 0.0),
            Noise::Diagonal => (2.0, 0.0),
            Noise::LowRank { .. } => (2.0 + rank, 0.0),
            Noise::SharedLowRank { .. } => (3.0, classes * rank),
        };
        // Weights and their gradients (of shared loadings, one for each example at work), and
        // what the batch and the threads need of each output.
        let floats = 2.0 * layers * classes * features
            + 3.0 * (layers + rank) * classes * (batch + 16.0)
            + 12.0 * shared
            + batch * features;
        let needed = (4.0 * floats / (1 << 20) as f64).ceil();
        if let Some(available) = memory::available_mib() {
            ensure!(
                needed <= available as f64,
                "--classes {} with --features {}, --rank {} and --batch {} needs about {needed:.0} \
                 MiB, {available} MiB are available: make --classes, --rank, --features or --batch smaller",
                self.classes,
                self.features,
                self.rank,
                self.batch
            );
        }
        ensure!(
            u32::try_from(self.samples).is_ok(),
            "--samples must be below 2^32, found {}",
            self.samples
        );
        Ok(HeadBench::new(&self.config(), self.batch))
    }
}

/// Makes the pool that everything runs in.
fn set_threads(threads: usize) -> Result<()> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .context("the thread pool could not be started")
}

/// Milliseconds of one call, with what it returned.
fn time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 }
}

fn minimum(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The name that a value has on the command line.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}
