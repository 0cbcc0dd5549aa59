//! `aleator demo`: the whole job on data that ships inside the program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aleator::report::compare::{Labels, Measure, Row, Source, Spec, Test, View, compare_columns};
use aleator::report::confusion::{Confusions, Pair};
use aleator::report::table::Format;
use aleator::run::{Predictions, RunDir, Split};
use aleator::{ReportSettings, TrainedRun, Watch};
use anyhow::{Context, Result};
use clap::Args;

use crate::compare::terminal;
use crate::progress::watched;
use crate::train::print_written;

/// Arguments of `aleator demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Where the runs are written; must not exist [default: aleator-demo, or the first free
    /// name after it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Confusions that are shown.
const SHOWN: usize = 8;

/// `aleator demo`.
pub fn demo(args: &DemoArgs) -> Result<()> {
    let started = Instant::now();
    let out = args.out.clone().unwrap_or_else(free_name);
    writeln!(io::stdout(), "{INTRODUCTION}")?;
    let runs = watched(args.quiet, |watch| aleator::demo(&out, watch))?;
    print(&out, &runs)?;
    let (runs, seconds) = (runs.len(), started.elapsed().as_secs_f64());
    writeln!(
        io::stdout(),
        "{runs} runs in {seconds:.0} s. Next: `aleator train --data PATH --out DIR` on data of your own; `aleator recipes`, `aleator --help`."
    )?;
    Ok(())
}

/// The table of the noise models, what the full one has learned, and the report.
pub fn print(out: &Path, runs: &[TrainedRun]) -> Result<()> {
    table(out)?;
    confusions(runs)?;
    let settings = ReportSettings::inside(out);
    aleator::report(&[out.to_path_buf()], &settings, &mut Watch::silent())?;
    let page = settings.page.display();
    writeln!(io::stdout(), "\nA report of all of it, with the digits: {page}")?;
    print_written(out, runs)
}

const INTRODUCTION: &str = "\
1,797 handwritten digits of 8 × 8 pixels. Labels are made wrong on purpose, harder examples more
often, toward the digits they resemble. Each noise model is trained on the wrong labels with
three seeds, and tested on examples with true labels that it has not seen.
";

fn free_name() -> PathBuf {
    let numbered = (2..).map(|count| PathBuf::from(format!("aleator-demo-{count}")));
    let free = |path: &PathBuf| !path.exists();
    let first = PathBuf::from("aleator-demo");
    std::iter::once(first.clone()).chain(numbered).find(free).unwrap_or(first)
}

/// Mean ± standard deviation over the seeds of each noise model.
fn table(out: &Path) -> Result<()> {
    let rows = Row::read(&[Source { name: None, dir: out.to_path_buf() }])?;
    let spec = |heading: &str, measure, split| Spec {
        heading: heading.to_string(),
        measure,
        view: View { split, labels: Labels::Given, calibrated: false },
    };
    let specs = [
        spec("test accuracy", Measure::Top1, Split::Test),
        spec("test NLL", Measure::Nll, Split::Test),
        spec("test ECE", Measure::Ece, Split::Test),
        spec("validation NLL (noisy)", Measure::Nll, Split::Validation),
    ];
    let mut table = compare_columns(&rows, &specs, Test::PairedBySeed)?;
    table.heading = "noise".to_string();
    let text = table.to_text(Format::Terminal(terminal()));
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// The confusions in the labels, next to those that the noise model expects.
fn confusions(runs: &[TrainedRun]) -> Result<()> {
    let full = runs.iter().filter(|run| run.name.starts_with("full/"));
    let (mut expected, mut by_noise) = (vec![], vec![]);
    let (mut rows, mut names) = (vec![], vec![]);
    for run in full {
        let run = RunDir::open(&run.dir)?;
        let predictions = Predictions::load(&run.predictions_path(Split::Test))?;
        expected.push(Confusions::expected(&predictions));
        by_noise.push(Confusions::by_noise(&predictions));
        rows = run.read_examples()?;
        names = run.info().class_names.clone();
    }
    let expected = Confusions::mean(&expected).context("no run with the full noise model")?;
    let by_noise = Confusions::mean(&by_noise).context("no run with the full noise model")?;
    let injected =
        Confusions::of_labels(rows.iter().filter(|row| row.split == Split::Train), names.len());
    print_pairs(&names, &injected, &expected, &by_noise)?;
    Ok(())
}

fn print_pairs(
    names: &[String],
    injected: &Confusions,
    expected: &Confusions,
    by_noise: &Confusions,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "\nThe {SHOWN} most frequent confusions of the training labels, and what the full noise"
    )?;
    writeln!(
        out,
        "model, which never saw a true label, makes of them on examples it has not seen:"
    )?;
    writeln!(
        out,
        "{:>12}{:>12}{:>12}{:>12}{:>22}",
        "true → given", "in labels", "expected", "rank", "rank by noise alone"
    )?;
    let (expected_pairs, noise_pairs) = (expected.pairs(), by_noise.pairs());
    for pair in injected.pairs().iter().take(SHOWN) {
        writeln!(
            out,
            "{:>12}{:>10.1} %{:>10.1} %{:>12}{:>22}",
            format!("{} → {}", names[pair.from], names[pair.to]),
            100.0 * pair.rate,
            100.0 * expected.rate(pair.from, pair.to),
            rank(pair, &expected_pairs),
            rank(pair, &noise_pairs),
        )?;
    }
    writeln!(
        out,
        "expected: mean probability of the wrong label; ranks are of {} pairs",
        noise_pairs.len()
    )
}

fn rank(pair: &Pair, among: &[Pair]) -> usize {
    let same = |other: &Pair| (other.from, other.to) == (pair.from, pair.to);
    1 + among.iter().position(same).unwrap_or(among.len())
}
