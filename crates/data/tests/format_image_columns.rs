//! Parquet files with images: columns, labels, names of classes, several files, and wrong ones.

use std::path::{Path, PathBuf};

use crate::format_support::*;
use aleator_data::inputs::{CarriedLabels, Inputs, Opened};
use aleator_data::{DataError, DataSet, Labels};
use aleator_run::recipe::{Data, Framing, HeldOut, InputSource, Link, Source};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};

const NAMES: &str = r#"{"info": {"features": {"image": {"_type": "Image"},
    "label": {"names": ["cat", "dog", "cow"], "_type": "ClassLabel"}}}}"#;

fn pictures(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|at| plain_png(2, 1, [51 * at; 3])).collect()
}

fn values(count: u8) -> Vec<f32> {
    (0..count).flat_map(|at| [f32::from(51 * at) / 127.5 - 1.0; 6]).collect()
}

/// The images, up to the rounding of bytes to floats.
#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}

fn said(opened: &Opened) -> Vec<&str> {
    let Some(CarriedLabels::Written(labels)) = &opened.labels else { panic!("{opened:?}") };
    (0..labels.len()).map(|at| labels.get(at)).collect()
}

#[test]
fn a_struct_of_bytes_and_labels_with_names() {
    let folder = Folder::new();
    let file = parquet_images(&pictures(5), &LabelColumn::Numbers(&[2, 0, 1, 1, 0]), Some(NAMES));
    let opened = images(folder.write("x.parquet", file)).unwrap();
    assert_eq!(classes_of(&opened), [2, 0, 1, 1, 0]);
    assert_close(&all_rows(&opened.inputs).unwrap(), &values(5));
    assert!(opened.ids.is_none());
    assert_eq!(opened.class_names.unwrap(), ["cat", "dog", "cow"]);
}

#[test]
fn names_that_are_numbered_and_notes_that_say_nothing() {
    let folder = Folder::new();
    let note = r#"{"info":{"features":{"label":{"names":{"1":"b","0":"a"}}}}}"#;
    for (note, expected) in [
        (note, Some(vec!["a".to_string(), "b".into()])),
        ("{}", None),
        ("not json", None),
        (r#"{"info":{"features":{"label":{"names":[1]}}}}"#, None),
    ] {
        let file = parquet_images(&pictures(2), &LabelColumn::Numbers(&[0, 1]), Some(note));
        let opened = images(folder.write("x.parquet", file)).unwrap();
        assert_eq!(opened.class_names, expected, "{note}");
    }
}

#[test]
fn labels_may_be_words_or_absent() {
    let folder = Folder::new();
    let file = parquet_images(&pictures(3), &LabelColumn::Words(&["b", "a", "b"]), None);
    assert_eq!(said(&images(folder.write("x.parquet", file)).unwrap()), ["b", "a", "b"]);
    let file = parquet_images(&pictures(3), &LabelColumn::None, None);
    assert!(images(folder.write("x.parquet", file)).unwrap().labels.is_none());
}

#[test]
fn a_column_of_bytes_under_any_compression() {
    let folder = Folder::new();
    let bytes: Vec<ByteArray> = pictures(5).into_iter().map(ByteArray::from).collect();
    for codec in [Compression::SNAPPY, Compression::ZSTD(Default::default()), Compression::LZ4_RAW]
    {
        let levels = Levels { values: &bytes, definition: &[], repetition: &[] };
        let properties = plain().set_compression(codec);
        let file = parquet_file::<ByteArrayType>("required binary IMG;", properties, &[levels]);
        let opened = images(folder.write("x.parquet", file)).unwrap();
        assert_close(&all_rows(&opened.inputs).unwrap(), &values(5));
    }
}

#[test]
fn files_follow_one_another_by_list_pattern_and_folder() {
    let folder = Folder::new();
    let file = |labels: &[i64]| {
        parquet_images(&pictures(labels.len() as u8), &LabelColumn::Numbers(labels), Some(NAMES))
    };
    let paths = [
        folder.write("train-00000-of-00002.parquet", file(&[0, 1, 2])),
        folder.write("train-00001-of-00002.parquet", file(&[2, 1])),
    ];
    let expected = [values(3), values(2)].concat();
    let pattern = folder.path().join("train-*-of-*.parquet");
    for paths in [paths.to_vec(), vec![pattern.clone()], vec![folder.path().to_path_buf()]] {
        let opened = Inputs::open(&InputSource::Images(paths), &Framing::PLAIN).unwrap();
        assert_eq!(classes_of(&opened), [0, 1, 2, 2, 1]);
        assert_close(&all_rows(&opened.inputs).unwrap(), &expected);
    }
    let named = images(format!("{}#image,label", pattern.display())).unwrap();
    assert_eq!(classes_of(&named), [0, 1, 2, 2, 1]);
    let other = parquet_images(&pictures(1), &LabelColumn::Numbers(&[0]), None);
    let other = folder.write("train-00002-of-00002.parquet", other);
    assert_refused(images(&pattern), &other, &["other names of classes"]);
    let other = parquet_images(&pictures(1), &LabelColumn::None, None);
    std::fs::write(folder.path().join("train-00002-of-00002.parquet"), other).unwrap();
    assert!(images(&pattern).is_err());
}

#[test]
fn columns_are_named_after_the_path() {
    let folder = Folder::new();
    let file = parquet_images(&pictures(2), &LabelColumn::Numbers(&[0, 1]), None);
    let path = folder.write("x.parquet", file);
    let open = |columns: &str| images(format!("{}#{columns}", path.display()));
    assert_eq!(classes_of(&open("image").unwrap()), [0, 1]);
    assert_refused(open("photo"), &path, &["no column \"photo\" of images", "image.bytes: text"]);
    assert_refused(open("image,kind"), &path, &["no column \"kind\"", "label: int64"]);
}

fn refused<T: std::fmt::Debug>(result: Result<T, DataError>, words: &[&str]) {
    assert_refused(result, Path::new("x.parquet"), words);
}

#[test]
fn a_file_without_an_image_column_says_what_it_has() {
    let folder = Folder::new();
    let levels = Levels { values: &[1, 2], definition: &[], repetition: &[] };
    let file = parquet_file::<Int64Type>("required int64 label;", plain(), &[levels]);
    refused(
        images(folder.write("x.parquet", file)),
        &["no image column", "label: int64", "#image,label"],
    );
    // Words are paths, and the images are elsewhere.
    let words: Vec<ByteArray> = vec!["a.png".into()];
    let levels = Levels { values: &words, definition: &[], repetition: &[] };
    let file = parquet_file::<ByteArrayType>("required binary image (UTF8);", plain(), &[levels]);
    refused(images(folder.write("x.parquet", file)), &["no image column", "image: text"]);
}

#[test]
fn rows_without_image_or_label_are_refused() {
    let folder = Folder::new();
    let bytes: Vec<ByteArray> = pictures(1).into_iter().map(ByteArray::from).collect();
    let levels = Levels { values: &bytes, definition: &[1, 0], repetition: &[] };
    let file = parquet_file::<ByteArrayType>("optional binary image;", plain(), &[levels]);
    refused(images(folder.write("x.parquet", file)), &["row 1", "no bytes"]);
    let file = parquet_images(&pictures(2), &LabelColumn::Numbers(&[0, -1]), None);
    refused(images(folder.write("x.parquet", file)), &["row 1", "label is -1"]);
    let file = parquet_images(&pictures(2), &LabelColumn::Words(&["a", " "]), None);
    refused(images(folder.write("x.parquet", file)), &["row 1", "no label"]);
    let file = parquet_images(&[], &LabelColumn::Numbers(&[]), None);
    refused(images(folder.write("x.parquet", file)), &["no rows"]);
}

#[test]
fn a_damaged_image_is_named_by_file_and_row() {
    let folder = Folder::new();
    let mut all = pictures(4);
    all[3] = b"text".to_vec();
    let file = parquet_images(&all, &LabelColumn::None, None);
    let path = folder.write("x.parquet", file);
    refused(images(&path), &["x.parquet/row 3", "cannot be decoded"]);
}

#[test]
fn a_column_that_grows_too_much_is_refused() {
    let folder = Folder::new();
    // 64 MiB of zeros in a few kilobytes.
    let zeros: Vec<ByteArray> = (0..4).map(|_| vec![0; 16 << 20].into()).collect();
    let levels = Levels { values: &zeros, definition: &[], repetition: &[] };
    let properties = plain()
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(Default::default()));
    let file = parquet_file::<ByteArrayType>("required binary image;", properties, &[levels]);
    assert!(file.len() < 64 << 10, "{}", file.len());
    refused(images(folder.write("x.parquet", file)), &["row group 0", "100 times"]);
}

#[test]
fn train_and_test_files_are_a_data_set() {
    let folder = Folder::new();
    let write = |name: &str, labels: &[i64]| -> PathBuf {
        let images: Vec<Vec<u8>> = labels
            .iter()
            .map(|label| plain_png(2, 1, [*label as u8, name.len() as u8, 0]))
            .collect();
        folder.write(name, parquet_images(&images, &LabelColumn::Numbers(labels), Some(NAMES)))
    };
    let source = |path: PathBuf| Source::of(InputSource::images(path));
    let validation = HeldOut::Fraction { fraction: 0.25, seed: 0 };
    let data = Data {
        test: Some(HeldOut::Source(source(write("test.parquet", &[2, 1])))),
        ..Data::of(source(write("train.parquet", &[0, 1, 2, 0])), validation)
    };
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["cat", "dog", "cow"]);
    assert_eq!(set.test.unwrap().labels, Labels::Single(vec![2, 1]));
}
