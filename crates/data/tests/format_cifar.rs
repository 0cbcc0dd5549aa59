//! The binary files of CIFAR-10 and CIFAR-100.

use crate::format_support::*;
use aleator_data::inputs::InputShape;

#[test]
fn a_single_file_gives_images_and_labels() {
    let folder = Folder::new();
    let path = folder.write("data_batch_1.bin", cifar10(&[3, 9, 0]));
    let opened = images(&path).unwrap();
    let shape = InputShape::Image { channels: 3, height: 32, width: 32 };
    assert_eq!((opened.inputs.len(), opened.inputs.shape()), (3, shape));
    assert_eq!(classes_of(&opened), [3, 9, 0]);
    assert!(opened.class_names.is_none());
    let mut image = vec![0.0; 3072];
    opened.inputs.read(2, &mut image).unwrap();
    assert_eq!((image[0], image[255]), (-1.0, 1.0));
}

#[test]
fn a_folder_gives_the_training_batches_in_order_and_the_names() {
    let folder = Folder::new();
    for batch in 1..=5 {
        folder.write(&format!("data_batch_{batch}.bin"), cifar10(&[batch, batch + 1]));
    }
    folder.write("test_batch.bin", cifar10(&[0]));
    let names = ["airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
    folder.write("batches.meta.txt", names.join("\n") + "\n\n");
    let opened = images(folder.path()).unwrap();
    assert_eq!(classes_of(&opened), [1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
    assert_eq!(opened.class_names.unwrap(), names);
    let mut image = vec![0.0; 3072];
    opened.inputs.read(9, &mut image).unwrap();
    // The first pixel of a made-up record is its label.
    assert_eq!(image[0], 6.0 / 127.5 - 1.0);
    let test = images(folder.path().join("test_batch.bin")).unwrap();
    assert_eq!((classes_of(&test).to_vec(), test.class_names.unwrap().len()), (vec![0], 10));
}

#[test]
fn cifar_100_has_fine_labels() {
    let folder = Folder::new();
    let record = |coarse: u8, fine: u8| [vec![coarse, fine], vec![255; 3072]].concat();
    folder.write("train.bin", [record(19, 99), record(0, 42)].concat());
    let opened = images(folder.path()).unwrap();
    assert_eq!(classes_of(&opened), [99, 42]);
    assert_eq!(all_rows(&opened.inputs).unwrap(), vec![1.0; 2 * 3072]);
}

#[test]
fn a_size_that_suits_both_is_decided_by_the_labels() {
    let folder = Folder::new();
    let labels: Vec<u8> = (0..3074).map(|at| (at % 10) as u8).collect();
    let mut file = cifar10(&labels);
    let opened = images(folder.write("x.bin", &file)).unwrap();
    assert_eq!(opened.inputs.len(), 3074);
    // The fine labels of CIFAR-100 stand at other places.
    for (at, byte) in file.iter_mut().enumerate() {
        *byte = if at % 3074 == 1 { 77 } else { 200 };
    }
    let opened = images(folder.write("x.bin", &file)).unwrap();
    assert_eq!(classes_of(&opened), vec![77; 3073]);
}

#[test]
fn a_wrong_size_is_refused() {
    let folder = Folder::new();
    let path = folder.write("x.bin", &cifar10(&[1, 2])[..6000]);
    assert_refused(images(&path), &path, &["6000 bytes", "3073", "3074", "cut short"]);
    let path = folder.write("x.bin", []);
    assert_refused(images(&path), &path, &["0 bytes"]);
}

#[test]
fn a_label_out_of_range_is_refused_by_record() {
    let folder = Folder::new();
    let path = folder.write("x.bin", cifar10(&[1, 2, 10]));
    assert_refused(images(&path), &path, &["record 2", "label 10", "0 to 9"]);
    let path = folder.write("x.bin", [vec![0, 100], vec![0; 3072]].concat());
    assert_refused(images(&path), &path, &["record 0", "label 100", "0 to 99"]);
}

#[test]
fn batches_of_both_kinds_in_one_folder_are_refused() {
    let folder = Folder::new();
    folder.write("data_batch_1.bin", cifar10(&[1]));
    let path = folder.write("data_batch_2.bin", vec![0; 3074]);
    assert_refused(images(folder.path()), &path, &["another CIFAR"]);
}

#[test]
fn names_of_another_number_are_refused() {
    let folder = Folder::new();
    folder.write("data_batch_1.bin", cifar10(&[1]));
    let path = folder.write("batches.meta.txt", "cat\ndog\n");
    assert_refused(images(folder.path()), &path, &["2 names", "expected 10"]);
}
