//! Two views of every training image.

use std::ops::Range;
use std::sync::Arc;

use crate::augment::{PLAIN, cifar, data_of, order};
use crate::support::Folder;
use aleator_data::{Batch, DataSet, Order, Split, Views, training_views};
use aleator_run::recipe::{Augment, Crop, Link};

/// 16 images, shifted and mirrored.
fn train(folder: &Folder, augment: Augment) -> Arc<Split> {
    DataSet::open(&data_of(cifar(folder, 20), Some(augment)), Link::Softmax).unwrap().train
}

const VARIED: Augment =
    Augment { crop: Crop::Padded { padding: 4 }, flip: true, mixup: Some(0.4), ..PLAIN };

fn batches(
    split: &Arc<Split>,
    order: Order,
    steps: Range<usize>,
    views: Views,
    workers: usize,
) -> Vec<Batch> {
    let parts = 0..order.parts();
    let batches = training_views(Arc::clone(split), order, steps, parts, views, workers);
    batches.map(Result::unwrap).collect()
}

#[test]
fn the_second_view_is_varied_by_draws_of_its_own_and_the_first_stays_as_it_is() {
    let folder = Folder::new();
    let split = train(&folder, VARIED);
    let order = order(&split);
    let steps = order.steps_per_epoch();
    let one = batches(&split, order, 0..2 * steps, Views::One, 0);
    let two = batches(&split, order, 0..2 * steps, Views::TwoFrom { epoch: 1 }, 0);
    for (one, two) in one.iter().zip(&two) {
        assert!(one.second_view.is_none());
        let first = Batch { second_view: None, ..two.clone() };
        assert_eq!(*one, first);
        assert_eq!(two.second_view.is_some(), two.epoch == 1);
        if let Some(second) = &two.second_view {
            let width = 3_072;
            let pairs = two.inputs.chunks_exact(width).zip(second.chunks_exact(width));
            // One of 81 shifts twice, and mirrored or not twice.
            let differ = pairs.filter(|(first, second)| first != second).count();
            assert!(differ + 1 >= two.examples.len(), "{differ} of {}", two.examples.len());
        }
    }
}

#[test]
fn both_views_are_the_same_for_any_number_of_workers_and_wherever_training_begins() {
    let folder = Folder::new();
    let split = train(&folder, VARIED);
    let order = Order { part: 3, ..order(&split) };
    let views = Views::TwoFrom { epoch: 0 };
    let whole = batches(&split, order, 0..6, views, 0);
    for (from, workers) in [(0, 2), (3, 0), (4, 3)] {
        let found = batches(&split, order, from..6, views, workers);
        assert_eq!(found, whole[from * order.parts()..]);
    }
    // The parts are those of a step in one piece.
    let in_one = batches(&split, Order { part: 7, ..order }, 0..1, views, 0);
    let of_parts = |of: fn(&Batch) -> &[f32]| -> Vec<f32> {
        whole[..order.parts()].iter().flat_map(|part| of(part).to_vec()).collect()
    };
    let second = |batch: &Batch| batch.second_view.clone();
    assert_eq!(of_parts(|batch| &batch.inputs), in_one[0].inputs);
    let parts = of_parts(|batch| batch.second_view.as_deref().unwrap_or_default());
    assert_eq!(Some(parts), second(&in_one[0]));
}

/// Mixing is of examples, and both views are mixed alike: their targets are the same.
#[test]
fn the_second_view_is_mixed_by_the_shares_of_the_first() {
    let folder = Folder::new();
    let split = train(&folder, Augment { mixup: Some(0.4), ..PLAIN });
    for batch in batches(&split, order(&split), 0..4, Views::TwoFrom { epoch: 0 }, 0) {
        assert_eq!(batch.second_view.as_ref(), Some(&batch.inputs));
    }
}
