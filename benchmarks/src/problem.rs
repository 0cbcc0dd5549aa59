//! The sizes of a head, as flags.

use aleator_model::{
    DiagScale, Draws, HeadTemperature, HetLinearConfig, Likelihood, Link, Noise, Temperature,
};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::batch::HeadBatch;
use crate::memory;

/// A head: link and noise model.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Model {
    /// Softmax, V(x) from the features
    SoftmaxFull,
    /// Softmax, a scale for each class
    SoftmaxDiag,
    /// Softmax, shared loadings (parameter-efficient)
    SoftmaxPe,
    /// Softmax, noise on the features (HET-XL)
    SoftmaxXl,
    /// Sigmoid, V(x) from the features
    SigmoidFull,
    /// Sigmoid, a scale for each class
    SigmoidDiag,
    /// Sigmoid, shared loadings (parameter-efficient)
    SigmoidPe,
    /// Plain softmax
    HomoSoftmax,
    /// Plain sigmoid
    HomoSigmoid,
}

impl Model {
    pub fn link(self) -> Link {
        match self {
            Self::SoftmaxFull
            | Self::SoftmaxDiag
            | Self::SoftmaxPe
            | Self::SoftmaxXl
            | Self::HomoSoftmax => Link::Softmax,
            Self::SigmoidFull | Self::SigmoidDiag | Self::SigmoidPe | Self::HomoSigmoid => {
                Link::Sigmoid
            }
        }
    }

    pub fn noise(self, rank: usize) -> Noise {
        match self {
            Self::SoftmaxFull | Self::SigmoidFull => Noise::LowRank { rank },
            Self::SoftmaxDiag | Self::SigmoidDiag => Noise::Diagonal,
            Self::SoftmaxPe | Self::SigmoidPe => Noise::SharedLowRank { rank },
            Self::SoftmaxXl => Noise::OnFeatures { rank },
            Self::HomoSoftmax | Self::HomoSigmoid => Noise::None,
        }
    }
}

/// How samples are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DrawKind {
    /// Independent samples
    Independent,
    /// Pairs of opposite samples
    Antithetic,
    /// Scrambled Sobol' points
    Sobol,
}

/// The sizes of the problem; the defaults are those of the paper's ILSVRC12 head at batch 64.
#[derive(Args, Clone, Debug)]
pub struct Shape {
    /// Link and noise model
    #[arg(long, value_enum, default_value = "softmax_full")]
    pub model: Model,
    /// Examples in a batch
    #[arg(long, default_value_t = 64, value_parser = at_least_one)]
    pub batch: usize,
    /// Width of the features
    #[arg(long, default_value_t = 2048, value_parser = at_least_one)]
    pub features: usize,
    /// Number of classes
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    pub classes: usize,
    /// Rank of the covariance
    #[arg(long, default_value_t = 15, value_parser = at_least_one)]
    pub rank: usize,
    /// Monte Carlo samples
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    pub samples: usize,
    /// Temperature of the link
    #[arg(long, default_value = "0.9", value_parser = temperature)]
    pub temperature: Temperature,
    /// How samples are drawn
    #[arg(long, value_enum, default_value = "independent")]
    pub draws: DrawKind,
    /// Repetitions; the median and the minimum of them are printed
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    pub repetitions: usize,
}

/// Parses a whole number of at least 1.
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
            likelihood: Likelihood::Marginal,
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

    /// The layer and a batch.
    ///
    /// # Errors
    /// If they do not fit into memory.
    pub fn prepare(&self) -> Result<HeadBatch> {
        // In floating point, where no product can wrap around.
        let (batch, features, classes, rank) =
            (self.batch as f64, self.features as f64, self.classes as f64, self.rank as f64);
        let (layers, shared) = match self.model.noise(self.rank) {
            Noise::None => (1.0, 0.0),
            Noise::Diagonal => (2.0, 0.0),
            Noise::LowRank { .. } => (2.0 + rank, 0.0),
            Noise::SharedLowRank { .. } => (3.0, classes * rank),
            Noise::OnFeatures { .. } => (1.0 + 2.0 * features / classes, features * rank),
        };
        // Weights and their gradients (those of shared loadings once for each thread), and the
        // outputs of the batch with the buffers of the threads.
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
        Ok(HeadBatch::new(&self.config(), self.batch))
    }
}

/// The name of a value on the command line.
pub fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}
