//! Augmentation: sheets that somebody has looked at, and what training and evaluation see.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::golden::{assert_golden, scene, sheet};
use crate::support::{Folder, dense};
use aleator_data::augment::Augmenter;
use aleator_data::picture::{Frame, Limits, decode};
use aleator_data::{
    Batch, DataSet, Order, Picture, Split, Targets, evaluation_batches, training_batches,
};
use aleator_run::recipe::{
    Annotations, Augment, Crop, Data, Filter, Framing, HeldOut, InputSource, LabelKind, Link,
    RandAugment, Source,
};

pub const PLAIN: Augment =
    Augment { crop: Crop::None, flip: false, rand_augment: None, mixup: None };
const INCEPTION: Crop = Crop::Inception { area: (0.08, 1.0), ratio: (0.75, 4.0 / 3.0) };

fn augmenter(augment: Augment, side: usize) -> Augmenter {
    let framing = Framing { centre_crop: Some(0.875), ..Framing::sized(side) };
    Augmenter::new(&augment, Frame::new(&framing, side, side))
}

/// The same image as twelve examples.
fn twelve(augment: Augment) -> Picture {
    let (augmenter, source) = (augmenter(augment, 48), scene(96, 72));
    let pictures: Vec<Picture> = (0..12).map(|key| augmenter.apply(&source, 0, 0, key)).collect();
    sheet(&pictures, 6)
}

#[test]
fn evaluation_looks_as_it_did() {
    let whole = Frame::new(&Framing::sized(48), 48, 48);
    let cropped = Frame { centre_crop: Some(0.6), ..whole };
    let coarse = Frame { filter: Filter::Bilinear, ..whole };
    let pictures = [whole, cropped, coarse].map(|frame| frame.cut(&scene(96, 72)));
    assert_golden("evaluation", &sheet(&pictures, 3));
}

#[test]
fn inception_crops_look_as_they_did() {
    assert_golden("inception", &twelve(Augment { crop: INCEPTION, ..PLAIN }));
}

/// Deviation D25: TensorFlow takes the whole image where no crop fits.
#[test]
fn of_an_image_too_oblong_for_any_crop_the_middle_square_is_seen() {
    let crop = Crop::Inception { area: (0.9, 1.0), ratio: (1.0, 1.0) };
    // Black but for a white square in the middle.
    let bytes = (0..10 * 100).map(|at| if (45..55).contains(&(at % 100)) { 255 } else { 0 });
    let oblong = Picture { width: 100, height: 10, channels: 1, bytes: bytes.collect() };
    let seen = augmenter(Augment { crop, ..PLAIN }, 10).apply(&oblong, 0, 0, 7);
    assert!(seen.bytes.iter().all(|byte| *byte == 255), "{seen:?}");
}

#[test]
fn padded_crops_look_as_they_did() {
    assert_golden("padded", &twelve(Augment { crop: Crop::Padded { padding: 8 }, ..PLAIN }));
}

#[test]
fn flips_look_as_they_did() {
    assert_golden("flip", &twelve(Augment { flip: true, ..PLAIN }));
}

#[test]
fn rand_augment_looks_as_it_did() {
    let weak = RandAugment { operations: 2, magnitude: 5.0 };
    assert_golden("rand-augment-5", &twelve(Augment { rand_augment: Some(weak), ..PLAIN }));
    let strong = RandAugment { operations: 2, magnitude: 10.0 };
    assert_golden("rand-augment-10", &twelve(Augment { rand_augment: Some(strong), ..PLAIN }));
}

#[test]
fn all_together_look_as_they_did() {
    let rand_augment = Some(RandAugment { operations: 2, magnitude: 7.0 });
    let augment = Augment { crop: INCEPTION, flip: true, rand_augment, mixup: None };
    assert_golden("together", &twelve(augment));
}

#[test]
fn grey_images_look_as_they_did() {
    let rand_augment = Some(RandAugment { operations: 1, magnitude: 10.0 });
    let augmenter = augmenter(Augment { flip: true, rand_augment, ..PLAIN }, 48);
    let colour = scene(96, 72);
    let bytes = colour.bytes.iter().skip(1).step_by(3).copied().collect();
    let grey = Picture { channels: 1, bytes, ..colour };
    let pictures: Vec<Picture> = (0..12).map(|key| augmenter.apply(&grey, 0, 0, key)).collect();
    assert_golden("grey", &sheet(&pictures, 6));
}

#[test]
fn an_encoded_image_is_varied_as_the_decoded_one() {
    for name in ["tall.jpg", "baseline-420.jpg", "orientation-6.jpg", "colour.png", "lossy.webp"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures");
        let bytes = std::fs::read(format!("{folder}/{name}")).unwrap();
        let picture = decode(&bytes, Limits::DEFAULT).unwrap();
        for filter in [Filter::Bilinear, Filter::Bicubic] {
            let frame = Frame { filter, ..Frame::new(&Framing::PLAIN, 8, 8) };
            let augmenter = Augmenter::new(&Augment { crop: INCEPTION, ..PLAIN }, frame);
            for key in 0..40 {
                let encoded = augmenter.apply_encoded(&bytes, Limits::DEFAULT, 1, 2, key).unwrap();
                assert_eq!(encoded, augmenter.apply(&picture, 1, 2, key), "{name}, {key}");
            }
        }
    }
}

/// Records of CIFAR: all pixels of an example are its number, its class the rest by ten.
pub fn cifar(folder: &Folder, examples: usize) -> InputSource {
    let mut records = vec![];
    for example in 0..examples {
        records.push((example % 10) as u8);
        let pixel = |at: usize| (at % 251) as u8 ^ example as u8;
        records.extend((0..3_072).map(pixel));
    }
    InputSource::images(folder.write("data_batch_1.bin", records))
}

pub fn data_of(inputs: InputSource, augment: Option<Augment>) -> Data {
    let validation = HeldOut::Fraction { fraction: 0.2, seed: 0 };
    Data { augment, ..Data::of(Source::of(inputs), validation) }
}

pub fn order(split: &Split) -> Order {
    Order { examples: split.len(), batch: 7, part: 7, seed: 4 }
}

fn batches(split: &Arc<Split>, steps: std::ops::Range<usize>, workers: usize) -> Vec<Batch> {
    let batches = training_batches(Arc::clone(split), order(split), steps, 0..1, workers);
    batches.map(Result::unwrap).collect()
}

#[test]
fn training_sees_the_same_for_any_number_of_workers_and_wherever_it_begins() {
    let folder = Folder::new();
    let augment = Augment {
        crop: INCEPTION,
        flip: true,
        rand_augment: Some(RandAugment { operations: 2, magnitude: 6.0 }),
        mixup: Some(0.2),
    };
    let data = data_of(cifar(&folder, 50), Some(augment));
    let train = DataSet::open(&data, Link::Softmax).unwrap().train;
    let alone = batches(&train, 0..15, 0);
    for workers in [1, 2, 4] {
        assert_eq!(batches(&train, 0..15, workers), alone, "{workers} workers");
    }
    assert_eq!(batches(&train, 9..15, 2), alone[9..], "from step 9 on");
    let bits = |batch: &Batch| batch.inputs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let different: BTreeSet<Vec<u32>> = alone.iter().map(bits).collect();
    assert_eq!(different.len(), alone.len(), "every epoch is another");
}

#[test]
fn images_of_folders_and_raw_pixels_are_varied_in_training_only() {
    let folder = Folder::new();
    for (class, name) in [(0, "cat"), (1, "dog")] {
        for example in 0..10 {
            let picture = scene(40 + class, 30 + example);
            let mut png = vec![];
            let encoder = image::codecs::png::PngEncoder::new(&mut png);
            let (width, height) = (picture.width as u32, picture.height as u32);
            let colour = image::ExtendedColorType::Rgb8;
            image::ImageEncoder::write_image(encoder, &picture.bytes, width, height, colour)
                .unwrap();
            folder.write(&format!("images/{name}/{example}.png"), png);
        }
    }
    let photos = InputSource::images(folder.path().join("images"));
    for (inputs, framing) in [(photos, Framing::sized(16)), (cifar(&folder, 20), Framing::PLAIN)] {
        let crop = Crop::Padded { padding: 3 };
        let augment = Some(Augment { crop, ..PLAIN });
        let plain =
            DataSet::open(&Data { framing, ..data_of(inputs.clone(), None) }, Link::Softmax);
        let plain = plain.unwrap();
        let varied = DataSet::open(&Data { framing, ..data_of(inputs, augment) }, Link::Softmax);
        let varied = varied.unwrap();
        assert!(varied.train.augment.is_some() && varied.validation.augment.is_none());
        assert_eq!(plain.fingerprint, varied.fingerprint);
        let evaluated = |split: &Arc<Split>| -> Vec<Batch> {
            evaluation_batches(Arc::clone(split), 5, 1).map(Result::unwrap).collect()
        };
        assert_eq!(evaluated(&plain.train), evaluated(&varied.train));
        assert_eq!(evaluated(&plain.validation), evaluated(&varied.validation));
        let (plain, varied) = (batches(&plain.train, 0..2, 0), batches(&varied.train, 0..2, 0));
        for (plain, varied) in plain.iter().zip(&varied) {
            assert_eq!((&plain.examples, &plain.targets), (&varied.examples, &varied.targets));
            assert_ne!(plain.inputs, varied.inputs);
        }
    }
}

/// Beside the plain batches, which tell what was mixed.
#[test]
fn mixup_mixes_inputs_and_targets_by_the_same_shares() {
    let folder = Folder::new();
    let inputs = cifar(&folder, 50);
    let open = |mixup| {
        let data = data_of(inputs.clone(), Some(Augment { mixup, ..PLAIN }));
        DataSet::open(&data, Link::Softmax).unwrap().train
    };
    let (plain, mixed) = (open(None), open(Some(0.4)));
    let mut shares = BTreeSet::new();
    for (plain, batch) in batches(&plain, 0..12, 0).iter().zip(batches(&mixed, 0..12, 0)) {
        let Targets::Classes(classes) = &plain.targets else { panic!("{:?}", plain.targets) };
        let weights = dense(&batch.targets, 10);
        let count = classes.len();
        for (at, weights) in weights.chunks_exact(10).enumerate() {
            let next = (at + 1) % count;
            let sum: f32 = weights.iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "{weights:?}");
            let augmenter = mixed.augment.as_ref().unwrap();
            let share = augmenter.own_share(4, batch.epoch, batch.keys[at]).unwrap() as f32;
            assert!((0.5..=1.0).contains(&share));
            shares.insert(share.to_bits());
            if classes[at] != classes[next] {
                assert!((weights[classes[at] as usize] - share).abs() < 1e-6);
                assert!((weights[classes[next] as usize] - (1.0 - share)).abs() < 1e-6);
            }
            let row = |at: usize| &plain.inputs[at * 3_072..][..3_072];
            for pixel in (0..3_072).step_by(97) {
                let expected = share * row(at)[pixel] + (1.0 - share) * row(next)[pixel];
                assert!((batch.inputs[at * 3_072 + pixel] - expected).abs() < 1e-5);
            }
        }
    }
    assert!(shares.len() > 60, "every example has a share of its own");
}

#[test]
fn mixed_examples_look_as_they_did() {
    let folder = Folder::new();
    let mut records = vec![];
    for example in 0..8_usize {
        let mut picture = scene(32, 32);
        // Four of the eight upside down.
        if example % 2 == 1 {
            picture.bytes = picture.bytes.chunks(96).rev().flatten().copied().collect();
        }
        records.push(example as u8 % 2);
        for channel in 0..3 {
            records.extend(picture.bytes.iter().skip(channel).step_by(3));
        }
    }
    let inputs = InputSource::images(folder.write("data_batch_1.bin", records));
    let data = data_of(inputs, Some(Augment { mixup: Some(1.0), ..PLAIN }));
    let train = DataSet::open(&data, Link::Softmax).unwrap().train;
    let batch = &batches(&train, 0..1, 0)[0];
    let pictures: Vec<Picture> = batch
        .inputs
        .chunks_exact(3_072)
        .map(|planes| {
            let byte = |value: f32| ((value + 1.0) * 127.5).round() as u8;
            let pixel = |at: usize| [0, 1, 2].map(|channel| byte(planes[channel * 1_024 + at]));
            let bytes = (0..1_024).flat_map(pixel).collect();
            Picture { width: 32, height: 32, channels: 3, bytes }
        })
        .collect();
    assert_golden("mixup", &sheet(&pictures, pictures.len()));
}

#[test]
fn mixed_annotations_keep_the_weight_of_the_batch() {
    let folder = Folder::new();
    let inputs = cifar(&folder, 20);
    let mut csv = String::from("a,b,c\n");
    for example in 0..20 {
        let (first, second) = (example % 10, (example + 3) % 10);
        csv += &if example % 2 == 0 {
            format!("{first},,\n")
        } else {
            format!("{first},{second},{first}\n")
        };
    }
    let labels = folder.write("labels.csv", csv);
    let mut data = data_of(inputs, Some(Augment { mixup: Some(0.5), ..PLAIN }));
    data.train.labels = Some(labels);
    data.label_kind = LabelKind::Annotators;
    data.annotations = Annotations::Each;
    let train = DataSet::open(&data, Link::Softmax).unwrap().train;
    for batch in batches(&train, 0..6, 0) {
        let weights = dense(&batch.targets, 10);
        let sum: f32 = weights.iter().sum();
        assert!((sum - batch.examples.len() as f32).abs() < 1e-4, "{sum}");
    }
}

/// What one process prepares does not depend on who prepares the rest.
#[test]
fn the_parts_of_a_step_are_the_step_in_pieces_also_when_mixed() {
    let folder = Folder::new();
    let inputs = cifar(&folder, 20);
    let csv: String = (0..20).map(|at| format!("{},{}\n", at % 10, (at * at) % 10)).collect();
    let labels = folder.write("labels.csv", format!("a,b\n{csv}"));
    for (mixup, annotations) in [
        (None, Annotations::Sampled),
        (None, Annotations::Each),
        (Some(0.4), Annotations::Majority),
        (Some(0.4), Annotations::Each),
    ] {
        let mut data = data_of(inputs.clone(), Some(Augment { mixup, ..PLAIN }));
        data.train.labels = Some(labels.clone());
        data.label_kind = LabelKind::Annotators;
        data.annotations = annotations;
        let train = DataSet::open(&data, Link::Softmax).unwrap().train;
        let in_parts = Order { part: 2, ..order(&train) };
        assert_eq!(in_parts.parts(), 3);
        for whole in batches(&train, 0..4, 0) {
            let steps = whole.step..whole.step + 1;
            // One process has the first two parts, another the last.
            let mut parts: Vec<Batch> = [0..2, 2..3]
                .into_iter()
                .flat_map(|parts| {
                    training_batches(Arc::clone(&train), in_parts, steps.clone(), parts, 0)
                })
                .map(Result::unwrap)
                .collect();
            assert!(parts.iter().all(|part| part.step_examples == whole.examples.len()));
            let inputs: Vec<f32> =
                parts.iter_mut().flat_map(|part| std::mem::take(&mut part.inputs)).collect();
            assert_eq!(inputs, whole.inputs);
            let examples: Vec<usize> =
                parts.iter().flat_map(|part| part.examples.clone()).collect();
            assert_eq!(examples, whole.examples);
            let rows = |batch: &Batch| -> Vec<Vec<(u32, f32)>> {
                match &batch.targets {
                    Targets::Classes(classes) => classes.iter().map(|c| vec![(*c, 1.0)]).collect(),
                    Targets::Sparse(rows) => {
                        (0..rows.len()).map(|at| rows.row(at).collect()).collect()
                    }
                }
            };
            assert_eq!(parts.iter().flat_map(rows).collect::<Vec<_>>(), rows(&whole));
        }
    }
}

#[test]
fn an_example_alone_is_not_mixed() {
    let folder = Folder::new();
    let data = data_of(cifar(&folder, 20), Some(Augment { mixup: Some(0.4), ..PLAIN }));
    let train = DataSet::open(&data, Link::Softmax).unwrap().train;
    let order = Order { examples: train.len(), batch: 1, part: 1, seed: 0 };
    let mut pixels = [0.0; 3_072];
    for batch in training_batches(Arc::clone(&train), order, 0..5, 0..1, 0) {
        let batch = batch.unwrap();
        assert!(matches!(batch.targets, Targets::Classes(_)));
        train.inputs.read(train.rows[batch.examples[0]], &mut pixels).unwrap();
        assert_eq!(batch.inputs, pixels);
    }
}

#[test]
fn what_cannot_be_varied_or_mixed_is_refused() {
    let folder = Folder::new();
    let mixed = Augment { mixup: Some(0.4), ..PLAIN };
    let error =
        DataSet::open(&data_of(cifar(&folder, 20), Some(mixed)), Link::Sigmoid).unwrap_err();
    assert!(error.to_string().contains("data.augment.mixup"), "{error}");
    assert!(error.to_string().contains("softmax"), "{error}");
    let digits = data_of(InputSource::Digits, Some(PLAIN));
    let error = DataSet::open(&digits, Link::Softmax).unwrap_err();
    assert!(error.to_string().starts_with("data.augment: "), "{error}");
}
