//! From directories to the rows of a comparison.

use std::path::{Path, PathBuf};

use aleator_run::{EvaluatedRun, GroupKind, Noise, RunGroup, RunTree, seed_of_name, without_seed};

use super::error::CompareError;
use crate::audit::Audit;

/// Runs that differ in their seeds only: one row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// At least one, by ascending seed.
    pub runs: Vec<SeedRun>,
}

/// The results of one seed: a run, or a transfer to several tasks.
#[derive(Clone, Debug)]
pub struct SeedRun {
    /// Its directory.
    pub dir: PathBuf,
    /// Its seed; `None` for ensembles, which have several.
    pub seed: Option<u64>,
    /// One for a run; of a transfer, one for each task.
    pub parts: Vec<Part>,
}

/// A run, or one task of a transfer.
#[derive(Clone, Debug)]
pub struct Part {
    /// The task of a transfer; empty for a run.
    pub task: String,
    /// The run.
    pub run: EvaluatedRun,
}

/// A directory to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of its row. Directories of the same name make one row.
    pub name: Option<String>,
    /// The directory.
    pub dir: PathBuf,
}

impl Row {
    /// The rows of some directories, in their order.
    ///
    /// # Errors
    /// When a directory holds no runs, a run is not finished, or a file is damaged.
    pub fn read(sources: &[Source]) -> Result<Vec<Self>, CompareError> {
        let mut rows: Vec<Self> = vec![];
        for source in sources {
            let own_name = own_name(source, sources);
            let found = rows_of(&source.dir)?;
            let several = sources.len() > 1 && found.len() > 1;
            let prefix = source.name.as_ref().or(several.then_some(&own_name));
            for (name, runs) in found {
                let name = match &prefix {
                    Some(prefix) => join(prefix, &name),
                    None if name.is_empty() => own_name.clone(),
                    None => name,
                };
                match rows.iter_mut().find(|row| row.name == name) {
                    Some(row) if source.name.is_some() => row.runs.extend(runs),
                    Some(_) => {
                        let dir = source.dir.clone();
                        return Err(CompareError::NameTwice { name, dir });
                    }
                    None => rows.push(Self { name, runs }),
                }
            }
        }
        rows.into_iter().map(Self::sorted).collect()
    }

    /// Sorts by seed and refuses a run that is listed twice, which would make the spread too small.
    fn sorted(mut self) -> Result<Self, CompareError> {
        self.runs.sort_by_key(|run| run.seed);
        let places: Vec<PathBuf> = self.runs.iter().map(|run| real(&run.dir)).collect();
        for (at, run) in self.runs.iter().enumerate() {
            let same = |other: &usize| {
                let same_seed = run.seed.is_some() && self.runs[*other].seed == run.seed;
                same_seed || places[*other] == places[at]
            };
            if let Some(other) = (0..at).find(same) {
                let (first, second) = (self.runs[other].dir.clone(), run.dir.clone());
                return Err(CompareError::SeedTwice { row: self.name, first, second });
            }
        }
        Ok(self)
    }

    /// The seeds; `None` if a run has none.
    pub fn seeds(&self) -> Option<Vec<u64>> {
        self.runs.iter().map(|run| run.seed).collect()
    }
}

impl SeedRun {
    fn of_run(run: EvaluatedRun, dir: PathBuf, seed: Option<u64>) -> Self {
        Self { dir, seed, parts: vec![Part { task: String::new(), run }] }
    }
}

type Named = (String, Vec<SeedRun>);

/// The rows in a directory; a single row has an empty name.
fn rows_of(dir: &Path) -> Result<Vec<Named>, CompareError> {
    if !dir.is_dir() {
        return Err(CompareError::NoDirectory { dir: dir.to_path_buf() });
    }
    let mut rows: Vec<Named> = vec![];
    for (place, tree) in baseline_first(RunTree::find(dir)?) {
        for (name, runs) in rows_of_tree(tree)? {
            let name = join(&without_seed(&place), &name);
            match rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.extend(runs),
                None => rows.push((name, runs)),
            }
        }
    }
    let dir = dir.to_path_buf();
    match rows {
        rows if !rows.is_empty() => Ok(rows),
        _ if Audit::is_at(&dir) => Err(CompareError::OfAudit { dir }),
        _ => Err(CompareError::NoRuns { dir }),
    }
}

/// What others are compared with comes first; the rest stays in the order of the names.
pub(crate) fn baseline_first(mut found: Vec<(String, RunTree)>) -> Vec<(String, RunTree)> {
    found.sort_by_key(|(_, tree)| tree.noise() != Some(Noise::None));
    found
}

fn rows_of_tree(tree: RunTree) -> Result<Vec<Named>, CompareError> {
    match tree {
        RunTree::Run(run) => {
            let dir = run.path().to_path_buf();
            let run = EvaluatedRun::of(run, &dir)?;
            let is_ensemble = run.evaluation.weights == "ensemble";
            let seed = (!is_ensemble).then_some(run.dir.info().seed);
            Ok(vec![(String::new(), vec![SeedRun::of_run(run, dir, seed)])])
        }
        RunTree::Group(group) => rows_of_group(&group),
        // The folds of an audit are measured on different examples.
        RunTree::Audit(_) => Ok(vec![]),
    }
}

/// The rows of a group: its settings.
fn rows_of_group(group: &RunGroup) -> Result<Vec<Named>, CompareError> {
    let dir = &group.dir;
    if group.kind == GroupKind::Transfer {
        let mut parts = vec![];
        for member in &group.members {
            parts.push(Part { task: member.name.clone(), run: group.open(member)? });
        }
        if parts.is_empty() {
            return Ok(vec![]);
        }
        let seed = seed_of_name(&dir_name(dir));
        return Ok(vec![(String::new(), vec![SeedRun { dir: dir.clone(), seed, parts }])]);
    }
    let mut rows: Vec<Named> = vec![];
    for member in &group.members {
        let run = group.open(member)?;
        let run = SeedRun::of_run(run, dir.join(&member.name), Some(member.seed));
        let setting = member.setting();
        match rows.iter_mut().find(|(known, _)| *known == setting) {
            Some((_, runs)) => runs.push(run),
            None => rows.push((setting, vec![run])),
        }
    }
    Ok(rows)
}

/// The name of a directory; its whole path if another has the same name.
fn own_name(source: &Source, sources: &[Source]) -> String {
    let name = dir_name(&source.dir);
    let same = |other: &&Source| other.name.is_none() && dir_name(&other.dir) == name;
    if sources.iter().filter(same).count() > 1 { source.dir.display().to_string() } else { name }
}

fn dir_name(dir: &Path) -> String {
    // `.` and `..` have no name of their own.
    let dir = if dir.file_name().is_some() { dir } else { &real(dir) };
    dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned()
}

fn real(dir: &Path) -> PathBuf {
    dir.canonicalize().unwrap_or(dir.to_path_buf())
}

fn join(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        (alone, "") | ("", alone) => alone.to_string(),
        _ => format!("{prefix}/{name}"),
    }
}
