//! Label files that name their examples.

use crate::support::{Folder, data, digits, in_source_order, refusal};
use aleator_data::{DataSet, Labels, Sources, Split};
use aleator_run::recipe::{
    Data, HeldOut, InputSource, LabelKind, LabelNoise, Link, NoiseKind, Source,
};

/// Four examples with these ids and these labels.
fn four(folder: &Folder, ids: &str, labels: &str) -> Data {
    let ids = folder.write("ids.txt", ids);
    data(Source { ids: Some(ids), ..folder.source(4, labels) })
}

const IDS: &str = "a.png\nb.png\n=c.png\n'd.png\n";

fn single(split: &Split, at: usize) -> u32 {
    match &split.labels {
        Labels::Single(labels) => labels[at],
        other => panic!("{other:?}"),
    }
}

fn assert_refused(ids: &str, labels: &str, words: &[&str]) {
    let message = refusal(&four(&Folder::new(), ids, labels), Link::Softmax);
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}

#[test]
fn rows_in_any_order_are_matched_by_id_and_guards_are_undone() {
    let folder = Folder::new();
    let labels = "id,label\n'=c.png,'-1\n''d.png,cat\nb.png,'=dog\na.png,cat\n";
    let set = DataSet::open(&four(&folder, IDS, labels), Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["-1", "=dog", "cat"]);
    assert_eq!(in_source_order(&set, single), [2, 1, 0, 2]);
}

#[test]
fn other_columns_beside_id_and_label_are_passed_over() {
    let folder = Folder::new();
    let labels = "Example_ID,note,label\n3,x,1\n2,x,0\n1,x,1\n0,,0\n";
    let set = DataSet::open(&data(folder.source(4, labels)), Link::Softmax).unwrap();
    assert_eq!(in_source_order(&set, single), [0, 1, 0, 1]);
}

#[test]
fn ids_keep_their_leading_zeros() {
    let folder = Folder::new();
    let ids = "n0007\n007\n7\n0070\n";
    let labels = "id,label\n7,2\n007,1\nn0007,0\n0070,2\n";
    let set = DataSet::open(&four(&folder, ids, labels), Link::Softmax).unwrap();
    assert_eq!(in_source_order(&set, single), [0, 1, 2, 2]);
}

/// The names of folders may be numbers that are not those of the classes.
#[test]
fn classes_that_are_called_by_numbers_are_found_by_their_names() {
    let folder = Folder::new();
    for (class, name) in [("2020", "1"), ("2020", "2"), ("2021", "3"), ("2021", "4")] {
        folder.write(&format!("{class}/{name}.ppm"), b"P6 1 1 255\n\0\0\0");
    }
    let labels = "id,label\n2021/4.ppm,2020\n2021/3.ppm,2021\n2020/1.ppm,2020\n2020/2.ppm,2020\n";
    let beside = Folder::new();
    let source = Source {
        inputs: InputSource::Images(vec![folder.path().to_path_buf()]),
        labels: Some(beside.write("corrected.csv", labels)),
        clean_labels: None,
        ids: None,
    };
    let set = DataSet::open(&data(source), Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["2020", "2021"]);
    assert_eq!(in_source_order(&set, single), [0, 0, 1, 0]);
}

#[test]
fn built_in_digits_take_corrected_labels() {
    let folder = Folder::new();
    let mut rows: Vec<String> = (0..1797).map(|row| format!("{row},{}", row % 10)).collect();
    rows.reverse();
    let labels = folder.write("corrected.csv", format!("id,label\n{}\n", rows.join("\n")));
    let data = data(Source { labels: Some(labels), ..digits() });
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.class_names.len(), 10);
    let expected: Vec<u32> = (0..1797).map(|row| row % 10).collect();
    assert_eq!(in_source_order(&set, single), expected);
}

#[test]
fn a_column_for_each_class_is_matched_by_id_too() {
    let folder = Folder::new();
    let labels = "id,'=dog,cat,label\n3,0,0,0\n0,1,0,0\n2,1,1,1\n1,0,1,0\n";
    let set = DataSet::open(&data(folder.source(4, labels)), Link::Sigmoid).unwrap();
    assert_eq!(set.class_names, ["=dog", "cat", "label"]);
    let on = |split: &Split, at: usize| match &split.labels {
        Labels::MultiHot(rows) => rows.row(at).to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(in_source_order(&set, on), [vec![0], vec![1], vec![0, 1, 2], vec![]]);
}

#[test]
fn one_class_that_is_on_or_off_is_a_column_too() {
    let folder = Folder::new();
    let labels = "id,spam\n3,0\n0,1\n2,1\n1,0\n";
    let set = DataSet::open(&data(folder.source(4, labels)), Link::Sigmoid).unwrap();
    assert_eq!(set.class_names, ["spam"]);
    assert!(matches!(set.train.labels, Labels::MultiHot(_)));
}

#[test]
fn annotators_keep_their_columns_with_and_without_ids() {
    let folder = Folder::new();
    let without = "cat,dog\ncat,cat\ndog,dog\ndog,cat\n";
    let set = DataSet::open(&data(folder.source(4, without)), Link::Softmax).unwrap();
    assert!(matches!(&set.train.labels, Labels::Annotations(votes)
        if votes.annotator_names == ["0", "1"]));
    let with = "id,anna,bert\n3,dog,cat\n2,dog,dog\n1,cat,cat\n0,cat,dog\n";
    let set = DataSet::open(&data(folder.source(4, with)), Link::Softmax).unwrap();
    let first = |split: &Split, at: usize| match &split.labels {
        Labels::Annotations(votes) => votes.row(at).to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(in_source_order(&set, first), [[0, 1], [0, 0], [1, 1], [1, 0]]);
    let long = "id,annotator,label\n0,a,0\n1,a,1\n2,b,1\n3,b,0\n";
    let set = DataSet::open(&data(folder.source(4, long)), Link::Softmax).unwrap();
    assert!(matches!(set.train.labels, Labels::Annotations(_)));
}

#[test]
fn repeated_and_unknown_ids_are_refused_with_their_rows() {
    assert_refused(
        IDS,
        "id,label\na.png,0\nb.png,1\na.png,1\n''d.png,0\n",
        &["rows 0 and 2 (counted from 0)", "\"a.png\""],
    );
    assert_refused(
        IDS,
        "id,label\na.png,0\nz.png,1\n'=c.png,1\n''d.png,0\n",
        &["row 1 (counted from 0)", "no example \"z.png\"", "an id such as \"a.png\""],
    );
}

#[test]
fn examples_without_a_row_are_left_out_of_the_training_source_and_refused_elsewhere() {
    let folder = Folder::new();
    let labels = "id,label\n''d.png,cat\na.png,dog\n'=c.png,cat\n";
    let pruned = four(&folder, IDS, labels);
    let sources = Sources::open(&pruned, Link::Softmax).unwrap();
    assert!(sources.notes()[0].contains("name 3 of the 4 examples"), "{:?}", sources.notes());
    let all = sources.training_source(&pruned).unwrap();
    assert_eq!(all.rows, [0, 2, 3], "the inputs stay those of the labelled examples");
    assert_eq!(
        (0..3).map(|at| all.ids.name(at)).collect::<Vec<_>>(),
        ["a.png", "=c.png", "'d.png"]
    );
    assert_eq!(all.labels, Labels::Single(vec![1, 0, 0]));
    let set = sources.divide(&pruned).unwrap();
    assert_eq!(set.train.len() + set.validation.len(), 3);

    let other = Folder::new();
    let whole = other.source(4, "id,label\n0,cat\n1,dog\n2,dog\n3,cat\n");
    let held_out = HeldOut::Source(pruned.train.clone());
    let message = refusal(&Data { test: Some(held_out), ..data(whole) }, Link::Softmax);
    assert!(message.contains("no row for 1 of the 4") && message.contains("b.png"), "{message}");
    let noise = LabelNoise { seed: 0, kind: NoiseKind::Symmetric { rate: 0.5 } };
    let message = refusal(&Data { noise: Some(noise), ..pruned }, Link::Softmax);
    assert!(message.contains("--set data.noise="), "{message}");
}

#[test]
fn a_column_of_weights_beside_the_labels_is_used() {
    let folder = Folder::new();
    let labels = "id,label,weight\n3,1,0.5\n2,0,1\n0,0,3e-1\n";
    let weighted = data(folder.source(4, labels));
    let sources = Sources::open(&weighted, Link::Softmax).unwrap();
    let all = sources.training_source(&weighted).unwrap();
    // Of the examples 0, 2 and 3, over their mean of 0.6.
    let expected = [0.5, 1.0 / 0.6, 0.5 / 0.6];
    let weights = all.weights.unwrap();
    assert_eq!(weights.len(), 3);
    let near = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-6;
    assert!(weights.iter().zip(&expected).all(near), "{weights:?}");
    for (weight, word) in
        [("0", "above 0"), ("-1", "above 0"), ("x", "not a number"), ("", "not a")]
    {
        let labels = format!("id,label,weight\n3,1,0.5\n2,0,{weight}\n1,1,1\n0,0,1\n");
        let message = refusal(&data(folder.source(4, &labels)), Link::Softmax);
        assert!(message.contains("row 1 (counted from 0)") && message.contains(word), "{message}");
    }
}

#[test]
fn a_label_that_is_wrong_is_refused_with_its_row_in_the_file() {
    assert_refused(
        IDS,
        "id,label\n''d.png,0\nb.png,1\na.png,\n'=c.png,1\n",
        &["row 2 (counted from 0)", "has no label"],
    );
    let folder = Folder::new();
    let labels = "id,a,b\n3,0,0\n0,1,0\n2,1,7\n1,0,1\n";
    let data = Data { label_kind: LabelKind::MultiHot, ..data(folder.source(4, labels)) };
    let message = refusal(&data, Link::Sigmoid);
    assert!(message.contains("row 2 (counted from 0): column 1 is 7"), "{message}");
}

/// Held-out examples of the same source are known, but nothing is taken from them.
#[test]
fn verified_classes_are_matched_by_id_and_those_of_held_out_examples_are_passed_over() {
    let folder = Folder::new();
    let labels = "id,label\n'=c.png,cat\n''d.png,cat\nb.png,'=dog\na.png,cat\n";
    let set = DataSet::open(&four(&folder, IDS, labels), Link::Softmax).unwrap();
    let rows = "note,id,label\nx,''d.png,'=dog\nx,a.png,'=dog\n,'=c.png,cat\n,b.png,cat\n";
    let verified = set.verified(&folder.write("verified.csv", rows)).unwrap();
    assert!(!set.validation.is_empty());
    assert_eq!(verified.len(), set.train.len());
    for (at, class) in verified.into_iter().enumerate() {
        let name = set.train.ids.name(at).into_owned();
        let expected = if ["'d.png", "a.png"].contains(&name.as_str()) { "=dog" } else { "cat" };
        assert_eq!(set.class_names[class.unwrap() as usize], expected, "{name}");
    }
    let message =
        set.verified(&folder.write("other.csv", "id,label\nz.png,cat\n")).unwrap_err().to_string();
    assert!(message.contains("row 0 (counted from 0): there is no example \"z.png\""), "{message}");
}
