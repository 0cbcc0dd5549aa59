//! The runs and audits that a report shows.

use std::path::{Path, PathBuf};

use aleator_metrics::significance::mean;
use aleator_run::{EvaluatedRun, GroupKind, RunError, RunGroup, RunTree};

use crate::audit::Audit;
use crate::error::ReportError;
use crate::task::class_difference;

/// Everything that was read.
pub(crate) struct Material {
    pub class_names: Vec<String>,
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
    pub name: String,
    pub audit: Audit,
}

/// One of the directories that were given.
pub(crate) struct Origin {
    pub dir: PathBuf,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Group(GroupKind),
    Audit,
}

impl Material {
    pub fn load(dirs: &[PathBuf]) -> Result<Self, ReportError> {
        let mut material = Self {
            class_names: vec![],
            settings: vec![],
            audits: vec![],
            unfinished: vec![],
            origins: vec![],
        };
        let mut first: Option<(PathBuf, Vec<String>)> = None;
        for dir in dirs {
            let prefix = if dirs.len() > 1 { dir_name(dir) } else { String::new() };
            for (path, names) in material.add(dir, &prefix)? {
                match &first {
                    None => first = Some((path, names)),
                    Some(first) => same_classes(first, &(path, names))?,
                }
            }
        }
        material.class_names = first.map(|(_, names)| names).unwrap_or_default();
        Ok(material)
    }

    /// Adds what a directory holds; returns the classes of each run or audit in it.
    fn add(
        &mut self,
        dir: &Path,
        prefix: &str,
    ) -> Result<Vec<(PathBuf, Vec<String>)>, ReportError> {
        let kind = match RunTree::open(dir)? {
            None => return Err(ReportError::NothingToReport { dir: dir.to_path_buf() }),
            Some(RunTree::Audit(_)) => {
                let audit = Audit::load(dir)?;
                let names = audit.summary.class_names.clone();
                self.audits.push(AuditAt { dir: dir.to_path_buf(), name: dir_name(dir), audit });
                self.origins.push(Origin { dir: dir.to_path_buf(), kind: Kind::Audit });
                return Ok(vec![(dir.to_path_buf(), names)]);
            }
            Some(RunTree::Group(group)) => {
                self.add_group(&group, prefix)?;
                Kind::Group(group.kind)
            }
            Some(RunTree::Run(run)) => {
                self.add_run(prefix, EvaluatedRun::of(run, dir)?, false);
                Kind::Run
            }
        };
        self.origins.push(Origin { dir: dir.to_path_buf(), kind });
        let all = self.settings.iter().flat_map(|setting| &setting.runs);
        let below = all.filter(|run| run.dir.path().starts_with(dir));
        Ok(below
            .map(|run| (run.dir.path().to_path_buf(), run.dir.info().class_names.clone()))
            .collect())
    }

    fn add_group(&mut self, group: &RunGroup, prefix: &str) -> Result<(), RunError> {
        if group.kind == GroupKind::Audit {
            return Err(group.unfinished());
        }
        let mut unfinished = 0;
        for member in &group.members {
            match group.open(member) {
                Ok(run) => self.add_run(&joined(prefix, member.setting()), run, false),
                Err(RunError::Unfinished { .. }) => unfinished += 1,
                Err(error) => return Err(error),
            }
        }
        if unfinished == group.members.len() {
            return Err(group.unfinished());
        }
        if unfinished > 0 {
            self.unfinished.push((group.dir.clone(), unfinished));
        }
        if let Some(run) = group.ensemble()? {
            self.add_run(&joined(prefix, "ensemble"), run, true);
        }
        Ok(())
    }

    fn add_run(&mut self, name: &str, run: EvaluatedRun, is_ensemble: bool) {
        match self.settings.iter_mut().find(|setting| setting.name == name) {
            Some(setting) => setting.runs.push(run),
            None => {
                let name = name.to_string();
                self.settings.push(Setting { name, runs: vec![run], is_ensemble });
            }
        }
    }

    /// The run that is shown in detail: of the setting with the lowest validation NLL, or in the
    /// demo, of the full noise model.
    pub fn detailed(&self) -> Option<(usize, &EvaluatedRun)> {
        let demo = self.origins.iter().any(|origin| origin.kind == Kind::Group(GroupKind::Demo));
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

fn same_classes(
    first: &(PathBuf, Vec<String>),
    other: &(PathBuf, Vec<String>),
) -> Result<(), ReportError> {
    let Some(reason) = class_difference(&first.1, &other.1) else { return Ok(()) };
    let (first, other) = (first.0.clone(), other.0.clone());
    Err(ReportError::OtherClasses { first, other, reason })
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
