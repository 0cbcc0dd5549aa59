//! Sets of classes, written sparsely: in cells, rows or lists.

use crate::format_support::{plain_png, tar_file};
use crate::support::{Folder, data, in_source_order, refusal};
use aleator_data::{DataSet, Labels, Split, Targets, evaluation_batches};
use aleator_run::recipe::{Data, HeldOut, InputSource, LabelKind, Link, Source};

fn classes_on(split: &Split, at: usize) -> Vec<u32> {
    match &split.labels {
        Labels::MultiHot(rows) => rows.row(at).to_vec(),
        other => panic!("{other:?}"),
    }
}

/// cat 0, dog 1, owl 2.
fn expected() -> Vec<Vec<u32>> {
    vec![vec![0, 2], vec![1], vec![], vec![0, 1, 2]]
}

#[track_caller]
fn assert_sets(data: &Data) {
    let set = DataSet::open(data, Link::Sigmoid).unwrap();
    assert_eq!(set.class_names, ["cat", "dog", "owl"]);
    assert_eq!(in_source_order(&set, classes_on), expected());
}

#[track_caller]
fn assert_refused(data: &Data, link: Link, words: &[&str]) {
    let message = refusal(data, link);
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

const CELLS: &str = "label\nowl;cat\ndog\n-\ncat; owl ;dog;\n";

#[test]
fn cells_hold_several_classes() {
    let folder = Folder::new();
    for kind in [LabelKind::Auto, LabelKind::MultiHot] {
        assert_sets(&Data { label_kind: kind, ..data(folder.source(4, CELLS)) });
    }
    // The same as a matrix of zeros and ones.
    let dense = "cat,dog,owl\n1,0,1\n0,1,0\n0,0,0\n1,1,1\n";
    assert_sets(&data(folder.source(4, dense)));
}

#[test]
fn rows_of_one_id_are_its_classes() {
    let folder = Folder::new();
    let ids = folder.write("ids.txt", "a\nb\nc\nd\n");
    let with_ids =
        |labels: &str| data(Source { ids: Some(ids.clone()), ..folder.source(4, labels) });
    let long = "id,label\nd,cat\na,owl\nc,-\nb,dog\nd,owl\nd,dog\na,cat\n";
    assert_sets(&with_ids(long));
    let cells = "id,label\nd,cat;dog;owl\nc,-\na,owl;cat\nb,dog\n";
    assert_sets(&with_ids(cells));
    // What names no example, or the example of a training label that is missing.
    let unknown = with_ids("id,label\na,cat\na,dog\ne,dog\n");
    assert_refused(&unknown, Link::Sigmoid, &["labels.csv", "no example \"e\""]);
    let twice = with_ids("id,label\na,cat\nb,dog\na,cat\n");
    assert_refused(&twice, Link::Sigmoid, &["example a", "\"cat\" twice"]);
    assert_refused(&twice, Link::Softmax, &["rows 0 and 2", "both label the example"]);
    let weighted = with_ids("id,label,weight\na,cat,1\na,dog,1\n");
    assert_refused(&weighted, Link::Sigmoid, &["\"weight\"", "softmax"]);
}

#[test]
fn examples_without_a_row_are_left_out_of_training() {
    let folder = Folder::new();
    let source = folder.source(4, "id,label\n0,cat\n0,dog\n2,-\n3,dog\n");
    let cells = Some(folder.write("cells.csv", CELLS));
    let held_out = HeldOut::Source(Source { labels: cells, ..source.clone() });
    let both = Data { validation: held_out, ..data(source.clone()) };
    // Of the training source alone are the classes.
    assert_refused(&both, Link::Sigmoid, &["cells.csv", "example 0", "\"owl\"", "2 classes"]);
    let set = DataSet::open(&data(source), Link::Sigmoid).unwrap();
    assert_eq!(set.train.len() + set.validation.len(), 3);
}

fn manifest(folder: &Folder, name: &str, text: &str) -> Data {
    for image in ["a", "b", "c", "d"] {
        folder.write(&format!("{image}.png"), plain_png(2, 2, [9; 3]));
    }
    let source = Source::of(InputSource::images(folder.write(name, text)));
    Data::of(source.clone(), HeldOut::Source(source))
}

const LISTS: &str = "{\"path\": \"a.png\", \"label\": [\"owl\", \"cat\"]}\n\
                     {\"path\": \"b.png\", \"label\": [\"dog\"]}\n\
                     {\"path\": \"c.png\", \"label\": []}\n\
                     {\"path\": \"d.png\", \"label\": [\"cat\", \"owl\", \"dog\"]}\n";

#[test]
fn manifests_and_json_lines_hold_several_classes() {
    let folder = Folder::new();
    let csv = "path,label\na.png,owl;cat\nb.png,dog\nc.png,-\nd.png,cat;owl;dog\n";
    for (name, text) in [("m.csv", csv), ("m.jsonl", LISTS)] {
        let data = manifest(&folder, name, text);
        let set = DataSet::open(&data, Link::Sigmoid).unwrap();
        let rows: Vec<_> = (0..4).map(|at| classes_on(&set.train, at)).collect();
        assert_eq!(
            (set.class_names, rows),
            (vec!["cat".into(), "dog".into(), "owl".into()], expected())
        );
        // Sparse all the way to the loss.
        let batch = evaluation_batches(set.train, 4, 0).next().unwrap().unwrap();
        let Targets::Sparse(targets) = batch.targets else { panic!("{:?}", batch.targets) };
        assert_eq!(targets.classes, expected().concat());
    }
}

#[test]
fn lists_are_for_classes_that_are_on_or_off() {
    let folder = Folder::new();
    let one_each = "{\"path\": \"a.png\", \"label\": [\"owl\"]}\n{\"path\": \"b.png\", \"label\": [\"cat\"]}\n";
    for lists in [LISTS, one_each] {
        let data = manifest(&folder, "m.jsonl", lists);
        assert_refused(&data, Link::Softmax, &["m.jsonl", "lists of classes", "\"sigmoid\""]);
    }
    let bad = |label: &str| {
        let text = format!("{{\"path\": \"a.png\", \"label\": {label}}}\n");
        manifest(&folder, "m.jsonl", &text)
    };
    assert_refused(&bad("[\"a;b\"]"), Link::Sigmoid, &["line 1", "\"a;b\"", "no ';'"]);
    assert_refused(&bad("[\"a\", \"\"]"), Link::Sigmoid, &["line 1", "without a name"]);
    assert_refused(&bad("[[\"a\"]]"), Link::Sigmoid, &["line 1", "neither a word nor a number"]);
}

#[test]
fn lists_in_shards_are_sets() {
    let folder = Folder::new();
    let image = plain_png(2, 2, [9; 3]);
    let entries: [(&str, &[u8]); 4] = [
        ("1.png", &image),
        ("1.json", b"{\"label\": [\"owl\", \"cat\"]}"),
        ("2.png", &image),
        ("2.json", b"{\"label\": []}"),
    ];
    let source = Source::of(InputSource::images(folder.write("s.tar", tar_file(&entries))));
    let data = Data::of(source.clone(), HeldOut::Source(source));
    let set = DataSet::open(&data, Link::Sigmoid).unwrap();
    assert_eq!(classes_on(&set.train, 0), [0, 1]);
    assert_eq!(classes_on(&set.train, 1), [0; 0]);
}

#[test]
fn wrong_cells_are_refused_with_their_example() {
    let folder = Folder::new();
    let of = |labels: &str| data(folder.source(2, labels));
    assert_refused(&of("label\ncat;dog\ncat;;dog\n"), Link::Sigmoid, &["example 1", "no label"]);
    assert_refused(
        &of("label\ncat;dog\ncat;cat\n"),
        Link::Sigmoid,
        &["example 1", "\"cat\" twice"],
    );
    assert_refused(&of("label\ncat;dog\n"), Link::Sigmoid, &["1 rows of labels", "2 examples"]);
    let numbered = Data { classes: Some(3), ..of("label\n0;2\n1;7\n") };
    assert_refused(&numbered, Link::Sigmoid, &["example 1", "7", "3 classes", "data.classes"]);
}

/// A matrix of zeros and ones would have 10⁹ cells.
#[test]
fn classes_may_be_many() {
    let folder = Folder::new();
    let (examples, classes) = (2_000, 500_000);
    let row = |at: usize| format!("{};{}\n", at * 17 % classes, (at * 31 + 7) % classes);
    let text: String =
        std::iter::once("label\n".to_string()).chain((0..examples).map(row)).collect();
    let data = Data { classes: Some(classes), ..data(folder.source(examples, &text)) };
    let set = DataSet::open(&data, Link::Sigmoid).unwrap();
    let rows = in_source_order(&set, classes_on);
    assert_eq!(rows[3], [51, 100]);
    assert_eq!(rows.len(), examples);
}
