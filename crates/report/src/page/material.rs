//! What directories hold that a report can be made of.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use aleator_metrics::Evaluation;
use aleator_metrics::significance::mean;
use aleator_run::{RunDir, RunError};
use serde::Deserialize;

use crate::audit::Audit;
use crate::error::ReportError;

/// Everything that was read.
pub(crate) struct Material {
    pub class_names: Vec<String>,
    /// Runs that differ in nothing but their seeds, together.
    pub settings: Vec<Setting>,
    pub audits: Vec<AuditAt>,
    /// Folders, and how many of their runs are not finished.
    pub unfinished: Vec<(PathBuf, usize)>,
    /// How each folder is made again.
    pub origins: Vec<Origin>,
}

pub(crate) struct Setting {
    /// Empty for a run by itself.
    pub name: String,
    pub runs: Vec<EvaluatedRun>,
    /// Whether it is the mean of others.
    pub is_ensemble: bool,
}

pub(crate) struct EvaluatedRun {
    pub dir: RunDir,
    pub evaluation: Evaluation,
    pub log: Log,
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

/// As `group.json` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GroupKind {
    Seeds,
    Sweep,
    Tune,
    Demo,
    Transfer,
}

/// What `metrics.jsonl` has of each quantity: step and value.
#[derive(Default)]
pub(crate) struct Log {
    pub loss: Vec<(f64, f64)>,
    pub learning_rate: Vec<(f64, f64)>,
    pub validation_nll: Vec<(f64, f64)>,
    pub validation_top1: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct GroupFile {
    format: u32,
    version: String,
    kind: GroupKind,
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
}

const GROUP: &str = "group.json";
const GROUP_FORMAT: u32 = 1;

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

    /// Adds what a directory holds, and says which classes each part has.
    fn add(
        &mut self,
        dir: &Path,
        prefix: &str,
    ) -> Result<Vec<(PathBuf, Vec<String>)>, ReportError> {
        let origin = |kind| Origin { dir: dir.to_path_buf(), kind };
        if Audit::is_at(dir) {
            let audit = Audit::load(dir)?;
            let names = audit.summary.class_names.clone();
            self.audits.push(AuditAt { dir: dir.to_path_buf(), name: dir_name(dir), audit });
            self.origins.push(origin(Kind::Audit));
            return Ok(vec![(dir.to_path_buf(), names)]);
        }
        if dir.join(GROUP).is_file() {
            let kind = self.add_group(dir, prefix)?;
            self.origins.push(origin(Kind::Group(kind)));
        } else if dir.join("run.json").is_file() {
            let run = EvaluatedRun::load(dir)?;
            self.add_run(prefix, run, false);
            self.origins.push(origin(Kind::Run));
        } else {
            return Err(ReportError::NothingToReport { dir: dir.to_path_buf() });
        }
        let all = self.settings.iter().flat_map(|setting| &setting.runs);
        let below = all.filter(|run| run.dir.path().starts_with(dir));
        Ok(below
            .map(|run| (run.dir.path().to_path_buf(), run.dir.info().class_names.clone()))
            .collect())
    }

    fn add_group(&mut self, dir: &Path, prefix: &str) -> Result<GroupKind, ReportError> {
        let group = read_group(&dir.join(GROUP))?;
        let mut unfinished = 0;
        for member in &group.members {
            let path = dir.join(&member.name);
            if !path.join(EVALUATION).is_file() {
                unfinished += 1;
                continue;
            }
            let name = joined(prefix, without_seed(&member.name));
            self.add_run(&name, EvaluatedRun::load(&path)?, false);
        }
        if unfinished == group.members.len() {
            return Err(ReportError::Unfinished { dir: dir.to_path_buf() });
        }
        if unfinished > 0 {
            self.unfinished.push((dir.to_path_buf(), unfinished));
        }
        let ensemble = dir.join("ensemble");
        if ensemble.join(EVALUATION).is_file() {
            let run = EvaluatedRun::load(&ensemble)?;
            self.add_run(&joined(prefix, "ensemble"), run, true);
        }
        Ok(group.kind)
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

    /// The run that is looked at closely: of the setting with the lowest validation NLL, in the
    /// demonstration of the full noise model.
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
        // A mean of runs by itself is looked at too.
        let any = || self.settings.iter().enumerate().next();
        let (at, setting) = shown.or_else(best).or_else(any)?;
        setting.runs.first().map(|run| (at, run))
    }
}

const EVALUATION: &str = "evaluation.json";

impl EvaluatedRun {
    fn load(path: &Path) -> Result<Self, ReportError> {
        let dir = RunDir::open(path)?;
        if !path.join(EVALUATION).is_file() {
            return Err(ReportError::Unfinished { dir: path.to_path_buf() });
        }
        let evaluation = dir.read_json(EVALUATION)?;
        let log = Log::load(&dir.metrics_path())?;
        Ok(Self { dir, evaluation, log })
    }
}

impl Log {
    /// Whatever the lines have; a run without a log has no curves.
    fn load(path: &Path) -> Result<Self, RunError> {
        let io = |source| RunError::Io { action: "read", path: path.to_path_buf(), source };
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(io(error)),
        };
        let mut log = Self::default();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(io)?;
            let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line)
                .map_err(|error| RunError::Damaged {
                    path: path.to_path_buf(),
                    message: format!("line {} is not a JSON object: {error}", index + 1),
                })?;
            let number = |key: &str| fields.get(key).and_then(serde_json::Value::as_f64);
            let Some(step) = number("step") else { continue };
            let all = [
                (&mut log.loss, "loss"),
                (&mut log.learning_rate, "learning_rate"),
                (&mut log.validation_nll, "validation_nll"),
                (&mut log.validation_top1, "validation_top1"),
            ];
            for (values, key) in all {
                values.extend(number(key).map(|value| (step, value)));
            }
        }
        Ok(log)
    }
}

fn read_group(path: &Path) -> Result<GroupFile, RunError> {
    let text = std::fs::read_to_string(path).map_err(|source| RunError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    })?;
    let group: GroupFile = serde_json::from_str(&text).map_err(|error| RunError::Damaged {
        path: path.to_path_buf(),
        message: error.to_string(),
    })?;
    if group.format != GROUP_FORMAT {
        let (found, writer) = (group.format.to_string(), group.version);
        return Err(RunError::Format { path: path.to_path_buf(), found, writer });
    }
    Ok(group)
}

fn same_classes(
    first: &(PathBuf, Vec<String>),
    other: &(PathBuf, Vec<String>),
) -> Result<(), ReportError> {
    if first.1 == other.1 {
        return Ok(());
    }
    let reason = match first.1.iter().zip(&other.1).position(|(a, b)| a != b) {
        _ if first.1.len() != other.1.len() => {
            format!("{} and {} of them", first.1.len(), other.1.len())
        }
        Some(at) => format!("class {at} is {:?} and {:?}", first.1[at], other.1[at]),
        None => String::new(),
    };
    let (first, other) = (first.0.clone(), other.0.clone());
    Err(ReportError::OtherClasses { first, other, reason })
}

/// The name of a member without its seed.
fn without_seed(name: &str) -> &str {
    let (parent, last) = name.rsplit_once('/').unwrap_or(("", name));
    if last.starts_with("seed-") { parent } else { name }
}

fn joined(prefix: &str, name: &str) -> String {
    let parts: Vec<&str> = [prefix, name].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// The last part of a path, or the path where it has no such part.
pub(crate) fn dir_name(dir: &Path) -> String {
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let name = full.file_name().unwrap_or(dir.as_os_str());
    name.to_string_lossy().into_owned()
}
