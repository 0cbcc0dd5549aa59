//! `.npy` files: arrays of all types, and every way in which a file can lie.

use crate::format_support::*;
use aleator_data::array::{Array, Values};

fn load(folder: &Folder, file: Vec<u8>) -> Result<Array, aleator_data::DataError> {
    let path = folder.write("y.npy", file);
    Array::load(path.to_str().unwrap())
}

#[test]
fn whole_numbers_of_every_type_are_read() {
    let folder = Folder::new();
    let cases: [(&str, Vec<u8>); 11] = [
        ("|b1", vec![0, 1, 1]),
        ("|u1", vec![0, 1, 1]),
        ("|i1", vec![0, 1, 1]),
        ("<u2", [0_u16, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect()),
        (">i2", [0_i16, 1, 1].iter().flat_map(|v| v.to_be_bytes()).collect()),
        ("<u4", [0_u32, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect()),
        (">i4", [0_i32, 1, 1].iter().flat_map(|v| v.to_be_bytes()).collect()),
        ("<u8", [0_u64, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect()),
        (">u8", [0_u64, 1, 1].iter().flat_map(|v| v.to_be_bytes()).collect()),
        ("<i8", [0_i64, 1, 1].iter().flat_map(|v| v.to_le_bytes()).collect()),
        (">i8", [0_i64, 1, 1].iter().flat_map(|v| v.to_be_bytes()).collect()),
    ];
    for (descr, bytes) in cases {
        let array = load(&folder, npy(descr, "(3,)", &bytes)).unwrap();
        assert_eq!(array.shape, [3], "{descr}");
        assert_eq!(array.values, Values::Int(vec![0, 1, 1]), "{descr}");
    }
}

#[test]
fn signed_numbers_keep_their_sign_and_large_ones_their_size() {
    let folder = Folder::new();
    let array = load(&folder, npy("|i1", "(2,)", &[0xff, 0x80])).unwrap();
    assert_eq!(array.values, Values::Int(vec![-1, -128]));
    let array = load(&folder, npy("<u4", "(1,)", &u32::MAX.to_le_bytes())).unwrap();
    assert_eq!(array.values, Values::Int(vec![4_294_967_295]));
}

#[test]
fn floats_of_every_width_are_read() {
    let folder = Folder::new();
    let half = half::f16::from_f32(0.25);
    for (descr, bytes) in [
        ("<f2", half.to_le_bytes().to_vec()),
        (">f2", half.to_be_bytes().to_vec()),
        ("<f4", 0.25_f32.to_le_bytes().to_vec()),
        (">f4", 0.25_f32.to_be_bytes().to_vec()),
        ("<f8", 0.25_f64.to_le_bytes().to_vec()),
        (">f8", 0.25_f64.to_be_bytes().to_vec()),
    ] {
        let array = load(&folder, npy(descr, "(1,)", &bytes)).unwrap();
        assert_eq!(array.values, Values::Float(vec![0.25]), "{descr}");
    }
}

#[test]
fn words_are_read_without_their_padding() {
    let folder = Folder::new();
    let wide: Vec<u8> =
        ['c', 'a', 't', 'ö', '\0', '\0'].iter().flat_map(|&c| (c as u32).to_le_bytes()).collect();
    let array = load(&folder, npy("<U3", "(2,)", &wide)).unwrap();
    assert_eq!(array.values, Values::Text(vec!["cat".into(), "ö".into()]));
    let array = load(&folder, npy("|S3", "(2,)", b"catno\0")).unwrap();
    assert_eq!(array.values, Values::Text(vec!["cat".into(), "no".into()]));
}

#[test]
fn fortran_order_gives_the_same_array_as_c_order() {
    let folder = Folder::new();
    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }";
    let array = load(&folder, npy_with(header, &[0, 3, 1, 4, 2, 5])).unwrap();
    assert_eq!(array.shape, [2, 3]);
    assert_eq!(array.values, Values::Int(vec![0, 1, 2, 3, 4, 5]));
}

#[test]
fn newer_header_versions_are_read() {
    let folder = Folder::new();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
    for version in [2, 3] {
        let mut file = b"\x93NUMPY".to_vec();
        file.extend([version, 0]);
        file.extend((header.len() as u32).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend([7, 8]);
        assert_eq!(load(&folder, file).unwrap().values, Values::Int(vec![7, 8]));
    }
}

/// Opens the same bytes as embeddings and as labels; both must be refused.
#[track_caller]
fn refused(file: Vec<u8>, words: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("x.npy", file);
    assert_refused(features(&path), &path, words);
    assert_refused(Array::load(path.to_str().unwrap()), &path, words);
}

#[test]
fn a_wrong_magic_is_refused() {
    refused(b"hello, this is not an array".to_vec(), &["not a .npy file"]);
    refused(vec![], &["not a .npy file"]);
}

#[test]
fn an_unknown_version_is_refused() {
    refused(b"\x93NUMPY\x09\x00\x00\x00".to_vec(), &["version 9"]);
}

#[test]
fn a_header_that_ends_early_is_refused() {
    refused(b"\x93NUMPY".to_vec(), &["ends within"]);
    refused(b"\x93NUMPY\x01\x00\x10".to_vec(), &["ends within"]);
}

#[test]
fn a_header_length_beyond_the_file_is_refused() {
    let file = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'".to_vec();
    refused(file, &["4294967295 bytes", "damaged"]);
}

#[test]
fn a_header_that_makes_no_sense_is_refused() {
    refused(npy_with("{'descr': '<f4'}", &[]), &["header lacks"]);
    refused(npy_with("not a dictionary", &[]), &["cannot be understood", "numpy.save"]);
}

#[test]
fn a_shape_that_overflows_is_refused() {
    let shape = "(4611686018427387904, 4611686018427387904)";
    refused(npy("<f4", shape, &[0; 8]), &["more than any memory"]);
}

#[test]
fn a_shape_larger_than_the_file_is_refused() {
    refused(npy_f32("(1000000, 1000)", &[0.0; 6]), &["cut short", "4000000000 bytes", "found 24"]);
}

#[test]
fn trailing_bytes_are_refused() {
    refused(npy_f32("(2, 2)", &[0.0; 5]), &["too long", "16 bytes", "found 20"]);
}

#[test]
fn words_that_pandas_saved_as_objects_are_read() {
    let folder = Folder::new();
    let labels = load(&folder, object_labels()).unwrap();
    assert_eq!(labels.shape, [2]);
    assert_eq!(labels.values, Values::Text(vec!["cat".into(), "dog".into()]));
}

#[test]
fn other_objects_say_how_to_convert_them() {
    let folder = Folder::new();
    for (shape, content) in [("(2,)", &b"\x80\x03cposix\nsystem\n."[..]), ("(2, 2)", b".")] {
        let path = folder.write("y.npy", npy("|O", shape, content));
        let line = format!("numpy.load(\"{}\", allow_pickle=True).astype(", path.display());
        let words = ["Python objects", "numpy.save(", &line, "str)"];
        assert_refused(Array::load(path.to_str().unwrap()), &path, &words);
        let words = ["holds object, not numbers", &line, "numpy.float32)"];
        assert_refused(features(&path), &path, &words);
    }
}

#[test]
fn records_and_complex_numbers_are_refused() {
    let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }";
    refused(npy_with(records, &[0; 8]), &["named fields"]);
    refused(npy("<c8", "(1, 1)", &[0; 8]), &["\"<c8\"", "astype"]);
}

#[test]
fn whole_numbers_and_booleans_are_features() {
    let folder = Folder::new();
    let bytes: Vec<u8> = vec![0, 1, 2, 200, 4, 5];
    let path = folder.write("x.npy", npy("|u1", "(2, 3)", &bytes));
    let opened = features(&path).unwrap().inputs;
    assert_eq!(all_rows(&opened).unwrap(), [0.0, 1.0, 2.0, 200.0, 4.0, 5.0]);
    assert!(opened.describe().contains("(uint8)"), "{}", opened.describe());
    let fortran = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }";
    let bytes: Vec<u8> =
        [0_i16, -3, 1, 4, 2, 5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = folder.write("x.npy", npy_with(fortran, &bytes));
    let rows = all_rows(&features(&path).unwrap().inputs).unwrap();
    assert_eq!(rows, [0.0, 1.0, 2.0, -3.0, 4.0, 5.0]);
    let path = folder.write("x.npy", npy("|b1", "(1, 2)", &[1, 0]));
    assert_eq!(all_rows(&features(&path).unwrap().inputs).unwrap(), [1.0, 0.0]);
    let path = folder.write("x.npy", npy("<U1", "(1, 1)", &[b'a', 0, 0, 0]));
    assert_refused(features(&path), &path, &["holds str, not numbers", "astype(numpy.float32)"]);
}

#[test]
fn features_must_be_a_matrix() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(4,)", &[0.0; 4]));
    let words = ["1-dimensional", "[4]", "[examples, numbers]", "x.reshape(-1, 1)"];
    assert_refused(features(&path), &path, &words);
    let path = folder.write("x.npy", npy("|u1", "(1, 2, 2)", &[0; 4]));
    let words = ["3-dimensional", "[1, 2, 2]", "x.reshape(len(x), -1)"];
    assert_refused(features(&path), &path, &words);
}

#[test]
fn a_matrix_without_rows_or_columns_is_refused() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(0, 4)", &[]));
    assert_refused(features(&path), &path, &["[0, 4]", "no rows"]);
    let path = folder.write("x.npy", npy_f32("(4, 0)", &[]));
    assert_refused(features(&path), &path, &["[4, 0]", "no columns"]);
}

#[test]
fn a_number_above_the_largest_is_named() {
    let folder = Folder::new();
    let path = folder.write("y.npy", npy("<u8", "(2,)", &[[0; 8], [255; 8]].concat()));
    let result = Array::load(path.to_str().unwrap());
    assert_refused(result, &path, &["element 1", "18446744073709551615"]);
}

#[test]
fn a_name_where_there_is_one_array_is_refused() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(1, 1)", &[0.0]));
    let spec = format!("{}#a", path.display());
    assert_refused(features(&spec), &path, &["#a names nothing"]);
    assert_refused(Array::load(&spec), &path, &["#a names nothing"]);
}
