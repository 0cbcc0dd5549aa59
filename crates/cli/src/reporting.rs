//! `aleator report`: a page to look at.

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
    /// Runs, folders of runs and audits, all of the same classes
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The page; a report that stands there is made anew, any other file is left alone
    /// [default: report.html in the first DIR]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where the figures are saved as SVG [default: figures, beside the page]
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// The images that features were made from, to show with the examples; or images that were
    /// moved
    #[arg(long, value_name = "PATH")]
    images: Option<PathBuf>,
    /// Suspect labels that are shown at most
    #[arg(long, value_name = "N", default_value = "200", value_parser = shown)]
    suspects: usize,
    /// Ambiguous examples that are shown at most
    #[arg(long, value_name = "N", default_value = "24", value_parser = shown)]
    ambiguous: usize,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
The page is one file that needs no network: scores, training curves, calibration, confusions and \
the learned noise, suspect labels and ambiguous examples with their pictures, every class, and the \
recipe. docs/report.md says what each part means.

Examples:
  aleator report run                          run/report.html
  aleator report runs/seeds --out seeds.html  several seeds: mean ± standard deviation
  aleator report plain full --out both.html   runs beside each other
  aleator report run --images photos          photos beside the embeddings made from them";

/// More pictures would make a page that no browser likes.
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
            "{} is a folder: give a file, as in --out {}",
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

/// The report of a folder, inside it; says where the page is.
pub fn report_of(dir: &Path) -> Result<PathBuf> {
    let out = dir.join("report.html");
    let mut gallery = Gallery::new(None);
    let settings = PageSettings { suspects: 60, ambiguous: 24 };
    let page = page(&[dir.to_path_buf()], &settings, &mut |key| gallery.picture(key))?;
    page.save(&out, &dir.join("figures"))?;
    Ok(out)
}
