//! The arrays that lie in a folder, and what their names say about them.

use std::path::{Path, PathBuf};

use super::super::file_bytes::FileBytes;
use super::{folder, short, text};
use crate::array::columns::ParquetTable;
use crate::array::element::{Element, Located};
use crate::array::{Format, npy, npz, tensors};
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
    Ids,
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
    /// The type of a matrix `[rows, width]` of numbers, which could be features.
    pub matrix: Option<Element>,
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
        "x" | "features" | "feature" | "embeddings" | "embedding" | "emb" | "inputs" | "data" => {
            if role == Role::Unsaid {
                role = Role::Inputs;
            }
        }
        "ids" | "id" if role == Role::Unsaid => role = Role::Ids,
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
pub(super) fn holds_floats(path: &Path) -> bool {
    let is_floats = |part: &Part| part.matrix.is_some_and(Element::is_float);
    parts(path).is_ok_and(|parts| parts.iter().any(is_floats))
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
    use Ending::{Csv, Lines, Npy, Npz, Parquet, Safetensors, Tsv};
    matches!(Ending::of(path), Some(Npy | Npz | Safetensors | Parquet | Csv | Tsv | Lines))
}

/// Every array of a file. One that is damaged is an error if its name says that it holds inputs,
/// or else when it is used: other files of a folder may be anything.
fn in_file(path: &Path) -> Result<Vec<Unit>, DataError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
    let parts = match parts(path) {
        Ok(parts) => parts,
        Err(error) if parse(&stem).2 == Role::Inputs => return Err(error),
        Err(_) => vec![Part { name: None, matrix: None }],
    };
    let is_pair = parts.len() == 2;
    parts.into_iter().map(|part| Unit::new(path, &stem, part, is_pair)).collect()
}

impl Unit {
    /// The spec without its folder, for sentences.
    pub(super) fn short(&self) -> String {
        short(Path::new(&self.spec))
    }

    /// `is_pair` if the file holds two arrays.
    fn new(path: &Path, stem: &str, part: Part, is_pair: bool) -> Result<Self, DataError> {
        let spec = match &part.name {
            Some(part) => format!("{}#{part}", text(path)?),
            None => text(path)?,
        };
        let own = match part.name.as_deref() {
            // What numpy.savez(file, x, y) calls them.
            Some("arr_0") if is_pair => "x",
            Some("arr_1") if is_pair => "y",
            Some(name) => name,
            None => "",
        };
        let (key, split, role) = parse(&format!("{stem} {own}"));
        let role = match parse(own).2 {
            // The name in the file says more than that of the file.
            Role::Unsaid => role,
            own => own,
        };
        let called = part.name.as_deref().unwrap_or(stem);
        let role = match role {
            _ if called.eq_ignore_ascii_case("classes") => Role::ClassNames,
            // In .safetensors they are bytes of the file's own format.
            Role::Ids if Ending::of(path) != Some(Ending::Npz) => Role::Unsaid,
            role => role,
        };
        Ok(Self { file: path.to_path_buf(), spec, key, split, role, matrix: part.matrix })
    }
}

/// A tensor or column, without a name if it is the only one.
struct Part {
    name: Option<String>,
    matrix: Option<Element>,
}

fn parts(path: &Path) -> Result<Vec<Part>, DataError> {
    let matrix = |at: &Located| {
        let is_matrix = at.shape.len() == 2 && at.element.is_number();
        is_matrix.then_some(at.element)
    };
    let part = |tensor: tensors::Tensor| Part {
        matrix: tensor.at.as_ref().ok().and_then(matrix),
        name: Some(tensor.name),
    };
    let mut parts = match Format::of(path)? {
        Format::Npy => {
            let at = npy::locate(path, &FileBytes::open(path)?)?;
            vec![Part { name: None, matrix: matrix(&at) }]
        }
        Format::Npz => npz::list(path, &FileBytes::open(path)?)?.into_iter().map(part).collect(),
        Format::Safetensors => {
            tensors::list(path, &FileBytes::open(path)?)?.into_iter().map(part).collect()
        }
        Format::Parquet => {
            let columns = ParquetTable::open(path)?.columns();
            let part = |column: crate::array::columns::Column| Part {
                matrix: column.element().filter(|it| column.is_list() && it.is_number()),
                name: Some(column.name),
            };
            columns.into_iter().map(part).collect()
        }
        Format::Table { .. } | Format::Lines | Format::Idx => {
            vec![Part { name: None, matrix: None }]
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
        assert_eq!(parse("arrays ids"), ("arrays".into(), None, Role::Ids));
        assert_eq!(parse("data_test"), ("".into(), Some(Split::Test), Role::Inputs));
    }
}
