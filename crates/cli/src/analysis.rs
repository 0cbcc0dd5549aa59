//! `aleator analyse`: the learned noise of a run.

mod findings;
mod print;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use aleator_report::covariance::{
    Best, Covariances, ExampleTies, Measure, Ranked, Step, write_cases, write_pairs, write_ranks,
    write_ties,
};
use aleator_run::{GroupFile, RunDir, RunTree, Split, write_file};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::progress::Counter;
use findings::{Findings, Strongest};

/// Arguments of `aleator analyse`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct AnalyseArgs {
    /// An evaluated run with a noise model
    run: PathBuf,
    /// Which examples [default: test, or validation without a test split]
    #[arg(long)]
    split: Option<HeldOut>,
    /// Compare with a run on the same data, usually one with noise "none": does the noise tie its
    /// mistakes to the right class?
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// How to rank the classes of an example
    #[arg(long, default_value = "raw")]
    by: By,
    /// Rows of each table, and classes per example
    #[arg(long, default_value = "10", value_name = "N", value_parser = row_count)]
    top: usize,
    /// Write pairs.csv, examples.csv, against.csv, ranks.csv and analysis.json here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print analysis.json instead of tables
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
The noise of two classes is tied if annotators confuse them. A negative covariance marks \
substitutes: where one class gains, the other loses. A positive one marks classes that occur \
together or look alike, and gain together at the expense of others.

Each pair has three numbers. The covariance is the average of Σ(x), as in the paper; under the \
softmax labels do not determine it, because noise that all classes share changes nothing. The likelihood \
depends on it through the centred covariance, in units of τ². Flips say how often the second \
class overtakes the first where the first one leads. docs/analysis.md explains all of them.

Examples:
  aleator analyse run                           pairs of classes, and the most tied examples
  aleator analyse run --against plain           the mistakes of a run without a noise model
  aleator analyse run --by centred --top 30 --out findings
  aleator analyse run --json | jq .pairs.by_centred_covariance";

/// Most rows of a table.
const MOST_ROWS: usize = 10_000;

fn row_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MOST_ROWS) => Ok(count),
        _ => Err(format!("must be a whole number from 1 to {MOST_ROWS}")),
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HeldOut {
    /// The examples that chose the weights
    Validation,
    /// The examples that were only measured
    Test,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The covariance Σ(x), as in the paper
    Raw,
    /// The centred covariance, on which the likelihood depends
    Centred,
    /// The correlation of the centred utilities
    Correlation,
}

/// `aleator analyse`.
pub fn analyse(args: &AnalyseArgs) -> Result<()> {
    let run = open_run(&args.run)?;
    let other = args.against.as_deref().map(open_run).transpose()?;
    if let Some(out) = &args.out {
        check_out(out)?;
    }
    let split = match args.split {
        Some(HeldOut::Test) => Split::Test,
        Some(HeldOut::Validation) => Split::Validation,
        None if run.info().examples.test > 0 => Split::Test,
        None => Split::Validation,
    };
    let findings = find(args, &run, other.as_ref(), split)?;
    if let Some(out) = &args.out {
        write(out, &findings)?;
    }
    if args.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&findings.json())?)?;
    } else {
        let mut text = print::Printer::new(io::stdout().is_terminal());
        text.findings(&findings);
        io::stdout().write_all(text.text().as_bytes())?;
        if let Some(out) = &args.out {
            writeln!(io::stdout(), "\nwritten to {}", out.display())?;
        }
    }
    Ok(())
}

fn open_run(dir: &Path) -> Result<RunDir> {
    match RunTree::open(dir)? {
        Some(RunTree::Group(group)) => {
            let member = group.members.first().map_or("seed-0", |member| &member.name);
            bail!(
                "{} is a directory of several runs: name one of them, such as {}",
                dir.display(),
                dir.join(member).display()
            );
        }
        Some(RunTree::Run(run)) => Ok(run),
        _ => Ok(RunDir::open(dir)?),
    }
}

/// Computes everything; the ties of all examples are written directly to their file.
fn find(
    args: &AnalyseArgs,
    run: &RunDir,
    other: Option<&RunDir>,
    split: Split,
) -> Result<Findings> {
    let measure = match args.by {
        By::Raw => Measure::Raw,
        By::Centred => Measure::Centred,
        By::Correlation => Measure::Correlation,
    };
    let mut covariances = Covariances::open(run, split)?;
    let mut watch = Watch { quiet: args.quiet, counter: None };
    let mut observer = |step: Step| watch.show(step);
    let predicted = covariances.predicted(&mut observer)?;
    let comparison = other
        .map(|other| covariances.against(&predicted, other, measure, &mut observer))
        .transpose()?;
    let pairs = covariances.top_pairs(args.top, &mut observer)?;
    let mut best = Best::new(args.top);
    let mut keep = |example: &ExampleTies| {
        if let Some(tie) = example.ties.first() {
            let size = tie.value(measure).abs();
            let predicted = example.predicted;
            best.offer(
                size,
                Ranked { key: example.row, value: Strongest { predicted, tie: *tie } },
            );
        }
    };
    let examples = covariances.examples().to_vec();
    let names = run.info().class_names.clone();
    match &args.out {
        None => covariances.ties(&predicted, measure, 1, &mut observer, &mut |example| {
            keep(&example);
            Ok(())
        })?,
        Some(out) => {
            fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
            write_ties(&out.join(EXAMPLES), &examples, &names, |add| {
                covariances.ties(&predicted, measure, args.top, &mut observer, &mut |example| {
                    keep(&example);
                    Ok(add(&example)?)
                })
            })?;
        }
    }
    watch.finish();
    Ok(Findings {
        dir: run.path().to_path_buf(),
        other: other.map(|other| (other.path().to_path_buf(), other.info().noise)),
        info: run.info().clone(),
        split,
        temperature: covariances.temperature(),
        measure,
        top: args.top,
        pairs,
        strongest: best.into_sorted(),
        comparison,
        examples,
    })
}

/// Shows a counter for each kind of progress.
struct Watch {
    quiet: bool,
    counter: Option<(&'static str, Counter)>,
}

impl Watch {
    fn show(&mut self, step: Step) {
        match &self.counter {
            Some((what, counter)) if *what == step.what => counter.show(step.done, step.total),
            _ => {
                self.finish();
                let counter = Counter::new(step.what, self.quiet);
                counter.show(step.done, step.total);
                self.counter = Some((step.what, counter));
            }
        }
    }

    fn finish(&mut self) {
        if let Some((_, counter)) = self.counter.take() {
            counter.finish();
        }
    }
}

const PAIRS: &str = "pairs.csv";
const EXAMPLES: &str = "examples.csv";
const AGAINST: &str = "against.csv";
const RANKS: &str = "ranks.csv";
const ANALYSIS: &str = "analysis.json";

/// Refuses a directory whose files of the same names may be something else: a run has an
/// `examples.csv` too.
fn check_out(out: &Path) -> Result<()> {
    let exists = |name: &&&str| out.join(name).symlink_metadata().is_ok();
    let names = [RunDir::INFO, GroupFile::NAME, PAIRS, EXAMPLES, AGAINST, RANKS];
    match names.iter().find(exists) {
        Some(name) if !exists(&&ANALYSIS) => bail!(
            "{} holds {name}, which does not belong to an analysis: choose another --out, such as {}",
            out.display(),
            out.join("analysis").display()
        ),
        _ => Ok(()),
    }
}

/// Writes all files except that of the examples, which exists; `analysis.json` last.
fn write(out: &Path, findings: &Findings) -> Result<()> {
    let names = &findings.info.class_names;
    write_pairs(&out.join(PAIRS), &findings.pairs, names)?;
    match &findings.comparison {
        Some(comparison) => {
            write_cases(&out.join(AGAINST), &comparison.cases, &findings.examples, names)?;
            write_ranks(&out.join(RANKS), &comparison.ranks)?;
        }
        None => {
            // Files of an earlier analysis with --against.
            for stale in [AGAINST, RANKS].map(|name| out.join(name)) {
                if stale.exists() {
                    fs::remove_file(&stale)
                        .with_context(|| format!("cannot remove {}", stale.display()))?;
                }
            }
        }
    }
    let mut text = serde_json::to_string_pretty(&findings.json())?;
    text.push('\n');
    write_file(&out.join(ANALYSIS), text.as_bytes())?;
    Ok(())
}
