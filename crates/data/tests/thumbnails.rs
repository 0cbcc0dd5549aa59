//! Pictures of examples, for people.

use std::fs;
use std::path::Path;

use crate::support::{Folder, data, digits};
use aleator_data::picture::{Limits, decode};
use aleator_data::{Ids, ThumbnailError, Thumbnails, training_ids};
use aleator_run::Split;
use aleator_run::recipe::{HeldOut, InputSource, Source};

fn images(path: &Path) -> Source {
    let inputs = InputSource::Images(vec![path.to_path_buf()]);
    Source { inputs, labels: None, clean_labels: None, ids: None }
}

/// A colour image whose pixels all differ, or are all the same.
fn ppm(width: usize, height: usize, flat: bool) -> Vec<u8> {
    let mut bytes = format!("P6 {width} {height} 255\n").into_bytes();
    for at in 0..width * height {
        let level = if flat { 7 } else { (at * 7919 + at / 3) % 251 };
        bytes.extend([level as u8, (level / 2) as u8, (255 - level) as u8]);
    }
    bytes
}

fn photos() -> Folder {
    let folder = Folder::new();
    folder.write("cat/1.ppm", ppm(400, 200, false));
    folder.write("cat/deep/2.ppm", ppm(32, 32, false));
    folder.write("dog/3.ppm", ppm(90, 300, true));
    folder
}

#[test]
fn a_digit_is_its_64_pixels() {
    let all = Thumbnails::open(&data(digits())).unwrap().unwrap();
    let zero = all.training("0", 256).unwrap();
    assert_eq!((zero.width, zero.height, zero.media_type), (8, 8, "image/png"));
    let pixels = decode(&zero.bytes, Limits::DEFAULT).unwrap();
    // The first row of scikit-learn's first digit: 0 0 5 13 9 1 0 0 of 16.
    let row: Vec<u8> = pixels.bytes.iter().step_by(3).take(8).copied().collect();
    assert_eq!(row, [0, 0, 80, 207, 143, 16, 0, 0]);
    assert_eq!(all.path("0"), None);
}

#[test]
fn the_whole_image_is_shown_within_the_side_and_never_enlarged() {
    let folder = photos();
    let all = Thumbnails::open(&data(images(folder.path()))).unwrap().unwrap();
    let size = |id: &str, side| {
        let found = all.training(id, side).unwrap();
        (found.width, found.height, found.media_type)
    };
    assert_eq!(size("cat/1.ppm", 100), (100, 50, "image/jpeg"));
    assert_eq!(size("cat/deep/2.ppm", 100), (32, 32, "image/png"));
    assert_eq!(size("dog/3.ppm", 100), (30, 100, "image/png"));
    assert_eq!(size("cat/1.ppm", 1), (1, 1, "image/png"));
    assert_eq!(all.path("cat/1.ppm"), Some(folder.path().join("cat/1.ppm")));
    assert_eq!(all.path("cat/9.ppm"), None);
}

#[test]
fn an_image_that_went_away_or_was_damaged_is_an_error_with_the_reason() {
    let folder = photos();
    let all = Thumbnails::open(&data(images(folder.path()))).unwrap().unwrap();
    fs::write(folder.path().join("dog/3.ppm"), "no image").unwrap();
    let message = all.training("dog/3.ppm", 100).unwrap_err().to_string();
    assert!(message.contains("dog/3.ppm: "), "{message}");
    fs::remove_file(folder.path().join("cat/1.ppm")).unwrap();
    let message = all.training("cat/1.ppm", 100).unwrap_err().to_string();
    assert!(message.contains("no such file"), "{message}");
    let again = Thumbnails::open(&data(images(folder.path()))).unwrap().unwrap();
    let error = again.training("cat/1.ppm", 100).unwrap_err();
    assert!(matches!(error, ThumbnailError::Unknown { .. }), "{error}");
}

#[test]
fn a_split_with_a_source_of_its_own_has_its_own_images() {
    let (folder, tests) = (photos(), Folder::new());
    for class in ["cat", "dog"] {
        tests.write(&format!("{class}/1.ppm"), ppm(10, 20, true));
    }
    let mut data = data(images(folder.path()));
    data.test = Some(HeldOut::Source(images(tests.path())));
    let all = Thumbnails::open(&data).unwrap().unwrap();
    assert_eq!(all.of_split(Split::Test, "cat/1.ppm", 500).unwrap().width, 10);
    assert_eq!(all.of_split(Split::Validation, "cat/1.ppm", 500).unwrap().width, 400);
    assert_eq!(all.of_split(Split::Train, "cat/1.ppm", 500).unwrap().width, 400);
}

#[test]
fn features_have_pictures_only_where_their_images_are_given() {
    let (folder, photos) = (Folder::new(), photos());
    let data = data(folder.source(3, "0\n1\n0\n"));
    assert!(Thumbnails::open(&data).unwrap().is_none());

    let by_row = Thumbnails::from_images(photos.path(), &training_ids(&data).unwrap()).unwrap();
    assert_eq!(by_row.training("0", 500).unwrap().width, 400);
    assert_eq!(by_row.training("2", 500).unwrap().height, 300);
    assert!(by_row.training("3", 500).is_err());

    let names = ["dog/3.ppm", "gone.ppm"].map(String::from).to_vec();
    let by_id = Thumbnails::from_images(photos.path(), &Ids::named(names, "x").unwrap()).unwrap();
    assert_eq!(by_id.training("dog/3.ppm", 500).unwrap().height, 300);
    assert!(by_id.training("gone.ppm", 500).is_err());
}

#[test]
fn images_that_fit_in_no_way_are_refused() {
    let photos = photos();
    let other = Ids::named(vec!["a".into(), "b".into(), "c".into()], "x").unwrap();
    for ids in [Ids::Rows(4), other] {
        let message = Thumbnails::from_images(photos.path(), &ids).unwrap_err().to_string();
        assert!(message.contains("its 3 images"), "{message}");
    }
    assert!(Thumbnails::from_images(Path::new("/nowhere"), &Ids::Rows(1)).is_err());
}
