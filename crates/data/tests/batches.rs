//! Batches: their order, their targets, and the threads that prepare them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Folder, data, dense, digits};
use aleator_data::{
    Batch, DataSet, Ids, InputShape, Inputs, Labels, Order, Split, Targets, evaluation_batches,
    training_batches,
};
use aleator_run::recipe::{Annotations, Data, Framing, LabelKind, Link};

fn digits_train() -> Arc<Split> {
    DataSet::open(&data(digits()), Link::Softmax).unwrap().train
}

fn order_of(split: &Split, batch: usize) -> Order {
    Order { examples: split.len(), batch, part: batch, seed: 3 }
}

fn training(split: &Arc<Split>, order: Order, steps: std::ops::Range<usize>) -> Vec<Batch> {
    training_batches(Arc::clone(split), order, steps, 0..1, 0).map(Result::unwrap).collect()
}

#[test]
fn an_epoch_sees_every_example_once_with_its_own_inputs_and_label() {
    let split = digits_train();
    let order = order_of(&split, 100);
    let Labels::Single(labels) = &split.labels else { panic!("digits are single labels") };
    let steps = order.steps_per_epoch();
    let mut seen = vec![0; split.len()];
    for batch in training(&split, order, steps..2 * steps) {
        assert_eq!(batch.epoch, 1);
        let Targets::Classes(classes) = &batch.targets else { panic!("{:?}", batch.targets) };
        let mut pixels = [0.0; 64];
        for (at, example) in batch.examples.iter().enumerate() {
            seen[*example] += 1;
            assert_eq!(classes[at], labels[*example]);
            assert_eq!(batch.keys[at], split.ids.key(*example));
            split.inputs.read(split.rows[*example], &mut pixels).unwrap();
            assert_eq!(batch.inputs[at * 64..][..64], pixels);
        }
    }
    assert!(seen.iter().all(|times| *times == 1));
}

#[test]
fn batches_are_the_same_for_any_number_of_workers() {
    let split = digits_train();
    let order = order_of(&split, 64);
    let inline = training(&split, order, 0..50);
    for workers in [1, 2, 3, 7, 100] {
        let threaded: Vec<Batch> =
            training_batches(Arc::clone(&split), order, 0..50, 0..1, workers)
                .map(Result::unwrap)
                .collect();
        assert_eq!(threaded, inline, "{workers} workers");
    }
}

#[test]
fn training_resumes_at_any_step_with_the_batch_of_that_step() {
    let split = digits_train();
    let order = order_of(&split, 64);
    let whole = training(&split, order, 0..60);
    for from in [1, 29, 59] {
        let resumed: Vec<Batch> = training_batches(Arc::clone(&split), order, from..60, 0..1, 2)
            .map(Result::unwrap)
            .collect();
        assert_eq!(resumed, whole[from..]);
    }
    assert!(training(&split, order, 60..60).is_empty());
}

#[test]
fn evaluation_sees_every_example_once_in_order() {
    let split = digits_train();
    for (batch, workers) in [(100, 0), (7, 3), (10_000, 2)] {
        let batches: Vec<Batch> =
            evaluation_batches(Arc::clone(&split), batch, workers).map(Result::unwrap).collect();
        assert_eq!(batches.len(), split.len().div_ceil(batch));
        let seen = batches.iter().flat_map(|batch| batch.examples.iter().copied());
        assert!(seen.eq(0..split.len()));
    }
}

#[test]
fn batches_that_are_not_wanted_any_more_stop_their_threads() {
    let split = digits_train();
    let order = order_of(&split, 10);
    let mut batches = training_batches(Arc::clone(&split), order, 0..usize::MAX / 2, 0..1, 3);
    assert_eq!(batches.next().unwrap().unwrap().step, 0);
    drop(batches);
    // The threads are joined, so nobody else holds the split.
    assert_eq!(Arc::strong_count(&split), 1);
}

#[test]
fn the_panic_of_a_worker_becomes_an_error_and_ends_the_batches() {
    let mut broken = Split::clone(&digits_train());
    broken.labels = Labels::Single(vec![]);
    let order = order_of(&broken, 10);
    let mut batches = training_batches(Arc::new(broken), order, 0..20, 0..1, 2);
    let message = batches.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("worker thread failed") && message.contains("index"), "{message}");
    assert!(batches.next().is_none());
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_ends_the_batches() {
    let folder = Folder::new();
    for class in ["cat", "dog"] {
        std::fs::create_dir_all(folder.path().join(class)).unwrap();
        for index in 0..4 {
            folder.write(&format!("{class}/{index}.png"), "not an image");
        }
    }
    let source = aleator_run::recipe::Source {
        inputs: aleator_run::recipe::InputSource::images(folder.path()),
        ..digits()
    };
    let data = Data { framing: Framing::sized(8), ..data(source) };
    let split = DataSet::open(&data, Link::Softmax).unwrap().train;
    for workers in [0, 2] {
        let mut batches = evaluation_batches(Arc::clone(&split), 1, workers);
        let message = batches.next().unwrap().unwrap_err().to_string();
        assert!(message.contains(".png"), "{message}");
        assert!(batches.next().is_none(), "{workers} workers");
    }
}

#[test]
fn single_labels_are_zeros_and_ones_under_sigmoid() {
    let set = DataSet::open(&data(digits()), Link::Sigmoid).unwrap();
    let split = set.train;
    let batch = &training(&split, order_of(&split, 50), 0..1)[0];
    let dense = dense(&batch.targets, 10);
    let ids = Ids::Rows(batch.examples.len());
    let labels = split.labels.select(&batch.examples).hard(0, &ids).unwrap();
    let is_on = |label: u32| (0..10).map(move |class| f32::from(class == label));
    assert_eq!(dense, labels.into_iter().flat_map(is_on).collect::<Vec<f32>>());
    assert_eq!(dense.iter().sum::<f32>(), batch.examples.len() as f32);
}

#[test]
fn probabilities_and_multi_hot_labels_come_as_they_are() {
    let folder = Folder::new();
    let soft = data(folder.source(4, &"0.25,0.75\n".repeat(4)));
    let split = DataSet::open(&soft, Link::Softmax).unwrap().train;
    let targets = &training(&split, order_of(&split, 3), 0..1)[0].targets;
    assert_eq!(dense(targets, 2), [0.25, 0.75].repeat(3));

    let folder = Folder::new();
    let multi_hot = data(folder.source(4, &"1,0,1\n".repeat(4)));
    let split = DataSet::open(&multi_hot, Link::Sigmoid).unwrap().train;
    let targets = &training(&split, order_of(&split, 3), 0..1)[0].targets;
    assert_eq!(dense(targets, 3), [1.0, 0.0, 1.0].repeat(3));
}

/// Four examples: annotations 0 0 1; 2; 1 1; 0 2.
fn annotated(annotations: Annotations, link: Link) -> Arc<Split> {
    let votes = aleator_data::Votes {
        offsets: vec![0, 3, 4, 6, 8],
        annotators: vec![0, 1, 2, 0, 0, 1, 0, 1],
        labels: vec![0, 0, 1, 2, 1, 1, 0, 2],
        annotator_names: ["a", "b", "c"].map(String::from).to_vec(),
    };
    Arc::new(Split {
        name: aleator_run::Split::Train,
        inputs: Arc::new(Inputs::in_memory(vec![0.0; 4], InputShape::Features(1))),
        rows: vec![0, 1, 2, 3],
        ids: Ids::Rows(4),
        labels: Labels::Annotations(votes),
        clean_labels: None,
        weights: None,
        annotations,
        link,
        classes: 3,
        augment: None,
    })
}

#[test]
fn the_majority_is_one_class_and_ties_are_broken_once_for_all() {
    let split = annotated(Annotations::Majority, Link::Softmax);
    for step in 0..20 {
        let batch = &training(&split, order_of(&split, 4), step..step + 1)[0];
        let Targets::Classes(classes) = &batch.targets else { panic!("{:?}", batch.targets) };
        let of: BTreeMap<usize, u32> =
            batch.examples.iter().copied().zip(classes.iter().copied()).collect();
        assert_eq!((of[&0], of[&1], of[&2]), (0, 2, 1));
        assert_eq!(of[&3], split.labels.hard(3, &split.ids).unwrap()[3]);
    }
}

#[test]
fn one_annotation_is_drawn_anew_every_epoch_in_proportion() {
    const EPOCHS: usize = 3_000;
    let split = annotated(Annotations::Sampled, Link::Softmax);
    let mut ones = 0;
    for batch in training(&split, order_of(&split, 4), 0..EPOCHS) {
        let Targets::Classes(classes) = &batch.targets else { panic!("{:?}", batch.targets) };
        let first = batch.examples.iter().position(|example| *example == 0).unwrap();
        assert!(classes[first] < 2);
        ones += classes[first];
    }
    // A third of the annotations of example 0; five standard errors.
    let share = f64::from(ones) / EPOCHS as f64;
    let allowed = 5.0 * (2.0 / 9.0 / EPOCHS as f64).sqrt();
    assert!((share - 1.0 / 3.0).abs() < allowed, "{share}");
}

#[test]
fn each_annotation_is_a_term_and_a_batch_weighs_as_many_as_it_has_examples() {
    let split = annotated(Annotations::Each, Link::Softmax);
    let batch = &training(&split, order_of(&split, 4), 0..1)[0];
    let weights = dense(&batch.targets, 3);
    // 8 annotations of 4 examples: each weighs a half.
    let first = batch.examples.iter().position(|example| *example == 0).unwrap();
    assert_eq!(weights[3 * first..][..3], [1.0, 0.5, 0.0]);
    assert_eq!(weights.iter().sum::<f32>(), 4.0);
    for batch in training(&split, order_of(&split, 2), 0..2) {
        assert!((dense(&batch.targets, 3).iter().sum::<f32>() - 2.0).abs() < 1e-6);
    }
}

#[test]
fn evaluation_of_annotations_draws_nothing() {
    let weights = |annotations| {
        let batches = evaluation_batches(annotated(annotations, Link::Softmax), 3, 0);
        batches.flat_map(|batch| dense(&batch.unwrap().targets, 3)).collect::<Vec<f32>>()
    };
    let shares = weights(Annotations::Sampled);
    assert_eq!(shares[3..], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.5]);
    let terms = weights(Annotations::Each);
    assert_eq!(terms[..6], [1.0, 0.5, 0.0, 0.0, 0.0, 0.5]);
    assert_eq!(terms.iter().sum::<f32>(), 4.0, "whatever the size of batches");
}

#[test]
fn annotations_become_zeros_and_ones_under_sigmoid() {
    let split = annotated(Annotations::Majority, Link::Sigmoid);
    let batch = evaluation_batches(split, 2, 0).next().unwrap().unwrap();
    assert_eq!(dense(&batch.targets, 3), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_recipe_s_label_kind_is_kept_for_annotators_of_two_classes() {
    let folder = Folder::new();
    let data = Data {
        label_kind: LabelKind::Annotators,
        annotations: Annotations::Each,
        ..data(folder.source(4, "0,1\n1,1\n0,0\n1,1\n"))
    };
    let split = DataSet::open(&data, Link::Softmax).unwrap().train;
    let batch = &training(&split, order_of(&split, 3), 0..1)[0];
    assert_eq!(dense(&batch.targets, 2).iter().sum::<f32>(), 3.0);
}
