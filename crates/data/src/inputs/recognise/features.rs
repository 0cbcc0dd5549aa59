//! Embeddings in files, with their labels beside them.

use std::path::Path;

use super::super::matrix::Matrix;
use super::units::{self, Role, Split, Unit};
use super::{Family, Recognised, short, unsure, value};
use crate::array::{Array, Values};
use crate::error::DataError;

/// Columns that hold the label in a table of several.
const LABEL_COLUMNS: [&str; 6] = ["label", "labels", "class", "target", "y", "category"];

/// A folder with the files of one data set.
pub(super) fn in_folder(path: &Path) -> Result<Option<Recognised>, DataError> {
    let around = Around { path, units: units::in_folder(path)? };
    let matrices = around.matrices(|_| true);
    if matrices.is_empty() {
        return Ok(None);
    }
    around.recognise(training(matrices)).map(Some)
}

/// The name of any matrix of embeddings in a folder.
pub(super) fn matrix_in(path: &Path) -> Result<Option<String>, DataError> {
    let around = Around { path, units: units::in_folder(path)? };
    Ok(around.matrices(|_| true).first().map(|unit| unit.short()))
}

/// One file of embeddings; its labels are sought beside it.
pub(super) fn in_file(path: &Path) -> Result<Option<Recognised>, DataError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let around = Around { path, units: units::in_folder(folder)? };
    let same = |unit: &Unit| unit.file.file_name() == path.file_name();
    let matrices = around.matrices(same);
    if matrices.is_empty() {
        // Whatever is wrong with it, the reader says it best.
        Matrix::open(&value(path)?)?;
        return Ok(None);
    }
    around.recognise(training(matrices)).map(Some)
}

/// Those to train on: all that say so, or else all that say nothing.
fn training(matrices: Vec<&Unit>) -> Vec<&Unit> {
    let of = |split| matrices.iter().copied().filter(|unit| unit.split == split).collect();
    let (train, unsaid): (Vec<&Unit>, Vec<&Unit>) = (of(Some(Split::Train)), of(None));
    match (train.is_empty(), unsaid.is_empty()) {
        (false, _) => train,
        (true, false) => unsaid,
        (true, true) => matrices,
    }
}

/// The arrays around a path.
struct Around<'a> {
    path: &'a Path,
    units: Vec<Unit>,
}

impl Around<'_> {
    fn matrices(&self, wanted: impl Fn(&Unit) -> bool) -> Vec<&Unit> {
        let suits = |unit: &&Unit| {
            unit.is_matrix && matches!(unit.role, Role::Unsaid | Role::Inputs) && wanted(unit)
        };
        self.units.iter().filter(suits).collect()
    }

    fn recognise(&self, candidates: Vec<&Unit>) -> Result<Recognised, DataError> {
        let &[train] = &candidates[..] else {
            let specs: Vec<String> = candidates.iter().map(|unit| unit.short()).collect();
            let why = format!("has several matrices to train on: {}", specs.join(", "));
            return Err(unsure(self.path, &why));
        };
        let mut found = Found::new(train);
        let labels = self.training_labels(train, &mut found)?;
        found.set("data.train.labels", &labels.spec);
        for split in [Split::Validation, Split::Test] {
            self.add_held_out(train, split, &mut found)?;
        }
        if let Some(names) = self.find(Role::ClassNames, train, None)? {
            found.set("data.class_names", &names.spec);
        }
        Ok(found.finish())
    }

    /// The labels to train on, and what else they tell about the recipe.
    fn training_labels(&self, train: &Unit, found: &mut Found) -> Result<Labels, DataError> {
        let labels = self.find(Role::Labels, train, train.split)?;
        let clean = self.find(Role::CleanLabels, train, train.split)?;
        if let Some(answers) = self.find(Role::Answers, train, train.split)? {
            let labels = labels.map(Labels::of).transpose()?;
            let clean = clean.map(Labels::of).transpose()?.or(labels);
            found.set("data.label_kind", "annotators");
            found.say(&format!("answers of several annotators in {}", answers.short()));
            found.add_clean(clean);
            return Ok(Labels { spec: answers.spec.clone(), kind: Kind::Single });
        }
        let Some(labels) = labels else {
            return Err(unsure(self.path, &format!("{} has no labels beside it", train.short())));
        };
        let labels = Labels::of(labels)?;
        found.say(&format!("{} in {}", labels.kind.phrase(), labels.short()));
        match labels.kind {
            Kind::MultiHot => found.family = Family::Multilabel,
            Kind::OneHot => found.set("data.label_kind", "soft"),
            Kind::Single | Kind::Other => {}
        }
        found.add_clean(clean.map(Labels::of).transpose()?);
        Ok(labels)
    }

    fn add_held_out(&self, train: &Unit, split: Split, found: &mut Found) -> Result<(), DataError> {
        // Who names the test data as what to train on shall not be tested on the same.
        let is_it = |unit: &Unit| {
            unit.split == Some(split) && unit.key == train.key && unit.spec != train.spec
        };
        let matrices = self.matrices(is_it);
        let labels = self.find(Role::Labels, train, Some(split))?;
        let clean = self.find(Role::CleanLabels, train, Some(split))?;
        let name = if split == Split::Test { "test" } else { "validation" };
        let &[inputs] = &matrices[..] else { return Ok(()) };
        let Some(labels) = labels.or(clean) else {
            found.say(&format!("{} is not used, it has no labels beside it", inputs.short()));
            return Ok(());
        };
        let labels = Labels::of(labels)?;
        // The preset takes a part of the training data instead.
        found.set(&format!("data.{name}"), "");
        found.set(&format!("data.{name}.features"), &inputs.spec);
        found.set(&format!("data.{name}.labels"), &labels.spec);
        found.say(&format!("{name} data in {}", inputs.short()));
        Ok(())
    }

    /// The array with this role that goes with `inputs`: in the same file, or else of the same
    /// name, or else without one.
    fn find(
        &self,
        role: Role,
        inputs: &Unit,
        split: Option<Split>,
    ) -> Result<Option<&Unit>, DataError> {
        let all = |key: &str, split: Option<Split>| -> Vec<&Unit> {
            let is_it = |unit: &&Unit| unit.role == role && unit.key == key && unit.split == split;
            self.units.iter().filter(is_it).collect()
        };
        let inside: Vec<&Unit> =
            all(&inputs.key, split).into_iter().filter(|unit| unit.file == inputs.file).collect();
        if let [only] = inside[..] {
            return Ok(Some(only));
        }
        // `labels.npy` without a split goes with the training inputs.
        let unsaid = if split == inputs.split { None } else { split };
        for (key, split) in
            [(&inputs.key[..], split), ("", split), (&inputs.key, unsaid), ("", unsaid)]
        {
            match &all(key, split)[..] {
                [] => {}
                [only] => return Ok(Some(only)),
                several => {
                    let specs: Vec<String> = several.iter().map(|unit| unit.short()).collect();
                    let why = format!("{} could go with {}", specs.join(" or "), inputs.short());
                    return Err(unsure(self.path, &why));
                }
            }
        }
        Ok(None)
    }
}

/// What is being put together.
struct Found {
    family: Family,
    settings: Vec<(String, String)>,
    said: Vec<String>,
}

impl Found {
    fn new(train: &Unit) -> Self {
        let said = vec![format!("Embeddings in {}", train.short())];
        let settings = vec![("data.train.features".to_string(), train.spec.clone())];
        Self { family: Family::Features, settings, said }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.settings.push((key.to_string(), value.to_string()));
    }

    fn say(&mut self, what: &str) {
        self.said.push(what.to_string());
    }

    fn add_clean(&mut self, clean: Option<Labels>) {
        if let Some(clean) = clean {
            self.set("data.train.clean_labels", &clean.spec);
            self.say(&format!("the true labels, to compare with, in {}", clean.short()));
        }
    }

    fn finish(self) -> Recognised {
        let explanation = self.said.join("; ") + ".";
        Recognised { preset_family: self.family, settings: self.settings, explanation }
    }
}

/// A label file, after a look inside.
struct Labels {
    spec: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    /// Zeros and ones, a single one in each row.
    OneHot,
    /// Zeros and ones.
    MultiHot,
    /// Whatever `data.label_kind = "auto"` makes of it.
    Other,
}

impl Labels {
    fn short(&self) -> String {
        short(Path::new(&self.spec))
    }

    fn of(unit: &Unit) -> Result<Self, DataError> {
        let array = Array::load(&unit.spec)?;
        let column = array.columns.as_ref().filter(|_| array.shape.len() == 2).and_then(|names| {
            let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
            // A row for each annotation is a table as a whole.
            let is_long = lower.iter().any(|name| name == "annotator" || name == "worker");
            let is_label = |name: &String| LABEL_COLUMNS.contains(&name.as_str());
            let at = lower.iter().position(is_label).filter(|_| !is_long)?;
            Some(names[at].clone())
        });
        Ok(match column {
            Some(column) => Self { spec: format!("{}#{column}", unit.spec), kind: Kind::Single },
            None => Self { spec: unit.spec.clone(), kind: Kind::of(&array) },
        })
    }
}

impl Kind {
    fn of(array: &Array) -> Self {
        let &[_, width] = &array.shape[..] else { return Self::Single };
        if width < 2 {
            return Self::Single;
        }
        let on: Option<Vec<bool>> = match &array.values {
            Values::Int(values) => values.iter().map(|&v| binary(v as f64)).collect(),
            Values::Float(values) => values.iter().map(|&v| binary(v)).collect(),
            Values::Text(_) => None,
        };
        match on {
            None => Self::Other,
            Some(on) if on.chunks(width).all(|row| row.iter().filter(|on| **on).count() == 1) => {
                Self::OneHot
            }
            Some(_) => Self::MultiHot,
        }
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Single => "one class each",
            Self::OneHot => "one class each, as rows with a single 1,",
            Self::MultiHot => "classes that are on or off (0/1)",
            Self::Other => "labels",
        }
    }
}

fn binary(value: f64) -> Option<bool> {
    if value == 0.0 {
        Some(false)
    } else if value == 1.0 {
        Some(true)
    } else {
        None
    }
}
