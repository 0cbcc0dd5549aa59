//! The `aleator` program: parse, call once.

mod analysis;
mod auditing;
mod backbone;
mod comparison;
mod demo;
mod doctor;
mod embedding;
mod evaluation;
mod interrupt;
mod noise;
mod prediction;
mod progress;
mod recipe_args;
mod recipes;
mod reporting;
mod reviewing;
mod scores;
mod training;
mod transfer;
mod tune;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use progress::tell;

/// Train classifiers on labels that are partly wrong.
#[derive(Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Threads for computing; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = at_least_one)]
    threads: Option<usize>,
}

const LONG_ABOUT: &str = "\
Aleator trains classifiers on labels that are partly wrong.

It puts a multivariate Normal on the utilities of the classes, with a mean and a low-rank \
covariance that depend on the input, in place of the last dense layer. You get a classifier that \
is more accurate and better calibrated, learn which classes your annotators confuse, and find the \
labels that are wrong.";

const AFTER_HELP: &str = "\
Examples:
  aleator demo                                   the whole job on built-in data, in a minute
  aleator train --data embeddings.npy --out run  look at the data, choose a recipe, train
  aleator train features-full --set data.train.features=x.npy --set data.train.labels=y.npy
  aleator resume run                             go on after Ctrl-C, a kill or a power cut
  aleator predict run new.npy                    classes, probabilities, likely confusions
  aleator analyse run                            which classes are taken for each other
  aleator audit --data embeddings.npy --out audit
                                                 which labels are wrong, and what they should be
  aleator review audit                           correct them, in the browser
  aleator report run                             a page to look at, in one file
  aleator embed photos --model net.onnx --out photos.safetensors
                                                 images → embeddings, to train on with --data
  aleator compare none=runs/a full=runs/b        mean ± standard deviation, and what is chance
  aleator recipes                                the presets";

#[derive(Subcommand)]
enum Command {
    /// Train on built-in digits with wrong labels, with and without a noise model
    Demo(demo::DemoArgs),
    /// Train a classifier and evaluate it
    Train(training::TrainArgs),
    /// Go on with a run that was stopped
    Resume(training::ResumeArgs),
    /// Evaluate a trained run again
    Eval(evaluation::EvalArgs),
    /// Say which classes the noise ties together, and in which examples
    Analyse(analysis::AnalyseArgs),
    /// Predict new examples with a trained run
    Predict(prediction::PredictArgs),
    /// Find the labels that are wrong, and what they should be
    Audit(auditing::AuditArgs),
    /// Turn images into embeddings with a pretrained network, to train on
    Embed(embedding::EmbedArgs),
    /// Choose temperature and rank on the validation split
    Tune(tune::TuneArgs),
    /// Run a recipe over all combinations of some keys
    Sweep(training::SweepArgs),
    /// Put runs side by side: mean ± standard deviation, t-tests, tables of the paper
    Compare(comparison::CompareArgs),
    /// Make a page to look at from runs and audits
    Report(reporting::ReportArgs),
    /// Average the probabilities of several runs
    Ensemble(evaluation::EnsembleArgs),
    /// List the presets, or print one
    Recipes(recipes::RecipesArgs),
    /// Carry a trained network over to other tasks
    Transfer(transfer::TransferArgs),
    /// Decide on the labels that an audit suspects, in the browser
    Review(reviewing::ReviewArgs),
    /// Look at data: counts, sizes, duplicates, files that cannot be read
    Doctor(doctor::DoctorArgs),
    /// Make labels wrong on purpose, for experiments
    Noise(noise::NoiseArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<interrupt::Interrupted>() => {
            tell(&error.to_string());
            ExitCode::from(interrupt::EXIT_CODE)
        }
        Err(error) => {
            tell(&format!("error: {}", message(&error)));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("the threads could not be started")?;
    }
    match &cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Train(args) => training::train(args),
        Command::Resume(args) => training::resume(args),
        Command::Eval(args) => evaluation::eval(args),
        Command::Analyse(args) => analysis::analyse(args),
        Command::Predict(args) => prediction::predict(args),
        Command::Audit(args) => auditing::run(args),
        Command::Embed(args) => embedding::embed(args),
        Command::Tune(args) => tune::tune(args),
        Command::Sweep(args) => training::sweep(args),
        Command::Compare(args) => comparison::run(args),
        Command::Report(args) => reporting::report(args),
        Command::Ensemble(args) => evaluation::ensemble(args),
        Command::Recipes(args) => recipes::run(args),
        Command::Transfer(args) => transfer::transfer(args),
        Command::Review(args) => reviewing::review(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Noise(args) => noise::noise(args),
    }
}

/// Parses a whole number of at least 1.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number of at least 1".into()),
    }
}

/// The error and its causes, without those that its own words repeat.
fn message(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// The reader of our output has seen enough, as with `aleator … | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
