//! What recognition says of manifests, shards and Parquet files with images.

use crate::format_support::*;
use aleator_data::inputs::Inputs;
use aleator_data::inputs::recognise::{Family, recognise};
use aleator_run::recipe::{Framing, HeldOut};

#[track_caller]
fn assert_images(folder: &Folder, path: &str, expected: &[(&str, &str)], seen: &str) {
    let found = recognise(&folder.path().join(path)).unwrap();
    assert_eq!(found.preset_family, Family::Images);
    assert_found(&found, folder, expected);
    assert!(found.explanation.contains(seen), "{}", found.explanation);
    // What is recognised can be opened.
    Inputs::open(&found.train.inputs, &Framing::sized(4)).unwrap();
    for held_out in [&found.data.validation, &found.data.test].into_iter().flatten() {
        let HeldOut::Source(source) = held_out else { panic!("{held_out:?}") };
        Inputs::open(&source.inputs, &Framing::sized(4)).unwrap();
    }
}

fn picture() -> Vec<u8> {
    plain_png(6, 3, [5; 3])
}

const MANIFEST: &str = "path,label\nimages/1.png,a\nimages/2.png,b\n";

fn with_images() -> Folder {
    let folder = Folder::new();
    folder.write("images/1.png", picture());
    folder.write("images/2.png", plain_png(3, 9, [6; 3]));
    folder
}

#[test]
fn a_manifest_is_recognised_by_itself_and_in_its_folder() {
    for name in ["manifest.csv", "train.csv", "metadata.jsonl", "anything.tsv"] {
        let folder = with_images();
        let text = match name.rsplit('.').next() {
            Some("tsv") => MANIFEST.replace(',', "\t"),
            Some("jsonl") => "{\"file_name\":\"images/1.png\",\"label\":0}\n\
                              {\"file_name\":\"images/2.png\",\"label\":1}\n"
                .to_string(),
            _ => MANIFEST.to_string(),
        };
        folder.write(name, text);
        folder.write("README.md", "something");
        let expected = [("data.train.images", name), ("data.image_size", "9")];
        assert_images(&folder, "", &expected, "a manifest of images");
        assert_images(&folder, name, &expected, "a manifest of images");
    }
}

#[test]
fn the_splits_of_a_manifest_are_used() {
    let folder = with_images();
    folder.write(
        "m.csv",
        "path,label,split\nimages/1.png,a,train\nimages/2.png,b,val\nimages/1.png,b,test\n",
    );
    let expected = [
        ("data.train.images", "m.csv#train"),
        ("data.validation.images", "m.csv#val"),
        ("data.test.images", "m.csv#test"),
        ("data.image_size", "9"),
    ];
    assert_images(&folder, "", &expected, "test data is m.csv#test");
    folder.write("m.csv", "path,label,split\nimages/1.png,a,one\nimages/2.png,b,two\n");
    let message = recognise(folder.path()).unwrap_err().to_string();
    assert!(message.contains("the splits one, two and none to train on"), "{message}");
}

#[test]
fn manifests_for_each_split_are_used_and_others_refused() {
    let folder = with_images();
    folder.write("train.csv", MANIFEST);
    folder.write("test.csv", MANIFEST);
    let expected = [
        ("data.train.images", "train.csv"),
        ("data.test.images", "test.csv"),
        ("data.image_size", "9"),
    ];
    assert_images(&folder, "", &expected, "test data is test.csv");
    folder.write("more.csv", MANIFEST);
    let message = recognise(folder.path()).unwrap_err().to_string();
    assert!(message.contains("several manifests: more.csv, test.csv, train.csv"), "{message}");
}

#[test]
fn a_table_of_labels_beside_class_folders_or_embeddings_is_no_manifest() {
    let folder = Folder::new();
    folder.write("cat/1.png", picture());
    folder.write("dog/1.png", picture());
    folder.write("labels.csv", "path,label\nelsewhere/1.png,cat\n");
    let found = recognise(folder.path()).unwrap();
    assert_found(&found, &folder, &[("data.train.images", "."), ("data.image_size", "6")]);

    let folder = Folder::new();
    folder.write("x.npy", npy_f32("(2, 2)", &[1.0, 2.0, 3.0, 4.0]));
    folder.write("labels.csv", "image,label\na.png,cat\nb.png,dog\n");
    let found = recognise(folder.path()).unwrap();
    assert_eq!(found.preset_family, Family::Features);
    // Also if the images are there, of which the embeddings were made.
    folder.write("a.png", picture());
    assert_eq!(recognise(folder.path()).unwrap().preset_family, Family::Features);
}

#[test]
fn the_archive_that_a_data_set_came_in_is_not_taken_for_it() {
    let archive = gzip(&tar_file(&[("0.png", &picture()), ("0.cls", b"0")]));
    let folder = Folder::new();
    folder.write("set/cat/1.png", picture());
    folder.write("set/dog/1.png", picture());
    folder.write("set/set.tar.gz", &archive);
    let found = recognise(&folder.path().join("set")).unwrap();
    assert!(found.explanation.contains("2 folders, a class each"), "{}", found.explanation);
    folder.write("x/x.npy", npy_f32("(2, 2)", &[1.0, 2.0, 3.0, 4.0]));
    folder.write("x/y.npy", npy_i64("(2,)", &[0, 1]));
    folder.write("x/x.tar.gz", &archive);
    let found = recognise(&folder.path().join("x")).unwrap();
    assert_eq!(found.preset_family, Family::Features);
    folder.write("cifar/data_batch_1.bin", cifar10(&[3, 1]));
    folder.write("cifar/cifar-10-binary.tar.gz", &archive);
    let opened = images(folder.path().join("cifar")).unwrap();
    assert_eq!(classes_of(&opened), [3, 1]);
}

#[test]
fn shards_are_recognised_with_their_splits() {
    let folder = Folder::new();
    let shard =
        |key: &str| tar_file(&[(&format!("{key}.png"), &picture()), (&format!("{key}.cls"), b"0")]);
    folder.write("plain/a-0.tar", shard("a"));
    folder.write("plain/a-1.tar", shard("b"));
    let expected = [("data.train.images", "plain/a-*.tar"), ("data.image_size", "6")];
    assert_images(&folder, "plain", &expected, "shards of images");
    let expected = [("data.train.images", "plain/a-0.tar"), ("data.image_size", "6")];
    assert_images(&folder, "plain/a-0.tar", &expected, "shards of images");

    let expected = [("data.train.images", "plain/a-{0..1}.tar"), ("data.image_size", "6")];
    assert_images(&folder, "plain/a-{0..1}.tar", &expected, "shards of images");
    let error = recognise(&folder.path().join("plain/b-*.tar")).unwrap_err().to_string();
    assert!(error.contains("b-*.tar"), "{error}");

    folder.write("split/train-0000.tar", shard("a"));
    folder.write("split/train-0001.tar", shard("b"));
    folder.write("split/val-0000.tar", shard("c"));
    folder.write("split/test-0000.tar.gz", gzip(&shard("d")));
    let expected = [
        ("data.train.images", "split/train-*.tar"),
        ("data.validation.images", "split/val-0000.tar"),
        ("data.test.images", "split/test-0000.tar.gz"),
        ("data.image_size", "6"),
    ];
    assert_images(&folder, "split", &expected, "test data is test-0000.tar.gz");
}

#[test]
fn parquet_files_with_images_are_recognised_with_their_splits() {
    let folder = Folder::new();
    let file = |label: i64| parquet_images(&[picture()], &LabelColumn::Numbers(&[label]), None);
    for (name, label) in [
        ("hub/data/train-00000-of-00002.parquet", 0),
        ("hub/data/train-00001-of-00002.parquet", 1),
        ("hub/data/test-00000-of-00001.parquet", 1),
    ] {
        folder.write(name, file(label));
    }
    folder.write("hub/README.md", "");
    let expected = [
        ("data.train.images", "hub/data/train-*-of-00002.parquet"),
        ("data.test.images", "hub/data/test-00000-of-00001.parquet"),
        ("data.image_size", "6"),
    ];
    assert_images(&folder, "hub", &expected, "images in a column of Parquet files");
    assert_images(&folder, "hub/data", &expected, "images in a column of Parquet files");
    let one = "hub/data/test-00000-of-00001.parquet";
    assert_images(&folder, one, &[("data.train.images", one), ("data.image_size", "6")], "column");
}

#[test]
fn a_first_image_that_is_damaged_does_not_hide_what_a_folder_is() {
    let folder = Folder::new();
    folder.write("set/cat/1.png", "text");
    folder.write("set/dog/1.png", picture());
    let found = recognise(&folder.path().join("set")).unwrap();
    assert_eq!(found.data.image_size, Some(Some(6)));
}
