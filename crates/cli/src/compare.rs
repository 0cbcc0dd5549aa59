//! `aleator compare`: a table of runs.

use std::ffi::OsString;
use std::path::PathBuf;

use aleator::report::compare::{
    Labels, Layout, Measure, Row, Settings, ShownWeights, Source, Test, Wanted, compare, fill,
    layouts,
};
use aleator::report::table::{Format, Table, Terminal};
use aleator::run::{Split, write_file};
use anyhow::Result;
use clap::Args;

use crate::output::{line, scores, table, terminal};
use crate::values::{Choice, HELD_OUT, choice};

/// Arguments of `aleator compare`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct CompareArgs {
    /// A run, a directory of seeds, or a directory with several of these; NAME=DIR names its row,
    /// and directories of the same name make one row
    #[arg(value_name = "[NAME=]DIR", required_unless_present_any = ["table", "list"])]
    dirs: Vec<OsString>,
    /// Which examples [default: test if the runs have it, otherwise validation]
    #[arg(long, value_parser = choice(&HELD_OUT))]
    split: Option<Split>,
    /// Which labels [default: clean if all runs have them, otherwise given]
    #[arg(long, value_parser = choice(&LABELS))]
    labels: Option<Labels>,
    /// Show numbers at the temperature that `--calibrate` fitted
    #[arg(long)]
    calibrated: bool,
    /// Columns: some of top1, top5, nll, brier, ece, gap, mean_ap and subset_accuracy [default: all available]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = measure)]
    metrics: Vec<Measure>,
    /// The t-test behind † [default: paired; in tables of the paper unpaired, as there]
    #[arg(long, value_parser = choice(&TESTS))]
    test: Option<Test>,
    /// Which weights of the runs [default: both where they are not the same, each compared by itself]
    #[arg(long, value_parser = choice(&WEIGHTS))]
    weights: Option<ShownWeights>,
    /// Fill a planned table: a name from --list, or the path of a TOML file
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dirs", "split", "labels", "calibrated", "metrics", "weights"])]
    table: Option<String>,
    /// The directory with the runs of the table [default: runs]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dirs", "list"])]
    runs: Option<PathBuf>,
    /// List the tables
    #[arg(long, conflicts_with_all = ["dirs", "table"])]
    list: bool,
    /// The format of the table [default: by the extension of --out (.md, .tex, .csv), otherwise
    /// terminal]
    #[arg(long, value_parser = choice(&FORMATS))]
    format: Option<FormatFor>,
    /// Write the table to a file; an existing file is overwritten
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  aleator compare aleator-demo                     the runs of the demo
  aleator compare none=runs/a full=runs/b          two named directories of seeds
  aleator compare x=runs/x-seed0 x=runs/x-seed1    two runs as seeds of one row
  aleator compare runs --metrics top1,nll --out table.tex
  aleator compare --table ilsvrc12 --runs runs     a table of the paper, with existing runs";

const LABELS: [Choice<Labels>; 2] = [
    ("given", Labels::Given, "The labels in the data"),
    ("clean", Labels::Clean, "The true labels"),
];

const TESTS: [Choice<Test>; 2] = [
    ("paired", Test::PairedBySeed, "Paired if two rows have the same seeds, otherwise unpaired"),
    ("unpaired", Test::Unpaired, "Unpaired with pooled variance"),
];

const WEIGHTS: [Choice<ShownWeights>; 3] = [
    ("last", ShownWeights::Last, "Of the last epoch"),
    ("best", ShownWeights::Best, "Of the epoch with the lowest validation NLL"),
    ("both", ShownWeights::Both, "Both, in a group each"),
];

/// A format, which on a terminal depends on it.
type FormatFor = fn(Terminal) -> Format;

const FORMATS: [Choice<FormatFor>; 4] = [
    ("terminal", Format::Terminal, "Aligned text"),
    ("markdown", |_| Format::Markdown, "Markdown"),
    ("latex", |_| Format::Latex, "LaTeX with booktabs"),
    ("csv", |_| Format::Csv, "CSV with all digits"),
];

/// `aleator compare`.
pub fn run(args: &CompareArgs) -> Result<()> {
    if args.list {
        return list();
    }
    let table = match &args.table {
        Some(name) => planned(name, args)?,
        None => given(args)?,
    };
    match &args.out {
        Some(path) => {
            let format = format(args, Terminal { width: None, bold: false });
            write_file(path, table.to_text(format).as_bytes())?;
            line(format_args!("written to {}", path.display()))
        }
        None => scores(&table, format(args, terminal())),
    }
}

fn planned(name: &str, args: &CompareArgs) -> Result<Table> {
    let mut layout = Layout::load(name)?;
    layout.test = args.test.unwrap_or(layout.test);
    let runs = args.runs.clone().unwrap_or(PathBuf::from("runs"));
    Ok(fill(&layout, &runs)?)
}

fn given(args: &CompareArgs) -> Result<Table> {
    let sources: Vec<Source> = args.dirs.iter().map(source).collect();
    let rows = Row::read(&sources)?;
    let mut measures: Vec<Measure> = vec![];
    for measure in &args.metrics {
        if !measures.contains(measure) {
            measures.push(*measure);
        }
    }
    let wanted = Wanted { split: args.split, labels: args.labels, calibrated: args.calibrated };
    let measures = (!measures.is_empty()).then_some(measures);
    let test = args.test.unwrap_or(Test::PairedBySeed);
    Ok(compare(&rows, &Settings { wanted, measures, test, weights: args.weights })?)
}

/// A path if it exists, because directories of a sweep have `=` in their names; otherwise NAME=DIR.
fn source(argument: &OsString) -> Source {
    let whole = PathBuf::from(argument);
    let parts = argument.to_str().and_then(|text| text.split_once('='));
    match parts {
        Some((name, dir)) if !whole.exists() && !name.is_empty() && !dir.is_empty() => {
            Source { name: Some(name.to_string()), dir: PathBuf::from(dir) }
        }
        _ => Source { name: None, dir: whole },
    }
}

fn measure(text: &str) -> Result<Measure, String> {
    Measure::of_key(text).ok_or_else(|| {
        let known = Measure::ALL.map(Measure::key).join(", ");
        format!("expected some of {known}, separated by commas")
    })
}

fn format(args: &CompareArgs, terminal: Terminal) -> Format {
    let ending = args.out.as_ref().and_then(|path| path.extension()?.to_str());
    match (args.format, ending) {
        (Some(format), _) => format(terminal),
        (None, Some("md")) => Format::Markdown,
        (None, Some("tex")) => Format::Latex,
        (None, Some("csv")) => Format::Csv,
        (None, _) => Format::Terminal(terminal),
    }
}

fn list() -> Result<()> {
    let row = |layout: Layout| {
        vec![layout.name, layout.paper.unwrap_or("ours".to_string()), layout.title]
    };
    let rows: Vec<Vec<String>> = layouts()?.into_iter().map(row).collect();
    table(&[], &rows, &[0, 1, 2])?;
    line("\n`aleator compare --table NAME --runs DIR` makes one.")
}
