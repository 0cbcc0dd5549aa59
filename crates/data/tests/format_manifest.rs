//! Manifests: columns and their names, splits, annotators, weights, and rows that are wrong.

use std::path::{Path, PathBuf};

use crate::format_support::*;
use aleator_data::inputs::{CarriedLabels, Inputs, Opened};
use aleator_data::{DataError, DataSet, Labels};
use aleator_run::recipe::{Data, Framing, HeldOut, InputSource, Link, Source};

/// A folder with the images a.png to f.png in `images/`.
fn with_images() -> Folder {
    let folder = Folder::new();
    for (at, name) in ["a", "b", "c", "d", "e", "f"].iter().enumerate() {
        folder.write(&format!("images/{name}.png"), plain_png(2, 2, [40 * at as u8; 3]));
    }
    folder
}

fn open(folder: &Folder, name: &str, text: &str) -> (PathBuf, Result<Opened, DataError>) {
    let path = folder.write(name, text);
    (path.clone(), images(path))
}

fn words(labels: &CarriedLabels) -> Vec<&str> {
    let CarriedLabels::Written(labels) = labels else { panic!("{labels:?}") };
    (0..labels.len()).map(|at| labels.get(at)).collect()
}

fn data(train: &Path) -> Data {
    let source = Source::of(InputSource::images(train));
    let validation = HeldOut::Source(source.clone());
    Data::of(source, validation)
}

#[test]
fn csv_and_json_lines_say_the_same() {
    let folder = with_images();
    let csv = "path,label,weight,clean_label,id,comment\n\
               images/a.png,cat,1,cat,1,x\nimages/b.png,dog,2.5,cat,2,\n";
    let tsv = csv.replace(',', "\t");
    let json = "{\"path\":\"images/a.png\",\"label\":\"cat\",\"weight\":1,\"clean_label\":\"cat\",\"id\":1}\n\n\
                {\"path\":\"images/b.png\",\"label\":\"dog\",\"weight\":2.5,\"clean_label\":\"cat\",\"id\":2}\n";
    for (name, text) in [("m.csv", csv), ("m.tsv", &tsv), ("m.jsonl", json)] {
        let opened = open(&folder, name, text).1.unwrap();
        assert_eq!(words(opened.labels.as_ref().unwrap()), ["cat", "dog"], "{name}");
        assert_eq!(opened.clean_labels.as_ref().map(|clean| clean.get(1)), Some("cat"));
        assert_eq!(opened.weights.unwrap(), [1.0, 2.5]);
        assert_eq!(opened.ids.unwrap(), ["1", "2"]);
        assert_eq!(all_rows(&opened.inputs).unwrap()[..12], [-1.0; 12]);
    }
}

#[test]
fn other_names_of_columns_and_absolute_paths_are_understood() {
    let folder = with_images();
    let absolute = folder.path().join("images/b.png");
    for (path, label) in
        [("image", "class"), ("FILE", "Label"), ("filename", "label"), ("file_name", "class")]
    {
        let text = format!("{label},{path}\n7,images/a.png\n3,{}\n", absolute.display());
        let opened = open(&folder, "m.csv", &text).1.unwrap();
        assert_eq!(words(opened.labels.as_ref().unwrap()), ["7", "3"]);
        assert_eq!(opened.ids.unwrap(), ["images/a.png", absolute.to_str().unwrap()]);
    }
}

#[test]
fn a_split_is_chosen_by_its_name() {
    let folder = with_images();
    let text =
        "path,label,split\nimages/a.png,x,train\nimages/b.png,y,test\nimages/c.png,y,train\n";
    let (path, all) = open(&folder, "m.csv", text);
    assert_refused(all, &path, &["splits test, train", "m.csv#test"]);
    let part = |split: &str| images(format!("{}#{split}", path.display()));
    assert_eq!(part("train").unwrap().ids.unwrap(), ["images/a.png", "images/c.png"]);
    assert_eq!(part("test").unwrap().ids.unwrap(), ["images/b.png"]);
    assert_refused(part("validation"), &path, &["no split \"validation\"", "test, train"]);
    let (path, _) = open(&folder, "n.csv", "path,label\nimages/a.png,x\n");
    assert_refused(images(format!("{}#train", path.display())), &path, &["no column \"split\""]);
}

#[test]
fn one_id_or_image_twice_is_refused_with_both_lines() {
    let folder = with_images();
    let (path, twice) = open(
        &folder,
        "m.csv",
        "id,path,label\n7,images/a.png,x\n8,images/b.png,y\n7,images/c.png,y\n",
    );
    assert_refused(twice, &path, &["lines 2 and 4", "the same id \"7\""]);
    let (path, twice) = open(&folder, "m.csv", "path,label\nimages/a.png,x\nimages/a.png,y\n");
    assert_refused(twice, &path, &["lines 2 and 3", "\"images/a.png\"", "annotator"]);
    let (path, twice) =
        open(&folder, "m.csv", "id,path,label\n1,images/a.png,x\n2,images/a.png,y\n");
    assert_refused(twice, &path, &["lines 2 and 3", "the same image"]);
}

const ANNOTATED: &str = "path,annotator,label,weight\n\
    images/a.png,ann,cat,1\nimages/b.png,10,dog,3\nimages/a.png,9,dog,1\n\
    images/b.png,ann,dog,3\nimages/a.png,10,cat,1\n";

#[test]
fn rows_of_several_annotators_become_annotations() {
    let folder = with_images();
    let path = folder.write("m.csv", ANNOTATED);
    let set = DataSet::open(&data(&path), Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["cat", "dog"]);
    let Labels::Annotations(votes) = &set.train.labels else { panic!("{:?}", set.train.labels) };
    assert_eq!(votes.annotator_names, ["9", "10", "ann"]);
    assert_eq!(votes.offsets, [0, 3, 5]);
    assert_eq!(votes.annotators, [0, 1, 2, 1, 2]);
    assert_eq!(votes.labels, [1, 0, 0, 1, 1]);
    assert_eq!(set.train.weights.as_deref(), Some(&[0.5, 1.5][..]));
}

#[test]
fn annotations_that_contradict_each_other_are_refused() {
    let folder = with_images();
    for (text, expected) in [
        ("path,annotator,label\nimages/a.png,1,x\nimages/a.png,1,y\n", "annotator 1 labels"),
        (
            "path,annotator,label,weight\nimages/a.png,1,x,1\nimages/a.png,2,y,2\n",
            "two different values of weight",
        ),
        (
            "path,annotator,label,clean_label\nimages/a.png,1,x,x\nimages/a.png,2,y,y\n",
            "of clean_label",
        ),
        ("path,annotator,label,id\nimages/a.png,1,x,7\nimages/b.png,2,y,7\n", "names two images"),
        ("path,annotator,label,id\nimages/a.png,1,x,7\nimages/a.png,2,y,8\n", "has two ids"),
    ] {
        let (path, refused) = open(&folder, "m.csv", text);
        assert_refused(refused, &path, &["lines 2 and 3", expected]);
    }
}

#[test]
fn wrong_cells_are_refused_by_line() {
    let folder = with_images();
    for (text, words) in [
        ("path,label\nimages/a.png,\n", &["line 2", "no label"][..]),
        ("path,label\n,x\n", &["line 2", "no path"]),
        ("path,label,split\nimages/a.png,x,train\nimages/b.png,x,\n", &["line 3", "no split"]),
        ("path,label,weight\nimages/a.png,x,0\n", &["line 2", "weight 0", "above 0"]),
        ("path,label,weight\nimages/a.png,x,-1\n", &["line 2", "weight -1"]),
        ("path,label,weight\nimages/a.png,x,inf\n", &["line 2", "weight inf"]),
        ("path,label,weight\nimages/a.png,x,NaN\n", &["line 2", "weight NaN"]),
        ("path,label,weight\nimages/a.png,x,1e-60\n", &["line 2", "weight 1e-60"]),
        ("path,label,weight\nimages/a.png,x,much\n", &["line 2", "\"much\"", "not a number"]),
        ("path,label\nimages/a.png,x\nimages/zz.png,y\n", &["line 3", "images/zz.png"]),
        ("path,label\nimages/a.png,x,y\n", &["line 2 has 3 fields"]),
        ("path,label\n", &["no rows"]),
        ("", &["no column \"path\""]),
        ("path,name\nimages/a.png,x\n", &["no column \"label\"", "clean_label"]),
        ("path,file,label\nimages/a.png,x,y\n", &["two columns of the path"]),
    ] {
        let (path, refused) = open(&folder, "m.csv", text);
        assert_refused(refused, &path, words);
    }
    for (text, words) in [
        ("{\"path\":\"images/a.png\",\"label\":{}}\n", &["line 1", "label is neither"][..]),
        ("{\"path\":\"images/a.png\"}\n", &["no column \"label\""]),
        ("\n[1]\n", &["line 2", "not a JSON object"]),
        ("{\"path\n", &["line 1", "not JSON"]),
        (
            "{\"path\":\"images/a.png\",\"label\":1}\n{\"path\":\"images/b.png\",\"label\":1,\"weight\":2}\n",
            &["line 2", "has a weight"],
        ),
        (
            "{\"path\":\"images/a.png\",\"label\":1,\"id\":1}\n{\"path\":\"images/b.png\",\"label\":1}\n",
            &["line 2", "no id"],
        ),
    ] {
        let (path, refused) = open(&folder, "m.jsonl", text);
        assert_refused(refused, &path, words);
    }
}

#[test]
fn a_row_without_end_is_refused() {
    let folder = with_images();
    let long = format!("path,label\nimages/a.png,{}\n", "x".repeat(70_000));
    let (path, refused) = open(&folder, "m.csv", &long);
    assert_refused(refused, &path, &["line 2", "65536"]);
    // A quotation mark that is not closed makes the rest of the file one row.
    let open_quote = format!("path,label\n\"images/a.png,x\n{}", "images/b.png,y\n".repeat(6_000));
    let (path, refused) = open(&folder, "m.csv", &open_quote);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains(path.to_str().unwrap()) && message.contains("line 2"), "{message}");
}

#[test]
fn labels_are_classes_as_in_label_files() {
    let folder = with_images();
    let train = folder.write("train.csv", "path,label\nimages/a.png,cat\nimages/b.png,dog\n");
    let test = folder.write("test.csv", "path,label\nimages/c.png,dog\nimages/d.png,cow\n");
    let mut data = data(&train);
    data.test =
        Some(HeldOut::Source(Source { inputs: InputSource::images(&test), ..data.train.clone() }));
    let message = DataSet::open(&data, Link::Softmax).unwrap_err().to_string();
    for word in ["test.csv: line 3", "\"cow\"", "\"cat\", \"dog\""] {
        assert!(message.contains(word), "{message}");
    }
    let numbers = folder.write("numbers.csv", "path,label\nimages/a.png,0\nimages/b.png,2\n");
    data.test = None;
    data.train.inputs = InputSource::images(&numbers);
    data.validation = HeldOut::Source(data.train.clone());
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["0", "2"], "encoded");
    data.classes = Some(3);
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.train.labels, Labels::Single(vec![0, 2]));
}

#[test]
fn an_image_that_vanishes_is_named_when_it_is_read() {
    let folder = with_images();
    let opened = open(&folder, "m.csv", "path,label\nimages/a.png,x\n").1.unwrap();
    let image = folder.path().join("images/a.png");
    std::fs::remove_file(&image).unwrap();
    assert_refused(all_rows(&opened.inputs), &image, &["no such file"]);
    assert_refused(fingerprint(&opened.inputs), &image, &["no such file"]);
}

#[test]
fn weights_are_of_softmax_only_and_scale_training_targets() {
    use aleator_data::{Order, Targets, evaluation_batches, training_batches};
    let folder = with_images();
    let path = folder.write("m.csv", "path,label,weight\nimages/a.png,x,1\nimages/b.png,y,3\n");
    let message = DataSet::open(&data(&path), Link::Sigmoid).unwrap_err().to_string();
    assert!(message.contains("weights") && message.contains("softmax"), "{message}");
    let train = DataSet::open(&data(&path), Link::Softmax).unwrap().train;
    let order = Order { examples: 2, batch: 2, part: 2, seed: 0 };
    let batch = training_batches(train.clone(), order, 0..1, 0..1, 0).next().unwrap().unwrap();
    let targets = crate::support::dense(&batch.targets, 2);
    for (example, row) in batch.examples.iter().zip(targets.chunks(2)) {
        assert_eq!(row, [[0.5, 0.0], [0.0, 1.5]][*example]);
    }
    let batch = evaluation_batches(train, 2, 0).next().unwrap().unwrap();
    assert_eq!(batch.targets, Targets::Classes(vec![0, 1]));
}

#[test]
fn the_fingerprint_changes_with_weights_labels_and_images() {
    let folder = with_images();
    let print = |text: &str| {
        let path = folder.write("m.csv", text);
        DataSet::open(&data(&path), Link::Softmax).unwrap().fingerprint
    };
    let base = print("path,label,weight\nimages/a.png,x,1\nimages/b.png,y,3\n");
    assert_eq!(base, print("label,path,weight\nx,images/a.png,1\ny,images/b.png,3\n"));
    assert_ne!(base, print("path,label,weight\nimages/a.png,x,1\nimages/b.png,y,4\n"));
    assert_ne!(base, print("path,label,weight\nimages/a.png,y,1\nimages/b.png,x,3\n"));
    assert_ne!(base, print("path,label,weight\nimages/a.png,x,1\nimages/c.png,y,3\n"));
    assert_ne!(base, print("path,label\nimages/a.png,x\nimages/b.png,y\n"));
}

#[test]
fn a_manifest_is_named_alone() {
    let folder = with_images();
    let paths = ["a.csv", "b.csv"].map(|name| folder.write(name, "path,label\nimages/a.png,x\n"));
    let refused = Inputs::open(&InputSource::Images(paths.to_vec()), &Framing::PLAIN);
    assert_refused(refused, &paths[0], &["several paths", "one kind"]);
}
