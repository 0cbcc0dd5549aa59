//! The rows of a manifest, from CSV or from one JSON object per line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::file_bytes::FileBytes;
use crate::ending::Ending;
use crate::error::DataError;
use crate::labels::{NONE, SEPARATOR};

/// The most bytes of one row: a path, a few words and numbers are far shorter.
const LONGEST_ROW: usize = 64 << 10;

/// What a column may be, with its names; the first stands in messages.
const FIELDS: [(Field, &[&str]); 7] = [
    (Field::Path, &["path", "image", "file", "filename", "file_name"]),
    (Field::Label, &["label", "class"]),
    (Field::Split, &["split"]),
    (Field::Annotator, &["annotator"]),
    (Field::Weight, &["weight"]),
    (Field::CleanLabel, &["clean_label"]),
    (Field::Id, &["id"]),
];

/// A manifest whose head has been read.
pub(crate) struct Manifest {
    pub path: PathBuf,
    text: Vec<u8>,
    form: Form,
    /// The columns that there are.
    pub(super) fields: BTreeSet<Field>,
}

enum Form {
    Table { delimiter: u8, positions: BTreeMap<Field, usize> },
    JsonLines,
}

/// What a column may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Path,
    Label,
    Split,
    Annotator,
    Weight,
    CleanLabel,
    Id,
}

/// One row, with the fields that the manifest has.
pub(super) struct Row {
    /// Counted from 1.
    pub line: u32,
    pub path: String,
    pub label: String,
    pub split: Option<String>,
    pub annotator: Option<String>,
    pub weight: Option<f32>,
    pub clean_label: Option<String>,
    pub id: Option<String>,
}

/// What a manifest lists, by which it is recognised.
pub(crate) struct Overview {
    pub path: PathBuf,
    /// The first images.
    pub images: Vec<PathBuf>,
    /// The splits of the whole file, where it names them.
    pub splits: Vec<String>,
}

/// Whether the name's ending is that of a manifest.
pub(crate) fn is_manifest_name(path: &Path) -> bool {
    matches!(Ending::of(path), Some(Ending::Csv | Ending::Tsv | Ending::JsonLines))
}

impl Manifest {
    /// Reads the header of a table, or the first object of JSON lines.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let text = FileBytes::open(path)?.all()?;
        check_lines(path, &text)?;
        let (form, fields): (Form, BTreeSet<Field>) = match Ending::of(path) {
            Some(Ending::JsonLines) => (Form::JsonLines, fields_of_object(path, &text)?),
            ending => {
                let delimiter = if ending == Some(Ending::Tsv) { b'\t' } else { b',' };
                let positions = fields_of_header(path, &text, delimiter)?;
                let fields = positions.keys().copied().collect();
                (Form::Table { delimiter, positions }, fields)
            }
        };
        if let Some(missing) = [Field::Path, Field::Label].iter().find(|it| !fields.contains(it)) {
            let names = missing.names();
            let message = format!(
                "is not a manifest: it has no column {:?} (or {}); a manifest has the columns path \
                 and label, and may have split, annotator, weight, clean_label and id",
                names[0],
                names[1..].join(", ")
            );
            return Err(DataError::invalid(path, message));
        }
        Ok(Self { path: path.to_path_buf(), text, form, fields })
    }

    /// What paths are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The first `most` images, and all splits.
    pub(crate) fn overview(&self, most: usize) -> Result<Overview, DataError> {
        let (mut images, mut splits) = (vec![], BTreeSet::new());
        self.each_row(|row| {
            if images.len() < most {
                images.push(self.folder().join(&row.path));
            }
            splits.extend(row.split);
            Ok(())
        })?;
        Ok(Overview { path: self.path.clone(), images, splits: splits.into_iter().collect() })
    }

    /// Whether this split can be taken.
    pub(super) fn check_split(&self, wanted: Option<&str>) -> Result<(), DataError> {
        let has_splits = self.fields.contains(&Field::Split);
        let splits = if has_splits { self.overview(0)?.splits } else { vec![] };
        let known = splits.join(", ");
        let message = match wanted {
            None if !has_splits => return Ok(()),
            None => {
                let (file, one) = (self.path.display(), &splits[0]);
                format!("has the splits {known}; name one of them: {file}#{one}")
            }
            Some(wanted) if splits.iter().any(|split| split == wanted) => return Ok(()),
            Some(wanted) if has_splits => format!("has no split {wanted:?}; it has {known}"),
            Some(wanted) => format!("has no column \"split\", so #{wanted} names nothing"),
        };
        Err(DataError::invalid(&self.path, message))
    }

    /// Calls `each` with every row, in order; there is at least one.
    pub(super) fn each_row(
        &self,
        mut each: impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut rows = 0_usize;
        let mut add = |line: usize, cell: &dyn Fn(Field) -> Result<String, String>| {
            rows += 1;
            each(self.row(line, cell)?)
        };
        match &self.form {
            Form::Table { delimiter, positions } => {
                let mut reader = reader(&self.text, *delimiter);
                let mut record = csv::StringRecord::new();
                while reader.read_record(&mut record).map_err(|e| damaged(&self.path, &e))? {
                    let line = record.position().map_or(0, csv::Position::line) as usize;
                    if record.as_slice().len() > LONGEST_ROW {
                        return Err(self.at(line, &too_long(record.as_slice().len())));
                    }
                    add(line, &|field| {
                        let cell = positions.get(&field).and_then(|at| record.get(*at));
                        Ok(cell.unwrap_or_default().to_string())
                    })?;
                }
            }
            Form::JsonLines => {
                for (line, text) in json_lines(&self.text) {
                    let object = object(text).map_err(|what| self.at(line, &what))?;
                    if let Some(new) = fields_in(&object).find(|it| !self.fields.contains(it)) {
                        let name = new.names()[0];
                        let what =
                            format!("has a {name}, but the first line has none; give all or none");
                        return Err(self.at(line, &what));
                    }
                    add(line, &|field| match field {
                        Field::Label => label_word(find(&object, field)),
                        _ => word(find(&object, field)),
                    })?;
                }
            }
        }
        match rows {
            0 => Err(DataError::invalid(&self.path, "has no rows")),
            _ => Ok(()),
        }
    }

    fn row(
        &self,
        line: usize,
        cell: &dyn Fn(Field) -> Result<String, String>,
    ) -> Result<Row, DataError> {
        let needed = |field: Field| -> Result<String, DataError> {
            let name = field.names()[0];
            let word = cell(field).map_err(|what| self.at(line, &format!("{name} {what}")))?;
            match word.trim() {
                "" => Err(self.at(line, &format!("has no {name}; add it, or remove the line"))),
                word => Ok(word.to_string()),
            }
        };
        let optional =
            |field: Field| self.fields.contains(&field).then(|| needed(field)).transpose();
        let weight = optional(Field::Weight)?.map(|word| weight_of(&word)).transpose();
        Ok(Row {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            path: needed(Field::Path)?,
            label: needed(Field::Label)?,
            split: optional(Field::Split)?,
            annotator: optional(Field::Annotator)?,
            weight: weight.map_err(|what| self.at(line, &what))?,
            clean_label: optional(Field::CleanLabel)?,
            id: optional(Field::Id)?,
        })
    }

    fn at(&self, line: usize, what: &str) -> DataError {
        DataError::invalid(&self.path, format!("line {line}: {what}"))
    }
}

impl Field {
    fn names(self) -> &'static [&'static str] {
        FIELDS[self as usize].1
    }
}

/// A weight as the loss can use it.
pub(crate) fn weight_of(word: &str) -> Result<f32, String> {
    let weight: f32 = word.parse().map_err(|_| format!("weight {word:?} is not a number"))?;
    if weight.is_finite() && weight > 0.0 {
        Ok(weight)
    } else {
        Err(format!(
            "weight {word} is not above 0 and finite; to leave an example out, remove its row"
        ))
    }
}

fn too_long(len: usize) -> String {
    format!(
        "has {len} bytes; a row has at most {LONGEST_ROW}: is a quotation mark not closed, or the \
         file no manifest?"
    )
}

/// Refuses lines that no manifest has before they are parsed.
fn check_lines(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    let mut lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    match lines.find(|(_, line)| line.len() > LONGEST_ROW) {
        Some((number, line)) => {
            let message = format!("line {number}: {}", too_long(line.len()));
            Err(DataError::invalid(path, message))
        }
        None => Ok(()),
    }
}

fn reader(bytes: &[u8], delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .from_reader(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

fn fields_of_header(
    path: &Path,
    bytes: &[u8],
    delimiter: u8,
) -> Result<BTreeMap<Field, usize>, DataError> {
    let mut reader = reader(bytes, delimiter);
    let header = reader.headers().map_err(|error| damaged(path, &error))?;
    let mut fields = BTreeMap::new();
    for (at, name) in header.iter().enumerate() {
        let is_called = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let field = FIELDS.iter().find(|(_, names)| is_called(names));
        let Some((field, names)) = field else { continue };
        if let Some(first) = fields.insert(*field, at) {
            let (field, first) = (names[0], &header[first]);
            let message = format!("has two columns of the {field}: {first:?} and {name:?}");
            return Err(DataError::invalid(path, message));
        }
    }
    Ok(fields)
}

fn fields_of_object(path: &Path, bytes: &[u8]) -> Result<BTreeSet<Field>, DataError> {
    let Some((line, text)) = json_lines(bytes).next() else {
        return Err(DataError::invalid(path, "has no rows"));
    };
    let object =
        object(text).map_err(|what| DataError::invalid(path, format!("line {line}: {what}")))?;
    Ok(fields_in(&object).collect())
}

/// The lines that are not empty, counted from 1.
fn json_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    (1..).zip(lines).filter(|(_, text)| !text.is_empty())
}

type Object = serde_json::Map<String, Value>;

fn object(text: &[u8]) -> Result<Object, String> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => {
            Err("is not a JSON object such as {\"path\": \"a.png\", \"label\": \"cat\"}".into())
        }
        Err(error) => Err(format!("is not JSON ({error})")),
    }
}

fn find(object: &Object, field: Field) -> Option<&Value> {
    field.names().iter().find_map(|name| object.get(*name))
}

fn fields_in(object: &Object) -> impl Iterator<Item = Field> {
    FIELDS.iter().map(|(field, _)| *field).filter(|field| find(object, *field).is_some())
}

/// A value as the cell of a table.
pub(in crate::inputs) fn word(value: Option<&Value>) -> Result<String, String> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(word)) => Ok(word.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err("is neither a word nor a number".into()),
    }
}

/// A label as the cell of a table: a list of classes is `cat;dog;`, an empty one `-`.
pub(in crate::inputs) fn label_word(value: Option<&Value>) -> Result<String, String> {
    let Some(Value::Array(classes)) = value else { return word(value) };
    let class = |class: &Value| match word(Some(class))?.trim() {
        "" | NONE => Err("has a class without a name in its list".to_string()),
        class if class.contains(SEPARATOR) => Err(format!(
            "has the class {class:?} in its list; in lists, names have no {SEPARATOR:?}"
        )),
        class => Ok(format!("{class}{SEPARATOR}")),
    };
    match classes.is_empty() {
        true => Ok(NONE.to_string()),
        false => classes.iter().map(class).collect(),
    }
}

fn damaged(path: &Path, error: &csv::Error) -> DataError {
    let line = error.position().map_or(0, csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {line} has {len} fields, the header {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => {
            format!("line {line} is not valid UTF-8; save the file as UTF-8")
        }
        _ => format!("line {line}: {error}"),
    };
    DataError::invalid(path, message)
}
