//! `aleator demo`: the whole job on data that ships inside the program.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aleator::report::compare::{Labels, Measure, Row, Source, Spec, Test, View, compare_columns};
use aleator::report::table::Format;
use aleator::run::Split;
use aleator::{Demo, LearnedConfusion, ReportSettings, Watch};
use anyhow::Result;
use clap::Args;

use crate::output::{line, table, terminal, text};
use crate::progress::watched;
use crate::recipe_args::free_name;
use crate::train::print_written;

/// Arguments of `aleator demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Where the runs are written; must not exist [default: aleator-demo, or the first free
    /// name after it]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Confusions that are shown.
const SHOWN: usize = 8;

/// `aleator demo`.
pub fn demo(args: &DemoArgs, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let out = args.out.clone().unwrap_or_else(|| free_name("aleator-demo".as_ref()));
    line(INTRODUCTION)?;
    let demo = watched(quiet, |watch| aleator::demo(&out, watch))?;
    print(&out, &demo)?;
    let (runs, seconds) = (demo.runs.len(), started.elapsed().as_secs_f64());
    line(format_args!(
        "{runs} runs in {seconds:.0} s. Next: `aleator train --data PATH --out DIR` on data of your own; `aleator recipes`, `aleator --help`."
    ))
}

/// The table of the noise models, what the full one has learned, and the report.
pub fn print(out: &Path, demo: &Demo) -> Result<()> {
    print_scores(out)?;
    print_confusions(&demo.confusions)?;
    let settings = ReportSettings::inside(out);
    aleator::report(&[out.to_path_buf()], &settings, &mut Watch::silent())?;
    let page = settings.page.display();
    line(format_args!("\nA report of all of it, with the digits: {page}"))?;
    print_written(out, &demo.runs)
}

const INTRODUCTION: &str = "\
1,797 handwritten digits of 8 × 8 pixels. Labels are made wrong on purpose, harder examples more
often, toward the digits they resemble. Each noise model is trained on the wrong labels with
three seeds, and tested on examples with true labels that it has not seen.
";

/// Mean ± standard deviation over the seeds of each noise model.
fn print_scores(out: &Path) -> Result<()> {
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
    text(table.to_text(Format::Terminal(terminal())))
}

/// The confusions in the labels, next to those that the noise model expects.
fn print_confusions(confusions: &[LearnedConfusion]) -> Result<()> {
    line(format_args!(
        "\nThe {SHOWN} most frequent confusions of the training labels, and what the full noise\n\
         model, which never saw a true label, makes of them on examples it has not seen:"
    ))?;
    let row = |confusion: &LearnedConfusion| {
        vec![
            format!("{} → {}", confusion.class, confusion.given),
            format!("{:.1} %", 100.0 * confusion.rate),
            format!("{:.1} %", 100.0 * confusion.expected),
            confusion.rank.to_string(),
            confusion.rank_by_noise.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = confusions.iter().take(SHOWN).map(row).collect();
    let header = ["true → given", "in labels", "expected", "rank", "rank by noise alone"];
    table(&header, &rows, &[])?;
    line(format_args!(
        "expected: mean probability of the wrong label; ranks are of {} pairs",
        confusions.len()
    ))
}
