//! IDX files, plain and gzipped: images with the labels beside them, and files that lie.

use crate::format_support::*;
use aleator_data::array::{Array, Values};
use aleator_data::inputs::InputShape;

const IMAGES: u32 = 0x0803;
const LABELS: u32 = 0x0801;

fn three_images() -> Vec<u8> {
    let pixels: Vec<u8> = (0..3 * 2 * 4).map(|at| (at * 10) as u8).collect();
    idx(IMAGES, &[3, 2, 4], &pixels)
}

#[test]
fn images_are_grey_and_scaled_to_minus_one_and_one() {
    let folder = Folder::new();
    let path = folder.write("images.idx", idx(IMAGES, &[2, 1, 2], &[0, 255, 51, 204]));
    let opened = images(&path).unwrap();
    let shape = InputShape::Image { channels: 1, height: 1, width: 2 };
    assert_eq!((opened.inputs.len(), opened.inputs.shape()), (2, shape));
    // 51/127.5 and 204/127.5 are not exact in binary; one rounding each.
    let expected = [-1.0, 1.0, -0.6, 0.6];
    for (found, expected) in all_rows(&opened.inputs).unwrap().into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    assert!(opened.labels.is_none());
}

#[test]
fn labels_beside_are_found_plain_or_gzipped() {
    let labels = idx(LABELS, &[3], &[7, 2, 1]);
    for (images_name, labels_name) in [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
    ] {
        let folder = Folder::new();
        let pack = |name: &str, content: Vec<u8>| {
            let packed = if name.ends_with(".gz") { gzip(&content) } else { content };
            folder.write(name, packed)
        };
        let path = pack(images_name, three_images());
        pack(labels_name, labels.clone());
        let opened = images(&path).unwrap();
        assert_eq!(classes_of(&opened), [7, 2, 1], "{images_name} {labels_name}");
        assert_eq!(opened.inputs.len(), 3);
    }
}

#[test]
fn gzipped_images_are_the_same_data() {
    let folder = Folder::new();
    let plain = images(folder.write("a-images", three_images())).unwrap().inputs;
    let packed = images(folder.write("b-images.gz", gzip(&three_images()))).unwrap().inputs;
    assert_eq!(all_rows(&plain).unwrap(), all_rows(&packed).unwrap());
    assert_eq!(fingerprint(&plain).unwrap(), fingerprint(&packed).unwrap());
}

#[test]
fn labels_are_read_as_an_array() {
    let folder = Folder::new();
    for (name, file) in [
        ("y-idx1-ubyte", idx(LABELS, &[3], &[7, 2, 1])),
        ("y-idx1-ubyte.gz", gzip(&idx(LABELS, &[3], &[7, 2, 1]))),
        ("y.idx", idx(0x0c01, &[3], &[0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 1])),
    ] {
        let path = folder.write(name, file);
        let array = Array::load(path.to_str().unwrap()).unwrap();
        assert_eq!((array.shape, array.values), (vec![3], Values::Int(vec![7, 2, 1])), "{name}");
    }
}

#[test]
fn another_number_of_labels_is_refused() {
    let folder = Folder::new();
    let path = folder.write("train-images-idx3-ubyte", three_images());
    let labels = folder.write("train-labels-idx1-ubyte", idx(LABELS, &[2], &[7, 2]));
    assert_refused(images(&path), &labels, &["2 labels", "3 images"]);
}

#[test]
fn labels_that_are_no_labels_are_refused() {
    let folder = Folder::new();
    let path = folder.write("train-images-idx3-ubyte", three_images());
    let labels = folder.write("train-labels-idx1-ubyte", three_images());
    assert_refused(images(&path), &labels, &["[3, 2, 4]", "0x00000801"]);
}

#[track_caller]
fn refused(file: Vec<u8>, words: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("images.idx3-ubyte", file);
    assert_refused(images(&path), &path, words);
}

#[test]
fn a_file_that_is_too_short_is_refused() {
    let file = three_images();
    refused(file[..file.len() - 1].to_vec(), &["cut short", "24 bytes", "found 23"]);
    refused(file[..10].to_vec(), &["ends within its header"]);
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    refused([three_images(), vec![0]].concat(), &["too long", "24 bytes", "found 25"]);
}

#[test]
fn a_wrong_magic_is_refused() {
    refused(idx(0x1803, &[1, 1, 1], &[0]), &["holds no images", "0x00000803"]);
    refused(idx(LABELS, &[1], &[0]), &["IDX labels", "name the file with the images"]);
    let folder = Folder::new();
    let path = folder.write("y.idx", idx(0xff01, &[1], &[0]));
    let words = ["0x0000ff01", "0x00000801"];
    assert_refused(Array::load(path.to_str().unwrap()), &path, &words);
}

#[test]
fn sizes_that_overflow_are_refused() {
    refused(idx(IMAGES, &[u32::MAX; 3], &[0; 100]), &["more than any memory"]);
    refused(idx(IMAGES, &[u32::MAX, 28, 28], &[0; 100]), &["cut short"]);
}

#[test]
fn images_without_pixels_are_refused() {
    refused(idx(IMAGES, &[0, 28, 28], &[]), &["no pixels"]);
    refused(idx(IMAGES, &[2, 0, 28], &[]), &["no pixels"]);
}

#[test]
fn a_gzip_bomb_is_refused_before_it_is_unpacked_whole() {
    // 64 MiB of zeros in 64 KiB, under a header that says one image.
    let bomb = gzip(&idx(IMAGES, &[1, 2, 2], &vec![0; 64 << 20]));
    refused(bomb, &["needs 4 bytes", "holds more"]);
    // A header that promises what so few bytes cannot hold.
    let promise = gzip(&idx(IMAGES, &[1 << 20, 1 << 10, 1 << 10], &[0; 100]));
    refused(promise, &["gzipped bytes hold at most"]);
}

#[test]
fn a_gzip_stream_that_ends_early_is_refused() {
    refused(gzip(&idx(IMAGES, &[3, 2, 4], &[1; 20])), &["needs 24 bytes", "holds fewer"]);
    let whole = gzip(&three_images());
    refused(whole[..whole.len() - 6].to_vec(), &["gzip stream is damaged"]);
}

#[test]
fn a_damaged_gzip_stream_is_refused() {
    let mut file = gzip(&three_images());
    // The checksum of the content stands in the last eight bytes.
    let at = file.len() - 8;
    file[at] ^= 0xff;
    refused(file, &["gzip stream is damaged"]);
}
