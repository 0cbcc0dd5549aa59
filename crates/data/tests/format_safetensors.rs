//! `.safetensors` files: choosing a tensor, and files that lie.

use crate::format_support::*;
use aleator_data::array::{Array, Values};

const TWO: &str = r#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},"y":{"dtype":"I64","shape":[2],"data_offsets":[16,32]}}"#;

fn two() -> Vec<u8> {
    let labels: Vec<u8> = [3_i64, -1].iter().flat_map(|v| v.to_le_bytes()).collect();
    safetensors(TWO, &[floats(&[1.0, 2.0, 3.0, 4.0]), labels].concat())
}

#[track_caller]
fn refused(file: Vec<u8>, words: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("x.safetensors", file);
    assert_refused(features(&path), &path, words);
    assert_refused(Array::load(path.to_str().unwrap()), &path, words);
}

#[test]
fn a_tensor_is_chosen_by_name() {
    let folder = Folder::new();
    let path = folder.write("x.safetensors", two());
    let spec = |name: &str| format!("{}#{name}", path.display());
    assert_eq!(all_rows(&features(spec("b")).unwrap().inputs).unwrap(), [3.0, 4.0]);
    let labels = Array::load(&spec("y")).unwrap();
    assert_eq!((labels.shape, labels.values), (vec![2], Values::Int(vec![3, -1])));
}

#[test]
fn without_a_name_several_matrices_are_listed() {
    let folder = Folder::new();
    let path = folder.write("x.safetensors", two());
    assert_refused(features(&path), &path, &["more than one", "a: F32 [2, 1]", "#name"]);
    let spec = format!("{}#c", path.display());
    assert_refused(features(&spec), &path, &["nothing called \"c\"", "b: F32 [1, 2]"]);
}

#[test]
fn a_tensor_of_another_type_or_shape_is_refused() {
    let folder = Folder::new();
    let path = folder.write("x.safetensors", two());
    let spec = format!("{}#y", path.display());
    assert_refused(features(&spec), &path, &["1-dimensional"]);
    let ints = r#"{"x":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}}"#;
    let path = folder.write("ints.safetensors", safetensors(ints, &[0; 8]));
    assert_refused(features(&path), &path, &["no matrix of numbers", "x: I32 [2]"]);
    let eighths = r#"{"x":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]}}"#;
    let path = folder.write("eighths.safetensors", safetensors(eighths, &[0; 2]));
    let spec = format!("{}#x", path.display());
    assert_refused(features(&spec), &path, &["type that cannot be read"]);
}

#[test]
fn whole_numbers_are_features_where_there_are_no_floats() {
    let folder = Folder::new();
    let ints = r#"{"x":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]}}"#;
    let path = folder.write("ints.safetensors", safetensors(ints, &[255, 255, 3, 0]));
    assert_eq!(all_rows(&features(&path).unwrap().inputs).unwrap(), [-1.0, 3.0]);
    let both = r#"{"x":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[1,4],"data_offsets":[4,8]}}"#;
    let file = safetensors(both, &[floats(&[0.5]), vec![1, 0, 0, 1]].concat());
    let path = folder.write("both.safetensors", file);
    assert_eq!(all_rows(&features(&path).unwrap().inputs).unwrap(), [0.5]);
}

#[test]
fn a_header_length_that_lies_is_refused() {
    let mut file = two();
    file[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(file.clone(), &["header's length", "exceed the file"]);
    file[..8].copy_from_slice(&50_000_000_u64.to_le_bytes());
    refused(file, &["header's length", "exceed the file"]);
}

#[test]
fn a_file_that_is_cut_short_or_too_long_is_refused() {
    let file = two();
    refused(file[..file.len() - 1].to_vec(), &["cut short"]);
    refused([file, vec![0]].concat(), &["too long"]);
    refused(vec![1, 2, 3], &["ends before its header"]);
}

#[test]
fn offsets_out_of_range_are_refused() {
    for offsets in ["[0,4000000000]", "[8,0]", "[4,12]"] {
        let header = format!(r#"{{"x":{{"dtype":"F32","shape":[1,2],"data_offsets":{offsets}}}}}"#);
        refused(safetensors(&header, &[0; 8]), &["not a whole .safetensors file"]);
    }
}

#[test]
fn a_shape_that_does_not_fit_its_bytes_is_refused() {
    let header = r#"{"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,8]}}"#;
    refused(safetensors(header, &[0; 8]), &["do not fit its shape"]);
    let header = r#"{"x":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,8]}}"#;
    refused(safetensors(header, &[0; 8]), &["overflow"]);
}

#[test]
fn an_unknown_type_or_broken_json_is_refused() {
    let header = r#"{"x":{"dtype":"STRING","shape":[1,2],"data_offsets":[0,8]}}"#;
    refused(safetensors(header, &[0; 8]), &["JSON"]);
    refused(safetensors("{", &[0; 8]), &["JSON"]);
}

/// A file as `aleator embed` makes it: two rows with these ids and class names.
fn embedded(offsets: [i64; 3], ids: &[u8; 4], names: &str) -> Vec<u8> {
    let header = format!(
        r#"{{"__metadata__":{{"format":"aleator-embeddings 1","class_names":{names:?}}},
        "features":{{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}},
        "id_offsets":{{"dtype":"I64","shape":[3],"data_offsets":[8,32]}},
        "ids":{{"dtype":"U8","shape":[4],"data_offsets":[32,36]}}}}"#
    );
    let offsets = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    safetensors(&header, &[floats(&[1.0, 2.0]), offsets, ids.to_vec()].concat())
}

#[test]
fn embeddings_bring_their_ids_and_class_names() {
    let folder = Folder::new();
    let path = folder.write("x.safetensors", embedded([0, 1, 4], b"abcd", r#"["cat","dog"]"#));
    let opened = features(&path).unwrap();
    assert_eq!(opened.ids.unwrap(), ["a", "bcd"]);
    assert_eq!(opened.class_names.unwrap(), ["cat", "dog"]);
}

#[test]
fn embeddings_whose_ids_or_names_are_damaged_are_refused() {
    let folder = Folder::new();
    let names = r#"["cat"]"#;
    for (offsets, ids) in [
        ([0, 1, 5], b"abcd"),
        ([0, -1, 4], b"abcd"),
        ([3, 1, 4], b"abcd"),
        ([0, 1, 4], b"ab\xff\xff"),
    ] {
        let path = folder.write("x.safetensors", embedded(offsets, ids, names));
        assert_refused(features(&path), &path, &["do not give an id for each row"]);
    }
    let path = folder.write("x.safetensors", embedded([0, 1, 4], b"abcd", "cat"));
    assert_refused(features(&path), &path, &["class_names is not a JSON list"]);
}
