//! `aleator analyse`.

mod pair;
mod print;
mod seeds;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use aleator::report::covariance::Measure;
use aleator::run::Split;
use aleator::{AnalyseSettings, seed_runs};
use anyhow::Result;
use clap::Args;

use crate::output::{line, text};
use crate::progress::shown;
use crate::values::{Choice, HELD_OUT, choice, whole};

/// Arguments of `aleator analyse`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct AnalyseArgs {
    /// An evaluated run with a noise model, or a directory of runs that differ in their seeds only
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// Which examples [default: test, or validation without a test split]
    #[arg(long, value_parser = choice(&HELD_OUT))]
    split: Option<Split>,
    /// Compare with a run on the same data, usually one with noise "none": does the noise tie its
    /// mistakes to the right class?
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Look up two classes, by their names or numbers: their average covariance, and the examples in
    /// which they are tied most
    #[arg(long, num_args = 2, value_names = ["CLASS", "CLASS"],
          conflicts_with_all = ["against", "by", "out"])]
    pair: Option<Vec<String>>,
    /// How to rank the classes of an example, or the pairs over several seeds [default: raw; over
    /// seeds centred, or raw where each class is on or off]
    #[arg(long, value_parser = choice(&MEASURES))]
    by: Option<Measure>,
    /// Rows of each table, and classes per example
    #[arg(long, default_value = "10", value_name = "N", value_parser = whole(1..=MOST_ROWS))]
    top: usize,
    /// Write pairs.csv, examples.csv, against.csv, ranks.csv and analysis.json here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print analysis.json instead of tables
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
The noise of two classes is tied if annotators confuse them. A negative covariance marks \
substitutes: where one class gains, the other loses. A positive one marks classes that occur \
together or look alike, and gain together at the expense of others.

Each pair has three numbers. The covariance is the average of Σ(x), as in the paper; under the \
softmax labels do not determine it, because noise that all classes share changes nothing. The likelihood \
depends on it through the centred covariance, in units of τ². Flips say how often the second \
class overtakes the first where the first one leads. docs/analysis.md explains all of them.

A run learns some covariances by chance. Over several seeds each number has its mean and standard \
deviation, and only pairs whose sign is the same in all runs are called substitutes or \
co-occurring.

Examples:
  aleator analyse run                           pairs of classes, and the most tied examples
  aleator analyse runs/full                     all its seeds: mean ± standard deviation
  aleator analyse run --pair 3 8                two classes, and their most tied examples
  aleator analyse run --against plain           the mistakes of a run without a noise model
  aleator analyse run --by centred --top 30 --out findings
  aleator analyse run --json | jq .pairs.by_centred_covariance";

/// Most rows of a table.
const MOST_ROWS: usize = 10_000;

const MEASURES: [Choice<Measure>; 3] = [
    ("raw", Measure::Raw, "The covariance Σ(x), as in the paper"),
    ("centred", Measure::Centred, "The centred covariance, on which the likelihood depends"),
    ("correlation", Measure::Correlation, "The correlation of the centred utilities"),
];

/// `aleator analyse`.
pub fn analyse(args: &AnalyseArgs, quiet: bool) -> Result<()> {
    let settings = AnalyseSettings {
        split: args.split,
        against: args.against.clone(),
        measure: args.by,
        top: args.top,
        out: args.out.clone(),
    };
    let terminal = io::stdout().is_terminal();
    let runs = seed_runs(&args.run)?;
    if let Some([first, second]) = args.pair.as_deref() {
        let classes = [first.as_str(), second.as_str()];
        let look = |run: &PathBuf| {
            shown(quiet, |watch| aleator::analyse_pair(run, classes, args.split, args.top, watch))
        };
        let found = runs.iter().map(look).collect::<Result<Vec<_>>>()?;
        return pair::print(&found, args.json, terminal);
    }
    let (json, tables) = if let [run] = &runs[..] {
        let findings = shown(quiet, |watch| aleator::analyse(run, &settings, watch))?;
        (findings.json(), print::tables(&findings, terminal))
    } else {
        let findings = shown(quiet, |watch| aleator::analyse_seeds(&runs, &settings, watch))?;
        (findings.json(), seeds::tables(&args.run, &findings, terminal))
    };
    if args.json {
        return line(serde_json::to_string_pretty(&json)?);
    }
    text(tables)?;
    match &args.out {
        Some(out) => line(format_args!("\nwritten to {}", out.display())),
        None => Ok(()),
    }
}
