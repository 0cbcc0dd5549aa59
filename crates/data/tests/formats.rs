//! What all formats have in common: the same numbers are the same data, and every path and
//! number is checked where it enters.

use crate::format_support::*;
use aleator_data::array::Array;
use aleator_data::inputs::{InputShape, Inputs};
use half::{bf16, f16};
use parquet::data_type::FloatType;

/// Numbers that every float format holds exactly.
const ROWS: usize = 5;
const WIDTH: usize = 3;

fn numbers() -> Vec<f32> {
    (0..ROWS * WIDTH).map(|at| at as f32 * 0.5 - 2.0).collect()
}

fn little<T, const N: usize>(convert: impl Fn(f32) -> T, bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    numbers().into_iter().flat_map(|value| bytes(convert(value))).collect()
}

/// The same matrix in every file format, order and width.
fn same_matrix(folder: &Folder) -> Vec<String> {
    let f2 = little(f16::from_f32, f16::to_le_bytes);
    let f4 = little(|x| x, f32::to_le_bytes);
    let big = little(|x| x, f32::to_be_bytes);
    let f8 = little(f64::from, f64::to_le_bytes);
    let b2 = little(bf16::from_f32, bf16::to_le_bytes);
    let turned: Vec<f32> =
        (0..ROWS * WIDTH).map(|at| numbers()[(at % ROWS) * WIDTH + at / ROWS]).collect();
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 3), }";
    let tensor = |dtype: &str, bytes: &[u8]| {
        let len = bytes.len();
        let header = format!(
            r#"{{"x":{{"dtype":"{dtype}","shape":[5,3],"data_offsets":[0,{len}]}},"n":{{"dtype":"I64","shape":[1],"data_offsets":[{len},{}]}}}}"#,
            len + 8
        );
        safetensors(&header, &[bytes, &[0; 8]].concat())
    };
    let (definition, repetition) = full_levels(ROWS, WIDTH);
    let levels = Levels { values: &numbers(), definition: &definition, repetition: &repetition };
    let parquet = parquet_file::<FloatType>(&list_of("emb", "float element;"), plain(), &[levels]);
    let files = [
        folder.write("half.npy", npy("<f2", "(5, 3)", &f2)),
        folder.write("single.npy", npy("<f4", "(5, 3)", &f4)),
        folder.write("big.npy", npy(">f4", "(5, 3)", &big)),
        folder.write("double.npy", npy("<f8", "(5, 3)", &f8)),
        folder.write("fortran.npy", npy_with(fortran, &floats(&turned))),
        folder.write("half.safetensors", tensor("F16", &f2)),
        folder.write("brain.safetensors", tensor("BF16", &b2)),
        folder.write("single.safetensors", tensor("F32", &f4)),
        folder.write("double.safetensors", tensor("F64", &f8)),
        folder.write("lists.parquet", parquet),
    ];
    files.iter().map(|path| path.to_str().unwrap().to_string()).collect()
}

#[test]
fn a_matrix_is_the_same_data_in_every_format() {
    let folder = Folder::new();
    let memory = Inputs::in_memory(numbers(), InputShape::Features(WIDTH));
    let expected = fingerprint(&memory).unwrap();
    for spec in same_matrix(&folder) {
        let opened = features(&spec).unwrap();
        assert_eq!(opened.inputs.len(), ROWS, "{spec}");
        assert_eq!(opened.inputs.shape(), InputShape::Features(WIDTH), "{spec}");
        assert_eq!(all_rows(&opened.inputs).unwrap(), numbers(), "{spec}");
        assert_eq!(fingerprint(&opened.inputs).unwrap(), expected, "{spec}");
        assert!(opened.labels.is_none() && opened.class_names.is_none() && opened.ids.is_none());
    }
}

#[test]
fn another_number_or_shape_is_another_fingerprint() {
    let of = |values: Vec<f32>, width| {
        fingerprint(&Inputs::in_memory(values, InputShape::Features(width))).unwrap()
    };
    let mut other = numbers();
    other[14] = 7.0;
    assert_ne!(of(numbers(), 3), of(other, 3));
    assert_ne!(of(numbers(), 3), of(numbers(), 5));
}

#[test]
fn rows_are_read_from_many_threads() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(5, 3)", &numbers()));
    let inputs = std::sync::Arc::new(features(&path).unwrap().inputs);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let inputs = inputs.clone();
            std::thread::spawn(move || all_rows(&inputs).unwrap())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), numbers());
    }
}

#[test]
fn a_matrix_of_many_blocks_is_fingerprinted_whole() {
    // More than one block of the fingerprint, the last one partly filled.
    let (rows, width) = (700, 256);
    let mut values: Vec<f32> = (0..rows * width).map(|at| at as f32).collect();
    let before = fingerprint(&Inputs::in_memory(values.clone(), InputShape::Features(width)));
    *values.last_mut().unwrap() += 1.0;
    let after = fingerprint(&Inputs::in_memory(values, InputShape::Features(width)));
    assert_ne!(before.unwrap(), after.unwrap());
}

#[test]
fn a_description_names_count_shape_type_and_file() {
    let folder = Folder::new();
    let f2 = little(f16::from_f32, f16::to_le_bytes);
    let path = folder.write("x.npy", npy("<f2", "(5, 3)", &f2));
    let description = features(&path).unwrap().inputs.describe();
    let expected = format!("5 vectors of 3 numbers (float16) from {}", path.display());
    assert_eq!(description, expected);
}

#[test]
fn a_number_that_is_not_finite_is_named_by_row_and_column() {
    let folder = Folder::new();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = numbers();
        values[7] = bad;
        let path = folder.write("x.npy", npy_f32("(5, 3)", &values));
        let inputs = features(&path).unwrap().inputs;
        assert_refused(fingerprint(&inputs), &path, &["row 2, column 1", "finite"]);
    }
}

#[test]
fn a_double_that_exceeds_float32_is_refused() {
    let folder = Folder::new();
    let bytes: Vec<u8> = [1.0, 1e300].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let path = folder.write("x.npy", npy("<f8", "(1, 2)", &bytes));
    let inputs = features(&path).unwrap().inputs;
    assert_refused(fingerprint(&inputs), &path, &["row 0, column 1", "inf as float32"]);
}

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::new();
    for name in ["x.npy", "x.safetensors", "x.parquet", "x.unknown", "x.npy#a"] {
        let path = folder.path().join(name);
        let result = features(&path);
        assert_refused(result, &folder.path().join(name.trim_end_matches("#a")), &["no such file"]);
    }
    for name in ["x.bin", "x-images-idx3-ubyte", "folder"] {
        let path = folder.path().join(name);
        assert_refused(images(&path), &path, &["no such file"]);
    }
    for name in ["y.csv", "y.npy", "y.txt", "y.parquet", "y.idx"] {
        let path = folder.path().join(name);
        assert_refused(Array::load(path.to_str().unwrap()), &path, &["no such file"]);
    }
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.write("x.npy", npy_f32("(5, 3)", &numbers()));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // A superuser reads it all the same.
    if std::fs::File::open(&path).is_err() {
        assert_refused(features(&path), &path, &["no permission"]);
    }
}

#[test]
fn a_folder_where_a_file_should_be_is_refused() {
    let folder = Folder::new();
    let path = folder.path().join("x.npy");
    std::fs::create_dir(&path).unwrap();
    assert_refused(features(&path), &path, &["is a directory", "file was expected"]);
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let folder = Folder::new();
    let path = folder.write("x.dat", "hello");
    assert_refused(features(&path), &path, &["unknown format", ".npy", ".safetensors"]);
    assert_refused(Array::load(path.to_str().unwrap()), &path, &["unknown format"]);
    let path = folder.write("x.csv", "1,2\n");
    assert_refused(features(&path), &path, &["embeddings are read from", "numpy.save"]);
}

#[test]
fn a_format_is_recognised_by_its_first_bytes_where_the_name_says_nothing() {
    let folder = Folder::new();
    let path = folder.write("embeddings", npy_f32("(5, 3)", &numbers()));
    assert_eq!(all_rows(&features(&path).unwrap().inputs).unwrap(), numbers());
}
