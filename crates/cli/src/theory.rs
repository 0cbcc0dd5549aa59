//! `aleator theory`.

use std::path::PathBuf;

use aleator::report::covariance::MadeUp;
use aleator::report::expansion::{other_variance, own_variance};
use aleator::run::Split;
use aleator::{StudiedNormals, TemperatureSettings, TemperatureStudy, study_temperature};
use anyhow::Result;
use clap::{Args, Subcommand};

use crate::output::{line, table};
use crate::progress::shown;
use crate::values::{HELD_OUT, choice, whole};

/// Arguments of `aleator theory`.
#[derive(Args, Debug)]
pub struct TheoryArgs {
    #[command(subcommand)]
    what: Theory,
}

#[derive(Subcommand, Debug)]
enum Theory {
    /// Temperature as bias against variance: how far probabilities are from the limit τ → 0, and how
    /// much the sampled gradient varies
    Temperature(TemperatureArgs),
    /// The coefficients of the second-order expansion: Figures 3 and 4 of the paper
    Expansion(ExpansionArgs),
}

#[derive(Args, Debug)]
#[command(after_help = TEMPERATURE_HELP)]
struct TemperatureArgs {
    /// An evaluated run with a noise model; without it, Normals are made up
    #[arg(value_name = "RUN", conflicts_with_all = ["classes", "rank", "spread", "scale", "seed"])]
    run: Option<PathBuf>,
    /// Which examples [default: test, or validation without a test split]
    #[arg(long, value_parser = choice(&HELD_OUT), requires = "run")]
    split: Option<Split>,
    /// The temperatures
    #[arg(long, value_delimiter = ',', default_value = "0.05,0.1,0.2,0.5,1,2,5")]
    temperatures: Vec<f64>,
    /// Samples of the gradient [default: those of the run's training, otherwise 100]
    #[arg(long, value_name = "S", value_parser = whole(1..=10_000_000))]
    samples: Option<usize>,
    /// Draws of the noise over which the gradient varies
    #[arg(long, default_value = "32", value_name = "N", value_parser = whole(2..=1_000_000))]
    keys: usize,
    /// Examples: that many of the run, or made up
    #[arg(long, default_value = "100", value_name = "N", value_parser = whole(1..=1_000_000))]
    examples: usize,
    /// Made up: classes
    #[arg(long, default_value = "10", value_name = "K", value_parser = whole(2..=100_000))]
    classes: usize,
    /// Made up: factors of the covariance
    #[arg(long, default_value = "3", value_name = "R", value_parser = whole(0..=1_000))]
    rank: usize,
    /// Made up: standard deviation of the means
    #[arg(long, default_value = "1", value_name = "NUMBER")]
    spread: f64,
    /// Made up: standard deviation of each utility's noise
    #[arg(long, default_value = "1", value_name = "NUMBER")]
    scale: f64,
    /// Made up: the seed
    #[arg(long, default_value = "0")]
    seed: u64,
    /// Write temperature.csv, temperature-bias.svg and temperature-variance.svg here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

const TEMPERATURE_HELP: &str = "\
A label is assumed to be the class of the largest utility, which has no gradient. The likelihood \
replaces that choice by a softmax of temperature τ: the smaller τ, the closer it is to the choice, \
and the more its sampled gradient varies.

Examples:
  aleator theory temperature run                  by the Normals of a run; its τ is marked
  aleator theory temperature --classes 2          made up; with two classes the bias is exact
  aleator theory temperature run --temperatures 0.1,0.3,1 --out figures";

#[derive(Args, Debug)]
struct ExpansionArgs {
    /// An evaluated run with a noise model, whose examples are shown on the figures
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Which examples [default: test, or validation without a test split]
    #[arg(long, value_parser = choice(&HELD_OUT), requires = "run")]
    split: Option<Split>,
    /// About how many of them
    #[arg(long, default_value = "200", value_name = "N", value_parser = whole(1..=100_000))]
    examples: usize,
    /// Write coefficients.csv, coefficients-of-variances.svg and coefficients-of-covariances.svg
    /// here
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `aleator theory`.
pub fn theory(args: &TheoryArgs, quiet: bool) -> Result<()> {
    match &args.what {
        Theory::Temperature(args) => temperature(args, quiet),
        Theory::Expansion(args) => expansion(args),
    }
}

fn temperature(args: &TemperatureArgs, quiet: bool) -> Result<()> {
    let TemperatureArgs { examples, classes, rank, spread, scale, seed, .. } = *args;
    let normals = match &args.run {
        Some(dir) => StudiedNormals::Run { dir: dir.clone(), split: args.split, examples },
        None => StudiedNormals::MadeUp(MadeUp { examples, classes, rank, spread, scale, seed }),
    };
    let (temperatures, samples, keys) = (args.temperatures.clone(), args.samples, args.keys);
    let settings = TemperatureSettings { temperatures, samples, keys };
    let out = args.out.as_deref();
    let study = shown(quiet, |watch| study_temperature(&normals, &settings, out, watch))?;
    if args.json {
        return line(serde_json::to_string_pretty(&study)?);
    }
    print(&study)?;
    match out {
        Some(out) => line(format_args!("\nwritten to {}", out.display())),
        None => Ok(()),
    }
}

fn print(study: &TemperatureStudy) -> Result<()> {
    let TemperatureStudy { classes, examples, samples, keys, .. } = study;
    let how = if study.exact { "exact" } else { "simulated" };
    line(format_args!(
        "{examples} examples, {classes} classes; bias {how}; gradient by μ of {samples} samples, \
         over {keys} draws"
    ))?;
    if let Some(own) = study.own_temperature {
        line(format_args!("the run has τ = {}", own as f32))?;
    }
    let rows: Vec<Vec<String>> = study
        .points
        .iter()
        .map(|point| {
            vec![
                format!("{}", point.temperature as f32),
                format!("{:.4}", point.bias),
                format!("{:.4}", point.largest_bias),
                format!("{:.3e}", point.gradient),
                format!("{:.3e}", point.gradient_variance),
            ]
        })
        .collect();
    let header = ["τ", "bias", "largest", "gradient²", "gradient variance"];
    table(&header, &rows, &[])
}

fn expansion(args: &ExpansionArgs) -> Result<()> {
    let run = args.run.as_deref().map(|run| (run, args.split, args.examples));
    let examples = aleator::draw_coefficients(run, &args.out)?;
    let rows: Vec<Vec<String>> = [0.0, 0.25, 0.5, 0.75, 1.0]
        .map(|s| vec![format!("{s}"), signed(own_variance(s)), signed(other_variance(s))])
        .to_vec();
    table(&["s", "label's variance", "other variance"], &rows, &[])?;
    if examples > 0 {
        line(format_args!("\n{examples} examples of the run are on the figures"))?;
    }
    line(format_args!("\nwritten to {}", args.out.display()))
}

fn signed(value: f64) -> String {
    if value == 0.0 { "0".to_string() } else { format!("{value:+.3}") }
}
