//! The likelihood and the sum of its parts, in one run.

use std::io::Write;

use aleator_model::{Link, Noise};
use anyhow::{Context, Result, ensure};
use clap::Args;
use rayon::prelude::*;

use crate::clock::{minimum, time};
use crate::parts;
use crate::problem::{DrawKind, Model, Shape, value_name};

/// Compare the likelihood with the most that the machine can do.
#[derive(Args)]
pub struct LimitsArgs {
    #[command(flatten)]
    shape: Shape,
}

/// Milliseconds of each part.
struct Times {
    normals: f64,
    exponentials: f64,
    multiply_adds: f64,
    likelihood: f64,
}

impl Times {
    fn sum(&self) -> f64 {
        self.normals + self.exponentials + self.multiply_adds
    }
}

/// Measures with one thread and with `threads`.
pub fn run(args: &LimitsArgs, threads: usize) -> Result<()> {
    let shape = &args.shape;
    let sampled = shape.model.link() == Link::Softmax && shape.model.noise(1) != Noise::None;
    ensure!(
        sampled
            && matches!(shape.draws, DrawKind::Independent)
            && !matches!(shape.model, Model::SoftmaxXl),
        "limits needs a likelihood that draws independent samples; --model {} with --draws {} \
         does not draw them",
        value_name(&shape.model),
        value_name(&shape.draws)
    );
    let bench = shape.prepare()?;
    let likelihood = bench.likelihood();
    let entries = shape.batch * shape.samples * shape.classes;
    let rank = match shape.model.noise(shape.rank) {
        Noise::LowRank { rank } | Noise::SharedLowRank { rank } => rank,
        Noise::None | Noise::Diagonal | Noise::OnFeatures { .. } => 0,
    };
    // Forward: R factors and the diagonal. Backward: R factors, the mean, and the diagonal twice.
    let per_entry = 2 * rank + 4;
    let measure = |threads: usize| -> Result<Times> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let share = entries.div_ceil(threads);
        let all = |work: fn(usize) -> f32, count: usize| {
            let total = || (0..threads).into_par_iter().map(|_| work(count)).sum::<f32>();
            time(|| std::hint::black_box(pool.install(total))).0
        };
        let repetition = || Times {
            normals: all(parts::normals, share),
            exponentials: all(parts::exponentials, share),
            multiply_adds: all(parts::multiply_adds, share * per_entry),
            likelihood: time(|| pool.install(&likelihood)).0,
        };
        let all: Vec<Times> = (0..shape.repetitions).map(|_| repetition()).collect();
        // The repetition with the smallest sum, not the minimum of each part: a short part alone
        // easily escapes interruptions by other programs, and the likelihood does not.
        let parts = all.iter().min_by(|a, b| a.sum().total_cmp(&b.sum()));
        let Times { normals, exponentials, multiply_adds, .. } = *parts.context("no repetition")?;
        let likelihood = minimum(&all.iter().map(|times| times.likelihood).collect::<Vec<_>>());
        Ok(Times { normals, exponentials, multiply_adds, likelihood })
    };
    let (one, many) = (measure(1)?, measure(threads)?);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{entries} entries (batch x samples x classes), rank {rank}; fastest of {}",
        shape.repetitions
    )?;
    writeln!(out, "{:<22}{:>12}{:>12}", "ms", "1 thread", format!("{threads} threads"))?;
    let mut row = |name: &str, value: fn(&Times) -> f64| {
        writeln!(out, "{name:<22}{:>12.2}{:>12.2}", value(&one), value(&many))
    };
    row("normals", |t| t.normals)?;
    row("exponentials", |t| t.exponentials)?;
    row("multiply-adds", |t| t.multiply_adds)?;
    row("sum of the limits", Times::sum)?;
    row("likelihood", |t| t.likelihood)?;
    row("likelihood / sum", |t| t.likelihood / t.sum())?;
    writeln!(
        out,
        "{threads} threads are {:.2} x as fast as one",
        one.likelihood / many.likelihood
    )?;
    Ok(())
}
