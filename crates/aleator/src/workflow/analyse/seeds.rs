//! `analyse_seeds`: what the noise of several seeds has in common.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_report::covariance::{Measure, SeedNoise, SeedPair, Step, write_seed_pairs};
use aleator_run::{EvaluatedRun, RunDir, RunInfo, RunTree, Split, without_seed, write_json};
use serde_json::{Value, json};

use super::findings::FORMAT;
use super::{ANALYSIS, AnalyseSettings, PAIRS, check_out, usual_split};
use crate::{Error, Event, Watch};

/// What [`analyse_seeds`] found.
#[derive(Clone, Debug)]
pub struct SeedFindings {
    /// The runs.
    pub dirs: Vec<PathBuf>,
    /// The first run's `run.json`.
    pub info: RunInfo,
    /// The analysed split.
    pub split: Split,
    /// How the pairs are ranked.
    pub measure: Measure,
    /// All pairs of classes.
    pub all_pairs: usize,
    /// How many of them have the same relation in all runs.
    pub consistent: usize,
    /// The strongest, those first whose relation is the same in all runs.
    pub pairs: Vec<SeedPair>,
}

impl SeedFindings {
    /// `analysis.json`.
    pub fn json(&self) -> Value {
        let name = |class: usize| &self.info.class_names[class];
        let pair = |pair: &SeedPair| {
            json!({
                "class_a": name(pair.first),
                "class_b": name(pair.second),
                "covariance": pair.covariance,
                "centred_covariance": pair.centred,
                "correlation": pair.correlation,
                "seeds_agree": pair.agreeing,
                "relation": pair.relation,
            })
        };
        json!({
            "format": FORMAT,
            "version": env!("CARGO_PKG_VERSION"),
            "runs": self.dirs.iter().map(|dir| dir.display().to_string()).collect::<Value>(),
            "split": self.split.name(),
            "link": self.info.link,
            "noise": self.info.noise,
            "classes": self.info.class_names.len(),
            "ranked_by": self.measure,
            "pairs_in_all": self.all_pairs,
            "pairs_consistent": self.consistent,
            "pairs": self.pairs.iter().map(pair).collect::<Value>(),
        })
    }
}

/// The runs of a directory that differ in their seeds only; one, if it is a run.
///
/// # Errors
/// When there are none, one is not finished, or they differ in more than their seeds.
pub fn seed_runs(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<(String, PathBuf)> = vec![];
    for (name, tree) in RunTree::find(dir)? {
        match tree {
            RunTree::Run(run) => {
                let run = EvaluatedRun::of(run, &dir.join(&name))?;
                if name.is_empty() || run.evaluation.weights != "ensemble" {
                    found.push((without_seed(&name), run.dir.path().to_path_buf()));
                }
            }
            RunTree::Group(group) => {
                for member in &group.members {
                    let run = group.open(member)?;
                    let setting = Path::new(&name).join(member.setting()).display().to_string();
                    found.push((setting, run.dir.path().to_path_buf()));
                }
            }
            RunTree::Audit(_) => {}
        }
    }
    let mut settings: Vec<&str> = found.iter().map(|(setting, _)| setting.as_str()).collect();
    settings.dedup();
    match settings[..] {
        // The error says what a run is.
        [] => RunDir::open(dir).map(|_| vec![]).map_err(Error::from),
        [_] => Ok(found.into_iter().map(|(_, run)| run).collect()),
        _ => Err(Error::invalid(format!(
            "{} has runs that differ in more than their seeds ({}): name one of these directories, \
             such as {}",
            dir.display(),
            settings.join(", "),
            dir.join(settings[0]).display()
        ))),
    }
}

/// Finds the pairs of classes whose noise is tied in runs that differ in their seeds only: those of
/// a directory are [`seed_runs`].
///
/// # Errors
/// When a run is not evaluated or its classes share no noise, the classes are not the same or more
/// than [`LARGEST_MATRIX`](aleator_report::covariance::LARGEST_MATRIX), or `out` holds other files.
pub fn analyse_seeds(
    dirs: &[PathBuf],
    settings: &AnalyseSettings,
    watch: &mut Watch<'_>,
) -> Result<SeedFindings, Error> {
    if settings.against.is_some() {
        let message = "a comparison is of one run with another: name one seed, not several";
        return Err(Error::invalid(message));
    }
    if let Some(out) = &settings.out {
        check_out(out)?;
    }
    let runs = dirs.iter().map(|dir| RunDir::open(dir)).collect::<Result<Vec<_>, _>>()?;
    let first = runs.first().ok_or_else(|| Error::invalid("there is no run to analyse"))?;
    let info = first.info().clone();
    let split = settings.split.unwrap_or(usual_split(&info));
    let noise = SeedNoise::of(&runs, split, &mut |Step { what, done, total }| {
        watch.event(Event::Progress { what, done, total });
    })?;
    let measure = settings.measure.unwrap_or(Measure::Centred);
    let findings = SeedFindings {
        dirs: dirs.to_vec(),
        info,
        split,
        measure,
        all_pairs: noise.pairs(),
        consistent: noise.consistent(),
        pairs: noise.strongest(measure, settings.top),
    };
    if let Some(out) = &settings.out {
        fs::create_dir_all(out).map_err(Error::io(out))?;
        let names = &findings.info.class_names;
        write_seed_pairs(&out.join(PAIRS), &findings.pairs, dirs.len(), names)?;
        write_json(&out.join(ANALYSIS), &findings.json())?;
    }
    Ok(findings)
}
