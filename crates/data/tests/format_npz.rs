//! `.npz` files: arrays by name, stored or deflated, and archives that lie.

use crate::format_support::*;
use aleator_data::array::{Array, Values};
use aleator_data::inputs::recognise::recognise;
use aleator_data::{Labels, Sources};
use aleator_run::recipe::{Data, HeldOut, Link};

fn matrix() -> Vec<u8> {
    npy_f32("(2, 3)", &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
}

fn x_and_y(deflate: bool) -> Vec<u8> {
    npz(&[("X", matrix()), ("y", npy_i64("(2,)", &[7, 9]))], deflate)
}

#[track_caller]
fn assert_read(folder: &Folder, file: Vec<u8>) {
    let path = folder.write("a.npz", file);
    let inputs = features(&path).unwrap().inputs;
    assert_eq!(all_rows(&inputs).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let labels = Array::load(&format!("{}#y", path.display())).unwrap();
    assert_eq!((labels.shape, labels.values), (vec![2], Values::Int(vec![7, 9])));
}

#[test]
fn stored_and_deflated_arrays_are_read() {
    let folder = Folder::new();
    assert_read(&folder, x_and_y(false));
    assert_read(&folder, x_and_y(true));
}

#[test]
fn arrays_of_more_than_four_gigabytes_have_their_sizes_elsewhere() {
    let folder = Folder::new();
    let labels = npy_i64("(2,)", &[7, 9]);
    for deflate in [false, true] {
        let x = Zipped { name: "X.npy", content: &matrix(), deflate, zip64: true };
        let y = Zipped { name: "y.npy", content: &labels, deflate, zip64: false };
        for zip64 in [false, true] {
            assert_read(&folder, zip_file(&[zip_member(&x), zip_member(&y)], zip64));
        }
    }
}

/// Written by `numpy.savez_compressed("tiny.npz", X=numpy.eye(2, 3, dtype="f4"), y=numpy.array([1, 0]))`
/// of NumPy 2.4.
#[test]
fn a_file_that_numpy_wrote_is_read() {
    let folder = Folder::new();
    let path = folder.write("tiny.npz", include_bytes!("data/tiny.npz"));
    let inputs = features(&path).unwrap().inputs;
    assert_eq!(all_rows(&inputs).unwrap(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let labels = Array::load(&format!("{}#y", path.display())).unwrap();
    assert_eq!(labels.values, Values::Int(vec![1, 0]));
}

#[test]
fn a_name_that_is_not_there_and_a_choice_that_is_not_made_list_the_arrays() {
    let folder = Folder::new();
    let path = folder.write("a.npz", x_and_y(true));
    let spec = format!("{}#z", path.display());
    assert_refused(Array::load(&spec), &path, &["\"z\"", "X: float32 [2, 3]; y: int64 [2]"]);
    assert_refused(Array::load(path.to_str().unwrap()), &path, &["more than one array", "#name"]);
    let path = folder.write("b.npz", npz(&[("a", matrix()), ("b", matrix())], false));
    assert_refused(features(&path), &path, &["more than one matrix of floats", "#name"]);
    let path = folder.write("c.npz", npz(&[("y", npy_i64("(2,)", &[7, 9]))], false));
    assert_refused(features(&path), &path, &["no matrix of numbers", "y: int64 [2]"]);
}

#[test]
fn members_are_recognised_by_their_names() {
    let folder = Folder::new();
    let y = || npy_i64("(2,)", &[0, 1]);
    let names = || npy("<U1", "(2,)", &[b'p', 0, 0, 0, b'q', 0, 0, 0]);
    let pairs = [
        ("X", "y"),
        ("x", "labels"),
        ("features", "target"),
        ("data", "label"),
        ("arr_0", "arr_1"),
    ];
    for (x, labels) in pairs {
        let path = folder.write("arrays.npz", npz(&[(x, matrix()), (labels, y())], true));
        let (x, labels) = (format!("arrays.npz#{x}"), format!("arrays.npz#{labels}"));
        let expected = [("data.train.features", &x[..]), ("data.train.labels", &labels)];
        assert_found(&recognise(&path).unwrap(), &folder, &expected);
        assert_found(&recognise(folder.path()).unwrap(), &folder, &expected);
    }
    let all = [
        ("x_train", matrix()),
        ("y_train", y()),
        ("ids_train", names()),
        ("clean_labels_train", y()),
        ("x_test", matrix()),
        ("y_test", y()),
        ("class_names", names()),
    ];
    let path = folder.write("arrays.npz", npz(&all, false));
    let found = recognise(&path).unwrap();
    let expected = [
        ("data.train.features", "arrays.npz#x_train"),
        ("data.train.labels", "arrays.npz#y_train"),
        ("data.train.clean_labels", "arrays.npz#clean_labels_train"),
        ("data.train.ids", "arrays.npz#ids_train"),
        ("data.test.features", "arrays.npz#x_test"),
        ("data.test.labels", "arrays.npz#y_test"),
        ("data.class_names", "arrays.npz#class_names"),
    ];
    assert_found(&found, &folder, &expected);
    let data = Data {
        class_names: found.data.class_names.clone(),
        ..Data::of(found.train, HeldOut::Fraction { fraction: 0.5, seed: 0 })
    };
    let sources = Sources::open(&data, Link::Softmax).unwrap();
    assert_eq!(sources.class_names(), ["p", "q"]);
    let train = sources.divide(&data).unwrap().train;
    let name = if train.labels == Labels::Single(vec![0]) { "p" } else { "q" };
    assert_eq!(train.ids.name(0), name);
}

#[test]
fn an_array_of_a_file_can_be_named() {
    let folder = Folder::new();
    let y = || npy_i64("(2,)", &[0, 1]);
    let both = [("raw", matrix()), ("scaled", matrix()), ("y", y())];
    let path = folder.write("a.npz", npz(&both, true));
    assert_refused(recognise(&path), &path, &["several matrices", "a.npz#raw, a.npz#scaled"]);
    for name in ["raw", "scaled"] {
        let array = path.with_file_name(format!("a.npz#{name}"));
        let features = format!("a.npz#{name}");
        let expected = [("data.train.features", &features[..]), ("data.train.labels", "a.npz#y")];
        assert_found(&recognise(&array).unwrap(), &folder, &expected);
    }
    let named = |name: &str| path.with_file_name(name);
    assert_refused(recognise(&named("a.npz#z")), &path, &["\"z\"", "raw: float32 [2, 3]"]);
    assert_refused(recognise(&named("a.npz#y")), &named("a.npz#y"), &["1-dimensional"]);
    assert_refused(recognise(&named("none.npz#X")), &named("none.npz"), &["no such file"]);
    // The only array of a file, with labels beside it.
    let folder = Folder::new();
    let path = folder.write("b.npz", npz(&[("X", matrix())], true));
    folder.write("b_labels.npy", y());
    let found = recognise(&path.with_file_name("b.npz#X")).unwrap();
    let expected = [("data.train.features", "b.npz"), ("data.train.labels", "b_labels.npy")];
    assert_found(&found, &folder, &expected);
}

#[test]
fn a_file_with_features_and_labels_takes_nothing_of_other_data_beside_it() {
    let folder = Folder::new();
    let y = || npy_i64("(2,)", &[0, 1]);
    let path = folder.write("wine.npz", npz(&[("X", matrix()), ("y", y())], true));
    for other in ["clean.npy", "labels.npy", "clean_labels.npy", "answers.npy"] {
        folder.write(other, npy_i64("(3,)", &[0, 1, 2]));
    }
    folder.write("class_names.txt", "cat\ndog\nowl\n");
    let own = [("data.train.features", "wine.npz#X"), ("data.train.labels", "wine.npz#y")];
    assert_found(&recognise(&path).unwrap(), &folder, &own);
    folder.write("wine_clean.npy", y());
    let clean = [&own[..], &[("data.train.clean_labels", "wine_clean.npy")]].concat();
    assert_found(&recognise(&path).unwrap(), &folder, &clean);
}

#[test]
fn words_of_pandas_in_an_archive_are_read() {
    let folder = Folder::new();
    let path = folder.write("a.npz", npz(&[("X", matrix()), ("y", object_labels())], true));
    let labels = Array::load(&format!("{}#y", path.display())).unwrap();
    assert_eq!(labels.values, Values::Text(vec!["cat".into(), "dog".into()]));
    let objects = npy("|O", "(2, 2)", b".");
    let path = folder.write("b.npz", npz(&[("X", objects)], true));
    let spec = format!("{}#X", path.display());
    let words = ["b.npz#X", "holds object, not numbers", ".astype(numpy.float32)"];
    assert_refused(features(&spec), &path, &words);
}

#[test]
fn an_archive_with_a_vector_for_each_example_lists_some_of_them() {
    let folder = Folder::new();
    let names: Vec<String> = (0..12).map(|at| format!("{at}.png")).collect();
    let vectors: Vec<(&str, Vec<u8>)> =
        names.iter().map(|name| (name.as_str(), npy_f32("(3,)", &[0.5; 3]))).collect();
    let path = folder.write("dict.npz", npz(&vectors, false));
    let words = ["no matrix of numbers", "0.png: float32 [3]; 1.png", "and 2 more"];
    assert_refused(recognise(&path), &path, &words);
    assert_refused(recognise(folder.path()), &path, &words);
}

#[test]
fn images_in_an_archive_say_how_to_make_them_features() {
    let folder = Folder::new();
    let pixels = npy("|u1", "(2, 2, 2)", &[7; 8]);
    let members = [("x_train", pixels), ("y_train", npy_i64("(2,)", &[0, 1]))];
    let path = folder.write("mnist.npz", npz(&members, true));
    let words = ["mnist.npz#x_train", "3-dimensional", "[2, 2, 2]", "x.reshape(len(x), -1)"];
    assert_refused(recognise(&path), &path, &words);
    assert_refused(recognise(folder.path()), &path, &words);
}

#[test]
fn a_sparse_matrix_says_how_to_convert_it() {
    let folder = Folder::new();
    let one = || npy_i64("(1,)", &[1]);
    let members = ["indices", "indptr", "format", "shape", "data"].map(|name| (name, one()));
    let path = folder.write("s.npz", npz(&members, true));
    assert_refused(recognise(&path), &path, &["sparse", "scipy.sparse.load_npz", "toarray()"]);
}

#[track_caller]
fn refused(file: Vec<u8>, words: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("x.npz", file);
    let spec = format!("{}#X", path.display());
    assert_refused(features(&spec), &path, words);
    assert_refused(Array::load(&spec), &path, words);
}

fn position(file: &[u8], of: &[u8]) -> usize {
    file.windows(of.len()).position(|window| window == of).unwrap()
}

#[test]
fn what_is_no_archive_or_has_no_end_is_refused() {
    refused(vec![], &["not a whole .npz", "cut short"]);
    refused(b"PK\x03\x04 and then something else".to_vec(), &["not a whole .npz"]);
    let file = x_and_y(false);
    refused(file[..file.len() - 1].to_vec(), &["not a whole .npz", "numpy.savez"]);
}

#[test]
fn a_directory_that_lies_is_refused() {
    let mut file = x_and_y(false);
    let end = file.len() - 22;
    file[end + 10] = 3;
    refused(file, &["entry 2", "cut short or wrong"]);
    // The size of the first array, in the directory.
    for field in [20, 24] {
        let mut file = x_and_y(false);
        let entry = position(&file, b"PK\x01\x02");
        file[entry + field..entry + field + 4].copy_from_slice(&[255, 255, 255, 127]);
        refused(file, &["not a whole .npz"]);
    }
    let twice = npz(&[("X", npy_i64("(2,)", &[7, 9])), ("X", matrix())], false);
    refused(twice, &["two arrays called \"X\""]);
    let mut file = x_and_y(true);
    let entry = position(&file, b"PK\x01\x02");
    file[entry + 10] = 12;
    refused(file.clone(), &["method 12"]);
    file[entry + 8] = 1;
    refused(file, &["encrypted"]);
}

#[test]
fn a_changed_byte_is_found_by_its_checksum() {
    for deflate in [false, true] {
        let content = npy_f32("(64, 8)", &[0.5; 512]);
        let mut file = npz(&[("X", content)], deflate);
        let directory = position(&file, b"PK\x01\x02");
        if deflate {
            // The stored checksum in place of the content, which might no longer inflate.
            file[directory + 16] ^= 1;
        } else {
            file[directory - 1] ^= 1;
        }
        refused(file, &["\"X\"", "checksum"]);
    }
}

#[test]
fn an_array_that_inflates_to_more_or_less_than_it_says_is_refused() {
    let content = npy_f32("(64, 8)", &[0.5; 512]);
    let said = |len: u32| {
        let mut file = npz(&[("X", content.clone())], true);
        let directory = position(&file, b"PK\x01\x02");
        file[directory + 24..directory + 28].copy_from_slice(&len.to_le_bytes());
        file
    };
    let len = content.len() as u32;
    refused(said(len - 4), &["cut short", "found 2044"]);
    refused(said(len + 4), &["too long", "found 2052"]);
    refused(said(u32::MAX - 1), &["too long"]);
    // A header that agrees with the length, and a stream that does not.
    let huge = npy_f32("(1000000, 1000)", &[0.5; 8]);
    let mut file = npz(&[("X", huge)], true);
    let directory = position(&file, b"PK\x01\x02");
    let promised = 4_000_000_128_u32;
    file[directory + 24..directory + 28].copy_from_slice(&promised.to_le_bytes());
    refused(file, &["deflated bytes hold 4000000128"]);
    let small = npy_f32("(4, 8)", &[0.5; 8]);
    let mut file = npz(&[("X", small)], true);
    let directory = position(&file, b"PK\x01\x02");
    file[directory + 24..directory + 28].copy_from_slice(&256_u32.to_le_bytes());
    refused(file, &["holds 160 bytes and says 256"]);
}
