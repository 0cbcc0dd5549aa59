//! The label files of the demonstration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aleator_data::{Sources, Split};
use aleator_report::audit::{Audit, Issue};
use aleator_run::{CsvFile, Recipe};
use aleator_train::label_sets;

use crate::Error;

/// The labels of the digits, with ids. Test examples are in none that an audit reads.
pub(super) struct LabelFiles {
    /// The labels to train on, some of them wrong; without the test examples.
    given: PathBuf,
    /// The true labels of all examples.
    truth: PathBuf,
    /// Suggestions in place of the suspects, and the true labels of the test examples.
    corrected: PathBuf,
}

/// The labels of one example, by the names of their classes.
struct DigitLabels {
    id: String,
    given: String,
    truth: String,
    is_test: bool,
}

impl LabelFiles {
    /// Their names in the directory of the demonstration.
    pub fn of(out: &Path) -> Result<Self, Error> {
        let out = std::path::absolute(out).map_err(Error::io(out))?;
        let file = |name: &str| out.join(name);
        Ok(Self {
            given: file("labels.csv"),
            truth: file("true.csv"),
            corrected: file("corrected.csv"),
        })
    }

    /// The recipe on the given labels without the test examples.
    pub fn to_audit(&self, recipe: &Recipe) -> Recipe {
        self.with(recipe, &self.given)
    }

    /// The recipe on the corrected labels. Splits are drawn by id, so the test examples are the
    /// same as without them.
    pub fn to_train(&self, recipe: &Recipe) -> Recipe {
        self.with(recipe, &self.corrected)
    }

    fn with(&self, recipe: &Recipe, labels: &Path) -> Recipe {
        let mut recipe = recipe.clone();
        // The files have the noise already.
        recipe.data.noise = None;
        recipe.data.train.labels = Some(labels.display().to_string());
        recipe.data.train.clean_labels = Some(format!("{}#label", self.truth.display()));
        recipe
    }

    /// Writes the given and the true labels of a recipe that makes labels wrong.
    pub fn write_given(&self, recipe: &Recipe) -> Result<(), Error> {
        let digits = read(recipe)?;
        let trained = digits.iter().filter(|it| !it.is_test);
        write(&self.given, trained.map(|it| [&it.id, &it.given]))?;
        write(&self.truth, digits.iter().map(|it| [&it.id, &it.truth]))
    }

    /// Writes the labels with the suggestion of each suspect in its place.
    pub fn write_corrected(&self, recipe: &Recipe, audit: &Audit) -> Result<(), Error> {
        // Runs that were trained on it are resumed with the same labels.
        if self.corrected.exists() {
            return Ok(());
        }
        let names = &audit.summary.class_names;
        let suspects = audit.issues.iter().filter(|issue| issue.wrong);
        let suggestion = |issue: &Issue| &names[issue.suggested.class() as usize];
        let suggested: BTreeMap<&str, &String> =
            suspects.map(|issue| (issue.id.as_str(), suggestion(issue))).collect();
        let digits = read(recipe)?;
        let row = |it: &DigitLabels| {
            let kept = if it.is_test { &it.truth } else { &it.given };
            let label = suggested.get(it.id.as_str()).map_or(kept, |label| *label);
            [it.id.clone(), label.clone()]
        };
        write(&self.corrected, digits.iter().map(row))
    }
}

/// The labels of all examples of a recipe, in their order.
fn read(recipe: &Recipe) -> Result<Vec<DigitLabels>, Error> {
    let sources = Sources::open(&recipe.data, recipe.head.link)?;
    let tested = sources.divide(&recipe.data)?.test;
    let test_ids: Vec<String> = tested.iter().flat_map(|split| ids(split)).collect();
    let all = sources.training_source(&recipe.data)?;
    let name = |class: u32| sources.class_names()[class as usize].clone();
    let labels = label_sets(&all).into_iter().enumerate();
    let digit = |(at, label): (usize, Vec<u32>)| {
        let id = all.ids.name(at).into_owned();
        let truth = all.clean_labels.as_ref().map_or(label[0], |clean| clean[at]);
        let is_test = test_ids.contains(&id);
        DigitLabels { id, given: name(label[0]), truth: name(truth), is_test }
    };
    Ok(labels.map(digit).collect())
}

fn ids(split: &Split) -> impl Iterator<Item = String> {
    (0..split.len()).map(|at| split.ids.name(at).into_owned())
}

fn write<T: AsRef<[u8]>>(path: &Path, rows: impl Iterator<Item = [T; 2]>) -> Result<(), Error> {
    CsvFile::write(path, &["id", "label"], |file| {
        for row in rows {
            file.row(&row)?;
        }
        Ok(())
    })
}
