//! Images that cannot be decoded: found, counted, left out; and those that nothing can decode.

use std::path::Path;
use std::sync::Mutex;

use crate::format_support::*;
use aleator_data::{DataError, DataSet, Labels, Sources};
use aleator_run::recipe::{Data, Framing, HeldOut, InputSource, Link, Source};
use aleator_run::{SetAside, Split};

fn data(inputs: InputSource) -> Data {
    let train = Source::of(inputs);
    let validation = HeldOut::Source(train.clone());
    Data { framing: Framing::sized(4), ..Data::of(train, validation) }
}

/// 200 images, those of `bad` not images, listed with weights and true labels.
fn listed(folder: &Folder, bad: &[usize]) -> Data {
    let good = plain_png(2, 2, [9; 3]);
    let mut manifest = "path,label,clean_label,weight\n".to_string();
    for at in 0..200 {
        let content = if bad.contains(&at) { b"text named .jpg".to_vec() } else { good.clone() };
        folder.write(&format!("{at:03}.jpg"), content);
        let (label, clean) = (at % 2, at % 4 / 2);
        manifest += &format!("{at:03}.jpg,{label},{clean},{}\n", if at < 100 { 1 } else { 3 });
    }
    data(InputSource::images(folder.write("m.csv", manifest)))
}

fn open(data: &Data) -> DataSet {
    DataSet::open(data, Link::Softmax).unwrap()
}

#[test]
fn what_cannot_be_decoded_is_found_and_left_out() {
    let folder = Folder::new();
    let set = open(&listed(&folder, &[7, 150]));
    let heard = Mutex::new(vec![]);
    let hear = |done, of| {
        heard.lock().unwrap().push((done, of));
        true
    };
    let found = set.check_images(&hear).unwrap();
    let mut heard = heard.into_inner().unwrap();
    heard.sort();
    assert!(heard.into_iter().eq((1..=400).map(|done| (done, 400))));
    let names: Vec<(&str, &str)> =
        found.iter().map(|out| (out.split.name(), out.id.as_str())).collect();
    let expected = [
        ("train", "007.jpg"),
        ("train", "150.jpg"),
        ("validation", "007.jpg"),
        ("validation", "150.jpg"),
    ];
    assert_eq!(names, expected);
    assert!(found[0].reason.contains("cannot be decoded"), "{}", found[0].reason);

    let again = set.check_images(&|_, _| panic!("nothing is decoded twice")).unwrap();
    assert_eq!(again, found);

    let fingerprint = set.fingerprint.clone();
    let set = set.leave_out(&found).unwrap();
    assert_eq!((set.train.len(), set.validation.len()), (198, 198));
    assert_eq!(set.fingerprint, fingerprint);
    let train = &set.train;
    let Labels::Single(labels) = &train.labels else { panic!() };
    for (at, row) in train.rows.iter().copied().enumerate() {
        assert_eq!(train.ids.name(at), format!("{row:03}.jpg"));
        assert_eq!(labels[at] as usize, row % 2);
        assert_eq!(train.clean_labels.as_ref().unwrap()[at] as usize, row % 4 / 2);
    }
    let weights = train.weights.as_ref().unwrap();
    let mean = weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / 198.0;
    // Rounding of 198 numbers to float32.
    assert!((mean - 1.0).abs() < 1e-6, "{mean}");
    assert_eq!(weights[197] / weights[0], 3.0);
}

#[test]
fn more_than_one_in_a_hundred_is_refused_with_a_list() {
    let folder = Folder::new();
    let bad: Vec<usize> = (0..25).map(|at| 3 * at).collect();
    let error = open(&listed(&folder, &bad)).check_images(&|_, _| true).unwrap_err().to_string();
    for word in
        ["data.train", "25 of 200 images", "12.5 %", "000.jpg: cannot be", "057.jpg", "and 5 more"]
    {
        assert!(error.contains(word), "{word} is not in {error}");
    }
    assert!(!error.contains("060.jpg"), "{error}");
    let folder = Folder::new();
    assert!(open(&listed(&folder, &[0, 1, 2])).check_images(&|_, _| true).is_err());
    let folder = Folder::new();
    assert_eq!(open(&listed(&folder, &[0, 1])).check_images(&|_, _| true).unwrap().len(), 4);
}

#[test]
fn features_and_pixels_have_nothing_to_check() {
    let never = |_: usize, _: usize| panic!("nothing is decoded");
    let set = open(&Data { framing: Framing::PLAIN, ..data(InputSource::Digits) });
    assert_eq!(set.check_images(&never).unwrap(), []);
    let folder = Folder::new();
    let set = open(&data(InputSource::images(folder.write("x.bin", cifar10(&[1, 0])))));
    assert_eq!(set.check_images(&never).unwrap(), []);
}

#[test]
fn nothing_else_is_left_out_and_nothing_left_is_an_error() {
    let folder = Folder::new();
    folder.write("images/a/1.png", plain_png(2, 2, [0; 3]));
    folder.write("images/b/1.png", plain_png(2, 2, [9; 3]));
    let set = open(&data(InputSource::images(folder.path().join("images"))));
    let out = |split, id: &str| SetAside { split, id: id.into(), reason: String::new() };
    let same = set
        .clone()
        .leave_out(&[out(Split::Train, "c/1.png"), out(Split::Test, "a/1.png")])
        .unwrap();
    assert_eq!((same.train.len(), same.validation.len()), (2, 2));
    let one = set.clone().leave_out(&[out(Split::Train, "a/1.png")]).unwrap();
    assert_eq!((one.train.ids.name(0).as_ref(), one.validation.len()), ("b/1.png", 2));
    let none = set.leave_out(&[out(Split::Train, "a/1.png"), out(Split::Train, "b/1.png")]);
    let message = none.unwrap_err().to_string();
    assert!(message.contains("data.train") && message.contains("no example left"), "{message}");
}

/// A PNG of one pixel whose header says another size.
fn bomb(side: u32) -> Vec<u8> {
    let mut bomb = plain_png(1, 1, [0; 3]);
    bomb[16..20].copy_from_slice(&side.to_be_bytes());
    bomb[20..24].copy_from_slice(&side.to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.sum().to_be_bytes());
    bomb
}

fn jpeg() -> Vec<u8> {
    let image = image::RgbImage::from_fn(64, 64, |x, y| image::Rgb([x as u8, y as u8, 7]));
    let mut file = std::io::Cursor::new(vec![]);
    image.write_to(&mut file, image::ImageFormat::Jpeg).unwrap();
    file.into_inner()
}

#[test]
fn bombs_texts_and_pieces_are_named_with_what_is_wrong() {
    let folder = Folder::new();
    folder.write("images/a/1.png", plain_png(4, 4, [0; 3]));
    let whole = jpeg();
    for (content, word) in [
        (bomb(60_000), "60000"),
        (b"this is text".to_vec(), "decoded"),
        (whole[..whole.len() / 8].to_vec(), ""),
        (vec![], "decoded"),
    ] {
        let path = folder.write("images/b/bad.jpg", content);
        let set = open(&data(InputSource::images(folder.path().join("images"))));
        let read: Result<_, DataError> = set.train.inputs.picture(1);
        assert_refused(read, &path, &[word]);
        let error = set.check_images(&|_, _| true).unwrap_err().to_string();
        assert!(error.contains("1 of 2 images (50.0 %)") && error.contains("b/bad.jpg"), "{error}");
    }
    assert!(Path::new(&folder.path().join("images/b/bad.jpg")).exists());
}

/// Each division is checked by itself, but what one of them decoded is not decoded again: that an
/// image was damaged since goes unnoticed, and the files need not even be there.
#[test]
fn five_folds_open_the_files_and_decode_each_image_once() {
    let folder = Folder::new();
    let mut data = listed(&folder, &[]);
    data.validation = HeldOut::Fraction { fraction: 0.25, seed: 0 };
    let alone = |at: usize| {
        let data = Data { test: fold(at), ..data.clone() };
        let set = open(&data);
        let found = set.check_images(&|_, _| true).unwrap();
        (set.fingerprint.clone(), set.train.rows.clone(), set.test.unwrap().rows.clone(), found)
    };
    let expected: Vec<_> = (0..5).map(alone).collect();

    let sources = Sources::open(&data, Link::Softmax).unwrap();
    for (at, expected) in expected.iter().enumerate() {
        data.test = fold(at);
        let set = sources.divide(&data).unwrap();
        let decoded = Mutex::new(0);
        let count = |_, of| {
            assert_eq!(of, 200);
            *decoded.lock().unwrap() += 1;
            true
        };
        let found = set.check_images(&count).unwrap();
        assert_eq!(decoded.into_inner().unwrap(), if at == 0 { 200 } else { 0 });
        assert_eq!(
            &(
                set.fingerprint.clone(),
                set.train.rows.clone(),
                set.test.unwrap().rows.clone(),
                found
            ),
            expected
        );
        if at == 0 {
            folder.write("009.jpg", b"damaged meanwhile");
            std::fs::remove_file(folder.path().join("m.csv")).unwrap();
        }
    }
}

fn fold(fold: usize) -> Option<HeldOut> {
    Some(HeldOut::Fold { fold, folds: 5, seed: 0 })
}
