//! The `aleator` program: parse, call once.

mod analyse;
mod audit;
mod checkpoint_arg;
mod compare;
mod demo;
mod doctor;
mod embed;
mod ensemble;
mod eval;
mod interrupt;
mod noise;
mod output;
mod predict;
mod process;
mod progress;
mod recipe_args;
mod recipes;
mod report;
mod resume;
mod review;
mod scores;
mod sweep;
mod theory;
mod train;
mod transfer;
mod tune;
mod values;

use std::env::args_os;
use std::process::ExitCode;

use aleator::report::table::columns::visible;
use anyhow::Result;
use clap::{Parser, Subcommand};

use progress::tell;
use values::whole;

/// Train classifiers on labels that are partly wrong, and find the labels that are.
#[derive(Parser)]
#[command(name = "aleator", version, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Threads for computing; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = whole(1..=process::MOST_THREADS))]
    threads: Option<usize>,
    /// Show results, warnings and errors only
    #[arg(long, short, global = true)]
    quiet: bool,
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
  aleator resume run                             continue after Ctrl-C, a kill or a power cut
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

/// The exit code of a command line that says something impossible.
const USAGE: u8 = 2;

#[derive(Subcommand)]
enum Command {
    /// Find and correct wrong labels of built-in digits, and show what that gains
    Demo(demo::DemoArgs),
    /// Train a classifier and evaluate it
    Train(train::TrainArgs),
    /// Continue what was stopped
    Resume(resume::ResumeArgs),
    /// Evaluate a trained run again
    Eval(eval::EvalArgs),
    /// Show which classes the noise ties together, and in which examples
    Analyse(analyse::AnalyseArgs),
    /// Predict new examples with a trained run
    Predict(predict::PredictArgs),
    /// Find the labels that are wrong, and what they should be
    Audit(audit::AuditArgs),
    /// Turn images into embeddings with a pretrained network, to train on
    Embed(embed::EmbedArgs),
    /// Choose temperature and rank, each with the settings that suit it, on the validation split
    Tune(tune::TuneArgs),
    /// Run a recipe over all combinations of some keys
    Sweep(sweep::SweepArgs),
    /// Compare runs: mean ± standard deviation, t-tests, tables of the paper
    Compare(compare::CompareArgs),
    /// Write a page with figures from runs and audits
    Report(report::ReportArgs),
    /// Average the probabilities of several runs
    Ensemble(ensemble::EnsembleArgs),
    /// List the presets, or print one
    Recipes(recipes::RecipesArgs),
    /// Train the network of a run on other tasks
    Transfer(transfer::TransferArgs),
    /// Decide on the labels that an audit suspects, in the browser
    Review(review::ReviewArgs),
    /// Look at data: counts, sizes, duplicates, files that cannot be read
    Doctor(doctor::DoctorArgs),
    /// Make labels wrong on purpose, for experiments
    Noise(noise::NoiseArgs),
    /// Temperature as bias against variance; the coefficients of the expansion
    Theory(theory::TheoryArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            // It repeats what was given, which may be the name of any file, and only without
            // colours are the escape sequences in it not ours.
            if args_os().all(|given| visible(&given.to_string_lossy()) == given.to_string_lossy()) {
                error.exit()
            }
            tell(error.render().to_string().trim_end());
            return ExitCode::from(USAGE);
        }
    };
    process::survive_file_size_limit();
    let Ok(result) = process::guarded(|| run(&cli)) else {
        return ExitCode::from(process::PANIC_EXIT_CODE);
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if is_interruption(&error) => {
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
    process::start_threads(cli.threads)?;
    let quiet = cli.quiet;
    match &cli.command {
        Command::Demo(args) => demo::demo(args, quiet),
        Command::Train(args) => train::train(args, quiet),
        Command::Resume(args) => resume::resume(args, quiet),
        Command::Eval(args) => eval::eval(args, quiet),
        Command::Analyse(args) => analyse::analyse(args, quiet),
        Command::Predict(args) => predict::predict(args, quiet),
        Command::Audit(args) => audit::audit(args, quiet),
        Command::Embed(args) => embed::embed(args, quiet),
        Command::Tune(args) => tune::tune(args, quiet),
        Command::Sweep(args) => sweep::sweep(args, quiet),
        Command::Compare(args) => compare::run(args),
        Command::Report(args) => report::report(args, quiet),
        Command::Ensemble(args) => ensemble::ensemble(args),
        Command::Recipes(args) => recipes::run(args),
        Command::Transfer(args) => transfer::transfer(args, quiet),
        Command::Review(args) => review::review(args),
        Command::Doctor(args) => doctor::doctor(args, quiet),
        Command::Noise(args) => noise::noise(args),
        Command::Theory(args) => theory::theory(args, quiet),
    }
}

/// The error and its causes, without those that its own words repeat.
fn message(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

fn is_interruption(error: &anyhow::Error) -> bool {
    error.downcast_ref::<aleator::Error>().is_some_and(aleator::Error::is_interruption)
}

/// Whether stdout was closed early, as by `aleator … | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
