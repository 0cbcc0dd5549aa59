//! The runs and audits that a report shows.

use std::path::{Path, PathBuf};

use aleator_metrics::significance::mean;
use aleator_run::{EvaluatedRun, GroupKind, RunError, RunGroup, RunTree, without_seed};

use crate::audit::{Audit, ReviewRecord};
use crate::compare::baseline_first;
use crate::error::ReportError;
use crate::task::class_difference;

/// Everything that was read.
#[derive(Default)]
pub(crate) struct Material {
    /// Of the first run or audit; all others have the same.
    pub class_names: Vec<String>,
    /// The first run or audit.
    first: Option<PathBuf>,
    /// Runs, grouped by what they have in common apart from their seeds.
    pub settings: Vec<Setting>,
    pub audits: Vec<AuditAt>,
    /// Directories, and how many of their runs are not finished.
    pub unfinished: Vec<(PathBuf, usize)>,
    /// The directories that were given.
    pub origins: Vec<Origin>,
}

pub(crate) struct Setting {
    /// Empty for a single run.
    pub name: String,
    pub runs: Vec<EvaluatedRun>,
    /// Whether its run is an ensemble of others.
    pub is_ensemble: bool,
}

pub(crate) struct AuditAt {
    pub dir: PathBuf,
    pub audit: Audit,
    /// What was done with it.
    pub review: Option<ReviewRecord>,
}

/// One of the directories that were given.
pub(crate) struct Origin {
    pub dir: PathBuf,
    /// `None` for a single run.
    pub group: Option<GroupKind>,
}

impl Material {
    pub fn load(dirs: &[PathBuf]) -> Result<Self, ReportError> {
        let mut material = Self::default();
        let several = dirs.iter().filter(|dir| !Audit::is_at(dir)).count() > 1;
        for dir in dirs {
            let prefix = if several { dir_name(dir) } else { String::new() };
            let found = baseline_first(RunTree::find(dir)?);
            if found.is_empty() {
                return Err(ReportError::NothingToReport { dir: dir.clone() });
            }
            for (name, tree) in found {
                let prefix = joined(&prefix, &without_seed(&name));
                let place = if name.is_empty() { dir.clone() } else { dir.join(name) };
                material.add(&place, tree, &prefix)?;
            }
        }
        Ok(material)
    }

    fn add(&mut self, dir: &Path, tree: RunTree, prefix: &str) -> Result<(), ReportError> {
        let group = match tree {
            RunTree::Audit(_) => {
                let audit = Audit::load(dir)?;
                self.check_classes(dir, &audit.summary.class_names)?;
                let review = ReviewRecord::load(dir)?;
                self.audits.push(AuditAt { dir: dir.to_path_buf(), audit, review });
                Some(GroupKind::Audit)
            }
            RunTree::Group(group) => {
                self.add_group(&group, prefix)?;
                Some(group.kind)
            }
            RunTree::Run(run) => {
                self.add_run(prefix, EvaluatedRun::of(run, dir)?, false)?;
                None
            }
        };
        self.origins.push(Origin { dir: dir.to_path_buf(), group });
        Ok(())
    }

    fn check_classes(&mut self, dir: &Path, names: &[String]) -> Result<(), ReportError> {
        let Some(first) = &self.first else {
            (self.first, self.class_names) = (Some(dir.to_path_buf()), names.to_vec());
            return Ok(());
        };
        let Some(reason) = class_difference(&self.class_names, names) else { return Ok(()) };
        let (first, other) = (first.clone(), dir.to_path_buf());
        Err(ReportError::OtherClasses { first, other, reason })
    }

    fn add_group(&mut self, group: &RunGroup, prefix: &str) -> Result<(), ReportError> {
        if group.kind == GroupKind::Audit {
            return Err(group.unfinished().into());
        }
        let mut unfinished = 0;
        for member in &group.members {
            match group.open(member) {
                Ok(run) => self.add_run(&joined(prefix, &member.setting()), run, false)?,
                Err(RunError::Unfinished { .. }) => unfinished += 1,
                Err(error) => return Err(error.into()),
            }
        }
        if unfinished == group.members.len() {
            return Err(group.unfinished().into());
        }
        if unfinished > 0 {
            self.unfinished.push((group.dir.clone(), unfinished));
        }
        if let Some(run) = group.ensemble()? {
            self.add_run(&joined(prefix, "ensemble"), run, true)?;
        }
        Ok(())
    }

    fn add_run(
        &mut self,
        name: &str,
        run: EvaluatedRun,
        is_ensemble: bool,
    ) -> Result<(), ReportError> {
        self.check_classes(run.dir.path(), &run.dir.info().class_names)?;
        match self.settings.iter_mut().find(|setting| setting.name == name) {
            Some(setting) => setting.runs.push(run),
            None => {
                let name = name.to_string();
                self.settings.push(Setting { name, runs: vec![run], is_ensemble });
            }
        }
        Ok(())
    }

    pub fn runs(&self) -> impl Iterator<Item = &EvaluatedRun> {
        self.settings.iter().flat_map(|setting| &setting.runs)
    }

    fn is_demo(&self) -> bool {
        self.origins.iter().any(|origin| origin.group == Some(GroupKind::Demo))
    }

    /// The settings to choose from. The demo's runs on the true labels are there to compare with:
    /// who has those needs no choice.
    pub fn judged(&self) -> Vec<&Setting> {
        let demo = self.is_demo();
        let judged = |it: &&Setting| !(demo && it.name.ends_with("true-labels"));
        self.settings.iter().filter(judged).collect()
    }

    /// The run that is shown in detail: of the setting with the lowest validation NLL, or in the
    /// demo, of the full noise model.
    pub fn detailed(&self) -> Option<(usize, &EvaluatedRun)> {
        let demo = self.is_demo();
        let trained = || self.settings.iter().enumerate().filter(|(_, it)| !it.is_ensemble);
        let shown = trained().find(|(_, setting)| demo && setting.name.ends_with("full"));
        let nll = |setting: &Setting| {
            let values: Vec<f64> =
                setting.runs.iter().map(|run| run.evaluation.validation.given.nll).collect();
            mean(&values).unwrap_or(f64::INFINITY)
        };
        let best = || trained().min_by(|(_, a), (_, b)| nll(a).total_cmp(&nll(b)));
        // A report of an ensemble alone shows the ensemble.
        let any = || self.settings.iter().enumerate().next();
        let (at, setting) = shown.or_else(best).or_else(any)?;
        setting.runs.first().map(|run| (at, run))
    }
}

fn joined(prefix: &str, name: &str) -> String {
    let parts: Vec<&str> = [prefix, name].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// The last part of a path, or the path if it has no such part.
pub(crate) fn dir_name(dir: &Path) -> String {
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let name = full.file_name().unwrap_or(dir.as_os_str());
    name.to_string_lossy().into_owned()
}
