//! Whole data sets: splits, corruption, fingerprints, and sources that do not fit together.

use std::collections::BTreeSet;

use crate::support::{Folder, data, digits, in_source_order, npy, refusal};
use aleator_data::array::{Array, Values};
use aleator_data::{DataSet, Ids, InputShape, Labels, Split, noisy_labels, split};
use aleator_run::recipe::{
    Data, Framing, HeldOut, InputSource, LabelNoise, Link, NoiseKind, Source,
};

fn fold(fold: usize, folds: usize) -> HeldOut {
    HeldOut::Fold { fold, folds, seed: 0 }
}

#[test]
fn folds_are_disjoint_complete_and_balanced() {
    let folder = Folder::new();
    let labels: String = (0..60).map(|row| if row % 3 == 0 { "1\n" } else { "0\n" }).collect();
    let source = folder.source(60, &labels);
    let mut seen = BTreeSet::new();
    for number in 0..4 {
        let data = Data { test: Some(fold(number, 4)), ..data(source.clone()) };
        let opened = DataSet::open(&data, Link::Softmax).unwrap();
        let test = opened.test.unwrap();
        assert_eq!(test.len(), 15);
        let Labels::Single(labels) = &test.labels else { panic!("single labels") };
        assert_eq!(labels.iter().filter(|label| **label == 1).count(), 5);
        assert!(test.rows.iter().all(|row| seen.insert(*row)), "a row is in two folds");
        let others = [&opened.train, &opened.validation];
        assert!(others.iter().all(|split| split.rows.iter().all(|row| !test.rows.contains(row))));
        assert_eq!(others.iter().map(|split| split.len()).sum::<usize>(), 45);
    }
    assert_eq!(seen.len(), 60);
}

#[test]
fn a_fold_has_the_labels_that_it_would_be_trained_on() {
    let folder = Folder::new();
    let labels: String = (0..40).map(|row| format!("{}\n", row % 2)).collect();
    let noise = LabelNoise { seed: 0, kind: NoiseKind::Symmetric { rate: 0.5 } };
    let data =
        Data { test: Some(fold(0, 2)), noise: Some(noise), ..data(folder.source(40, &labels)) };
    let test = DataSet::open(&data, Link::Softmax).unwrap().test.unwrap();
    let Labels::Single(given) = &test.labels else { panic!("single labels") };
    assert_ne!(Some(given), test.clean_labels.as_ref());
}

#[test]
fn more_folds_than_examples_are_refused() {
    let folder = Folder::new();
    let data =
        Data { test: Some(fold(7, 9)), ..data(folder.source(8, "0\n1\n0\n1\n0\n1\n0\n1\n")) };
    assert!(DataSet::open(&data, Link::Softmax).is_ok());
    let none = Data { test: Some(fold(8, 9)), ..data };
    let message = refusal(&none, Link::Softmax);
    assert!(message.contains("8 examples cannot be divided into 9 folds"), "{message}");
}

fn fraction(fraction: f64, seed: u64) -> HeldOut {
    HeldOut::Fraction { fraction, seed }
}

fn opened(data: &Data) -> DataSet {
    DataSet::open(data, Link::Softmax).unwrap()
}

fn noisy_digits(rate: f64) -> Data {
    Data {
        noise: Some(LabelNoise { seed: 1, kind: NoiseKind::Symmetric { rate } }),
        test: Some(fraction(0.2, 0)),
        ..data(digits())
    }
}

fn single(split: &Split) -> &[u32] {
    match &split.labels {
        Labels::Single(labels) => labels,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_parts_of_a_source_are_disjoint_and_together_all_of_it() {
    let set = opened(&Data { test: Some(fraction(0.2, 0)), ..data(digits()) });
    let test = set.test.unwrap();
    assert_eq!((test.len(), set.validation.len(), set.train.len()), (359, 449, 989));
    let mut rows: Vec<usize> = [&set.train.rows, &set.validation.rows, &test.rows]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    rows.sort_unstable();
    assert!(rows.into_iter().eq(0..1797));
    assert!(set.train.rows.is_sorted() && set.validation.rows.is_sorted());
    assert_eq!(set.shape, InputShape::Image { channels: 1, height: 8, width: 8 });
    assert!(set.warnings.is_empty(), "{:?}", set.warnings);
}

#[test]
fn an_example_keeps_its_id_in_every_part() {
    let set = opened(&data(digits()));
    for split in [&set.train, &set.validation] {
        for (at, row) in split.rows.iter().enumerate() {
            assert_eq!(split.ids.name(at), row.to_string());
        }
    }
}

#[test]
fn the_test_part_stays_when_the_validation_part_changes() {
    let with = |validation| Data { test: Some(fraction(0.2, 0)), validation, ..data(digits()) };
    let first = opened(&with(fraction(0.1, 0))).test.unwrap();
    let second = opened(&with(fraction(0.3, 9))).test.unwrap();
    assert_eq!(first.rows, second.rows);
}

#[test]
fn a_limit_leaves_the_test_part_alone_and_the_validation_part_is_of_it() {
    let with = |limit| Data {
        test: Some(fraction(0.2, 0)),
        validation: fraction(0.2, 0),
        limit,
        ..data(digits())
    };
    let (all, few) = (opened(&with(None)), opened(&with(Some(100))));
    assert_eq!(few.test.unwrap().rows, all.test.clone().unwrap().rows);
    assert_eq!((few.train.len(), few.validation.len()), (80, 20));
    let more = opened(&with(Some(200)));
    let used = |set: &DataSet| -> BTreeSet<usize> {
        set.train.rows.iter().chain(&set.validation.rows).copied().collect()
    };
    let again = opened(&with(Some(100)));
    assert!(used(&again).is_subset(&used(&more)), "a larger limit takes the same and more");
    assert_eq!(opened(&with(Some(1_000_000))).train.rows, all.train.rows);
}

#[test]
fn what_is_held_out_depends_on_ids_and_seed_not_on_the_order_of_rows() {
    let names: Vec<String> = (0..500).map(|at| format!("image {at}")).collect();
    let reversed: Vec<String> = names.iter().rev().cloned().collect();
    let held_out = |names: Vec<String>, fraction, seed| -> BTreeSet<String> {
        let ids = Ids::named(names, "ids").unwrap();
        let all: Vec<usize> = (0..500).collect();
        let parts = split::hold_out(500, &all, fraction, seed, &ids, "data.validation").unwrap();
        parts.held_out.into_iter().map(|at| ids.name(at).into_owned()).collect()
    };
    let first = held_out(names.clone(), 0.1, 0);
    assert_eq!(first.len(), 50);
    assert_eq!(first, held_out(reversed, 0.1, 0));
    assert!(first.is_subset(&held_out(names.clone(), 0.2, 0)), "a larger part holds a smaller one");
    assert_ne!(first, held_out(names, 0.1, 1));
}

#[test]
fn a_count_holds_out_what_a_fraction_of_as_many_does() {
    let count = |count| HeldOut::Count { count, seed: 3 };
    let with = |validation, limit| Data { validation, limit, ..data(digits()) };
    let counted = opened(&with(count(180), None));
    assert_eq!(counted.validation.len(), 180);
    // 180 of 1,797.
    assert_eq!(counted.validation.rows, opened(&with(fraction(0.1, 3), None)).validation.rows);
    // The count is held out of what the limit leaves, and a test part is not touched.
    let limited =
        Data { test: Some(HeldOut::Count { count: 97, seed: 1 }), ..with(count(20), Some(1_020)) };
    let set = opened(&limited);
    let test = set.test.unwrap();
    assert_eq!((set.train.len(), set.validation.len(), test.len()), (1_000, 20, 97));
    // Fewer examples than the limit: all but the count are learned from.
    let few = opened(&Data { test: Some(HeldOut::Count { count: 1_000, seed: 1 }), ..limited });
    assert_eq!((few.train.len(), few.validation.len()), (777, 20));
    let message = refusal(&with(count(1_797), None), Link::Softmax);
    assert!(message.contains("none of 1797 examples"), "{message}");
    assert!(message.contains("lower data.validation.count"), "{message}");
}

#[test]
fn parts_that_would_be_empty_are_refused() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n0\n1\n");
    let message =
        refusal(&Data { validation: fraction(0.01, 0), ..data(source.clone()) }, Link::Softmax);
    assert!(message.contains("data.validation") && message.contains("none"), "{message}");
    let all =
        Data { validation: fraction(0.5, 0), test: Some(fraction(0.5, 0)), ..data(source.clone()) };
    let message = refusal(&all, Link::Softmax);
    assert!(message.contains("data.validation") && message.contains("train on"), "{message}");
    let wrong = Data { validation: fraction(1.5, 0), ..data(source) };
    assert!(refusal(&wrong, Link::Softmax).contains("below 1"));
}

#[test]
fn corruption_reaches_training_and_validation_but_never_the_test_part() {
    let clean = opened(&Data { noise: None, ..noisy_digits(0.0) });
    let noisy = opened(&noisy_digits(0.4));
    for (split, before) in [(&noisy.train, &clean.train), (&noisy.validation, &clean.validation)] {
        assert_eq!(split.clean_labels.as_deref(), Some(single(before)));
        let wrong = single(split).iter().zip(single(before)).filter(|(a, b)| a != b).count();
        let share = wrong as f64 / split.len() as f64;
        // Five standard errors of a share of 0.4.
        assert!((share - 0.4).abs() < 5.0 * (0.24 / split.len() as f64).sqrt(), "{share}");
    }
    let (noisy, clean) = (noisy.test.unwrap(), clean.test.unwrap());
    assert_eq!(noisy.labels, clean.labels);
}

#[test]
fn corruption_needs_single_labels() {
    let folder = Folder::new();
    let noise = Some(LabelNoise { seed: 1, kind: NoiseKind::Symmetric { rate: 0.1 } });
    let data = Data { noise, ..data(folder.source(4, "0.5,0.5\n0.1,0.9\n1,0\n0,1\n")) };
    let message = refusal(&data, Link::Softmax);
    assert!(message.contains("data.noise") && message.contains("single"), "{message}");
}

#[test]
fn true_labels_go_with_their_examples_and_may_be_words() {
    let folder = Folder::new();
    let mut source = folder.source(4, "label\ncat\ncat\ndog\ndog\n");
    source.clean_labels = Some(folder.write("clean.csv", "label\nowl\ncat\ncat\ndog\n"));
    let set = opened(&data(source));
    assert_eq!(set.class_names, ["cat", "dog", "owl"], "true labels count as classes");
    let clean = in_source_order(&set, |split, at| split.clean_labels.as_ref().unwrap()[at]);
    assert_eq!(clean, [2, 0, 0, 1]);
}

#[test]
fn another_number_of_true_labels_or_ids_than_of_examples_is_refused() {
    let folder = Folder::new();
    let mut source = folder.source(4, "0\n1\n0\n1\n");
    source.clean_labels = Some(folder.write("clean.csv", "0\n1\n"));
    let message = refusal(&data(source.clone()), Link::Softmax);
    assert!(message.contains("clean.csv") && message.contains("4 examples"), "{message}");
    source.clean_labels = None;
    source.ids = Some(folder.write("ids.csv", "id\na\nb\n"));
    let message = refusal(&data(source), Link::Softmax);
    assert!(message.contains("2 ids") && message.contains("4 examples"), "{message}");
}

#[test]
fn ids_that_repeat_are_refused_with_their_rows() {
    let folder = Folder::new();
    let mut source = folder.source(4, "0\n1\n0\n1\n");
    source.ids = Some(folder.write("ids.csv", "id\na\nb\nc\nb\n"));
    let message = refusal(&data(source), Link::Softmax);
    assert!(message.contains("ids.csv") && message.contains("rows 1 and 3"), "{message}");
}

#[test]
fn ids_of_several_columns_or_of_fractions_are_refused() {
    let folder = Folder::new();
    let mut source = folder.source(2, "0\n1\n");
    source.ids = Some(folder.write("ids.csv", "id,x\na,1\nb,2\n"));
    assert!(refusal(&data(source.clone()), Link::Softmax).contains("one column"));
    source.ids = Some(folder.write("ids.csv", "0.5\n1.5\n"));
    assert!(refusal(&data(source), Link::Softmax).contains("whole numbers or words"));
}

/// A recipe whose test split has a source of its own.
fn with_test(folder: &Folder, test: Source) -> Data {
    Data { test: Some(HeldOut::Source(test)), ..data(folder.source(8, "0\n1\n0\n1\n0\n1\n0\n1\n")) }
}

#[test]
fn a_source_of_another_shape_than_the_training_source_is_refused() {
    let folder = Folder::new();
    let inputs = folder.write("wide.npy", npy("<f4", &[2, 3], &[0.0; 6]));
    let labels = Some(folder.write("test.csv", "0\n1\n"));
    let test = Source { inputs: InputSource::Features(inputs), labels, ..digits() };
    let message = refusal(&with_test(&folder, test), Link::Softmax);
    assert!(message.contains("wide.npy"), "{message}");
    assert!(message.contains("3 numbers") && message.contains("2 numbers"), "{message}");
}

#[test]
fn a_class_that_the_training_source_does_not_have_is_refused() {
    let folder = Folder::new();
    let labels = Some(folder.write("test.csv", "0\n2\n"));
    let test = Source { inputs: folder.features("test.npy", 2), labels, ..digits() };
    let message = refusal(&with_test(&folder, test), Link::Softmax);
    assert!(message.contains("test.csv") && message.contains("row 1"), "{message}");
    assert!(message.contains("set data.classes"), "{message}");
}

#[test]
fn a_source_that_is_given_twice_is_a_warning() {
    let folder = Folder::new();
    let labels = Some(folder.write("test.csv", "0\n1\n0\n1\n0\n1\n0\n1\n"));
    let test = Source { inputs: folder.features("again.npy", 8), labels, ..digits() };
    let set = opened(&with_test(&folder, test));
    assert!(set.warnings[0].contains("test source has the same inputs"), "{:?}", set.warnings);
}

#[test]
fn names_from_a_file_call_the_classes_that_inputs_carry() {
    let folder = Folder::new();
    let names = "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
    let names = Some(folder.write("names.txt", names).into());
    let set = opened(&Data { class_names: names, ..data(digits()) });
    assert_eq!(set.class_names[3], "three");
    assert_eq!(in_source_order(&set, |split, at| single(split)[at])[..4], [0, 1, 2, 3]);
}

#[test]
fn a_label_file_beside_inputs_with_labels_takes_their_place() {
    let folder = Folder::new();
    let labels: String = (0..1797).map(|at| format!("{}\n", (at + 1) % 10)).collect();
    let source = Source { labels: Some(folder.write("noisy.csv", labels)), ..digits() };
    let set = opened(&data(source));
    assert_eq!(in_source_order(&set, |split, at| single(split)[at])[..3], [1, 2, 3]);
    assert_eq!(set.class_names[9], "9");
}

#[test]
fn any_change_of_the_data_changes_the_fingerprint() {
    let folder = Folder::new();
    let source = folder.source(4, "0\n1\n0\n1\n");
    let base = opened(&data(source.clone())).fingerprint;
    assert_eq!(base.len(), 64);
    assert_eq!(base, opened(&data(source.clone())).fingerprint);
    let mut seen = BTreeSet::from([base.clone()]);
    let mut differs = |data: &Data, what: &str| {
        assert!(seen.insert(opened(data).fingerprint), "{what} does not show");
    };
    let labels = |content: &str| Some(folder.write("other.csv", content));
    differs(&data(Source { labels: labels("1\n0\n0\n1\n"), ..source.clone() }), "a label");
    differs(&data(Source { labels: labels("b\na\nb\na\n"), ..source.clone() }), "names");
    let clean_labels = Some(folder.write("clean.csv", "0\n1\n0\n1\n"));
    differs(&data(Source { clean_labels, ..source.clone() }), "true labels");
    let ids = Some(folder.write("ids.csv", "a\nb\nc\nd\n"));
    differs(&data(Source { ids, ..source.clone() }), "ids");
    let values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5];
    let inputs = InputSource::Features(folder.write("y.npy", npy("<f4", &[4, 2], &values)));
    differs(&data(Source { inputs, ..source.clone() }), "an input");
    let elsewhere = Data { validation: HeldOut::Source(source.clone()), ..data(source.clone()) };
    differs(&elsewhere, "another source");
    let parts = Data { validation: fraction(0.5, 3), ..data(source) };
    assert_eq!(opened(&parts).fingerprint, base, "parts are the recipe's, not the data's");
}

#[test]
fn an_input_that_is_not_finite_is_refused() {
    let folder = Folder::new();
    let mut source = folder.source(4, "0\n1\n0\n1\n");
    let values = [0.0, 1.0, 2.0, f32::NAN, 4.0, 5.0, 6.0, 7.0];
    source.inputs = InputSource::Features(folder.write("nan.npy", npy("<f4", &[4, 2], &values)));
    let message = refusal(&data(source), Link::Softmax);
    assert!(message.contains("nan.npy") && message.contains("row 1"), "{message}");
}

#[test]
fn noisy_labels_are_those_that_training_sees_and_can_be_written_and_read() {
    let recipe = noisy_digits(0.3);
    let noisy = noisy_labels(&recipe, Link::Softmax).unwrap();
    let set = opened(&recipe);
    for (at, row) in set.train.rows.iter().enumerate() {
        assert_eq!(single(&set.train)[at], noisy.labels[*row]);
    }
    let folder = Folder::new();
    let as_numbers = |labels: &[u32]| Values::Int(labels.iter().map(|y| i64::from(*y)).collect());
    let array = Array::load(&folder.write("y.npy", noisy.to_npy())).unwrap();
    assert_eq!((array.shape, array.values), (vec![1797], as_numbers(&noisy.labels)));
    let clean = Array::load(&folder.write("c.npy", noisy.clean_to_npy())).unwrap();
    assert_eq!(clean.values, as_numbers(&noisy.clean_labels));
    let csv = folder.write("y.csv", noisy.to_csv());
    for (column, wanted) in [("label", &noisy.labels), ("clean_label", &noisy.clean_labels)] {
        let array = Array::load(&format!("{csv}#{column}")).unwrap();
        assert_eq!(array.values, as_numbers(wanted), "{column}");
    }
}

#[test]
fn noisy_labels_without_noise_are_refused() {
    let message = noisy_labels(&data(digits()), Link::Softmax).unwrap_err().to_string();
    assert!(message.contains("data.noise"), "{message}");
}

/// A folder of images for each class; what is in the files shows when they are decoded only.
fn folders(folder: &Folder, name: &str, classes: &[&str]) -> Source {
    let path = folder.path().join(name);
    for class in classes {
        std::fs::create_dir_all(path.join(class)).unwrap();
        for index in 0..4 {
            folder.write(&format!("{name}/{class}/{index}.png"), format!("{name} {class} {index}"));
        }
    }
    Source { inputs: InputSource::images(path), ..digits() }
}

fn folder_data(folder: &Folder, test: &[&str]) -> Data {
    Data {
        framing: Framing::sized(8),
        test: Some(HeldOut::Source(folders(folder, "test", test))),
        ..data(folders(folder, "train", &["ant", "bee", "cow"]))
    }
}

#[test]
fn folders_of_a_test_source_are_classes_by_their_names() {
    let folder = Folder::new();
    let set = opened(&folder_data(&folder, &["bee", "cow"]));
    assert_eq!(single(&set.test.unwrap()), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(set.train.ids.name(0).split('/').next(), Some("ant"));
}

#[test]
fn a_folder_that_is_no_class_of_the_training_source_is_refused() {
    let folder = Folder::new();
    let message = refusal(&folder_data(&folder, &["bee", "dog"]), Link::Softmax);
    assert!(message.contains("test") && message.contains("\"dog\""), "{message}");
    assert!(message.contains("\"ant\", \"bee\", \"cow\""), "{message}");
}

#[test]
fn a_number_of_classes_that_folders_do_not_have_is_refused() {
    let folder = Folder::new();
    let data = Data { classes: Some(5), ..folder_data(&folder, &["bee"]) };
    let message = refusal(&data, Link::Softmax);
    assert!(message.contains("data.classes: is 5") && message.contains("3 classes"), "{message}");
}
