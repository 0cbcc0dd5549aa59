//! The arrays that lie in a folder, and what their names say about them.

use std::path::{Path, PathBuf};

use super::super::mapped::Mapped;
use super::{folder, short, text};
use crate::array::columns::ParquetTable;
use crate::array::element::{Element, Located};
use crate::array::{Format, npy, tensors};
use crate::ending::Ending;
use crate::error::DataError;

/// Which part of the data an array belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Split {
    Train,
    Validation,
    Test,
}

/// What an array is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The name says nothing.
    Unsaid,
    Inputs,
    Labels,
    /// The true labels.
    CleanLabels,
    /// Labels of several annotators.
    Answers,
    ClassNames,
}

/// An array: a file, a tensor of one or a column of one.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub file: PathBuf,
    /// `file` or `file#name`, as a recipe has it.
    pub spec: String,
    /// What is left of the name without the words that say split and role.
    pub key: String,
    pub split: Option<Split>,
    pub role: Role,
    /// `[rows, width]` floats, which could be embeddings.
    pub is_matrix: bool,
}

/// Reads `scene_train_x` as the training inputs of "scene": the key, the split and the role.
fn parse(name: &str) -> (String, Option<Split>, Role) {
    let (mut keys, mut split, mut role) = (vec![], None, Role::Unsaid);
    let mut read = |word: &str| match word {
        "train" | "training" => split = Some(Split::Train),
        "val" | "valid" | "validation" | "dev" => split = Some(Split::Validation),
        "test" | "testing" => split = Some(Split::Test),
        "clean" | "true" | "gold" => role = Role::CleanLabels,
        "names" => role = Role::ClassNames,
        "answers" | "annotations" | "annotators" | "votes" => role = Role::Answers,
        "y" | "label" | "labels" | "target" | "targets" | "class" | "classes" => {
            // "clean_labels" and "label_names" are not plain labels.
            if matches!(role, Role::Unsaid | Role::Inputs) {
                role = Role::Labels;
            }
        }
        "x" | "features" | "feature" | "embeddings" | "embedding" | "emb" | "inputs" => {
            if role == Role::Unsaid {
                role = Role::Inputs;
            }
        }
        "noisy" | "idx" => {}
        other => keys.push(other.to_string()),
    };
    let lower = name.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        // "xtrain" and "trainx" are two words each.
        let two = ["train", "test", "val"].into_iter().find_map(|split| {
            let rest = word.strip_prefix(split).or_else(|| word.strip_suffix(split))?;
            matches!(rest, "x" | "y").then_some([split, rest])
        });
        match two {
            Some(two) => two.into_iter().for_each(&mut read),
            None => read(word),
        }
    }
    (keys.join("_"), split, role)
}

/// The split that a name says.
pub(super) fn split_of(name: &str) -> Option<Split> {
    parse(name).1
}

/// Whether a file holds anything that could be embeddings.
pub(super) fn holds_matrix(path: &Path) -> bool {
    parts(path).is_ok_and(|parts| parts.iter().any(|part| part.is_matrix))
}

/// Every array of a folder, in the order of file names.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<Unit>, DataError> {
    let mut units = vec![];
    for path in folder::files_in(folder)? {
        if is_array(&path) && path.is_file() {
            units.extend(in_file(&path)?);
        }
    }
    Ok(units)
}

fn is_array(path: &Path) -> bool {
    use Ending::{Csv, Lines, Npy, Parquet, Safetensors, Tsv};
    matches!(Ending::of(path), Some(Npy | Safetensors | Parquet | Csv | Tsv | Lines))
}

/// Every array of a file. One that is damaged is an error only if its name says that it holds
/// inputs: other files of a folder may be anything.
fn in_file(path: &Path) -> Result<Vec<Unit>, DataError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
    match parts(path) {
        Ok(parts) => parts.into_iter().map(|part| Unit::new(path, &stem, part)).collect(),
        Err(error) if parse(&stem).2 == Role::Inputs => Err(error),
        Err(_) => Ok(vec![]),
    }
}

impl Unit {
    /// The spec without its folder, for sentences.
    pub(super) fn short(&self) -> String {
        short(Path::new(&self.spec))
    }

    fn new(path: &Path, stem: &str, part: Part) -> Result<Self, DataError> {
        let (spec, name) = match &part.name {
            Some(part) => (format!("{}#{part}", text(path)?), format!("{stem} {part}")),
            None => (text(path)?, stem.to_string()),
        };
        let (key, split, role) = parse(&name);
        let role = if stem.eq_ignore_ascii_case("classes") { Role::ClassNames } else { role };
        let is_matrix = part.is_matrix;
        Ok(Self { file: path.to_path_buf(), spec, key, split, role, is_matrix })
    }
}

/// A tensor or column, without a name if it is the only one.
struct Part {
    name: Option<String>,
    is_matrix: bool,
}

fn parts(path: &Path) -> Result<Vec<Part>, DataError> {
    let is_matrix = |at: &Located| at.shape.len() == 2 && at.element.is_float();
    let mut parts = match Format::of(path)? {
        Format::Npy => {
            let at = npy::locate(path, Mapped::open(path)?.bytes())?;
            vec![Part { name: None, is_matrix: is_matrix(&at) }]
        }
        Format::Safetensors => {
            let tensors = tensors::list(path, Mapped::open(path)?.bytes())?;
            let part = |tensor: tensors::Tensor| Part {
                is_matrix: tensor.at.as_ref().is_some_and(is_matrix),
                name: Some(tensor.name),
            };
            tensors.into_iter().map(part).collect()
        }
        Format::Parquet => {
            let columns = ParquetTable::open(path)?.columns();
            let part = |column: crate::array::columns::Column| Part {
                is_matrix: column.is_list() && column.element().is_some_and(Element::is_float),
                name: Some(column.name),
            };
            columns.into_iter().map(part).collect()
        }
        Format::Table { .. } | Format::Lines | Format::Idx => {
            vec![Part { name: None, is_matrix: false }]
        }
    };
    if let [only] = &mut parts[..] {
        only.name = None;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_split_and_role() {
        let train = Some(Split::Train);
        assert_eq!(parse("scene_train_x"), ("scene".into(), train, Role::Inputs));
        assert_eq!(parse("scene_train_y"), ("scene".into(), train, Role::Labels));
        assert_eq!(parse("y_train"), ("".into(), train, Role::Labels));
        assert_eq!(parse("xtrain"), ("".into(), train, Role::Inputs));
        assert_eq!(parse("cifar10_test"), ("cifar10".into(), Some(Split::Test), Role::Unsaid));
        assert_eq!(parse("valid-labels"), ("".into(), Some(Split::Validation), Role::Labels));
        assert_eq!(parse("train_clean_labels"), ("".into(), train, Role::CleanLabels));
        assert_eq!(parse("labels_clean"), ("".into(), None, Role::CleanLabels));
        assert_eq!(parse("class_names"), ("".into(), None, Role::ClassNames));
        assert_eq!(parse("train_answers"), ("".into(), train, Role::Answers));
        assert_eq!(parse("features_labels"), ("".into(), None, Role::Labels));
    }
}
