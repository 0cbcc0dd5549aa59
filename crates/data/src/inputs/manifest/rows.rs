//! The rows of a manifest, from CSV or from one JSON object per line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::mapped::Mapped;
use crate::ending::Ending;
use crate::error::DataError;

/// The most bytes of one row: a path, a few words and numbers are far shorter.
const LONGEST_ROW: usize = 64 << 10;

const PATH: [&str; 5] = ["path", "image", "file", "filename", "file_name"];
const LABEL: [&str; 2] = ["label", "class"];

/// A manifest whose head has been read.
pub(crate) struct Manifest {
    path: PathBuf,
    file: Mapped,
    form: Form,
    columns: Columns,
}

enum Form {
    /// The column of each field that there is.
    Table {
        delimiter: u8,
        fields: BTreeMap<Field, usize>,
    },
    Lines,
}

/// What a column may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Path,
    Label,
    Split,
    Annotator,
    Weight,
    CleanLabel,
    Id,
}

/// Which columns there are in addition to path and label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    split: bool,
    pub annotator: bool,
    pub weight: bool,
    pub clean_label: bool,
    pub id: bool,
}

/// One row, its fields as [`Columns`] says.
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

/// The first rows, by which a file is recognised as a manifest.
pub(crate) struct First {
    /// Paths of images, as they stand.
    pub paths: Vec<PathBuf>,
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
        let file = Mapped::open(path)?;
        check_lines(path, file.bytes())?;
        let (form, fields) = match Ending::of(path) {
            Some(Ending::JsonLines) => (Form::Lines, fields_of_object(path, file.bytes())?),
            ending => {
                let delimiter = if ending == Some(Ending::Tsv) { b'\t' } else { b',' };
                let fields = fields_of_header(path, file.bytes(), delimiter)?;
                let found = fields.keys().copied().collect();
                (Form::Table { delimiter, fields }, found)
            }
        };
        for (field, names) in [(Field::Path, &PATH[..]), (Field::Label, &LABEL)] {
            if !fields.contains(&field) {
                let message = format!(
                    "is not a manifest: it has no column {:?} (or {}); a manifest has the columns \
                     path and label, and may have split, annotator, weight, clean_label and id",
                    names[0],
                    names[1..].join(", ")
                );
                return Err(DataError::invalid(path, message));
            }
        }
        let columns = Columns {
            split: fields.contains(&Field::Split),
            annotator: fields.contains(&Field::Annotator),
            weight: fields.contains(&Field::Weight),
            clean_label: fields.contains(&Field::CleanLabel),
            id: fields.contains(&Field::Id),
        };
        Ok(Self { path: path.to_path_buf(), file, form, columns })
    }

    pub(super) fn columns(&self) -> Columns {
        self.columns
    }

    /// What paths are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The first `most` paths, and all splits.
    pub(crate) fn first(&self, most: usize) -> Result<First, DataError> {
        let mut first = First { paths: vec![], splits: vec![] };
        let mut splits = BTreeSet::new();
        self.each_row(|row| {
            if first.paths.len() < most {
                first.paths.push(self.folder().join(&row.path));
            }
            splits.extend(row.split);
            Ok(())
        })?;
        first.splits = splits.into_iter().collect();
        Ok(first)
    }

    /// Whether this split can be taken.
    pub(super) fn check_split(&self, wanted: Option<&str>) -> Result<(), DataError> {
        let invalid = |message: String| Err(DataError::invalid(&self.path, message));
        if !self.columns.split {
            return match wanted {
                None => Ok(()),
                Some(wanted) => {
                    invalid(format!("has no column \"split\", so #{wanted} names nothing"))
                }
            };
        }
        let splits = self.first(0)?.splits;
        let known = splits.join(", ");
        let file = self.path.display();
        match wanted {
            None => {
                let one = splits.first().map_or("train", String::as_str);
                invalid(format!("has the splits {known}; name one of them: {file}#{one}"))
            }
            Some(wanted) if !splits.iter().any(|split| split == wanted) => {
                invalid(format!("has no split {wanted:?}; it has {known}"))
            }
            Some(_) => Ok(()),
        }
    }

    /// Calls `each` with every row, in order; there is at least one.
    pub(super) fn each_row(
        &self,
        mut each: impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut rows = 0_usize;
        let mut counted = |row: Row| {
            rows += 1;
            each(row)
        };
        match &self.form {
            Form::Table { delimiter, fields } => {
                self.each_record(*delimiter, fields, &mut counted)?;
            }
            Form::Lines => self.each_object(&mut counted)?,
        }
        match rows {
            0 => Err(DataError::invalid(&self.path, "has no rows")),
            _ => Ok(()),
        }
    }

    fn each_record(
        &self,
        delimiter: u8,
        fields: &BTreeMap<Field, usize>,
        each: &mut impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut reader = reader(self.file.bytes(), delimiter);
        let mut record = csv::StringRecord::new();
        let mut is_header = true;
        loop {
            let more = reader.read_record(&mut record).map_err(|e| damaged(&self.path, &e))?;
            if !more {
                return Ok(());
            }
            if std::mem::take(&mut is_header) {
                continue;
            }
            let line = record.position().map_or(0, csv::Position::line);
            let cell = |field: Field| {
                let cell = fields.get(&field).and_then(|at| record.get(*at));
                Ok(cell.unwrap_or_default().to_string())
            };
            if record.as_slice().len() > LONGEST_ROW {
                return Err(self.at(line as usize, &too_long(record.as_slice().len())));
            }
            each(self.row(line as usize, &cell)?)?;
        }
    }

    fn each_object(
        &self,
        each: &mut impl FnMut(Row) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        for (line, text) in (1..).zip(self.file.bytes().split(|byte| *byte == b'\n')) {
            let text = text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let object = object(text).map_err(|what| self.at(line, &what))?;
            let is_new = |field: &Field| !self.has(*field) && find(&object, *field).is_some();
            if let Some(field) = Field::ALL.into_iter().find(is_new) {
                let name = field.names()[0];
                let what = format!("has a {name}, but the first line has none; give all or none");
                return Err(self.at(line, &what));
            }
            let cell = |field: Field| word(find(&object, field));
            each(self.row(line, &cell)?)?;
        }
        Ok(())
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
        let where_there = |field: Field| self.has(field).then(|| needed(field)).transpose();
        let weight = where_there(Field::Weight)?;
        Ok(Row {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            path: needed(Field::Path)?,
            label: needed(Field::Label)?,
            split: where_there(Field::Split)?,
            annotator: where_there(Field::Annotator)?,
            weight: weight
                .map(|word| weight_of(&word).map_err(|what| self.at(line, &what)))
                .transpose()?,
            clean_label: where_there(Field::CleanLabel)?,
            id: where_there(Field::Id)?,
        })
    }

    fn has(&self, field: Field) -> bool {
        match field {
            Field::Path | Field::Label => true,
            Field::Split => self.columns.split,
            Field::Annotator => self.columns.annotator,
            Field::Weight => self.columns.weight,
            Field::CleanLabel => self.columns.clean_label,
            Field::Id => self.columns.id,
        }
    }

    fn at(&self, line: usize, what: &str) -> DataError {
        DataError::invalid(&self.path, format!("line {line}: {what}"))
    }
}

impl Field {
    const ALL: [Self; 7] = [
        Self::Path,
        Self::Label,
        Self::Split,
        Self::Annotator,
        Self::Weight,
        Self::CleanLabel,
        Self::Id,
    ];

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Path => &PATH,
            Self::Label => &LABEL,
            Self::Split => &["split"],
            Self::Annotator => &["annotator"],
            Self::Weight => &["weight"],
            Self::CleanLabel => &["clean_label"],
            Self::Id => &["id"],
        }
    }
}

/// A weight as the loss can use it.
pub(in crate::inputs) fn weight_of(word: &str) -> Result<f32, String> {
    let weight: f32 = word.parse().map_err(|_| format!("weight {word:?} is not a number"))?;
    if weight.is_finite() && weight > 0.0 {
        Ok(weight)
    } else {
        Err(format!(
            "weight {word} is not above 0 and finite; to leave an image out, remove its row"
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
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

fn fields_of_header(
    path: &Path,
    bytes: &[u8],
    delimiter: u8,
) -> Result<BTreeMap<Field, usize>, DataError> {
    let mut header = csv::StringRecord::new();
    let read = reader(bytes, delimiter).read_record(&mut header);
    read.map_err(|error| damaged(path, &error))?;
    let mut fields = BTreeMap::new();
    for (at, name) in header.iter().enumerate() {
        let field = Field::ALL.into_iter().find(|field| is_called(*field, name));
        let Some(field) = field else { continue };
        if let Some(first) = fields.insert(field, at) {
            let (first, name) = (header.get(first).unwrap_or_default(), field.names()[0]);
            let second = header.get(at).unwrap_or_default();
            let message = format!("has two columns of the {name}: {first:?} and {second:?}");
            return Err(DataError::invalid(path, message));
        }
    }
    Ok(fields)
}

fn is_called(field: Field, name: &str) -> bool {
    field.names().iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn fields_of_object(path: &Path, bytes: &[u8]) -> Result<BTreeSet<Field>, DataError> {
    let mut lines = (1..).zip(bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii));
    let Some((line, text)) = lines.find(|(_, text)| !text.is_empty()) else {
        return Err(DataError::invalid(path, "has no rows"));
    };
    let object =
        object(text).map_err(|what| DataError::invalid(path, format!("line {line}: {what}")))?;
    let is_there = |field: &Field| find(&object, *field).is_some();
    Ok(Field::ALL.into_iter().filter(is_there).collect())
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

/// A value as the cell of a table.
pub(in crate::inputs) fn word(value: Option<&Value>) -> Result<String, String> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(word)) => Ok(word.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => Err("is neither a word nor a number".into()),
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
