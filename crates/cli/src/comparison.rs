//! `aleator compare`: runs side by side.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use aleator_report::compare::{
    Labels, Layout, Measure, Row, Settings, Source, Test, Wanted, compare, fill, layouts,
};
use aleator_report::table::columns::lines;
use aleator_report::table::{Format, Table, Terminal};
use aleator_run::{Split, write_file};
use anyhow::Result;
use clap::{Args, ValueEnum};

/// Arguments of `aleator compare`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct CompareArgs {
    /// A run, a folder of seeds, or a folder of several of them; NAME=DIR names its row, and
    /// folders of the same name make one row
    #[arg(value_name = "[NAME=]DIR", required_unless_present_any = ["table", "list"])]
    dirs: Vec<OsString>,
    /// Which examples [default: test where the runs have it, else validation]
    #[arg(long)]
    split: Option<SplitName>,
    /// Which labels [default: clean where all runs know them, else given]
    #[arg(long)]
    labels: Option<LabelsName>,
    /// Numbers at the temperature that `--calibrate` fitted
    #[arg(long)]
    calibrated: bool,
    /// The columns, of top1, top5, nll, brier, ece, gap and mean_ap [default: all that are there]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = measure)]
    metrics: Vec<Measure>,
    /// The t-test that † stands for [default: paired; in tables of the paper unpaired, as there]
    #[arg(long)]
    test: Option<TestName>,
    /// A table that is planned in a file: one that --list lists, or the path of a TOML file
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dirs", "split", "labels", "calibrated", "metrics"])]
    table: Option<String>,
    /// Where the runs of the table stand [default: runs]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dirs", "list"])]
    runs: Option<PathBuf>,
    /// List the tables
    #[arg(long, conflicts_with_all = ["dirs", "table"])]
    list: bool,
    /// The form of the table [default: by the ending of --out (.md, .tex, .csv), else terminal]
    #[arg(long)]
    format: Option<FormatName>,
    /// Write the table to a file, over one that is there
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  aleator compare aleator-demo                     the noise models of the demo
  aleator compare none=runs/a full=runs/b          two folders of seeds, named
  aleator compare x=runs/x-seed0 x=runs/x-seed1    two runs as seeds of one row
  aleator compare runs --metrics top1,nll --out table.tex
  aleator compare --table ilsvrc12 --runs runs     a table of the paper, with what runs there are";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SplitName {
    /// What chose the weights
    Validation,
    /// What was only looked at
    Test,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LabelsName {
    /// Those that the data came with
    Given,
    /// The true ones
    Clean,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TestName {
    /// Paired where two rows have the same seeds, else unpaired
    Paired,
    /// Unpaired with pooled variance
    Unpaired,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    /// Aligned text
    Terminal,
    /// A table of Markdown
    Markdown,
    /// A LaTeX table with the rules of booktabs
    Latex,
    /// All digits
    Csv,
}

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
            writeln!(io::stdout(), "written to {}", path.display())?;
        }
        None => {
            let text = table.to_text(format(args, terminal()));
            io::stdout().write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// What standard output can show.
pub fn terminal() -> Terminal {
    if !io::stdout().is_terminal() {
        return Terminal { width: None, bold: false };
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    Terminal { width, bold: !is_set("NO_COLOR") && !is_dumb }
}

fn planned(name: &str, args: &CompareArgs) -> Result<Table> {
    let mut layout = Layout::load(name)?;
    layout.test = args.test.map_or(layout.test, TestName::test);
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
    let wanted = Wanted {
        split: args.split.map(|split| match split {
            SplitName::Validation => Split::Validation,
            SplitName::Test => Split::Test,
        }),
        labels: args.labels.map(|labels| match labels {
            LabelsName::Given => Labels::Given,
            LabelsName::Clean => Labels::Clean,
        }),
        calibrated: args.calibrated,
    };
    let measures = (!measures.is_empty()).then_some(measures);
    let test = args.test.map_or(Test::PairedBySeed, TestName::test);
    Ok(compare(&rows, &Settings { wanted, measures, test })?)
}

/// A path if something stands there, for folders of a sweep have `=` in their names; else
/// NAME=DIR.
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
        format!("expected some of {known}, with commas between them")
    })
}

impl TestName {
    fn test(self) -> Test {
        match self {
            Self::Paired => Test::PairedBySeed,
            Self::Unpaired => Test::Unpaired,
        }
    }
}

fn format(args: &CompareArgs, terminal: Terminal) -> Format {
    let ending = args.out.as_ref().and_then(|path| path.extension()?.to_str());
    match (args.format, ending) {
        (Some(FormatName::Markdown), _) | (None, Some("md")) => Format::Markdown,
        (Some(FormatName::Latex), _) | (None, Some("tex")) => Format::Latex,
        (Some(FormatName::Csv), _) | (None, Some("csv")) => Format::Csv,
        (Some(FormatName::Terminal), _) | (None, _) => Format::Terminal(terminal),
    }
}

fn list() -> Result<()> {
    let mut out = io::stdout().lock();
    let row = |layout: Layout| {
        vec![layout.name, layout.paper.unwrap_or("ours".to_string()), layout.title]
    };
    let rows: Vec<Vec<String>> = layouts()?.into_iter().map(row).collect();
    for line in lines(&[], &rows, &[0, 1, 2]) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\n`aleator compare --table NAME --runs DIR` makes one.")?;
    Ok(())
}
