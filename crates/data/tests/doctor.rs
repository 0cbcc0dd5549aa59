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
    assert_eq!((report.constant_columns, &report.constant[..]), (1, &["1".to_string()][..]));
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

/// Columns: steps of 0 to 99; the same a thousand times as large; a spike in every tenth row that
/// the middle half does not see; a constant.
#[test]
fn columns_of_different_scales_lead_to_what_train_tries() {
    let folder = Folder::new();
    let row = |at: usize| {
        let step = (at % 100) as f32;
        let spike = if at.is_multiple_of(10) { 50.0 } else { step / 100.0 };
        format!("{step},{},{spike},{},7,{}\n", 1e3 * step, at % 5 / 4, ["a", "b"][at % 2])
    };
    let rows: String = (0..400).map(row).collect();
    folder.write("table.csv", format!("narrow,wide,spiky,rare,same,label\n{rows}"));
    let found = examine(&folder.path().join("table.csv"), &nothing).unwrap();
    assert_eq!(found.features[0].constant, ["same"]);
    let scales = found.features[0].scales.as_ref().unwrap();
    assert_eq!((scales.narrowest.column.as_str(), scales.widest.column.as_str()), ("rare", "wide"));
    // A uniform step function of 100 values has variance (100² − 1)/12.
    let expected = 1e3 * (9_999.0f64 / 12.0).sqrt();
    assert!((scales.widest.deviation / expected - 1.0).abs() < 1e-6, "{}", scales.widest.deviation);
    assert_eq!(scales.heavy_tailed, ["spiky"]);
    assert_eq!(scales.mostly_one_value, ["rare"]);
    let page = found.to_string();
    for line in [
        "1 column is the same in all rows: same",
        "1 column has one value in at least half of the rows: rare",
        "standard deviations from 0.400 (column rare) to 28866 (column wide), a factor of 72165",
        "1 column has heavy tails: spiky",
        "aleator train tries, and chooses by the loss on held-out examples:\n    \
         all features divided by one number\n    \
         each feature divided by its own standard deviation\n    asinh(",
    ] {
        assert!(page.contains(line), "{line:?} is not in\n{page}");
    }
}

#[test]
fn features_that_vary_alike_have_one_scale() {
    let folder = Folder::new();
    let values: Vec<f32> = (0..60).map(|at| (at % 7) as f32).collect();
    folder.write("x.npy", npy_f32("(20, 3)", &values));
    folder.write("y.npy", npy_i64("(20,)", &[0, 1].repeat(10)));
    let page = examine(folder.path(), &nothing).unwrap().to_string();
    assert!(page.contains("aleator train takes all features divided by one number"), "{page}");
    assert!(!page.contains("heavy tails"), "{page}");
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
