//! Parquet files with encoded images in a column, as on the Hugging Face hub.

use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;
use parquet::data_type::ByteArrayType;

use super::encoded::{self, Container, LARGEST_IMAGE, Piece, Pieces, Places, too_large};
use super::spool::Spool;
use super::unpack::LARGEST_RATIO;
use super::{CarriedLabels, Opened};
use crate::array::Values;
use crate::array::columns::{Column, ParquetTable};
use crate::error::DataError;
use crate::labels::Words;

/// Images that are decoded from pages at once.
const ROWS_AT_ONCE: usize = 16;

const IMAGE: [&str; 2] = ["image", "img"];
const LABEL: [&str; 3] = ["label", "labels", "fine_label"];

/// The columns that hold images and labels.
#[derive(Clone)]
struct ImageColumns {
    image: Column,
    label: Option<Column>,
}

/// Whether a file has a column of images by its usual name or form.
pub(crate) fn has_images(path: &Path) -> bool {
    ParquetTable::open(path).is_ok_and(|table| choose(path, &table, None).is_ok())
}

/// Opens the rows of all files in their order; `columns` is `image` or `image,label`.
pub(crate) fn open(
    source: &Path,
    files: &[PathBuf],
    columns: Option<&str>,
    framing: &Framing,
) -> Result<Opened, DataError> {
    let mut all = Rows::default();
    let mut spool = Spool::new(source)?;
    for path in files {
        all.add(path, columns, &mut spool)?;
    }
    if all.images.pieces.is_empty() {
        return Err(DataError::invalid(source, "has no rows"));
    }
    all.images.spool = Some(spool.into_file()?);
    let labels = all.labels.map(|labels| match labels {
        Labels::Numbers(labels) => CarriedLabels::Classes(labels),
        Labels::Names(names) => CarriedLabels::Written(names.written(source, None)),
    });
    let inputs = encoded::open(source, Places::Pieces(all.images), framing)?;
    Ok(Opened { labels, class_names: all.class_names, ..Opened::new(inputs) })
}

/// The first images of a file, at most `count`, with their names for messages.
pub(crate) fn first_images(
    path: &Path,
    count: usize,
) -> Result<Vec<(PathBuf, Vec<u8>)>, DataError> {
    /// Stops reading.
    const ENOUGH: &str = "enough";
    let table = ParquetTable::open(path)?;
    let chosen = choose(path, &table, None)?;
    let mut images = vec![];
    let read = each_image(path, &table, &chosen.image, LARGEST_IMAGE, |row, bytes| {
        images.push((path.join(format!("row {row}")), bytes.to_vec()));
        if images.len() < count { Ok(()) } else { Err(DataError::invalid(path, ENOUGH)) }
    });
    match read {
        Err(error) if images.len() < count => Err(error),
        _ => Ok(images),
    }
}

/// The rows of the files that were read so far.
#[derive(Default)]
struct Rows {
    images: Pieces,
    /// Of all rows, if the files have labels.
    labels: Option<Labels>,
    class_names: Option<Vec<String>>,
}

enum Labels {
    Numbers(Vec<u32>),
    Names(Words),
}

impl Rows {
    fn add(
        &mut self,
        path: &Path,
        columns: Option<&str>,
        spool: &mut Spool,
    ) -> Result<(), DataError> {
        let table = ParquetTable::open(path)?;
        let ImageColumns { image, label } = choose(path, &table, columns)?;
        let Pieces { containers, pieces, .. } = &mut self.images;
        let first_row = pieces.len();
        containers.push(Container { path: path.to_path_buf(), spooled: true, first_row });
        table.check_expansion(&image, LARGEST_RATIO)?;
        let rows = each_image(path, &table, &image, LARGEST_IMAGE, |_, bytes| {
            let start = spool.write(bytes)?;
            pieces.push(Piece { start, len: bytes.len() as u32 });
            Ok(())
        })?;
        let names = label.as_ref().and_then(|label| table.class_names(label));
        let other = |what: &str| {
            let message = format!("has other {what} than the files before it");
            Err(DataError::invalid(path, message))
        };
        if first_row > 0 && names != self.class_names {
            return other("names of classes");
        }
        self.class_names = names;
        let labels = label.map(|label| labels(path, &table, &label, rows)).transpose()?;
        if first_row == 0 {
            self.labels = labels.as_ref().map(Labels::like);
        }
        match (&mut self.labels, labels) {
            (None, None) => Ok(()),
            (Some(before), Some(labels)) => before.add(path, labels),
            _ => other("columns (labels)"),
        }
    }
}

impl Labels {
    /// No labels yet, of the type of these.
    fn like(values: &Values) -> Self {
        match values {
            Values::Text(_) => Self::Names(Words::default()),
            Values::Int(_) | Values::Float(_) => Self::Numbers(vec![]),
        }
    }

    /// Appends those of one more file.
    fn add(&mut self, path: &Path, more: Values) -> Result<(), DataError> {
        let refuse = |row: usize, what: &str| {
            Err(DataError::invalid(path, format!("row {row} (counted from 0): {what}")))
        };
        match (self, more) {
            (Self::Numbers(labels), Values::Int(values)) => {
                for (row, value) in values.into_iter().enumerate() {
                    let Ok(label) = u32::try_from(value) else {
                        let what = format!(
                            "the label is {value}; classes are numbered from 0, and examples \
                             without a label cannot be used"
                        );
                        return refuse(row, &what);
                    };
                    labels.push(label);
                }
            }
            (Self::Names(names), Values::Text(values)) => {
                for (row, value) in values.iter().enumerate() {
                    if value.trim().is_empty() {
                        return refuse(row, "has no label");
                    }
                    names.push(value.trim());
                }
            }
            (_, Values::Float(values)) => {
                let row = values.iter().position(|value| value.is_nan()).unwrap_or(0);
                return refuse(row, "has no label that is a whole number or a name");
            }
            _ => return Err(DataError::invalid(path, "has labels of another type than before")),
        }
        Ok(())
    }
}

/// Calls `each` with every row's image, in order; returns the number of rows. An image larger than
/// `largest` bytes is refused.
fn each_image(
    path: &Path,
    table: &ParquetTable,
    column: &Column,
    largest: u64,
    mut each: impl FnMut(usize, &[u8]) -> Result<(), DataError>,
) -> Result<usize, DataError> {
    table.read::<ByteArrayType>(column, ROWS_AT_ONCE, |batch| {
        let mut values = batch.values.iter();
        for at in 0..batch.rows {
            let row = batch.first_row + at;
            let place = || path.join(format!("row {row}"));
            // Where nothing can be null, there are no levels.
            let there = batch.definition.get(at).is_none_or(|level| *level == column.defined());
            let Some(value) = values.next().filter(|_| there) else {
                let message = format!(
                    "has no bytes in column {:?}; images must be stored in the file itself",
                    column.name
                );
                return Err(DataError::invalid(place(), message));
            };
            let bytes = value.data();
            if bytes.len() as u64 > largest {
                return Err(DataError::invalid(place(), too_large(bytes.len() as u64)));
            }
            each(row, bytes)?;
        }
        Ok(())
    })
}

fn choose(
    path: &Path,
    table: &ParquetTable,
    names: Option<&str>,
) -> Result<ImageColumns, DataError> {
    let columns = table.columns();
    let seen = columns.iter().map(Column::label).collect::<Vec<_>>().join("; ");
    let invalid = |message: String| DataError::invalid(path, message);
    let mut wanted = names.into_iter().flat_map(|names| names.splitn(2, ',').map(str::trim));
    let (wanted_image, wanted_label) = (wanted.next(), wanted.next().filter(|it| !it.is_empty()));
    let find = |names: &[&str], is: fn(&Column, &str) -> bool| {
        names.iter().find_map(|name| columns.iter().find(|column| is(column, name)))
    };
    let image = match wanted_image {
        Some(name) => find(&[name], is_images),
        None => find(&IMAGE, is_images).or_else(|| only_struct(&columns)),
    };
    let Some(image) = image else {
        let which = match wanted_image {
            Some(name) => format!("column {name:?} of images"),
            None => "image column".to_string(),
        };
        return Err(invalid(format!(
            "has no {which}: a column called image or img with encoded images as bytes, or as a \
             struct of bytes and path; it has {seen}. Name it: file.parquet#image,label"
        )));
    };
    let label = match wanted_label {
        None => find(&LABEL, Column::is_called),
        Some(name) => {
            let unknown = || invalid(format!("has no column {name:?}; it has {seen}"));
            Some(find(&[name], Column::is_called).ok_or_else(unknown)?)
        }
    };
    Ok(ImageColumns { image: image.clone(), label: label.cloned() })
}

/// A column of bytes with this name, or a struct with this name that has bytes.
fn is_images(column: &Column, name: &str) -> bool {
    let has_name = match column.parts() {
        [only] => only.eq_ignore_ascii_case(name),
        [group, part] => group.eq_ignore_ascii_case(name) && part == "bytes",
        _ => false,
    };
    has_name && column.is_binary()
}

/// The only struct of bytes and path, whatever its name.
fn only_struct(columns: &[Column]) -> Option<&Column> {
    let is_bytes = |column: &&Column| {
        column.is_binary() && matches!(column.parts(), [_, part] if part == "bytes")
    };
    let mut found = columns.iter().filter(is_bytes);
    found.next().filter(|_| found.next().is_none())
}

/// One label per row.
fn labels(
    path: &Path,
    table: &ParquetTable,
    column: &Column,
    rows: usize,
) -> Result<Values, DataError> {
    let invalid = |message: String| Err(DataError::invalid(path, message));
    if !column.is_flat() || column.element().is_none() {
        let label = column.label();
        return invalid(format!(
            "column {label} is not one label per row; name another (file.parquet#image,label), or a \
             label file: labels = \"labels.csv\""
        ));
    }
    let array = table.array(column)?;
    if array.values.len() == rows {
        Ok(array.values)
    } else {
        invalid(format!("has {rows} images but {} labels", array.values.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::ByteArray;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    #[test]
    fn a_value_of_too_many_bytes_is_refused_by_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let schema = Arc::new(parse_message_type("message m { required binary image; }").unwrap());
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values: [ByteArray; 2] = ["1234".into(), "12345".into()];
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();

        let table = ParquetTable::open(&path).unwrap();
        let image = choose(&path, &table, None).unwrap().image;
        let read = |largest| each_image(&path, &table, &image, largest, |_, _| Ok(()));
        assert_eq!(read(5).unwrap(), 2);
        let message = read(4).unwrap_err().to_string();
        assert!(message.contains("row 1") && message.contains("5 bytes"), "{message}");
    }
}
