//! Small files of every format, and what tests say about opening them.
#![allow(dead_code, reason = "each test file uses some of it")]

mod zip;

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_data::DataError;
use aleator_data::inputs::recognise::Recognised;
use aleator_data::inputs::{Inputs, Opened};
use aleator_run::recipe::{DataOverlay, Framing, HeldOut, InputSource, Source, TableSource};
use parquet::basic::Compression;
use parquet::data_type::DataType;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
pub use zip::*;

/// A folder that goes away, with files in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

pub fn features(spec: impl AsRef<Path>) -> Result<Opened, DataError> {
    Inputs::open(&InputSource::Features(spec.as_ref().to_str().unwrap().into()), &Framing::PLAIN)
}

pub fn images(path: impl AsRef<Path>) -> Result<Opened, DataError> {
    Inputs::open(&InputSource::images(path.as_ref()), &Framing::PLAIN)
}

/// Every number, row after row.
pub fn all_rows(inputs: &Inputs) -> Result<Vec<f32>, DataError> {
    let width = inputs.shape().len();
    let mut values = vec![0.0; inputs.len() * width];
    for (row, out) in values.chunks_mut(width).enumerate() {
        inputs.read(row, out)?;
    }
    Ok(values)
}

pub fn fingerprint(inputs: &Inputs) -> Result<String, DataError> {
    let mut hasher = blake3::Hasher::new();
    inputs.fingerprint_into(&mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The result is an error whose message names the file and holds all of these.
#[track_caller]
pub fn assert_refused<T: Debug>(result: Result<T, DataError>, path: &Path, words: &[&str]) {
    let message = match result {
        Ok(value) => panic!("{} should be refused, gave {value:?}", path.display()),
        Err(error) => error.to_string(),
    };
    let name = path.file_name().unwrap().to_str().unwrap();
    for word in [&[name], words].concat() {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

/// A `.npy` file of version 1.
pub fn npy(descr: &str, shape: &str, content: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    npy_with(&header, content)
}

pub fn npy_with(header: &str, content: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{header:<117}\n");
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(content);
    file
}

/// `numpy.save` of `numpy.array(["cat", "dog"], dtype=object)`.
pub fn object_labels() -> Vec<u8> {
    let pickle = b"\x80\x03cnumpy._core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\
        \x85q\x02C\x01bq\x03\x87q\x04Rq\x05(K\x01K\x02\x85q\x06cnumpy\ndtype\nq\x07X\x02\x00\x00\x00O8q\
        \x08\x89\x88\x87q\tRq\n(K\x03X\x01\x00\x00\x00|q\x0bNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\
        \x0cb\x89]q\r(X\x03\x00\x00\x00catq\x0eX\x03\x00\x00\x00dogq\x0fetq\x10b.";
    npy("|O", "(2,)", pickle)
}

pub fn npy_f32(shape: &str, values: &[f32]) -> Vec<u8> {
    npy("<f4", shape, &floats(values))
}

pub fn npy_i64(shape: &str, values: &[i64]) -> Vec<u8> {
    npy("<i8", shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A `.safetensors` file with this header.
pub fn safetensors(header: &str, content: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(content);
    file
}

/// An IDX file.
pub fn idx(magic: u32, dims: &[u32], content: &[u8]) -> Vec<u8> {
    let mut file = magic.to_be_bytes().to_vec();
    file.extend(dims.iter().flat_map(|dim| dim.to_be_bytes()));
    file.extend(content);
    file
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Records of CIFAR-10: the label, then pixels that count up from it.
pub fn cifar10(labels: &[u8]) -> Vec<u8> {
    let pixels = |label: u8| (0..3072).map(move |at| (at as u8).wrapping_add(label));
    labels.iter().flat_map(|&label| std::iter::once(label).chain(pixels(label))).collect()
}

/// A column of a Parquet file: its values with definition and repetition levels.
pub struct Levels<'a, T> {
    pub values: &'a [T],
    pub definition: &'a [i16],
    pub repetition: &'a [i16],
}

/// `message m { <column> }` with one row group for each entry of `groups`.
pub fn parquet_file<'a, T: DataType>(
    column: &str,
    properties: WriterPropertiesBuilder,
    groups: &[Levels<'a, T::T>],
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {column} }}")).unwrap());
    let mut file = vec![];
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(&mut file, schema, properties).unwrap();
    for group in groups {
        let mut row_group = writer.next_row_group().unwrap();
        let mut column = row_group.next_column().unwrap().unwrap();
        // A column where nothing can be null or repeated has no levels.
        let levels = |levels: &'a [i16]| Some(levels).filter(|levels| !levels.is_empty());
        let (definition, repetition) = (levels(group.definition), levels(group.repetition));
        column.typed::<T>().write_batch(group.values, definition, repetition).unwrap();
        column.close().unwrap();
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

/// A Parquet file of one row group whose columns `write` writes, in the order of the schema.
/// `note` is a key of the file's metadata and its value.
pub fn parquet_columns(
    schema: &str,
    note: Option<(&str, &str)>,
    write: impl Fn(&mut Columns),
) -> Vec<u8> {
    use parquet::file::metadata::KeyValue;
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let note = note.map(|(key, value)| vec![KeyValue::new(key.into(), value.to_string())]);
    let properties = Arc::new(plain().set_key_value_metadata(note).build());
    let mut writer = SerializedFileWriter::new(vec![], schema, properties).unwrap();
    {
        let mut columns = Columns(writer.next_row_group().unwrap());
        write(&mut columns);
        columns.0.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// Writes the columns of a row group, one after the other.
pub struct Columns<'a>(SerializedRowGroupWriter<'a, Vec<u8>>);

impl Columns<'_> {
    fn write<T: DataType>(&mut self, values: &[T::T], levels: Option<(&[i16], &[i16])>) {
        let mut column = self.0.next_column().unwrap().unwrap();
        let (definition, repetition) = levels.unzip();
        let repetition = repetition.filter(|levels| !levels.is_empty());
        column.typed::<T>().write_batch(values, definition, repetition).unwrap();
        column.close().unwrap();
    }

    /// A column `required int64`.
    pub fn numbers(&mut self, values: &[i64]) {
        self.write::<parquet::data_type::Int64Type>(values, None);
    }

    /// A column `required double`.
    pub fn doubles(&mut self, values: &[f64]) {
        self.write::<parquet::data_type::DoubleType>(values, None);
    }

    /// A column `optional double`.
    pub fn optional_doubles(&mut self, values: &[Option<f64>]) {
        let there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<f64> = values.iter().copied().flatten().collect();
        self.write::<parquet::data_type::DoubleType>(&values, Some((&there, &[])));
    }

    /// A column `required binary (UTF8)`.
    pub fn words(&mut self, words: &[&str]) {
        let words: Vec<parquet::data_type::ByteArray> = words.iter().map(|w| (*w).into()).collect();
        self.write::<parquet::data_type::ByteArrayType>(&words, None);
    }

    /// A column of [`list_of`] `int64`, all of one length.
    pub fn whole_lists(&mut self, rows: &[&[i64]]) {
        let (definition, repetition) = full_levels(rows.len(), rows[0].len());
        let levels = Some((&definition[..], &repetition[..]));
        self.write::<parquet::data_type::Int64Type>(&rows.concat(), levels);
    }

    /// A column of [`list_of`] floats, all of one length.
    pub fn lists(&mut self, rows: &[&[f32]]) {
        let (definition, repetition) = full_levels(rows.len(), rows[0].len());
        let levels = Some((&definition[..], &repetition[..]));
        self.write::<parquet::data_type::FloatType>(&rows.concat(), levels);
    }
}

/// `optional group <name> (LIST)` of `element`, as every writer makes it today.
pub fn list_of(name: &str, element: &str) -> String {
    format!("optional group {name} (LIST) {{ repeated group list {{ optional {element} }} }}")
}

pub fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::UNCOMPRESSED)
}

/// Definition and repetition levels of `rows` lists of `width` values, none null.
pub fn full_levels(rows: usize, width: usize) -> (Vec<i16>, Vec<i16>) {
    let repetition = (0..rows * width).map(|at| i16::from(at % width != 0)).collect();
    (vec![3; rows * width], repetition)
}

/// The classes that the files carry as numbers.
pub fn classes_of(opened: &Opened) -> &[u32] {
    opened.labels.as_ref().unwrap().classes().unwrap()
}

/// A PNG of one colour.
pub fn plain_png(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let image = image::RgbImage::from_pixel(width, height, image::Rgb(colour));
    let mut file = std::io::Cursor::new(vec![]);
    image.write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

/// A tar file with these entries.
pub fn tar_file(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(vec![]);
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A column of labels in a Parquet file.
pub enum LabelColumn<'a> {
    None,
    Numbers(&'a [i64]),
    Words(&'a [&'a str]),
}

/// A Parquet file as the hub's tools write it: `image {bytes, path}` and `label`; every two rows
/// a row group. `note` is what the tools say of the columns.
pub fn parquet_images(images: &[Vec<u8>], labels: &LabelColumn, note: Option<&str>) -> Vec<u8> {
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::metadata::KeyValue;
    let label = match labels {
        LabelColumn::None => "",
        LabelColumn::Numbers(_) => "optional int64 label;",
        LabelColumn::Words(_) => "optional binary label (UTF8);",
    };
    let schema = format!(
        "message m {{ optional group image {{ optional binary bytes; \
         optional binary path (UTF8); }} {label} }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let note = note.map(|note| vec![KeyValue::new("huggingface".into(), note.to_string())]);
    let properties = Arc::new(plain().set_key_value_metadata(note).build());
    let mut file = vec![];
    let mut writer = SerializedFileWriter::new(&mut file, schema, properties).unwrap();
    for first in (0..images.len()).step_by(2) {
        let rows = first..images.len().min(first + 2);
        let mut group = writer.next_row_group().unwrap();
        let bytes: Vec<ByteArray> =
            images[rows.clone()].iter().map(|image| image.clone().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let there = vec![2; rows.len()];
        column.typed::<ByteArrayType>().write_batch(&bytes, Some(&there), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let absent = vec![1; rows.len()];
        column.typed::<ByteArrayType>().write_batch(&[], Some(&absent), None).unwrap();
        column.close().unwrap();
        let there = vec![1; rows.len()];
        if let Some(mut column) = group.next_column().unwrap() {
            match labels {
                LabelColumn::Numbers(numbers) => {
                    column.typed::<Int64Type>().write_batch(&numbers[rows], Some(&there), None)
                }
                LabelColumn::Words(words) => {
                    let words: Vec<ByteArray> = words[rows].iter().map(|w| (*w).into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&words, Some(&there), None)
                }
                LabelColumn::None => unreachable!("there is no third column"),
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

/// What recognition found, as keys and values of a recipe by name, paths relative to the folder.
pub fn settings(found: &Recognised, folder: &Folder) -> Vec<(String, String)> {
    let root = format!("{}/", folder.path().display());
    let mut settings = vec![];
    let mut add = |key: &str, value: Option<String>| {
        let relative = |value: String| match value == root[..root.len() - 1] {
            true => ".".to_string(),
            false => value.replace(&root, ""),
        };
        settings.extend(value.map(|value| (format!("data.{key}"), relative(value))));
    };
    let mut source = |name: &str, source: &Source| {
        match &source.inputs {
            InputSource::Features(file) => add(&format!("{name}.features"), Some(file.clone())),
            InputSource::Images(paths) => {
                add(&format!("{name}.images"), Some(paths[0].display().to_string()));
            }
            InputSource::Table(table) => {
                let TableSource { file, label, clean_label, id, split, rows, ignore } = table;
                add(&format!("{name}.table.file"), Some(file.clone()));
                for (key, value) in [
                    ("label", label),
                    ("clean_label", clean_label),
                    ("id", id),
                    ("split", split),
                    ("rows", rows),
                ] {
                    add(&format!("{name}.table.{key}"), value.clone());
                }
                let ignore = (!ignore.is_empty()).then(|| ignore.join(","));
                add(&format!("{name}.table.ignore"), ignore);
            }
            InputSource::Digits | InputSource::Memory(_) => panic!("in no file"),
        }
        add(&format!("{name}.labels"), source.labels.clone());
        add(&format!("{name}.clean_labels"), source.clean_labels.clone());
        add(&format!("{name}.ids"), source.ids.clone());
    };
    source("train", &found.train);
    for (name, held_out) in [("validation", &found.data.validation), ("test", &found.data.test)] {
        match held_out {
            None => {}
            Some(HeldOut::Source(other)) => source(name, other),
            Some(other) => panic!("{other:?}"),
        }
    }
    let DataOverlay { label_kind, class_names, image_size, .. } = &found.data;
    add("label_kind", label_kind.map(|kind| format!("{kind:?}").to_lowercase()));
    add("class_names", class_names.as_ref().map(|path| path.display().to_string()));
    let size = image_size.map(|size| size.map_or(String::new(), |size| size.to_string()));
    add("image_size", size);
    settings.sort();
    settings
}

/// Compares them with what is expected, in any order.
#[track_caller]
pub fn assert_found(found: &Recognised, folder: &Folder, expected: &[(&str, &str)]) {
    let own = |&(key, value): &(&str, &str)| (key.to_string(), value.to_string());
    let mut expected: Vec<(String, String)> = expected.iter().map(own).collect();
    expected.sort();
    assert_eq!(settings(found, folder), expected);
}
