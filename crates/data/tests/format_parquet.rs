//! Parquet files: lists of floats as embeddings, columns as labels, and damaged files.

use std::sync::Arc;

use crate::format_support::*;
use aleator_data::DataError;
use aleator_data::array::{Array, Values};
use aleator_data::inputs::recognise::recognise;
use aleator_data::inputs::{Inputs, Opened};
use half::f16;
use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|at| (at % 97) as f32 * 0.25 - 3.0).collect()
}

/// Lists of `width` values; every hundred rows begin a row group.
fn lists<T: DataType>(
    element: &str,
    properties: parquet::file::properties::WriterPropertiesBuilder,
    width: usize,
    values: &[T::T],
) -> Vec<u8> {
    let (definition, repetition) = full_levels(values.len() / width, width);
    let at_once = 100 * width;
    let parts = values
        .chunks(at_once)
        .zip(definition.chunks(at_once).zip(repetition.chunks(at_once)))
        .map(|(values, (definition, repetition))| Levels { values, definition, repetition });
    parquet_file::<T>(&list_of("emb", element), properties, &parts.collect::<Vec<_>>())
}

fn open(folder: &Folder, file: Vec<u8>) -> Arc<Inputs> {
    features(folder.write("x.parquet", file)).unwrap().inputs
}

#[test]
fn lists_of_every_float_type_are_read_over_row_groups() {
    let folder = Folder::new();
    let expected = numbers(250 * 7);
    let doubles: Vec<f64> = expected.iter().map(|&x| x.into()).collect();
    let halves: Vec<FixedLenByteArray> = expected
        .iter()
        .map(|&x| FixedLenByteArray::from(f16::from_f32(x).to_le_bytes().to_vec()))
        .collect();
    let half = "fixed_len_byte_array(2) element (FLOAT16);";
    for file in [
        lists::<FloatType>("float element;", plain(), 7, &expected),
        lists::<DoubleType>("double element;", plain(), 7, &doubles),
        lists::<FixedLenByteArrayType>(half, plain(), 7, &halves),
    ] {
        let inputs = open(&folder, file);
        assert_eq!(inputs.len(), 250);
        assert_eq!(all_rows(&inputs).unwrap(), expected);
    }
}

#[test]
fn every_compression_page_version_and_dictionary_setting_gives_the_same_numbers() {
    let folder = Folder::new();
    let expected = numbers(250 * 7);
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [false, true] {
                let properties = WriterProperties::builder()
                    .set_compression(codec)
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .set_data_page_size_limit(512);
                let file = lists::<FloatType>("float element;", properties, 7, &expected);
                let rows = all_rows(&open(&folder, file)).unwrap();
                assert_eq!(rows, expected, "{codec:?} {version:?} dictionary {dictionary}");
            }
        }
    }
}

#[test]
fn an_older_way_to_write_lists_is_read() {
    let folder = Folder::new();
    let levels =
        Levels { values: &[1.0, 2.0, 3.0, 4.0], definition: &[1; 4], repetition: &[0, 1, 0, 1] };
    let file = parquet_file::<FloatType>("repeated float emb;", plain(), &[levels]);
    assert_eq!(all_rows(&open(&folder, file)).unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

fn open_levels(folder: &Folder, levels: Levels<f32>) -> Result<Opened, DataError> {
    let file = parquet_file::<FloatType>(&list_of("emb", "float element;"), plain(), &[levels]);
    features(folder.write("x.parquet", file))
}

#[test]
fn nulls_are_refused_by_row() {
    let folder = Folder::new();
    let path = folder.path().join("x.parquet");
    // [1, 2], [3, null]
    let levels =
        Levels { values: &[1.0, 2.0, 3.0], definition: &[3, 3, 3, 2], repetition: &[0, 1, 0, 1] };
    assert_refused(open_levels(&folder, levels), &path, &["row 1", "\"emb\"", "holds a null"]);
    // [1, 2], null and [1, 2], []
    for level in [0, 1] {
        let levels =
            Levels { values: &[1.0, 2.0], definition: &[3, 3, level], repetition: &[0, 1, 0] };
        assert_refused(open_levels(&folder, levels), &path, &["row 1", "null or an empty list"]);
    }
}

#[test]
fn rows_of_different_lengths_are_refused() {
    let folder = Folder::new();
    let path = folder.path().join("x.parquet");
    let levels = Levels { values: &[1.0, 2.0, 3.0], definition: &[3; 3], repetition: &[0, 1, 0] };
    let words = ["row 1", "1 numbers", "row 0 has 2"];
    assert_refused(open_levels(&folder, levels), &path, &words);
}

#[test]
fn a_file_without_rows_is_refused() {
    let folder = Folder::new();
    let path = folder.path().join("x.parquet");
    let levels = Levels { values: &[], definition: &[], repetition: &[] };
    assert_refused(open_levels(&folder, levels), &path, &["no rows"]);
}

#[test]
fn a_column_of_another_type_is_refused_and_the_columns_are_listed() {
    let folder = Folder::new();
    let words: Vec<ByteArray> = ["a", "b"].iter().map(|&word| word.into()).collect();
    let levels = Levels { values: &words, definition: &[3; 2], repetition: &[0, 1] };
    let schema = list_of("emb", "binary element (UTF8);");
    let file = parquet_file::<ByteArrayType>(&schema, plain(), &[levels]);
    let path = folder.write("x.parquet", file);
    let words = ["no column of lists of numbers", "emb: list of text"];
    assert_refused(features(&path), &path, &words);
    let spec = format!("{}#emb", path.display());
    assert_refused(features(&spec), &path, &["emb: list of text is not a column of lists"]);
    let spec = format!("{}#other", path.display());
    assert_refused(features(&spec), &path, &["no column \"other\"", "emb: list of text"]);
}

#[test]
fn lists_of_whole_numbers_and_booleans_are_features() {
    let folder = Folder::new();
    #[track_caller]
    fn assert_rows<T: DataType>(
        folder: &Folder,
        element: &str,
        values: &[T::T],
        expected: [f32; 2],
    ) {
        let levels = Levels { values, definition: &[3; 2], repetition: &[0, 1] };
        let file = parquet_file::<T>(&list_of("emb", element), plain(), &[levels]);
        let path = folder.write("x.parquet", file);
        assert_eq!(all_rows(&features(&path).unwrap().inputs).unwrap(), expected, "{element}");
    }
    assert_rows::<Int64Type>(&folder, "int64 element;", &[1, -2], [1.0, -2.0]);
    assert_rows::<Int32Type>(&folder, "int32 element (INT_8);", &[7, -2], [7.0, -2.0]);
    let largest = 4_294_967_295_u32 as f32;
    assert_rows::<Int32Type>(&folder, "int32 element (UINT_32);", &[7, -1], [7.0, largest]);
    let largest = 18_446_744_073_709_551_615_u64 as f32;
    assert_rows::<Int64Type>(&folder, "int64 element (UINT_64);", &[7, -1], [7.0, largest]);
    let schema = format!("{} required int64 label;", list_of("emb", "int64 element;"));
    let file = parquet_columns(&schema, None, |columns| {
        columns.whole_lists(&[&[1, -2], &[3, 4]]);
        columns.numbers(&[0, 1]);
    });
    let said = recognise(&folder.write("table.parquet", file)).unwrap().explanation;
    assert!(said.contains("lists of int64 (read as float32) in column \"emb\""), "{said}");
    let booleans = [true, false];
    assert_rows::<BoolType>(&folder, "boolean element;", &booleans, [1.0, 0.0]);
}

#[test]
fn a_list_of_lists_is_refused() {
    let folder = Folder::new();
    let column = "optional group emb (LIST) { repeated group list { optional group element (LIST) \
                  { repeated group list { optional float element; } } } }";
    let levels = Levels { values: &[1.0, 2.0], definition: &[5; 2], repetition: &[0, 2] };
    let path = folder.write("x.parquet", parquet_file::<FloatType>(column, plain(), &[levels]));
    assert_refused(features(&path), &path, &["list of list of float32"]);
}

#[test]
fn what_is_no_parquet_or_cut_short_is_refused() {
    let folder = Folder::new();
    let file = lists::<FloatType>("float element;", plain(), 2, &numbers(40));
    for (content, what) in [
        (b"not parquet at all".to_vec(), "another file"),
        (vec![], "an empty file"),
        (file[..file.len() - 1].to_vec(), "a byte less"),
        (file[..file.len() / 2].to_vec(), "half a file"),
        ([&file[..8], &file[file.len() - 8..]].concat(), "a footer that lies"),
    ] {
        let path = folder.write("x.parquet", content);
        assert_refused(features(&path), &path, &["not a whole Parquet file"]);
        assert!(Array::load(path.to_str().unwrap()).is_err(), "{what}");
    }
}

fn column<T: DataType>(
    column: &str,
    values: &[T::T],
    definition: &[i16],
) -> Result<Array, DataError> {
    let folder = Folder::new();
    let levels = Levels { values, definition, repetition: &[] };
    let path = folder.write("y.parquet", parquet_file::<T>(column, plain(), &[levels]));
    Array::load(path.to_str().unwrap())
}

#[test]
fn columns_of_numbers_and_words_are_labels() {
    let ints = column::<Int64Type>("required int64 label;", &[3, 1, 2], &[]).unwrap();
    assert_eq!((ints.shape, ints.values), (vec![3], Values::Int(vec![3, 1, 2])));
    let small = column::<Int32Type>("required int32 label (UINT_8);", &[3, 1], &[]).unwrap();
    assert_eq!(small.values, Values::Int(vec![3, 1]));
    let unsigned = column::<Int32Type>("required int32 label (UINT_32);", &[-1], &[]).unwrap();
    assert_eq!(unsigned.values, Values::Int(vec![4_294_967_295]));
    let flags = column::<BoolType>("required boolean on;", &[true, false], &[]).unwrap();
    assert_eq!(flags.values, Values::Int(vec![1, 0]));
    let words: Vec<ByteArray> = ["cat", "dog"].iter().map(|&word| word.into()).collect();
    let words =
        column::<ByteArrayType>("optional binary label (UTF8);", &words, &[1, 0, 1]).unwrap();
    assert_eq!(words.values, Values::Text(vec!["cat".into(), "".into(), "dog".into()]));
    let floats = column::<DoubleType>("required double p;", &[0.5], &[]).unwrap();
    assert_eq!(floats.values, Values::Float(vec![0.5]));
}

#[test]
fn missing_labels_are_nan() {
    let array = column::<Int64Type>("optional int64 label;", &[3, 2], &[1, 0, 1]).unwrap();
    let Values::Float(values) = array.values else { panic!("{array:?}") };
    assert_eq!((values[0], values[2]), (3.0, 2.0));
    assert!(values[1].is_nan());
}

#[test]
fn a_list_of_zeros_and_ones_is_a_table_of_labels() {
    let folder = Folder::new();
    let levels = Levels { values: &[0, 1, 1, 0], definition: &[3; 4], repetition: &[0, 1, 0, 1] };
    let file = parquet_file::<Int32Type>(&list_of("y", "int32 element;"), plain(), &[levels]);
    let path = folder.write("y.parquet", file);
    let array = Array::load(&format!("{}#y", path.display())).unwrap();
    assert_eq!((array.shape, array.values), (vec![2, 2], Values::Int(vec![0, 1, 1, 0])));
}

#[test]
fn several_columns_make_a_table() {
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let schema = "message m { required int32 a; required binary b (UTF8); optional double c; }";
    let mut file = vec![];
    let schema = parse_message_type(schema).unwrap().into();
    let mut writer = SerializedFileWriter::new(&mut file, schema, plain().build().into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    next.typed::<Int32Type>().write_batch(&[1, 2], None, None).unwrap();
    next.close().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    next.typed::<ByteArrayType>().write_batch(&["x".into(), "y".into()], None, None).unwrap();
    next.close().unwrap();
    let mut next = group.next_column().unwrap().unwrap();
    next.typed::<DoubleType>().write_batch(&[0.5], Some(&[0, 1]), None).unwrap();
    next.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let folder = Folder::new();
    let path = folder.write("y.parquet", file);
    let array = Array::load(path.to_str().unwrap()).unwrap();
    assert_eq!(array.shape, [2, 3]);
    assert_eq!(array.columns.unwrap(), ["a", "b", "c"]);
    let words = ["1", "x", "", "2", "y", "0.5"].map(String::from).to_vec();
    assert_eq!(array.values, Values::Text(words));
    let only = Array::load(&format!("{}#a", path.display())).unwrap();
    assert_eq!((only.shape, only.values), (vec![2], Values::Int(vec![1, 2])));
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let folder = Folder::new();
    let values = [ByteArray::from(vec![0xff, 0xfe])];
    let levels = Levels { values: &values, definition: &[], repetition: &[] };
    let file = parquet_file::<ByteArrayType>("required binary y;", plain(), &[levels]);
    let path = folder.write("y.parquet", file);
    assert_refused(Array::load(path.to_str().unwrap()), &path, &["\"y\"", "not valid UTF-8"]);
}
