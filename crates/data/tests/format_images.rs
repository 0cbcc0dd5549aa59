//! A folder for each class: order, names, sizes, and files that are no images.

use crate::format_support::*;
use aleator_data::DataError;
use aleator_data::inputs::{CarriedLabels, InputShape, Inputs, Opened, empty_classes};
use aleator_run::recipe::{Framing, InputSource};
use image::{DynamicImage, GrayImage, ImageFormat, Rgb, RgbImage};

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = std::io::Cursor::new(vec![]);
    image.write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn plain_image(width: u32, height: u32, colour: [u8; 3]) -> DynamicImage {
    RgbImage::from_pixel(width, height, Rgb(colour)).into()
}

fn png(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    encoded(&plain_image(width, height, colour), ImageFormat::Png)
}

fn sized(folder: &Folder, size: usize) -> Result<Opened, DataError> {
    Inputs::open(&InputSource::images(folder.path()), &Framing::sized(size))
}

#[test]
fn classes_are_the_sorted_folders_and_ids_the_paths() {
    let folder = Folder::new();
    folder.write("dog/2.png", png(2, 1, [0, 0, 0]));
    folder.write("cat/nested/deep/1.PNG", png(2, 1, [0, 0, 0]));
    folder.write("cat/0.png", png(2, 1, [0, 0, 0]));
    folder.write("cat/.hidden.png", "not an image");
    folder.write("cat/notes.txt", "not an image");
    folder.write(".git/1.png", "not an image");
    folder.write("README.md", "not a class");
    let opened = images(folder.path()).unwrap();
    assert_eq!(classes_of(&opened), [0, 0, 1]);
    assert_eq!(opened.class_names.unwrap(), ["cat", "dog"]);
    assert_eq!(opened.ids.unwrap(), ["cat/0.png", "cat/nested/deep/1.PNG", "dog/2.png"]);
    let shape = InputShape::Image { channels: 3, height: 1, width: 2 };
    assert_eq!((opened.inputs.len(), opened.inputs.shape()), (3, shape));
}

#[test]
fn pixels_are_channel_first_from_minus_one_to_one() {
    let folder = Folder::new();
    let mut image = RgbImage::from_pixel(2, 1, Rgb([255, 0, 0]));
    image.put_pixel(1, 0, Rgb([0, 255, 0]));
    folder.write("a/1.png", encoded(&image.into(), ImageFormat::Png));
    folder.write("b/1.png", png(2, 1, [255, 255, 255]));
    let opened = images(folder.path()).unwrap();
    let rows = all_rows(&opened.inputs).unwrap();
    assert_eq!(rows[..6], [1.0, -1.0, -1.0, 1.0, -1.0, -1.0]);
    assert_eq!(rows[6..], [1.0; 6]);
}

#[test]
fn every_image_format_is_decoded_and_grey_becomes_colour() {
    let folder = Folder::new();
    let grey: DynamicImage = GrayImage::from_pixel(4, 4, image::Luma([255])).into();
    for (name, format) in [
        ("1.png", ImageFormat::Png),
        ("2.jpg", ImageFormat::Jpeg),
        ("3.bmp", ImageFormat::Bmp),
        ("4.tiff", ImageFormat::Tiff),
        ("5.ppm", ImageFormat::Pnm),
    ] {
        folder.write(&format!("grey/{name}"), encoded(&grey, format));
    }
    let colour = plain_image(4, 4, [255, 255, 255]);
    folder.write("white/1.gif", encoded(&colour, ImageFormat::Gif));
    folder.write("white/2.webp", encoded(&colour, ImageFormat::WebP));
    // A name may lie about the format: the content decides.
    folder.write("white/3.jpeg", encoded(&colour, ImageFormat::Png));
    let opened = images(folder.path()).unwrap();
    assert_eq!(opened.inputs.len(), 8);
    // White survives JPEG and palettes exactly.
    assert_eq!(all_rows(&opened.inputs).unwrap(), vec![1.0; 8 * 48]);
}

#[test]
fn images_are_brought_to_one_size() {
    let folder = Folder::new();
    folder.write("a/1.png", png(9, 5, [255, 255, 255]));
    folder.write("b/1.png", png(2, 2, [0, 0, 0]));
    let opened = sized(&folder, 4).unwrap();
    let shape = InputShape::Image { channels: 3, height: 4, width: 4 };
    assert_eq!(opened.inputs.shape(), shape);
    let rows = all_rows(&opened.inputs).unwrap();
    assert_eq!(rows, [[1.0; 48], [-1.0; 48]].concat());
}

#[test]
fn an_image_that_shrinks_is_averaged_not_sampled() {
    // A board of single black and white pixels; sampling would give black or white.
    let board = RgbImage::from_fn(64, 64, |x, y| Rgb([255 * ((x + y) % 2) as u8; 3]));
    let folder = Folder::new();
    folder.write("a/1.png", encoded(&board.into(), ImageFormat::Png));
    let opened = sized(&folder, 4).unwrap();
    for value in all_rows(&opened.inputs).unwrap() {
        // One step of 8 bits beside the true grey, at the border two.
        assert!(value.abs() < 2.5 / 127.5, "{value}");
    }
}

#[test]
fn without_a_size_all_images_must_be_alike() {
    let folder = Folder::new();
    folder.write("a/1.png", png(3, 2, [0, 0, 0]));
    let path = folder.write("b/1.png", png(2, 3, [0, 0, 0]));
    let words = ["2 × 3", "3 × 2", "a/1.png", "data.image_size"];
    assert_refused(images(folder.path()), &path, &words);
}

#[test]
fn the_orientation_that_a_camera_notes_is_applied() {
    // A JPEG whose EXIF says "turn by 90 degrees": 4 wide and 2 high is seen 2 wide, 4 high.
    let jpeg = encoded(&plain_image(4, 2, [255, 255, 255]), ImageFormat::Jpeg);
    let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut segment = vec![0xff, 0xe1];
    segment.extend((exif.len() as u16 + 2).to_be_bytes());
    segment.extend(exif);
    let folder = Folder::new();
    folder.write("a/1.jpg", [&jpeg[..2], &segment, &jpeg[2..]].concat());
    let opened = images(folder.path()).unwrap();
    let shape = InputShape::Image { channels: 3, height: 4, width: 2 };
    assert_eq!(opened.inputs.shape(), shape);
    all_rows(&opened.inputs).unwrap();
}

#[test]
fn an_empty_class_folder_is_named_and_left_out() {
    let folder = Folder::new();
    let path = folder.path().join("b");
    std::fs::create_dir(&path).unwrap();
    assert_refused(images(folder.path()), folder.path(), &["no images in its folders"]);
    folder.write("a/1.png", png(1, 1, [0, 0, 0]));
    folder.write("c/1.png", png(1, 1, [0, 0, 0]));
    assert_eq!(empty_classes(folder.path()).unwrap(), [path]);
    let opened = images(folder.path()).unwrap();
    assert_eq!(opened.class_names.unwrap(), ["a", "c"]);
    assert_eq!(opened.labels, Some(CarriedLabels::Classes(vec![0, 1])));
}

#[test]
fn a_folder_without_class_folders_is_refused() {
    let folder = Folder::new();
    folder.write("1.png", png(1, 1, [0, 0, 0]));
    assert_refused(images(folder.path()), folder.path(), &["no folders of classes"]);
}

#[test]
fn a_folder_of_splits_is_refused_with_the_split_to_name() {
    let folder = Folder::new();
    folder.write("train/cat/1.png", png(1, 1, [0, 0, 0]));
    folder.write("test/cat/1.png", png(1, 1, [0, 0, 0]));
    assert_refused(images(folder.path()), folder.path(), &["splits, not classes", "/train"]);
}

#[test]
fn a_file_that_cannot_be_decoded_is_named() {
    let folder = Folder::new();
    folder.write("a/1.png", png(8, 8, [1, 2, 3]));
    let whole = png(8, 8, [1, 2, 3]);
    for content in [b"this is text".to_vec(), whole[..whole.len() / 2].to_vec(), vec![]] {
        let path = folder.write("b/2.png", content);
        let opened = sized(&folder, 8).unwrap();
        assert_refused(all_rows(&opened.inputs), &path, &["cannot be decoded", "remove it"]);
    }
    let path = folder.write("b/2.png", "this is text");
    assert_refused(images(folder.path()), &path, &["cannot be decoded"]);
}

#[test]
fn an_image_that_would_decode_to_too_much_is_refused() {
    // A PPM and a PNG that say 100,000 × 100,000 pixels.
    let folder = Folder::new();
    let path = folder.write("a/1.ppm", "P6 100000 100000 255\n");
    assert_refused(images(folder.path()), &path, &["100000 × 100000", "MiB"]);
    std::fs::remove_file(&path).unwrap();
    let mut bomb = png(1, 1, [0, 0, 0]);
    bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    let crc = crc32(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&crc.to_be_bytes());
    let path = folder.write("a/1.png", bomb);
    assert_refused(images(folder.path()), &path, &["1.png"]);
}

/// The checksum of PNG chunks.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn a_size_of_zero_or_beyond_reason_is_refused() {
    let folder = Folder::new();
    folder.write("a/1.png", png(1, 1, [0, 0, 0]));
    for size in [0, 1 << 20] {
        assert_refused(sized(&folder, size), folder.path(), &["image_size"]);
    }
}

#[cfg(unix)]
#[test]
fn a_loop_of_links_ends_in_an_error() {
    let folder = Folder::new();
    folder.write("a/1.png", png(1, 1, [0, 0, 0]));
    let link = folder.path().join("a/again");
    std::os::unix::fs::symlink(folder.path().join("a"), &link).unwrap();
    assert_refused(images(folder.path()), &link, &["link to a folder above"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_unicode_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    folder.write("a/1.png", png(1, 1, [0, 0, 0]));
    let bad = folder.path().join("a").join(std::ffi::OsStr::from_bytes(b"\xff.png"));
    std::fs::write(&bad, "").unwrap();
    let message = images(folder.path()).unwrap_err().to_string();
    assert!(message.contains("not UTF-8") && message.contains("rename"), "{message}");
}

#[test]
fn the_fingerprint_of_a_folder_depends_on_contents_and_names() {
    let print = |name: &str, colour| {
        let folder = Folder::new();
        folder.write(&format!("a/{name}"), png(2, 2, colour));
        fingerprint(&images(folder.path()).unwrap().inputs).unwrap()
    };
    let base = print("1.png", [0, 0, 0]);
    assert_eq!(base, print("1.png", [0, 0, 0]));
    assert_ne!(base, print("2.png", [0, 0, 0]));
    assert_ne!(base, print("1.png", [1, 0, 0]));
}

#[test]
fn of_many_images_the_fingerprint_holds_all_names_and_sizes_and_some_contents() {
    // More than the 1,024 whose contents count.
    const COUNT: usize = 1_500;
    let folder = Folder::new();
    let file = |at: usize, content: &str| folder.write(&format!("a/{at:04}.png"), content);
    (0..COUNT).for_each(|at| drop(file(at, "same size")));
    let print = || fingerprint(&sized(&folder, 2).unwrap().inputs).unwrap();
    let base = print();
    assert_eq!(base, print());
    let seen = (0..20)
        .filter(|at| {
            file(*at, "SAME SIZE");
            let changed = print() != base;
            file(*at, "same size");
            changed
        })
        .count();
    // 1,024 of 1,500: 14 of 20 expected, with a standard deviation of 2.
    assert!((6..20).contains(&seen), "{seen} of 20 contents count");
    for at in 0..5 {
        file(at, "other size");
        assert_ne!(print(), base, "the size of {at}");
        file(at, "same size");
    }
    assert_eq!(base, print());
}
