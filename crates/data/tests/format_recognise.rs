//! A path with no recipe: what is recognised, and what is asked.

use std::path::Path;

use crate::format_support::*;
use aleator_data::inputs::recognise::{Family, recognise};

const PIXEL: &[u8] = b"P6 1 1 255\n\0\0\0";

fn matrix() -> Vec<u8> {
    npy_f32("(2, 3)", &[0.5; 6])
}

fn classes() -> Vec<u8> {
    npy_i64("(2,)", &[0, 3])
}

#[track_caller]
fn assert_settings(path: &Path, folder: &Folder, family: Family, expected: &[(&str, &str)]) {
    let found = recognise(path).unwrap();
    assert_found(&found, folder, expected);
    assert_eq!(found.preset_family, family);
    assert!(found.explanation.ends_with('.'), "{}", found.explanation);
}

#[test]
fn labels_beside_a_file_of_embeddings_are_found_under_usual_names() {
    for (inputs, labels) in [
        ("emb.npy", "emb_labels.npy"),
        ("emb.npy", "labels.npy"),
        ("emb.npy", "y.npy"),
        ("a_x.npy", "a_y.npy"),
        ("X_train.npy", "y_train.npy"),
        ("train_features.npy", "train_labels.npy"),
        ("features.npy", "labels.npy"),
        ("train.npy", "labels.npy"),
        ("train.npy", "train_targets.npy"),
    ] {
        let folder = Folder::new();
        let path = folder.write(inputs, matrix());
        folder.write(labels, classes());
        let expected = [("data.train.features", inputs), ("data.train.labels", labels)];
        assert_settings(&path, &folder, Family::Features, &expected);
        assert_settings(folder.path(), &folder, Family::Features, &expected);
    }
}

#[test]
fn pairs_for_training_validation_and_test_are_found() {
    let folder = Folder::new();
    for split in ["train", "valid", "test"] {
        folder.write(&format!("{split}_x.npy"), matrix());
        folder.write(&format!("{split}_y.npy"), classes());
    }
    let expected = [
        ("data.train.features", "train_x.npy"),
        ("data.train.labels", "train_y.npy"),
        ("data.validation.features", "valid_x.npy"),
        ("data.validation.labels", "valid_y.npy"),
        ("data.test.features", "test_x.npy"),
        ("data.test.labels", "test_y.npy"),
    ];
    assert_settings(folder.path(), &folder, Family::Features, &expected);
    let path = folder.path().join("train_x.npy");
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn two_data_sets_in_a_folder_need_a_choice() {
    let folder = Folder::new();
    for name in ["scene", "yeast"] {
        folder.write(&format!("{name}_train_x.npy"), matrix());
        folder.write(&format!("{name}_train_y.npy"), npy_i64("(2, 3)", &[0, 1, 1, 0, 0, 0]));
    }
    let words = ["several matrices", "scene_train_x.npy", "--set data.train.features=FILE"];
    assert_refused(recognise(folder.path()), folder.path(), &words);
    let path = folder.path().join("yeast_train_x.npy");
    let expected =
        [("data.train.features", "yeast_train_x.npy"), ("data.train.labels", "yeast_train_y.npy")];
    assert_settings(&path, &folder, Family::Multilabel, &expected);
}

#[test]
fn one_hot_rows_are_single_labels() {
    let folder = Folder::new();
    let path = folder.write("x.npy", matrix());
    folder.write("y.npy", npy_i64("(2, 2)", &[0, 1, 1, 0]));
    let expected = [
        ("data.train.features", "x.npy"),
        ("data.label_kind", "soft"),
        ("data.train.labels", "y.npy"),
    ];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn answers_of_annotators_are_the_labels_and_true_labels_only_compare() {
    let folder = Folder::new();
    let path = folder.write("train_x.npy", matrix());
    folder.write("train_y.npy", classes());
    folder.write("train_answers.npy", npy_i64("(2, 3)", &[0, -1, 1, 1, 1, -1]));
    let expected = [
        ("data.train.features", "train_x.npy"),
        ("data.label_kind", "annotators"),
        ("data.train.clean_labels", "train_y.npy"),
        ("data.train.labels", "train_answers.npy"),
    ];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn clean_labels_and_names_of_classes_are_found() {
    let folder = Folder::new();
    let path = folder.write("x.npy", matrix());
    folder.write("labels.npy", classes());
    folder.write("clean_labels.npy", classes());
    folder.write("class_names.txt", "a\nb\nc\nd\n");
    let expected = [
        ("data.train.features", "x.npy"),
        ("data.train.clean_labels", "clean_labels.npy"),
        ("data.train.labels", "labels.npy"),
        ("data.class_names", "class_names.txt"),
    ];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn the_label_column_of_a_table_is_named() {
    let folder = Folder::new();
    let path = folder.write("x.npy", matrix());
    folder.write("labels.csv", "file,Label\na.png,cat\nb.png,dog\n");
    let expected = [("data.train.features", "x.npy"), ("data.train.labels", "labels.csv#Label")];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn features_and_labels_in_one_file_are_found() {
    let folder = Folder::new();
    let header = r#"{"embedding":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"label":{"dtype":"I64","shape":[2],"data_offsets":[8,24]}}"#;
    let path = folder.write("train.safetensors", safetensors(header, &[0; 24]));
    folder.write("train_y.npy", classes());
    let expected = [
        ("data.train.features", "train.safetensors#embedding"),
        ("data.train.labels", "train.safetensors#label"),
    ];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn embeddings_without_labels_ask_for_them() {
    let folder = Folder::new();
    let path = folder.write("cifar_train.npy", matrix());
    folder.write("other.npy", classes());
    let words = ["no labels beside it", "seen: cifar_train.npy, other.npy", "data.train.labels"];
    assert_refused(recognise(&path), &path, &words);
}

#[test]
fn two_possible_label_files_need_a_choice() {
    let folder = Folder::new();
    let path = folder.write("x.npy", matrix());
    folder.write("y.npy", classes());
    folder.write("labels.csv", "0\n3\n");
    assert_refused(recognise(&path), &path, &["labels.csv or", "y.npy could go with"]);
}

#[test]
fn test_embeddings_without_labels_are_left_out_and_said() {
    let folder = Folder::new();
    folder.write("train_x.npy", matrix());
    folder.write("train_y.npy", classes());
    folder.write("test_x.npy", matrix());
    let found = recognise(folder.path()).unwrap();
    assert_eq!(settings(&found, &folder).len(), 2, "{found:?}");
    assert!(found.explanation.contains("test_x.npy is not used"), "{}", found.explanation);
}

#[test]
fn test_data_that_is_trained_on_is_not_tested_on() {
    let folder = Folder::new();
    let path = folder.write("test_x.npy", matrix());
    folder.write("test_y.npy", classes());
    let expected = [("data.train.features", "test_x.npy"), ("data.train.labels", "test_y.npy")];
    assert_settings(&path, &folder, Family::Features, &expected);
}

#[test]
fn a_folder_for_each_class_is_images() {
    let folder = Folder::new();
    folder.write("cat/1.ppm", PIXEL);
    folder.write("dog/1.ppm", PIXEL);
    let expected = [("data.train.images", "."), ("data.image_size", "1")];
    assert_settings(folder.path(), &folder, Family::Images, &expected);
    std::fs::remove_dir_all(folder.path().join("dog")).unwrap();
    assert_refused(recognise(folder.path()), folder.path(), &["one folder only", "seen: cat/"]);
}

#[test]
fn pictures_beside_embeddings_are_no_classes_unless_there_are_several_folders() {
    let folder = Folder::new();
    folder.write("x.npy", matrix());
    folder.write("y.npy", classes());
    folder.write("plots/1.ppm", PIXEL);
    let expected = [("data.train.features", "x.npy"), ("data.train.labels", "y.npy")];
    assert_settings(folder.path(), &folder, Family::Features, &expected);
    folder.write("more/1.ppm", PIXEL);
    let words = ["both folders of images and embeddings (x.npy)", "--set data.train.images"];
    assert_refused(recognise(folder.path()), folder.path(), &words);
}

#[test]
fn large_images_are_made_small() {
    let folder = Folder::new();
    for class in ["cat", "dog"] {
        let image = [b"P6 200 100 255\n".to_vec(), vec![0; 60_000]].concat();
        folder.write(&format!("{class}/1.ppm"), image);
    }
    let expected = [("data.train.images", "."), ("data.image_size", "64")];
    assert_settings(folder.path(), &folder, Family::Images, &expected);
}

#[test]
fn splits_of_class_folders_are_recognised() {
    let folder = Folder::new();
    for split in ["train", "val", "test"] {
        folder.write(&format!("{split}/cat/1.ppm"), PIXEL);
        folder.write(&format!("{split}/dog/1.ppm"), PIXEL);
    }
    let expected = [
        ("data.train.images", "train"),
        ("data.validation.images", "val"),
        ("data.test.images", "test"),
        ("data.image_size", "1"),
    ];
    assert_settings(folder.path(), &folder, Family::Images, &expected);
}

#[test]
fn cifar_is_recognised() {
    let folder = Folder::new();
    folder.write("data_batch_1.bin", cifar10(&[1]));
    folder.write("test_batch.bin", cifar10(&[1]));
    let test = ("data.test.images", "test_batch.bin");
    // Raw pixels are taken as they are, whatever the size of the preset.
    let size = ("data.image_size", "");
    let expected = [("data.train.images", "."), test, size];
    assert_settings(folder.path(), &folder, Family::Images, &expected);
    let path = folder.path().join("data_batch_1.bin");
    let expected = [("data.train.images", "data_batch_1.bin"), test, size];
    assert_settings(&path, &folder, Family::Images, &expected);
}

#[test]
fn mnist_is_recognised() {
    let folder = Folder::new();
    for split in ["train", "t10k"] {
        let images = gzip(&idx(0x0803, &[1, 1, 1], &[0]));
        folder.write(&format!("{split}-images-idx3-ubyte.gz"), images);
        folder.write(&format!("{split}-labels-idx1-ubyte.gz"), gzip(&idx(0x0801, &[1], &[0])));
    }
    let expected = [
        ("data.train.images", "train-images-idx3-ubyte.gz"),
        ("data.test.images", "t10k-images-idx3-ubyte.gz"),
        ("data.image_size", ""),
    ];
    assert_settings(folder.path(), &folder, Family::Images, &expected);
    std::fs::remove_file(folder.path().join("train-labels-idx1-ubyte.gz")).unwrap();
    let path = folder.path().join("train-images-idx3-ubyte.gz");
    assert_refused(recognise(folder.path()), &path, &["no file of IDX labels"]);
}

#[test]
fn nothing_to_train_on_lists_what_was_seen() {
    let folder = Folder::new();
    folder.write("notes.md", "");
    let words = ["nothing to train on", "seen: notes.md", "data.train.images=FOLDER"];
    assert_refused(recognise(folder.path()), folder.path(), &words);
    let path = folder.path().join("missing");
    assert_refused(recognise(&path), &path, &["no such file"]);
}

#[test]
fn a_file_that_holds_no_embeddings_says_why() {
    let folder = Folder::new();
    let path = folder.write("y.npy", classes());
    assert_refused(recognise(&path), &path, &["1-dimensional"]);
    let path = folder.write("1.ppm", PIXEL);
    assert_refused(recognise(&path), &path, &["is one image"]);
    let path = folder.write("features.npy", &matrix()[..40]);
    assert_refused(recognise(folder.path()), &path, &["header"]);
}

#[test]
fn words_that_pandas_saved_are_found_as_labels() {
    let folder = Folder::new();
    folder.write("x.npy", matrix());
    let labels = folder.write("y.npy", object_labels());
    let expected = [("data.train.features", "x.npy"), ("data.train.labels", "y.npy")];
    assert_settings(folder.path(), &folder, Family::Features, &expected);
    folder.write("y.npy", npy("|O", "(2,)", b"\x80\x03cdatetime\ndate\n."));
    let words = ["objects made by datetime.date", "allow_pickle=True).astype(str)"];
    assert_refused(recognise(folder.path()), &labels, &words);
}

#[test]
fn matrices_of_whole_numbers_are_features_where_there_are_no_floats() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy("|u1", "(2, 3)", &[7; 6]));
    folder.write("y.npy", classes());
    let expected = [("data.train.features", "x.npy"), ("data.train.labels", "y.npy")];
    assert_settings(folder.path(), &folder, Family::Features, &expected);
    let said = recognise(&path).unwrap().explanation;
    assert!(said.starts_with("Embeddings in x.npy (uint8, read as float32);"), "{said}");
    folder.write("counts.npy", npy_i64("(2, 2)", &[1, 2, 3, 4]));
    assert_settings(folder.path(), &folder, Family::Features, &expected);
}

#[test]
fn features_that_are_no_matrix_say_so_in_a_folder_too() {
    let folder = Folder::new();
    let path = folder.write("x.npy", npy("|u1", "(2, 2, 2)", &[7; 8]));
    folder.write("y.npy", classes());
    let words = ["3-dimensional", "x.reshape(len(x), -1)"];
    assert_refused(recognise(folder.path()), &path, &words);
    assert_refused(recognise(&path), &path, &words);
}

#[test]
fn files_of_other_formats_say_how_to_convert_them() {
    for (name, line) in [
        ("x.pt", "torch.load(\"FILE\", weights_only=True)"),
        ("x.PTH", "torch.load(\"FILE\", weights_only=True)"),
        ("x.pkl", "pandas.read_pickle(\"FILE\")"),
        ("x.pickle", "pandas.read_pickle(\"FILE\")"),
        ("x.joblib", "joblib.load(\"FILE\")"),
        ("x.h5", "h5py.File(\"FILE\")"),
        ("x.hdf5", "h5py.File(\"FILE\")"),
        ("x.mat", "scipy.io.loadmat(\"FILE\")"),
        ("x.xlsx", "pandas.read_excel(\"FILE\")"),
        ("x.xls", "pandas.read_excel(\"FILE\")"),
        ("x.feather", "pandas.read_feather(\"FILE\")"),
        ("x.arrow", "datasets.Dataset.from_file(\"FILE\")"),
        ("x.jsonl", "pandas.read_json(\"FILE\", lines=True)"),
    ] {
        let folder = Folder::new();
        let path = folder.write(name, "anything");
        let line = line.replace("FILE", path.to_str().unwrap());
        assert_refused(recognise(&path), &path, &["convert it in Python", &line]);
        assert_refused(recognise(folder.path()), &path, &["convert it in Python", &line]);
        assert_refused(features(&path), &path, &["convert it in Python", &line]);
    }
}
