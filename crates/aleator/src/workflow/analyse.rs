//! `analyse`: what the learned noise of a run shows about its classes.

mod findings;
mod pair;
mod seeds;

use std::fs;
use std::path::{Path, PathBuf};

use aleator_report::ReportError;
use aleator_report::covariance::{
    Best, Covariances, ExampleTies, Measure, Step, write_cases, write_pairs, write_ranks,
    write_ties,
};
use aleator_run::{GroupFile, RunDir, RunInfo, Split, write_json};

use crate::{Error, Event, Watch};
pub use findings::{Findings, Strongest};
pub use pair::{PairFindings, analyse_pair};
pub use seeds::{SeedFindings, analyse_seeds, seed_runs};

/// What [`analyse`] looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalyseSettings {
    /// Which examples; `None`: the test split, or the validation split if there is no other.
    pub split: Option<Split>,
    /// A run on the same data to compare with, usually one without a noise model.
    pub against: Option<PathBuf>,
    /// How the classes of an example are ranked, or the pairs over several seeds; `None`: as in the
    /// paper, and over several seeds by the covariance that the likelihood depends on.
    pub measure: Option<Measure>,
    /// Rows of each table, and classes for each example.
    pub top: usize,
    /// A directory for `pairs.csv`, `examples.csv`, `against.csv`, `ranks.csv` and
    /// `analysis.json`.
    pub out: Option<PathBuf>,
}

/// Finds the pairs of classes whose noise is tied, and the examples where it is tied most.
///
/// # Errors
/// When the run is not evaluated or has no noise model, or `out` holds other files.
pub fn analyse(
    run: &Path,
    settings: &AnalyseSettings,
    watch: &mut Watch<'_>,
) -> Result<Findings, Error> {
    let run = RunDir::open(run)?;
    let other = settings.against.as_deref().map(RunDir::open).transpose()?;
    if let Some(out) = &settings.out {
        check_out(out)?;
    }
    let findings = find(&run, other.as_ref(), settings, watch)?;
    if let Some(out) = &settings.out {
        write(out, &findings)?;
    }
    Ok(findings)
}

/// Everything that is computed; the ties of all examples go straight to their file.
fn find(
    run: &RunDir,
    other: Option<&RunDir>,
    settings: &AnalyseSettings,
    watch: &mut Watch<'_>,
) -> Result<Findings, Error> {
    let AnalyseSettings { top, .. } = *settings;
    let measure = settings.measure.unwrap_or(Measure::Raw);
    let split = settings.split.unwrap_or(usual_split(run.info()));
    let mut covariances = Covariances::open(run, split)?;
    let mut observer = |Step { what, done, total }: Step| {
        watch.event(Event::Progress { what, done, total });
    };
    let predicted = match covariances.has_examples() || other.is_some() {
        true => covariances.predicted(&mut observer)?,
        false => vec![],
    };
    let comparison = other
        .map(|other| covariances.against(&predicted, other, measure, &mut observer))
        .transpose()?;
    let pairs = covariances.top_pairs(top, &mut observer)?;
    let mut best = Best::new(top);
    let mut keep = |example: &ExampleTies| {
        if let Some(tie) = example.ties.first() {
            let value = Strongest { predicted: example.predicted, tie: *tie };
            best.offer(tie.value(measure).abs(), example.row, value);
        }
    };
    let examples = covariances.examples().to_vec();
    let names = run.info().class_names.clone();
    let has_examples = covariances.has_examples();
    match &settings.out {
        None if !has_examples => {}
        None => covariances.ties(&predicted, measure, 1, &mut observer, &mut |example| {
            keep(&example);
            Ok(())
        })?,
        Some(out) => {
            fs::create_dir_all(out).map_err(Error::io(out))?;
            write_ties(&out.join(EXAMPLES), &examples, &names, |add| match has_examples {
                false => Ok::<(), ReportError>(()),
                true => covariances.ties(&predicted, measure, top, &mut observer, &mut |example| {
                    keep(&example);
                    Ok(add(&example)?)
                }),
            })?;
        }
    }
    Ok(Findings {
        dir: run.path().to_path_buf(),
        other: other.map(|other| (other.path().to_path_buf(), other.info().noise)),
        info: run.info().clone(),
        split,
        temperature: covariances.temperature(),
        measure,
        top,
        pairs,
        strongest: best.into_sorted().into_iter().map(|(_, row, value)| (row, value)).collect(),
        comparison,
        examples,
        has_examples,
    })
}

/// The test split, or the validation split if there is no other.
pub(super) fn usual_split(info: &RunInfo) -> Split {
    if info.examples.test > 0 { Split::Test } else { Split::Validation }
}

const PAIRS: &str = "pairs.csv";
const EXAMPLES: &str = "examples.csv";
const AGAINST: &str = "against.csv";
const RANKS: &str = "ranks.csv";
const ANALYSIS: &str = "analysis.json";

/// Refuses a directory whose files of the same names may be something else: a run has an
/// `examples.csv` too.
fn check_out(out: &Path) -> Result<(), Error> {
    let exists = |name: &&&str| out.join(name).symlink_metadata().is_ok();
    let names = [RunDir::INFO, GroupFile::NAME, PAIRS, EXAMPLES, AGAINST, RANKS];
    match names.iter().find(exists) {
        Some(name) if !exists(&&ANALYSIS) => Err(Error::invalid(format!(
            "{} holds {name}, which no analysis wrote: choose another directory, such as {}",
            out.display(),
            out.join("analysis").display()
        ))),
        _ => Ok(()),
    }
}

/// All files but `examples.csv`, which is written already; `analysis.json` comes last.
fn write(out: &Path, findings: &Findings) -> Result<(), Error> {
    let names = &findings.info.class_names;
    write_pairs(&out.join(PAIRS), &findings.pairs, names)?;
    match &findings.comparison {
        Some(comparison) => {
            write_cases(&out.join(AGAINST), &comparison.cases, &findings.examples, names)?;
            write_ranks(&out.join(RANKS), &comparison.ranks)?;
        }
        None => {
            // Left by an earlier analysis of other numbers.
            for stale in [AGAINST, RANKS].map(|name| out.join(name)) {
                if stale.exists() {
                    fs::remove_file(&stale).map_err(Error::io(&stale))?;
                }
            }
        }
    }
    Ok(write_json(&out.join(ANALYSIS), &findings.json())?)
}
