//! Embeddings in files, with their labels beside them.

use std::path::Path;

use aleator_run::recipe::{DataOverlay, HeldOut, InputSource, LabelKind, Source};

use super::super::matrix::Matrix;
use super::units::{self, Role, Split, Unit};
use super::{Family, Recognised, short, source, text, unsure};
use crate::array::{Array, split_spec};
use crate::ending::Ending;
use crate::error::DataError;

/// Columns that hold the label in a table of several.
const LABEL_COLUMNS: [&str; 6] = ["label", "labels", "class", "target", "y", "category"];

/// A folder with the files of one data set.
pub(super) fn in_folder(path: &Path) -> Result<Option<Recognised>, DataError> {
    let arrays = Arrays::in_folder(path, path)?;
    let found = arrays.recognise(|_| true)?;
    if let (None, Some(spec)) = (&found, arrays.meant_as_matrix(|_| true)) {
        Matrix::open(&spec)?;
    }
    Ok(found)
}

/// The name of any matrix of embeddings in a folder.
pub(super) fn matrix_in(path: &Path) -> Result<Option<String>, DataError> {
    let arrays = Arrays::in_folder(path, path)?;
    Ok(arrays.matrices(Unit::is_embeddings).first().map(|unit| unit.short()))
}

/// One file of embeddings, or one array of it (`file#name`); its labels are sought in the file, and
/// then beside it.
pub(super) fn in_file(path: &Path) -> Result<Option<Recognised>, DataError> {
    let wanted = text(path)?;
    let (file, name) = split_spec(&wanted);
    if name.is_some() {
        // Whether there is such an array, and it is a matrix, the reader says best.
        Matrix::open(&wanted)?;
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let arrays = Arrays::in_folder(path, folder)?;
    let is_it = |unit: &Unit| {
        let (_, own) = split_spec(&unit.spec);
        unit.file.file_name() == file.file_name()
            && (name.is_none() || own.is_none_or(|own| name == Some(own)))
    };
    let found = arrays.recognise(is_it)?;
    if found.is_none() {
        // Whatever is wrong with it, the reader says it best.
        let spec = arrays.meant_as_matrix(is_it);
        Matrix::open(&spec.map_or_else(|| text(path), Ok)?)?;
    }
    Ok(found)
}

/// The arrays of a folder.
struct Arrays<'a> {
    /// The folder, or the file in it that the user named.
    path: &'a Path,
    units: Vec<Unit>,
}

impl<'a> Arrays<'a> {
    fn in_folder(path: &'a Path, folder: &Path) -> Result<Self, DataError> {
        Ok(Self { path, units: units::in_folder(folder)? })
    }

    /// Embeddings, or else matrices of whole numbers.
    fn matrices(&self, wanted: impl Fn(&Unit) -> bool) -> Vec<&Unit> {
        let suits = |unit: &&Unit| {
            unit.matrix.is_some()
                && matches!(unit.role, Role::Unsaid | Role::Inputs)
                && wanted(unit)
        };
        let mut all: Vec<&Unit> = self.units.iter().filter(suits).collect();
        if all.iter().any(|unit| unit.is_embeddings()) {
            all.retain(|unit| unit.is_embeddings());
        }
        all
    }

    /// What would be the features if it were a matrix: an array by its name, or else any file of
    /// arrays.
    fn meant_as_matrix(&self, wanted: impl Fn(&Unit) -> bool) -> Option<String> {
        let is_array = |unit: &&Unit| {
            let ending = Ending::of(&unit.file);
            let is_array = matches!(ending, Some(Ending::Npy | Ending::Npz | Ending::Safetensors));
            is_array && wanted(unit)
        };
        let of = |role: Role| self.units.iter().filter(is_array).find(|unit| unit.role == role);
        match (of(Role::Inputs), of(Role::Unsaid)) {
            (Some(named), _) => Some(named.spec.clone()),
            (None, unsaid) => unsaid.and_then(|unit| text(&unit.file).ok()),
        }
    }

    /// How to train on one of these matrices: the only one that is for training, or else the only
    /// one whose name says no split, or else the only one.
    fn recognise(&self, is_it: impl Fn(&Unit) -> bool) -> Result<Option<Recognised>, DataError> {
        let of = |split| self.matrices(|unit| is_it(unit) && unit.split == split);
        let candidates = [of(Some(Split::Train)), of(None), self.matrices(&is_it)];
        let train = match candidates.iter().find(|units| !units.is_empty()).map(Vec::as_slice) {
            None => return Ok(None),
            Some([only]) => *only,
            Some(several) => {
                let specs: Vec<String> = several.iter().map(|unit| unit.short()).collect();
                let why = format!(
                    "has several matrices to train on: {}; choose one, as in --data {}",
                    specs.join(", "),
                    several[0].spec
                );
                return Err(unsure(self.path, &why));
            }
        };
        let mut found = Recognised {
            preset_family: Family::Features,
            train: source(InputSource::Features(train.spec.clone())),
            data: DataOverlay::default(),
            explanation: format!("Embeddings in {}", train.described()),
            longest_side: None,
        };
        self.add_labels(train, &mut found)?;
        if let Some(ids) = self.inside(Role::Ids, train, train.split) {
            found.note(&format!("ids in {}", ids.short()));
            found.train.ids = Some(ids.spec.clone());
        }
        found.data.validation = self.held_out(train, Split::Validation, &mut found)?;
        found.data.test = self.held_out(train, Split::Test, &mut found)?;
        let names = self.find(Role::ClassNames, train, None)?;
        found.data.class_names = names.map(|names| names.spec.clone().into());
        found.explanation.push('.');
        Ok(Some(found))
    }

    /// The labels to train on, and what else they tell about the recipe.
    fn add_labels(&self, train: &Unit, found: &mut Recognised) -> Result<(), DataError> {
        let labels = self.find(Role::Labels, train, train.split)?;
        let clean = self.find(Role::CleanLabels, train, train.split)?;
        let answers = self.find(Role::Answers, train, train.split)?;
        let labels = labels.map(Labels::of).transpose()?;
        let mut clean = clean.map(Labels::of).transpose()?;
        if let Some(answers) = answers {
            found.data.label_kind = Some(LabelKind::Annotators);
            found.note(&format!("answers of several annotators in {}", answers.short()));
            found.train.labels = Some(answers.spec.clone());
            clean = clean.or(labels);
        } else if let Some(labels) = labels {
            found.note(&format!("{} in {}", labels.form.phrase(), labels.short()));
            match labels.form {
                LabelForm::MultiHot => found.preset_family = Family::Multilabel,
                LabelForm::OneHot => found.data.label_kind = Some(LabelKind::Soft),
                LabelForm::Single | LabelForm::Other => {}
            }
            found.train.labels = Some(labels.spec);
        } else {
            return Err(unsure(self.path, &format!("{} has no labels beside it", train.short())));
        }
        if let Some(clean) = clean {
            found.note(&format!("the true labels, to compare with, in {}", clean.short()));
            found.train.clean_labels = Some(clean.spec);
        }
        Ok(())
    }

    fn held_out(
        &self,
        train: &Unit,
        split: Split,
        found: &mut Recognised,
    ) -> Result<Option<HeldOut>, DataError> {
        // Test data that the user names as training data are not tested on.
        let matrices = self.matrices(|unit| {
            unit.split == Some(split) && unit.key == train.key && unit.spec != train.spec
        });
        let labels = self.find(Role::Labels, train, Some(split))?;
        let clean = self.find(Role::CleanLabels, train, Some(split))?;
        let &[inputs] = &matrices[..] else { return Ok(None) };
        let Some(labels) = labels.or(clean) else {
            found.note(&format!("{} is not used, it has no labels beside it", inputs.short()));
            return Ok(None);
        };
        let labels = Some(Labels::of(labels)?.spec);
        let name = if split == Split::Test { "test" } else { "validation" };
        found.note(&format!("{name} data in {}", inputs.short()));
        let ids = self.inside(Role::Ids, inputs, Some(split)).map(|ids| ids.spec.clone());
        let inputs = InputSource::Features(inputs.spec.clone());
        Ok(Some(HeldOut::Source(Source { labels, ids, ..source(inputs) })))
    }

    /// The array with this role in the file of `inputs`: of the same name, or else the only one.
    fn inside(&self, role: Role, inputs: &Unit, split: Option<Split>) -> Option<&Unit> {
        let is_it =
            |unit: &&Unit| unit.role == role && unit.split == split && unit.file == inputs.file;
        let all: Vec<&Unit> = self.units.iter().filter(is_it).collect();
        let named: Vec<&Unit> = all.iter().filter(|unit| unit.key == inputs.key).copied().collect();
        match (&named[..], &all[..]) {
            ([only], _) | ([], [only]) => Some(only),
            _ => None,
        }
    }

    /// The array with this role that goes with `inputs`: in the same file, or else of the same
    /// name, or else without one. A file with inputs and labels that the user named is complete: of
    /// what lies beside it, only files that are called after it belong to it.
    fn find(
        &self,
        role: Role,
        inputs: &Unit,
        split: Option<Split>,
    ) -> Result<Option<&Unit>, DataError> {
        if let Some(only) = self.inside(role, inputs, split) {
            return Ok(Some(only));
        }
        let complete =
            !self.path.is_dir() && self.inside(Role::Labels, inputs, inputs.split).is_some();
        let may_be = |unit: &Unit| {
            let of_another_split = unit.split.is_some() && unit.split != inputs.split;
            !complete || of_another_split || unit.is_called_after(inputs)
        };
        let all = |key: &str, split: Option<Split>| -> Vec<&Unit> {
            let is_it = |unit: &&Unit| unit.role == role && unit.key == key && unit.split == split;
            self.units.iter().filter(is_it).filter(|unit| may_be(unit)).collect()
        };
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

impl Unit {
    /// Whether the name of its file begins with that of another: `wine_clean.npy` of `wine.npz`.
    fn is_called_after(&self, other: &Self) -> bool {
        let stem = |unit: &Self| unit.file.file_stem().unwrap_or_default().to_ascii_lowercase();
        stem(self).as_encoded_bytes().starts_with(stem(other).as_encoded_bytes())
    }

    /// Whether it holds floats, or its name says that it holds features.
    fn is_embeddings(&self) -> bool {
        self.matrix.is_some_and(|element| element.is_float() || self.role == Role::Inputs)
    }

    /// Where the features are, and that they are converted if they are not floats.
    fn described(&self) -> String {
        match self.matrix.filter(|element| !element.is_float()) {
            Some(element) => format!("{} ({}, read as float32)", self.short(), element.name()),
            None => self.short(),
        }
    }
}

/// A label file, after a look inside.
struct Labels {
    spec: String,
    form: LabelForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelForm {
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
            Some(column) => {
                Self { spec: format!("{}#{column}", unit.spec), form: LabelForm::Single }
            }
            None => Self { spec: unit.spec.clone(), form: LabelForm::of(&array) },
        })
    }
}

impl LabelForm {
    fn of(array: &Array) -> Self {
        let &[_, width] = &array.shape[..] else { return Self::Single };
        if width < 2 {
            return Self::Single;
        }
        let on: Option<Vec<bool>> = (0..array.values.len())
            .map(|at| match array.values.float(at) {
                0.0 => Some(false),
                1.0 => Some(true),
                _ => None,
            })
            .collect();
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
