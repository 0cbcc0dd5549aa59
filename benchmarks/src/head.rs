//! One training step of a head.

use std::io::Write;

use aleator_model::Link;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::clock::{median, minimum, time};
use crate::memory::{self, in_words};
use crate::problem::{Model, Shape, value_name};

/// The part of the step to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The whole step, dense layers included
    Full,
    /// The kernel of the likelihood alone
    Likelihood,
}

/// Time one training step of a head.
#[derive(Args)]
pub struct HeadArgs {
    #[command(flatten)]
    shape: Shape,
    /// What to time
    #[arg(long, value_enum, default_value = "full")]
    part: Part,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// One measurement, with the keys of the PyTorch programs in `peers/`.
#[derive(Serialize)]
struct Measurement {
    #[serde(rename = "impl")]
    implementation: &'static str,
    variant: String,
    model: String,
    #[serde(rename = "B")]
    batch: usize,
    #[serde(rename = "D")]
    features: usize,
    #[serde(rename = "K")]
    classes: usize,
    #[serde(rename = "R")]
    rank: usize,
    #[serde(rename = "S")]
    samples: usize,
    tau: f32,
    threads: usize,
    median_ms: f64,
    min_ms: f64,
    n: usize,
    first_ms: f64,
    peak_rss_mib: Option<u64>,
    base_rss_mib: Option<u64>,
    loss: f64,
}

pub fn run(args: &HeadArgs, threads: usize) -> Result<()> {
    let shape = &args.shape;
    let bench = shape.prepare()?;
    let base_rss_mib = memory::resident_mib();
    let likelihood;
    let step: &dyn Fn() -> f32 = match args.part {
        Part::Full => &|| bench.step(),
        Part::Likelihood => {
            ensure!(
                !matches!(shape.model, Model::SoftmaxXl),
                "the likelihood of softmax-xl is most of its layer: time --part full"
            );
            likelihood = bench.likelihood();
            &likelihood
        }
    };
    let (first_ms, mut loss) = time(step);
    let mut times = vec![];
    for _ in 0..shape.repetitions {
        let (elapsed, value) = time(step);
        times.push(elapsed);
        loss = value;
    }
    // PyTorch's binary cross-entropy averages over the classes, where ours sums.
    let per = if shape.model.link() == Link::Sigmoid { shape.classes as f64 } else { 1.0 };
    let measurement = Measurement {
        implementation: "aleator",
        variant: format!("{},{}", value_name(&args.part), value_name(&shape.draws)),
        model: value_name(&shape.model),
        batch: shape.batch,
        features: shape.features,
        classes: shape.classes,
        rank: shape.rank,
        samples: shape.samples,
        tau: shape.temperature.get(),
        threads,
        median_ms: round(median(&mut times), 3),
        min_ms: round(minimum(&times), 3),
        n: times.len(),
        first_ms: round(first_ms, 3),
        peak_rss_mib: memory::peak_mib(),
        base_rss_mib,
        loss: round(loss as f64 / per, 5),
    };
    print(&measurement, args.json)
}

fn print(m: &Measurement, json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(m)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{} ({}), batch {}, features {}, classes {}, rank {}, samples {}, {} threads",
        m.model, m.variant, m.batch, m.features, m.classes, m.rank, m.samples, m.threads
    )?;
    writeln!(out, "  median  {:>9.2} ms  of {}", m.median_ms, m.n)?;
    writeln!(out, "  fastest {:>9.2} ms", m.min_ms)?;
    writeln!(out, "  first   {:>9.2} ms", m.first_ms)?;
    writeln!(
        out,
        "  memory  {} peak, {} before",
        in_words(m.peak_rss_mib),
        in_words(m.base_rss_mib)
    )?;
    writeln!(out, "  loss    {}", m.loss)?;
    Ok(())
}

fn round(value: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    (value * factor).round() / factor
}
