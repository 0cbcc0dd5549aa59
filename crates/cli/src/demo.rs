//! `aleator demo`: the whole job on data that ships inside the program.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aleator::report::audit::{Answer, Audit, Issue};
use aleator::report::compare::{Labels, Measure, Row, Source, Spec, Test, View, compare_columns};
use aleator::report::table::Format;
use aleator::run::Split;
use aleator::{DEMO_AUDIT, Demo, LearnedConfusion, ReportSettings, Watch};
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

/// Suspects and confusions that are shown.
const SHOWN: usize = 5;

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

/// What the audit finds, what the full noise model has learned, the table of the noise models, and
/// the report.
pub fn print(out: &Path, demo: &Demo) -> Result<()> {
    print_audit(&demo.audit)?;
    print_confusions(&demo.confusions)?;
    print_scores(out)?;
    let settings = ReportSettings::inside(out);
    let dirs = [out.to_path_buf(), out.join(DEMO_AUDIT)];
    aleator::report(&dirs, &settings, &mut Watch::silent())?;
    let page = settings.page.display();
    line(format_args!("\nA report of all of it, with the digits: {page}"))?;
    print_written(out, &demo.runs)
}

const INTRODUCTION: &str = "\
1,797 handwritten digits of 8 × 8 pixels. Labels are made wrong on purpose, harder examples more
often, toward the digits they resemble. No model ever sees a true label.
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
    ];
    let mut table = compare_columns(&rows, &specs, Test::PairedBySeed)?;
    table.heading = "noise".to_string();
    line(
        "\nEach noise model, trained with three seeds and tested on true labels. Digits this small \
         show the\noutput, not the gain:",
    )?;
    text(table.to_text(Format::Terminal(terminal())))
}

/// The confusions in the labels, next to those that the noise model expects.
fn print_confusions(confusions: &[LearnedConfusion]) -> Result<()> {
    line(format_args!(
        "\nWhich digits are confused? The {SHOWN} most frequent confusions of the labels, and what the \
         full noise\nmodel expects on examples that it has not seen:"
    ))?;
    let row = |confusion: &LearnedConfusion| {
        vec![
            format!("{} → {}", confusion.class, confusion.given),
            format!("{:.1} %", 100.0 * confusion.rate),
            format!("{:.1} %", 100.0 * confusion.expected),
            confusion.rank.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = confusions.iter().take(SHOWN).map(row).collect();
    let header = ["true → given", "in labels", "expected", "rank"];
    table(&header, &rows, &[])?;
    line(format_args!(
        "expected: mean probability of the wrong label; rank: among all {} pairs",
        confusions.len()
    ))
}

/// What an audit finds, next to the truth, which is known here.
fn print_audit(audit: &Audit) -> Result<()> {
    let is_wrong = |issue: &&Issue| issue.truth.is_some_and(|truth| truth != issue.given);
    let suspects: Vec<&Issue> = audit.issues.iter().filter(|issue| issue.wrong).collect();
    let found = suspects.iter().copied().filter(is_wrong).count();
    let wrong = audit.issues.iter().filter(is_wrong).count();
    let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    line(format_args!(
        "Which labels are wrong? {} of {} are suspects, and {found} of these, {:.1} %, are wrong; by \
         picking at\nrandom {:.1} % would be. It finds {:.1} % of the {wrong} wrong labels{}.",
        suspects.len(),
        audit.issues.len(),
        share(found, suspects.len()),
        share(wrong, audit.issues.len()),
        share(found, wrong),
        audit.summary.known.map_or(String::new(), |known| {
            let right = 100.0 * known.suggestions_right;
            format!(", and its suggestion is\nright for {right:.1} % of them")
        }),
    ))?;
    line("The most surely wrong:")?;
    let name = |answer: Answer| audit.summary.class_names[answer.class() as usize].clone();
    let row = |issue: &&Issue| {
        let truth = issue.truth.map_or(String::new(), name);
        vec![issue.id.clone(), name(issue.given), name(issue.suggested), truth]
    };
    let rows: Vec<Vec<String>> = suspects.iter().take(SHOWN).map(row).collect();
    table(&["example", "given", "suggested", "true"], &rows, &[])
}
