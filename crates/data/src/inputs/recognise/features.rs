//! Embeddings in files, with their labels beside them.

use std::path::Path;

use aleator_run::recipe::{DataOverlay, HeldOut, InputSource, LabelKind, Source};

use super::super::matrix::Matrix;
use super::units::{self, Role, Split, Unit};
use super::{Family, Recognised, short, source, text, unsure};
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
        Matrix::open(&text(path)?)?;
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
        found.train.labels = Some(labels.spec);
        found.data.validation = self.held_out(train, Split::Validation, &mut found)?;
        found.data.test = self.held_out(train, Split::Test, &mut found)?;
        let names = self.find(Role::ClassNames, train, None)?;
        found.data.class_names = names.map(|names| names.spec.clone().into());
        Ok(found.finish())
    }

    /// The labels to train on, and what else they tell about the recipe.
    fn training_labels(&self, train: &Unit, found: &mut Found) -> Result<Labels, DataError> {
        let labels = self.find(Role::Labels, train, train.split)?;
        let clean = self.find(Role::CleanLabels, train, train.split)?;
        if let Some(answers) = self.find(Role::Answers, train, train.split)? {
            let labels = labels.map(Labels::of).transpose()?;
            let clean = clean.map(Labels::of).transpose()?.or(labels);
            found.data.label_kind = Some(LabelKind::Annotators);
            found.note(&format!("answers of several annotators in {}", answers.short()));
            found.add_clean(clean);
            return Ok(Labels { spec: answers.spec.clone(), kind: Kind::Single });
        }
        let Some(labels) = labels else {
            return Err(unsure(self.path, &format!("{} has no labels beside it", train.short())));
        };
        let labels = Labels::of(labels)?;
        found.note(&format!("{} in {}", labels.kind.phrase(), labels.short()));
        match labels.kind {
            Kind::MultiHot => found.family = Family::Multilabel,
            Kind::OneHot => found.data.label_kind = Some(LabelKind::Soft),
            Kind::Single | Kind::Other => {}
        }
        found.add_clean(clean.map(Labels::of).transpose()?);
        Ok(labels)
    }

    fn held_out(
        &self,
        train: &Unit,
        split: Split,
        found: &mut Found,
    ) -> Result<Option<HeldOut>, DataError> {
        // Test data that the user names as training data are not tested on.
        let is_it = |unit: &Unit| {
            unit.split == Some(split) && unit.key == train.key && unit.spec != train.spec
        };
        let matrices = self.matrices(is_it);
        let labels = self.find(Role::Labels, train, Some(split))?;
        let clean = self.find(Role::CleanLabels, train, Some(split))?;
        let name = if split == Split::Test { "test" } else { "validation" };
        let &[inputs] = &matrices[..] else { return Ok(None) };
        let Some(labels) = labels.or(clean) else {
            found.note(&format!("{} is not used, it has no labels beside it", inputs.short()));
            return Ok(None);
        };
        let labels = Labels::of(labels)?;
        found.note(&format!("{name} data in {}", inputs.short()));
        let inputs = InputSource::Features(inputs.spec.clone());
        Ok(Some(HeldOut::Source(Source { labels: Some(labels.spec), ..source(inputs) })))
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

/// What was found so far.
struct Found {
    family: Family,
    train: Source,
    data: DataOverlay,
    notes: Vec<String>,
}

impl Found {
    fn new(train: &Unit) -> Self {
        let notes = vec![format!("Embeddings in {}", train.short())];
        let train = source(InputSource::Features(train.spec.clone()));
        Self { family: Family::Features, train, data: DataOverlay::default(), notes }
    }

    fn note(&mut self, what: &str) {
        self.notes.push(what.to_string());
    }

    fn add_clean(&mut self, clean: Option<Labels>) {
        if let Some(clean) = clean {
            self.note(&format!("the true labels, to compare with, in {}", clean.short()));
            self.train.clean_labels = Some(clean.spec);
        }
    }

    fn finish(self) -> Recognised {
        let explanation = self.notes.join("; ") + ".";
        let Self { family: preset_family, train, data, .. } = self;
        Recognised { preset_family, train, data, explanation }
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
