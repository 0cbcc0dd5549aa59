//! Label files of every kind, right and wrong.

use crate::support::{Folder, data, digits, in_source_order, npy, refusal};
use aleator_data::{DataSet, Labels, Split};
use aleator_run::recipe::{Data, HeldOut, LabelKind, Link, Source};

/// Opens 8 examples with these labels.
fn opened(labels: &str, kind: LabelKind, link: Link) -> DataSet {
    let folder = Folder::new();
    let data = Data { label_kind: kind, ..data(folder.source(8, labels)) };
    DataSet::open(&data, link).unwrap()
}

/// The message for 8 examples with these labels.
fn refused(labels: &str, kind: LabelKind, link: Link) -> String {
    let folder = Folder::new();
    refusal(&Data { label_kind: kind, ..data(folder.source(8, labels)) }, link)
}

fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

fn single(split: &Split, at: usize) -> u32 {
    match &split.labels {
        Labels::Single(labels) => labels[at],
        other => panic!("{other:?}"),
    }
}

const AUTO: LabelKind = LabelKind::Auto;

#[test]
fn a_column_of_whole_numbers_is_single_labels() {
    let set = opened("0\n1\n2\n0\n1\n2\n0\n1\n", AUTO, Link::Softmax);
    assert_eq!(in_source_order(&set, single), [0, 1, 2, 0, 1, 2, 0, 1]);
    assert_eq!(set.class_names, ["0", "1", "2"]);
}

#[test]
fn classes_of_words_are_sorted_by_name() {
    let set = opened("label\ndog\ncat\ndog\nant\ncat\ncat\nant\ndog\n", AUTO, Link::Softmax);
    assert_eq!(set.class_names, ["ant", "cat", "dog"]);
    assert_eq!(in_source_order(&set, single), [2, 1, 2, 0, 1, 1, 0, 2]);
}

#[test]
fn a_file_of_class_names_gives_their_order() {
    let folder = Folder::new();
    let names = folder.write("names.txt", "dog\ncat\nowl\n");
    let source = folder.source(8, "label\ndog\ncat\ndog\ncat\ndog\ncat\ndog\ncat\n");
    let data = Data { class_names: Some(names.into()), ..data(source) };
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(in_source_order(&set, single), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_says(
        &set.warnings[0],
        &["1 of the 3", "without any training example", "\"owl\"", "add examples"],
    );
}

#[test]
fn a_word_that_is_no_class_is_refused_with_its_row() {
    let folder = Folder::new();
    let names = folder.write("names.txt", "dog\ncat\n");
    let source = folder.source(3, "label\ndog\ncat\nowl\n");
    let message = refusal(&Data { class_names: Some(names.into()), ..data(source) }, Link::Softmax);
    assert_says(&message, &["labels.csv", "row 2", "\"owl\"", "\"dog\", \"cat\"", "class_names"]);
}

#[test]
fn class_names_that_repeat_or_are_blank_are_refused_with_their_lines() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n0\n1\n");
    let open = |names: &str| {
        let names = Some(folder.write("names.txt", names).into());
        refusal(&Data { class_names: names, ..data(source.clone()) }, Link::Softmax)
    };
    assert_says(&open("a\nb\na\n"), &["names.txt", "lines 1 and 3", "\"a\""]);
    assert_says(&open("a\n\nb\n"), &["names.txt", "line 2", "no class name"]);
}

#[test]
fn a_number_of_classes_that_differs_from_the_names_is_refused() {
    let folder = Folder::new();
    let names = folder.write("names.txt", "dog\ncat\n");
    let source = folder.source(4, "0\n1\n0\n1\n");
    let data = Data { class_names: Some(names.into()), classes: Some(3), ..data(source) };
    assert_says(&refusal(&data, Link::Softmax), &["names.txt", "2 names", "data.classes is 3"]);
}

#[test]
fn a_negative_label_is_refused_with_its_row_where_the_classes_are_counted() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n0\n-1\n");
    let message = refusal(&Data { classes: Some(2), ..data(source) }, Link::Softmax);
    assert_says(&message, &["labels.csv", "row 3", "-1", "numbered from 0", "annotators"]);
}

#[test]
fn a_label_beyond_the_classes_is_refused_with_its_row() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n5\n1\n");
    let data = Data { classes: Some(5), ..data(source) };
    let message = refusal(&data, Link::Softmax);
    assert_says(&message, &["row 2", "label 5", "5 classes", "raise data.classes"]);
}

#[test]
fn an_enormous_number_of_classes_is_refused_before_memory_is_taken() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n0\n1\n");
    let data = Data { classes: Some(usize::MAX), ..data(source) };
    assert_says(&refusal(&data, Link::Softmax), &["data.classes"]);
}

#[test]
fn a_missing_label_is_refused_with_its_row() {
    let message = refused("label,x\n0,1\n1,1\n,1\n0,1\n0,1\n0,1\n0,1\n1,1\n", AUTO, Link::Softmax);
    assert_says(&message, &["columns label, x", "#label"]);
    let folder = Folder::new();
    let mut source = folder.source(4, "label,x\n0,1\n1,1\n,1\n0,1\n");
    source.labels = source.labels.map(|path| format!("{path}#label"));
    assert_says(&refusal(&data(source), Link::Softmax), &["row 2", "has no label"]);
}

#[test]
fn another_number_of_labels_than_of_examples_is_refused() {
    let message = refused("0\n1\n0\n", AUTO, Link::Softmax);
    assert_says(&message, &["labels.csv", "3 rows", "8 examples"]);
}

#[test]
fn an_empty_class_that_the_recipe_allows_is_a_warning() {
    let folder = Folder::new();
    let source = folder.source(30, &"0\n1\n3\n".repeat(10));
    let set = DataSet::open(&Data { classes: Some(4), ..data(source) }, Link::Softmax).unwrap();
    assert_eq!(set.class_names.len(), 4);
    assert_says(&set.warnings[0], &["1 of the 4", "(2)"]);
}

#[test]
fn one_class_is_not_enough() {
    let message = refused(&"0\n".repeat(8), AUTO, Link::Softmax);
    assert_says(&message, &["1 class", "two", "data.classes"]);
}

#[test]
fn a_fraction_where_a_class_should_be_is_refused_with_its_row() {
    let message = refused("0\n1\n0.5\n1\n0\n1\n0\n1\n", AUTO, Link::Softmax);
    assert_says(&message, &["row 2", "0.5", "not a whole number"]);
}

#[test]
fn labels_of_a_missing_file_are_refused_by_its_name() {
    let folder = Folder::new();
    let mut source = folder.source(4, "0\n1\n0\n1\n");
    source.labels = Some("nowhere/labels.npy".into());
    assert_says(&refusal(&data(source), Link::Softmax), &["nowhere/labels.npy"]);
}

#[test]
fn features_without_labels_are_refused() {
    let folder = Folder::new();
    let source = Source { labels: None, ..folder.source(4, "") };
    assert_says(&refusal(&data(source), Link::Softmax), &["x.npy", "no labels", "labels ="]);
}

#[test]
fn inputs_that_carry_single_labels_do_not_carry_another_kind() {
    let data = Data { label_kind: LabelKind::Soft, ..data(digits()) };
    assert_says(&refusal(&data, Link::Softmax), &["digits", "single", "\"soft\"", "label file"]);
}

const TWO_OF_THREE: &str = "1,1,0\n0,1,0\n0,0,0\n1,0,1\n1,1,0\n0,1,0\n0,0,0\n1,0,1\n";

#[test]
fn zeros_and_ones_are_multi_hot_under_sigmoid() {
    let set = opened(TWO_OF_THREE, AUTO, Link::Sigmoid);
    let rows = in_source_order(&set, |split, at| match &split.labels {
        Labels::MultiHot(rows) => rows.row(at).to_vec(),
        other => panic!("{other:?}"),
    });
    assert_eq!(rows[..4], [vec![0, 1], vec![1], vec![], vec![0, 2]]);
    assert_eq!(set.train.labels.hard(0, &set.train.ids), None);
}

#[test]
fn zeros_and_ones_are_refused_under_softmax_with_the_ways_out() {
    let message = refused(TWO_OF_THREE, AUTO, Link::Softmax);
    assert_says(
        &message,
        &["zeros and ones", "multilabel preset", "data.label_kind", "annotators"],
    );
    let message = refused(TWO_OF_THREE, LabelKind::MultiHot, Link::Softmax);
    assert_says(&message, &["multi-hot", "head.link = \"sigmoid\""]);
}

#[test]
fn multi_hot_labels_other_than_zero_and_one_are_refused() {
    let message =
        refused(&TWO_OF_THREE.replace("0,0,0", "0,2,0"), LabelKind::MultiHot, Link::Sigmoid);
    assert_says(&message, &["row 2", "column 1 is 2", "0 or 1"]);
}

#[test]
fn the_titles_of_columns_name_the_classes_of_multi_hot_labels() {
    let set = opened(&format!("sea,sky,sun\n{TWO_OF_THREE}"), AUTO, Link::Sigmoid);
    assert_eq!(set.class_names, ["sea", "sky", "sun"]);
}

#[test]
fn columns_go_to_the_classes_that_they_name() {
    let folder = Folder::new();
    let names = folder.write("names.txt", "sun\nsky\nsea\n");
    let source = folder.source(8, &format!("sea,sky,sun\n{TWO_OF_THREE}"));
    let data = Data { class_names: Some(names.into()), ..data(source) };
    let set = DataSet::open(&data, Link::Sigmoid).unwrap();
    let first = in_source_order(&set, |split, at| match &split.labels {
        Labels::MultiHot(rows) => rows.row(at).to_vec(),
        other => panic!("{other:?}"),
    });
    assert_eq!(first[0], [1, 2], "sky and sea");
}

#[test]
fn another_number_of_columns_than_of_classes_is_refused() {
    let folder = Folder::new();
    let names = folder.write("names.txt", "a\nb\n");
    let source = folder.source(8, TWO_OF_THREE);
    let data = Data { class_names: Some(names.into()), ..data(source) };
    assert_says(&refusal(&data, Link::Sigmoid), &["labels.csv", "3 columns", "2 classes"]);
}

const SOFT: &str = "0.5,0.5,0\n0.2,0.3,0.5\n0.333,0.333,0.333\n1,0,0\n\
                    0.5,0.5,0\n0.2,0.3,0.5\n0.333,0.333,0.333\n1,0,0\n";

#[test]
fn rows_that_sum_to_one_are_probabilities_and_rounding_is_made_good() {
    let set = opened(SOFT, AUTO, Link::Softmax);
    let rows = in_source_order(&set, |split, at| match &split.labels {
        Labels::Soft(rows) => rows.row(at).to_vec(),
        other => panic!("{other:?}"),
    });
    assert_eq!(rows[0], [0.5, 0.5, 0.0]);
    assert_eq!(rows[2], [1.0 / 3.0; 3]);
}

#[test]
fn probabilities_that_do_not_sum_to_one_are_refused_with_their_row() {
    for kind in [AUTO, LabelKind::Soft] {
        let message = refused(&SOFT.replace("0.2,0.3,0.5", "0.2,0.3,0.4"), kind, Link::Softmax);
        assert_says(&message, &["labels.csv", "row 1", "sum to 0.9", "divide each row"]);
    }
}

#[test]
fn a_negative_or_missing_probability_is_refused_with_its_place() {
    let message = refused(&SOFT.replace("0.2,0.3,", "-0.2,0.7,"), LabelKind::Soft, Link::Softmax);
    assert_says(&message, &["row 1", "column 0 is -0.2", "from 0 to 1"]);
    let message = refused(&SOFT.replace("0.2,0.3,", ",0.5,"), LabelKind::Soft, Link::Softmax);
    assert_says(&message, &["row 1", "column 0 is missing"]);
    let message = refused(&SOFT.replace("0.2,0.3,", "0.2,no,"), LabelKind::Soft, Link::Softmax);
    assert_says(&message, &["numbers", "words"]);
}

#[test]
fn ties_of_probabilities_are_broken_by_seed_and_id() {
    let folder = Folder::new();
    let data = data(folder.source(400, &"0.5,0.5,0\n".repeat(400)));
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    let hard = set.train.labels.hard(7, &set.train.ids).unwrap();
    let ones = hard.iter().filter(|class| **class == 1).count() as f64;
    assert!(hard.iter().all(|class| *class < 2));
    // 300 fair coins: five standard errors are 43.
    assert!((ones - 150.0).abs() < 43.0, "{ones}");
    let again = set.train.labels.select(&[5]).hard(7, &set.train.ids.select(&[5])).unwrap();
    assert_eq!(again[0], hard[5], "the tie of an example does not depend on the others");
}

#[test]
fn one_hot_floats_are_probabilities_under_softmax_and_multi_hot_under_sigmoid() {
    let folder = Folder::new();
    let mut source = folder.source(4, "");
    let one_hot = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
    source.labels = Some(folder.write("y.npy", npy("<f4", &[4, 2], &one_hot)));
    let soft = DataSet::open(&data(source.clone()), Link::Softmax).unwrap();
    assert!(matches!(soft.train.labels, Labels::Soft(_)));
    let multi_hot = DataSet::open(&data(source), Link::Sigmoid).unwrap();
    assert!(matches!(multi_hot.train.labels, Labels::MultiHot(_)));
}

/// Blank or −1 where an annotator said nothing.
const WIDE: &str = "ann,bob,eve\n0,0,1\n1,,\n2,2,-1\n0,1,2\n0,0,0\n1,1,2\n-1,2,2\n1,1,1\n";

fn votes(split: &Split, at: usize) -> Vec<(String, u32)> {
    let Labels::Annotations(votes) = &split.labels else { panic!("{:?}", split.labels) };
    let range = votes.offsets[at]..votes.offsets[at + 1];
    let name = |at: usize| votes.annotator_names[votes.annotators[at] as usize].clone();
    range.map(|at| (name(at), votes.labels[at])).collect()
}

fn said(votes: &[(&str, u32)]) -> Vec<(String, u32)> {
    votes.iter().map(|(name, class)| (name.to_string(), *class)).collect()
}

#[test]
fn a_column_for_each_annotator_with_blanks() {
    let set = opened(WIDE, AUTO, Link::Softmax);
    let rows = in_source_order(&set, votes);
    assert_eq!(rows[1], said(&[("ann", 1)]));
    assert_eq!(rows[2], said(&[("ann", 2), ("bob", 2)]));
    assert_eq!(rows[6], said(&[("bob", 2), ("eve", 2)]));
    let majority = in_source_order(&set, |split, at| split.labels.hard(0, &split.ids).unwrap()[at]);
    assert_eq!((majority[0], majority[2], majority[5]), (0, 2, 1));
}

#[test]
fn a_row_for_each_annotation_in_any_order() {
    let folder = Folder::new();
    let mut source = folder.source(
        4,
        "worker,example,label\nw9,b,dog\nw10,a,cat\nw9,a,cat\nw9,d,dog\nw10,c,cat\nw2,a,dog\n",
    );
    source.ids = Some(folder.write("ids.csv", "id\na\nb\nc\nd\n"));
    let set = DataSet::open(&data(source), Link::Softmax).unwrap();
    let rows = in_source_order(&set, votes);
    assert_eq!(rows[0], said(&[("w10", 0), ("w2", 1), ("w9", 0)]));
    assert_eq!(rows[3], said(&[("w9", 1)]));
    assert_eq!(set.class_names, ["cat", "dog"]);
}

#[test]
fn a_long_table_may_name_examples_by_their_rows() {
    let long = "id,annotator,label\n0,5,1\n1,5,0\n2,40,1\n3,5,0\n0,40,0\n";
    let folder = Folder::new();
    let set = DataSet::open(&data(folder.source(4, long)), Link::Softmax).unwrap();
    assert_eq!(in_source_order(&set, votes)[0], said(&[("5", 1), ("40", 0)]));
}

fn long_refused(long: &str) -> String {
    let folder = Folder::new();
    refusal(&data(folder.source(3, long)), Link::Softmax)
}

#[test]
fn annotations_of_an_unknown_example_are_refused_with_their_row() {
    let message = long_refused("id,annotator,label\n0,5,1\n1,5,0\n7,5,1\n");
    assert_says(&message, &["row 2", "no example \"7\"", "0 to 2", "ids"]);
}

#[test]
fn an_annotator_who_labels_an_example_twice_is_refused_with_both_rows() {
    let message = long_refused("id,annotator,label\n0,5,1\n1,5,0\n2,5,0\n0,5,0\n");
    assert_says(&message, &["rows 0 and 3", "annotator 5", "example 0", "keep one"]);
}

#[test]
fn an_annotation_without_a_label_is_refused_with_its_row() {
    let message = long_refused("id,annotator,label\n0,5,1\n1,5,\n2,5,0\n");
    assert_says(&message, &["#label", "row 1", "no label"]);
}

#[test]
fn an_example_without_any_annotation_is_refused() {
    let message = long_refused("id,annotator,label\n0,5,1\n2,5,0\n");
    assert_says(&message, &["example 1", "no annotator", "leave it out"]);
    let message = refused(&WIDE.replace("1,,\n", ",,-1\n"), AUTO, Link::Softmax);
    assert_says(&message, &["row 1", "no annotator", "leave it out"]);
}

#[test]
fn a_label_of_an_annotator_beyond_the_classes_is_refused_with_its_place() {
    let folder = Folder::new();
    let source = folder.source(8, WIDE);
    let message = refusal(&Data { classes: Some(2), ..data(source) }, Link::Softmax);
    assert_says(&message, &["row 2", "column 0", "label 2", "2 classes"]);
}

#[test]
fn each_annotation_as_a_term_needs_softmax() {
    let folder = Folder::new();
    let annotations = aleator_run::recipe::Annotations::Each;
    let data = Data { annotations, ..data(folder.source(8, WIDE)) };
    assert_says(&refusal(&data, Link::Sigmoid), &["data.annotations", "softmax", "majority"]);
}

#[test]
fn annotated_training_data_may_be_tested_on_single_labels() {
    let folder = Folder::new();
    let test = Source {
        inputs: folder.features("test.npy", 3),
        labels: Some(folder.write("test.csv", "2\n0\n1\n")),
        clean_labels: None,
        ids: None,
    };
    let data = Data {
        label_kind: LabelKind::Annotators,
        test: Some(HeldOut::Source(test)),
        ..data(folder.source(8, WIDE))
    };
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.test.unwrap().labels, Labels::Single(vec![2, 0, 1]));
}

#[test]
fn a_table_with_a_label_column_is_not_taken_for_annotators() {
    let message =
        refused("note,label\n7,0\n8,1\n9,0\n1,1\n2,0\n3,1\n4,0\n5,1\n", AUTO, Link::Softmax);
    assert_says(&message, &["columns note, label", "labels.csv#label"]);
    let message = refused(WIDE, LabelKind::Single, Link::Softmax);
    assert_says(&message, &["ann, bob, eve", "one column"]);
}

#[test]
fn labels_of_three_dimensions_are_refused() {
    let folder = Folder::new();
    let mut source = folder.source(2, "");
    source.labels = Some(folder.write("y.npy", npy("<f4", &[2, 1, 1], &[0.0, 1.0])));
    assert_says(&refusal(&data(source), Link::Softmax), &["y.npy", "[2, 1, 1]"]);
}
