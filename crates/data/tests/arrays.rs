//! Arrays in memory in place of files: the same data sets, the same refusals.

use crate::support::{Folder, data, npy};
use aleator_data::array::{Array, Values};
use aleator_data::{ArrayInputs, ArraySplit, Arrays, InputShape, Labels, Sources};
use aleator_run::recipe::{
    Annotations, Data, Framing, HeldOut, InputSource, LabelKind, LabelNoise, Link, NoiseKind,
    Source,
};

fn matrix(rows: usize) -> ArrayInputs {
    ArrayInputs::Features { values: (0..2 * rows).map(|at| at as f32).collect(), width: 2 }
}

fn split(rows: usize, labels: Array) -> ArraySplit {
    ArraySplit::new(matrix(rows), labels)
}

fn open(train: ArraySplit, link: Link) -> Sources {
    Sources::in_memory(Arrays::new(train), link).unwrap()
}

/// A recipe's `[data]` that holds out a quarter of these arrays.
fn recorded(sources: &Sources) -> Data {
    let mut data = data(Source::of(InputSource::Digits));
    sources.record_in(&mut data);
    data
}

fn refusal(arrays: Arrays) -> String {
    Sources::in_memory(arrays, Link::Softmax).unwrap_err().to_string()
}

#[test]
fn arrays_and_files_of_the_same_content_are_the_same_data() {
    let folder = Folder::new();
    let labels: String = (0..20).map(|row| format!("{}\n", row * 7 % 3)).collect();
    let ids: String = (0..20).map(|row| format!("x{row}\n")).collect();
    let clean: String = (0..20).map(|row| format!("{}\n", row % 3)).collect();
    let source = Source {
        clean_labels: Some(folder.write("clean.csv", format!("label\n{clean}"))),
        ids: Some(folder.write("ids.csv", format!("id\n{ids}"))),
        ..folder.source(20, &format!("label\n{labels}"))
    };
    let noise = LabelNoise { seed: 1, kind: NoiseKind::Symmetric { rate: 0.5 } };
    let data = Data {
        test: Some(HeldOut::Fold { fold: 1, folds: 4, seed: 2 }),
        limit: Some(12),
        noise: Some(noise),
        ..data(source)
    };
    let from_files = Sources::open(&data, Link::Softmax).unwrap();
    let arrays = open(
        ArraySplit {
            ids: Some((0..20).map(|row| format!("x{row}")).collect()),
            clean_labels: Some(Array::numbers((0..20).map(|row| row % 3))),
            ..split(20, Array::numbers((0..20).map(|row| row * 7 % 3)))
        },
        Link::Softmax,
    );
    assert_eq!(arrays.fingerprint(), from_files.fingerprint());
    let mut in_memory = data.clone();
    arrays.record_in(&mut in_memory);
    let (a, b) = (arrays.divide(&in_memory).unwrap(), from_files.divide(&data).unwrap());
    let splits = [(&a.train, &b.train), (&a.validation, &b.validation)];
    for (a, b) in splits.into_iter().chain([(&a.test.unwrap(), &b.test.unwrap())]) {
        assert_eq!((&a.rows, &a.ids, &a.labels), (&b.rows, &b.ids, &b.labels));
        assert_eq!(a.clean_labels, b.clean_labels);
    }
}

#[test]
fn labels_are_of_any_kind() {
    type IsKind = fn(&Labels) -> bool;
    let kinds: [(Array, Link, IsKind); 4] = [
        (Array::names(["b", "a", "b", "a"]), Link::Softmax, |labels| {
            *labels == Labels::Single(vec![1, 0, 1, 0])
        }),
        (
            Array::table(vec![1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0], 2),
            Link::Sigmoid,
            |labels| matches!(labels, Labels::MultiHot(sets) if sets.row(1) == [0, 1]),
        ),
        (
            Array::table(vec![0.5, 0.5, 0.1, 0.9, 1.0, 0.0, 0.0, 1.0], 2),
            Link::Softmax,
            |labels| matches!(labels, Labels::Soft(rows) if rows.row(1) == [0.1, 0.9]),
        ),
        (
            Array {
                shape: vec![4, 3],
                values: Values::Int(vec![0, 1, -1, 1, -1, -1, 2, 2, 2, 0, 0, 1]),
                columns: Some(["ann", "bob", "cid"].map(String::from).to_vec()),
            },
            Link::Softmax,
            |labels| {
                matches!(labels, Labels::Annotations(votes)
                    if votes.row(0) == [0, 1] && votes.annotator_names[1] == "bob")
            },
        ),
    ];
    for (labels, link, is_right) in kinds {
        let sources = open(split(4, labels), link);
        let all = sources.training_source(&recorded(&sources)).unwrap();
        assert!(is_right(&all.labels), "{:?}", all.labels);
    }
}

#[test]
fn splits_with_arrays_of_their_own_mean_the_classes_of_training() {
    let arrays = Arrays {
        test: Some(split(2, Array::names(["cow", "cat"]))),
        class_names: Some(["cat", "cow", "dog"].map(String::from).to_vec()),
        ..Arrays::new(split(8, Array::names(["cat", "dog"].repeat(4))))
    };
    let sources = Sources::in_memory(arrays, Link::Softmax).unwrap();
    let data = recorded(&sources);
    assert!(matches!(data.test, Some(HeldOut::Source(_))));
    let set = sources.divide(&data).unwrap();
    assert_eq!(set.test.unwrap().labels, Labels::Single(vec![1, 0]));
    assert!(set.warnings[0].contains("\"cow\""), "{:?}", set.warnings);
    let message = sources.divide(&Data { test: None, ..data }).unwrap_err().to_string();
    assert!(message.contains("arrays"), "{message}");
}

#[test]
fn bytes_are_framed_as_images_are_and_weights_have_mean_one() {
    let images = ArrayInputs::Pixels { bytes: (0..4 * 12).collect(), shape: [3, 2, 2] };
    let train = ArraySplit {
        weights: Some(vec![1.0, 3.0, 1.0, 3.0]),
        ..ArraySplit::new(images, Array::numbers([0, 1, 0, 1]))
    };
    let framing = Framing { channels: Some(1), ..Framing::sized(4) };
    let arrays = Arrays { framing, ..Arrays::new(train) };
    let sources = Sources::in_memory(arrays, Link::Softmax).unwrap();
    assert_eq!(sources.shape(), InputShape::Image { channels: 1, height: 4, width: 4 });
    let all = sources.training_source(&recorded(&sources)).unwrap();
    assert_eq!(all.weights, Some(vec![0.5, 1.5, 0.5, 1.5]));
    let numbers = ArrayInputs::Images { values: vec![0.5; 48], shape: [3, 2, 2] };
    let shape = open(ArraySplit::new(numbers, Array::numbers([0, 1, 0, 1])), Link::Softmax).shape();
    assert_eq!(shape, InputShape::Image { channels: 3, height: 2, width: 2 });
}

#[test]
fn what_does_not_fit_is_refused_by_array_and_row() {
    let good = || split(4, Array::numbers([0, 1, 0, 1]));
    let with = |change: &dyn Fn(&mut Arrays)| {
        let mut arrays = Arrays::new(good());
        change(&mut arrays);
        refusal(arrays)
    };
    type Damage<'a> = &'a dyn Fn(&mut Arrays);
    let cases: [(Damage<'_>, &[&str]); 12] = [
        (&|it| it.train.labels = Array::numbers([0, 1, 0]), &["train.labels", "3 rows", "4 exam"]),
        (&|it| it.train.labels = Array::table(vec![0.0, 1.0, 0.5, 1.0], 1), &["row 2", "0.5"]),
        (
            &|it| it.train.labels = Array::table(vec![0.5, 0.5, 0.5, 0.6, 1.0, 0.0, 1.0, 0.0], 2),
            &["train.labels", "row 1", "sum to 1.1"],
        ),
        (
            &|it| {
                it.class_names = Some(vec!["a".into(), "b".into()]);
                it.train.labels = Array::numbers([0, 1, 2, 0]);
            },
            &["train.labels", "row 2", "not one of the 2 classes", "class names"],
        ),
        (
            &|it| it.train.inputs = ArrayInputs::Features { values: vec![0.0; 7], width: 2 },
            &["train.inputs", "7 numbers", "vectors of 2 numbers"],
        ),
        (
            &|it| it.train.inputs = ArrayInputs::Features { values: vec![], width: 0 },
            &["train.inputs"],
        ),
        (
            &|it| {
                let values = vec![0.0, 1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0, 7.0];
                it.train.inputs = ArrayInputs::Features { values, width: 2 };
            },
            &["train.inputs", "row 2, column 1 is NaN"],
        ),
        (
            &|it| it.train.ids = Some(["a", "b", "a", "c"].map(String::from).to_vec()),
            &["train.ids", "rows 0 and 2", "\"a\""],
        ),
        (&|it| it.train.ids = Some(vec!["a".into()]), &["train.ids", "1 values for 4 examples"]),
        (
            &|it| it.train.weights = Some(vec![1.0, 0.0, 1.0, 1.0]),
            &["train.weights", "row 1 is 0", "above 0"],
        ),
        (
            &|it| it.train.labels.shape = vec![5],
            &["train.labels", "4 values, which do not fill [5]"],
        ),
        (
            &|it| {
                let mut test = good();
                test.inputs = ArrayInputs::Features { values: vec![0.0; 12], width: 3 };
                it.test = Some(test);
            },
            &["test", "vectors of 3 numbers", "vectors of 2 numbers"],
        ),
    ];
    for (change, words) in cases {
        let message = with(change);
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
    }
}

#[test]
fn a_recipe_of_arrays_cannot_be_opened_from_files() {
    let sources = open(split(4, Array::numbers([0, 1, 0, 1])), Link::Softmax);
    let data = recorded(&sources);
    let message = Sources::open(&data, Link::Softmax).unwrap_err().to_string();
    for word in ["arrays in memory", sources.fingerprint(), "give them again"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
    let other = open(split(4, Array::numbers([0, 1, 1, 1])), Link::Softmax);
    assert!(sources.are_of(&data, Link::Softmax));
    assert!(!other.are_of(&data, Link::Softmax) && !sources.are_of(&data, Link::Sigmoid));
    let message = other.divide(&data).unwrap_err().to_string();
    assert!(message.contains("data.train.memory"), "{message}");
}

#[test]
fn what_only_divides_is_not_what_is_read() {
    let folder = Folder::new();
    let labels: String = (0..16).map(|row| format!("{}\n", row % 2)).collect();
    let first = data(folder.source(16, &format!("label\n{labels}")));
    let sources = Sources::open(&first, Link::Softmax).unwrap();
    let divided = Data {
        annotations: Annotations::Sampled,
        limit: Some(8),
        validation: HeldOut::Fraction { fraction: 0.5, seed: 3 },
        test: Some(HeldOut::Fraction { fraction: 0.25, seed: 1 }),
        ..first.clone()
    };
    assert!(sources.are_of(&divided, Link::Softmax));
    assert_eq!(sources.divide(&divided).unwrap().train.len(), 4);
    let path = folder.write("other.npy", npy("<f4", &[16, 2], &[0.5; 32]));
    let other = Source { inputs: InputSource::Features(path), ..first.train.clone() };
    for read in [
        Data { label_kind: LabelKind::Single, ..first.clone() },
        Data { train: other.clone(), ..first.clone() },
        Data { test: Some(HeldOut::Source(other)), ..first.clone() },
    ] {
        assert!(!sources.are_of(&read, Link::Softmax));
        let message = sources.divide(&read).unwrap_err().to_string();
        assert!(message.contains("other files"), "{message}");
    }
}
