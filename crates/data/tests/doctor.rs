//! What a look at data finds, and how it is told.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::format_support::*;
use aleator_data::examine;

fn nothing(_: usize, _: usize) {}

#[test]
fn a_folder_of_images_with_everything_that_may_be_odd() {
    let folder = Folder::new();
    let colour = plain_png(8, 4, [200, 10, 10]);
    folder.write("train/cat/1.png", &colour);
    folder.write("train/cat/2.png", plain_png(6, 6, [1; 3]));
    folder.write("train/cat/copy.png", &colour);
    folder.write("train/cat/bad.jpg", "text");
    folder.write("train/dog/1.png", plain_png(2, 2, [3; 3]));
    folder.write("test/cat/1.png", plain_png(2, 2, [4; 3]));
    folder.write("test/dog/1.png", &colour);
    let (done, of) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = examine(folder.path(), &|now, total| {
        done.fetch_max(now, Ordering::Relaxed);
        of.store(total, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!((done.into_inner(), of.into_inner()), (7, 7));
    let splits: Vec<(&str, usize)> = found.splits.iter().map(|s| (s.name, s.examples)).collect();
    assert_eq!(splits, [("train", 5), ("test", 2)]);
    let classes: Vec<(&str, usize, usize)> =
        found.classes.iter().map(|c| (c.name.as_str(), c.train, c.held_out)).collect();
    assert_eq!(classes, [("cat", 4, 1), ("dog", 1, 1)]);
    assert_eq!(found.balance.as_ref().map(|b| (b.smallest, b.largest, b.ratio)), Some((1, 4, 4.0)));
    assert_eq!(found.occur_once, ["dog"]);
    let images = found.images.as_ref().unwrap();
    assert_eq!((images.smallest, images.median, images.largest), ((2, 2), (8, 4), (6, 6)));
    assert_eq!((images.distinct_sizes, images.colour, images.grey), (3, 3, 3));
    assert_eq!(found.duplicates.count, 1);
    let group = &found.duplicates.groups[0];
    assert!(group.across_splits && group.different_labels);
    let copies: Vec<(&str, &str)> =
        group.copies.iter().map(|copy| (copy.split, copy.id.as_str())).collect();
    assert_eq!(copies, [("train", "cat/1.png"), ("train", "cat/copy.png"), ("test", "dog/1.png")]);
    assert_eq!((found.corrupt.len(), found.corrupt[0].id.as_str()), (1, "cat/bad.jpg"));

    let page = found.to_string();
    for line in [
        "train       5 examples",
        "2 classes; the smallest has 1 training example, the largest 4 (4.0 times as many)",
        "1 class occurs once only: dog",
        "3 sizes of images: from 2 × 2 over 8 × 4 in the middle to 6 × 6 pixels",
        "3 in colour, 3 grey",
        "1 content occurs more than once; 1 in different splits, 1 with different labels",
        "[different splits and labels]",
        "1 image cannot be decoded",
        "train cat/bad.jpg: cannot be decoded",
    ] {
        assert!(page.contains(line), "{line:?} is not in\n{page}");
    }
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["splits"][1]["examples"], 2);
    assert_eq!(json["corrupt"][0]["split"], "train");
}

#[test]
fn embeddings_with_what_is_not_finite_equal_and_constant() {
    let folder = Folder::new();
    let rows: Vec<[f32; 3]> =
        vec![[1.0, 7.0, 0.0], [2.0, 7.0, f32::NAN], [1.0, 7.0, 0.0], [3.0, 7.0, 1.0]];
    folder.write("x.npy", npy_f32("(4, 3)", rows.as_flattened()));
    folder.write("y.npy", npy_i64("(4,)", &[0, 1, 1, 0]));
    let found = examine(folder.path(), &nothing).unwrap();
    let report = &found.features[0];
    assert_eq!((report.rows, report.width, report.stored.as_str()), (4, 3, "float32"));
    assert_eq!((report.non_finite_rows, &report.non_finite[..]), (1, &[1][..]));
    assert_eq!((report.constant_columns, &report.constant[..]), (1, &[1][..]));
    assert_eq!((found.duplicates.count, found.duplicates.different_labels), (1, 1));
    assert!(found.images.is_none());
    let page = found.to_string();
    for line in [
        "train: 4 rows of 3 numbers (float32)",
        "1 row has numbers that are not finite: 1",
        "1 column is the same in all rows: 1",
        "train 0, train 2 [different labels]",
    ] {
        assert!(page.contains(line), "{line:?} is not in\n{page}");
    }
}

#[test]
fn many_classes_are_cut_in_the_middle() {
    let folder = Folder::new();
    let mut manifest = "path,label\n".to_string();
    for at in 0..40 {
        folder.write(&format!("{at}.png"), plain_png(1, 1, [at as u8; 3]));
        manifest += &format!("{at}.png,a class with a name that goes on and on and on {at:02}\n");
    }
    folder.write("manifest.csv", manifest);
    let page = examine(folder.path(), &nothing).unwrap().to_string();
    assert!(page.contains("… 20 more …"), "{page}");
    assert!(page.contains("40 classes occur once only"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() < 300), "{page}");
    assert!(page.contains("no two examples are equal\n\nall images can be decoded"), "{page}");
}

#[test]
fn shards_manifests_pixels_and_parquet_are_examined_too() {
    let folder = Folder::new();
    let image = plain_png(2, 2, [5; 3]);
    let tar = tar_file(&[("0.png", &image), ("0.cls", b"0"), ("1.png", &image), ("1.cls", b"1")]);
    let shard = folder.write("tar/x.tar", tar);
    let labels = LabelColumn::Numbers(&[0, 1]);
    let table = folder.write("x.parquet", parquet_images(&[image.clone(), image], &labels, None));
    let pixels = folder.write("x.bin", cifar10(&[1, 1, 0]));
    for path in [shard, table, pixels] {
        let found = examine(&path, &nothing).unwrap();
        assert_eq!(found.duplicates.count, 1, "{}", path.display());
        assert!(found.corrupt.is_empty());
    }
    let missing = examine(&folder.path().join("nothing"), &nothing);
    assert!(missing.unwrap_err().to_string().contains("no such file"));
}
