//! The `aleator` program: parse, call once.

mod bench;
mod demo;
mod memory;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Train classifiers on labels that are partly wrong.
#[derive(Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "\
Aleator trains classifiers on labels that are partly wrong.

It puts a multivariate Normal on the utilities of the classes, with a mean and a low-rank \
covariance that depend on the input, in place of the last dense layer.";

const AFTER_HELP: &str = "\
Examples:
  aleator demo                         see the likelihood at work, in a few seconds
  aleator bench head --classes 1000    time a training step of the head
  aleator bench limits                 how far the likelihood is from what the machine can do";

#[derive(Subcommand)]
enum Command {
    /// Draw noise, compare exact with sampled probabilities, and time the likelihood
    Demo(demo::DemoArgs),
    /// Measure speed and memory
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(bench) => bench::run(&bench),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The reader of our output has seen enough, as with `aleator … | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
