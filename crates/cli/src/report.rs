//! `aleator report`: the HTML report.

use std::path::PathBuf;

use aleator::ReportSettings;
use anyhow::{Context, Result};
use clap::Args;

use crate::output::line;
use crate::progress::shown;
use crate::values::whole;

/// Arguments of `aleator report`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    /// Runs, groups of runs and audits, all with the same classes
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The page; an existing report is overwritten, any other file is refused
    /// [default: report.html in the first DIR]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where to save the figures as SVG [default: figures, next to the page]
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// The images behind the features, to show with the examples; or images that were moved
    #[arg(long, value_name = "PATH")]
    images: Option<PathBuf>,
    /// Show at most N suspect labels
    #[arg(long, value_name = "N", default_value = "200", value_parser = whole(0..=MOST_SHOWN))]
    suspects: usize,
    /// Show at most N ambiguous examples
    #[arg(long, value_name = "N", default_value = "24", value_parser = whole(0..=MOST_SHOWN))]
    ambiguous: usize,
}

const AFTER_HELP: &str = "\
The page is one file that needs no network: scores, training curves, calibration, confusions and \
the learned noise, suspect labels and ambiguous examples with their pictures, every class, and the \
recipe. docs/report.md explains each part.

Examples:
  aleator report run                          run/report.html
  aleator report runs/seeds --out seeds.html  several seeds: mean ± standard deviation
  aleator report plain full --out both.html   a comparison of runs
  aleator report run --images photos          with the photos behind the embeddings";

/// More pictures would make a page too large for browsers.
const MOST_SHOWN: usize = 2_000;

/// `aleator report`.
pub fn report(args: &ReportArgs, quiet: bool) -> Result<()> {
    let first = args.dirs.first().context("no directory is given")?;
    let page = args.out.clone().unwrap_or_else(|| first.join("report.html"));
    let settings = ReportSettings {
        figures: args.figures.clone().unwrap_or_else(|| page.with_file_name("figures")),
        page,
        images: args.images.clone(),
        suspects: args.suspects,
        ambiguous: args.ambiguous,
    };
    shown(quiet, |watch| aleator::report(&args.dirs, &settings, watch))?;
    line(format_args!("report: {}", settings.page.display()))
}
