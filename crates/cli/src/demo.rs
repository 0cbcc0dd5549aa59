//! `aleator demo`: the whole job on data that ships inside the program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aleator_report::compare::{Labels, Measure, Row, Source, Spec, Test, View, compare_columns};
use aleator_report::confusion::{Confusions, Pair};
use aleator_report::table::Format;
use aleator_report::table::columns::lines;
use aleator_run::{Predictions, RunDir, Split};
use aleator_train::group::{self, Group, Kind, Member};
use anyhow::{Context, Result};
use clap::Args;

use crate::{comparison, reporting, training};

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

/// What is compared: a name for people and a preset.
const HEADS: [(&str, &str); 3] =
    [("none", "digits-none"), ("diagonal", "digits-diagonal"), ("full", "digits-full")];

/// The seeds of each.
const SEEDS: [u64; 3] = [0, 1, 2];

/// Confusions that are shown.
const SHOWN: usize = 8;

/// `aleator demo`.
pub fn run(args: &DemoArgs) -> Result<()> {
    let started = Instant::now();
    let out = args.out.clone().unwrap_or_else(free_name);
    let mut members = vec![];
    for (name, preset) in HEADS {
        let mut resolved = aleator_run::load(preset, &[], None)?;
        resolved.recipe.seeds = SEEDS.to_vec();
        members.extend(group::members(name, &resolved));
    }
    writeln!(io::stdout(), "{INTRODUCTION}")?;
    let group = Group { kind: Kind::Demo, members };
    training::start(&out, &group, None, args.quiet)?;
    let (runs, seconds) = (group.members.len(), started.elapsed().as_secs_f64());
    writeln!(
        io::stdout(),
        "{runs} runs in {seconds:.0} s. Next: `aleator train --data PATH --out DIR` on data of your own; `aleator recipes`, `aleator --help`."
    )?;
    Ok(())
}

/// The table of the noise models, and what the full one has learned.
pub fn conclude(out: &Path, members: &[Member]) -> Result<()> {
    table(out)?;
    confusions(out, members)?;
    let page = reporting::report_of(out)?;
    writeln!(io::stdout(), "\nAll of it to look at, with the digits: {}", page.display())?;
    Ok(())
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
    let text = table.to_text(Format::Terminal(comparison::terminal()));
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// What was put into the labels beside what the noise model made of it.
fn confusions(out: &Path, members: &[Member]) -> Result<()> {
    let full = members.iter().filter(|member| member.name.starts_with("full/"));
    let (mut expected, mut by_noise) = (vec![], vec![]);
    let (mut rows, mut names) = (vec![], vec![]);
    for member in full {
        let run = RunDir::open(&out.join(&member.name))?;
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
    let (expected_pairs, noise_pairs) = (expected.pairs(), by_noise.pairs());
    let row = |pair: &Pair| {
        vec![
            format!("{} → {}", names[pair.from], names[pair.to]),
            format!("{:.1} %", 100.0 * pair.rate),
            format!("{:.1} %", 100.0 * expected.rate(pair.from, pair.to)),
            rank(pair, &expected_pairs).to_string(),
            rank(pair, &noise_pairs).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = injected.pairs().iter().take(SHOWN).map(row).collect();
    let header = ["true → given", "in labels", "expected", "rank", "rank by noise alone"];
    for line in lines(&header, &rows, &[]) {
        writeln!(out, "{line}")?;
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
