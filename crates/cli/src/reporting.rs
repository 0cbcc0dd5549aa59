//! `aleator report`: the HTML report.

mod gallery;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_report::page::{PageSettings, check_replaceable, page};
use anyhow::{Context, Result, bail};
use clap::Args;

use crate::progress::Counter;
use gallery::Gallery;

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
    #[arg(long, value_name = "N", default_value = "200", value_parser = shown)]
    suspects: usize,
    /// Show at most N ambiguous examples
    #[arg(long, value_name = "N", default_value = "24", value_parser = shown)]
    ambiguous: usize,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
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

fn shown(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 0..=MOST_SHOWN) => Ok(count),
        _ => Err(format!("must be a whole number from 0 to {MOST_SHOWN}")),
    }
}

/// `aleator report`.
pub fn report(args: &ReportArgs) -> Result<()> {
    let first = args.dirs.first().context("no directory is given")?;
    let out = args.out.clone().unwrap_or_else(|| first.join("report.html"));
    let settings = PageSettings { suspects: args.suspects, ambiguous: args.ambiguous };
    if out.file_name().is_none() || out.is_dir() {
        bail!(
            "{} is a directory: give a file, as in --out {}",
            out.display(),
            out.join("report.html").display()
        );
    }
    check_replaceable(&out)?;
    let figures = args.figures.clone().unwrap_or_else(|| out.with_file_name("figures"));
    let counter = Counter::new("pictures", args.quiet);
    let mut gallery = Gallery::new(args.images.as_deref());
    let mut done = 0;
    let made = page(&args.dirs, &settings, &mut |key| {
        done += 1;
        counter.show(done, args.suspects + args.ambiguous);
        gallery.picture(key)
    });
    counter.finish();
    made?.save(&out, &figures)?;
    gallery.warn();
    writeln!(io::stdout(), "report: {}", out.display())?;
    Ok(())
}

/// Writes the report of a directory into it and returns its path.
pub fn report_of(dir: &Path) -> Result<PathBuf> {
    let out = dir.join("report.html");
    let mut gallery = Gallery::new(None);
    let settings = PageSettings { suspects: 60, ambiguous: 24 };
    let page = page(&[dir.to_path_buf()], &settings, &mut |key| gallery.picture(key))?;
    page.save(&out, &dir.join("figures"))?;
    Ok(out)
}
