//! Labels that are not numbered from 0, and classes that are matched by name.

use crate::format_support::{list_of, parquet_columns, safetensors};
use crate::support::{Folder, data, in_source_order, refusal};
use aleator_data::{DataSet, Labels, NoisyLabels, Sources, Split};
use aleator_run::recipe::{Data, HeldOut, InputSource, LabelNoise, Link, NoiseKind, Source};

fn single(split: &Split, at: usize) -> u32 {
    match &split.labels {
        Labels::Single(labels) => labels[at],
        other => panic!("{other:?}"),
    }
}

/// sklearn.preprocessing.LabelEncoder: sorted distinct values.
#[test]
fn numbers_that_do_not_count_from_zero_are_encoded_in_their_order() {
    for (labels, names, classes) in [
        ("1\n-1\n1\n-1\n", vec!["-1", "1"], [1, 0, 1, 0]),
        ("1\n2\n3\n1\n", vec!["1", "2", "3"], [0, 1, 2, 0]),
        ("900\n3\n70\n3\n", vec!["3", "70", "900"], [2, 0, 1, 0]),
        ("2.0\n1.0\n2.0\n1.0\n", vec!["1", "2"], [1, 0, 1, 0]),
        ("0\n9000000000000\n0\n1\n", vec!["0", "1", "9000000000000"], [0, 2, 0, 1]),
    ] {
        let folder = Folder::new();
        let data = data(folder.source(4, labels));
        let sources = Sources::open(&data, Link::Softmax).unwrap();
        assert_eq!(sources.class_names(), names);
        let note = sources.notes().join("");
        assert!(note.contains(&names.join(", ")) && note.contains("name of a class"), "{note}");
        let set = sources.divide(&data).unwrap();
        assert_eq!(in_source_order(&set, single), classes, "{labels:?}");
    }
}

#[test]
fn numbers_that_count_from_zero_stay_and_nothing_is_said() {
    let folder = Folder::new();
    let sources = Sources::open(&data(folder.source(4, "1\n0\n2\n1\n")), Link::Softmax).unwrap();
    assert_eq!(sources.class_names(), ["0", "1", "2"]);
    assert!(sources.notes().is_empty());
}

/// A source of its own for the test split, in another folder.
fn with_test(train: Source, test: Source) -> Data {
    Data { test: Some(HeldOut::Source(test)), ..data(train) }
}

#[test]
fn encoded_labels_mean_the_same_in_every_source() {
    let (train, test) = (Folder::new(), Folder::new());
    let data = with_test(train.source(8, &"3\n70\n900\n3\n".repeat(2)), test.source(2, "900\n3\n"));
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.test.unwrap().labels, Labels::Single(vec![2, 0]));
    let unknown =
        with_test(train.source(8, &"3\n70\n900\n3\n".repeat(2)), test.source(2, "900\n4\n"));
    let message = refusal(&unknown, Link::Softmax);
    for word in ["labels.csv", "row 1", "label 4", "3, 70, 900"] {
        assert!(message.contains(word), "{word:?} is not in {message}");
    }
}

#[test]
fn corrupted_labels_are_written_as_the_numbers_of_the_file() {
    let folder = Folder::new();
    let source = folder.source(40, &"-1\n1\n".repeat(20));
    let noise = LabelNoise { seed: 0, kind: NoiseKind::Symmetric { rate: 0.3 } };
    let sources = Sources::open(&data(source), Link::Softmax).unwrap();
    let noisy: NoisyLabels = sources.noisy_labels(&noise).unwrap();
    let bytes = noisy.clean_to_npy();
    let (numbers, _) = bytes[bytes.len() - 16..].as_chunks::<8>();
    assert_eq!(numbers.iter().map(|it| i64::from_le_bytes(*it)).collect::<Vec<_>>(), [-1, 1]);
}

/// What `aleator embed` writes: features, class numbers, and the names of the classes.
fn embedded(labels: &[i64], names: &str) -> Vec<u8> {
    let rows = labels.len();
    let (features, all) = (8 * rows, 16 * rows);
    let header = format!(
        r#"{{"__metadata__":{{"format":"aleator-embeddings 1","class_names":"{names}"}},
        "features":{{"dtype":"F32","shape":[{rows},2],"data_offsets":[0,{features}]}},
        "labels":{{"dtype":"I64","shape":[{rows}],"data_offsets":[{features},{all}]}}}}"#
    );
    let values = (0..2 * rows).flat_map(|at| (at as f32).to_le_bytes());
    let labels = labels.iter().flat_map(|label| label.to_le_bytes());
    safetensors(&header, &values.chain(labels).collect::<Vec<u8>>())
}

fn embedded_source(folder: &Folder, name: &str, labels: &[i64], names: &str) -> Source {
    let file = folder.write(name, embedded(labels, names));
    let inputs = InputSource::Features(format!("{file}#features"));
    Source { labels: Some(format!("{file}#labels")), ..Source::of(inputs) }
}

const NAMES: &str = r#"[\"bag\",\"cat\",\"dog\"]"#;

#[test]
fn embeddings_of_two_folders_are_matched_by_the_names_of_their_classes() {
    let folder = Folder::new();
    let train = embedded_source(&folder, "train.safetensors", &[0, 1, 2, 0, 1, 2], NAMES);
    let test = embedded_source(&folder, "test.safetensors", &[0, 1], r#"[\"cat\",\"dog\"]"#);
    let set = DataSet::open(&with_test(train.clone(), test), Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["bag", "cat", "dog"]);
    assert_eq!(set.test.unwrap().labels, Labels::Single(vec![1, 2]));
    // As many classes, but others.
    let names = r#"[\"bag\",\"cat\",\"owl\"]"#;
    let other = embedded_source(&folder, "other.safetensors", &[0, 1, 2], names);
    let message = refusal(&with_test(train, other), Link::Softmax);
    for word in ["other.safetensors", "\"owl\"", "\"bag\", \"cat\", \"dog\""] {
        assert!(message.contains(word), "{word:?} is not in {message}");
    }
}

#[test]
fn a_class_without_examples_keeps_its_name_and_place() {
    let folder = Folder::new();
    let train = embedded_source(&folder, "train.safetensors", &[0, 2, 0, 2], NAMES);
    let set = DataSet::open(&data(train), Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["bag", "cat", "dog"]);
    assert_eq!(in_source_order(&set, single), [0, 2, 0, 2]);
}

#[test]
fn a_number_is_the_name_of_a_folder_not_its_position() {
    let (train, test) = (Folder::new(), Folder::new());
    // Classes sorted as words: "1", "10", "2".
    for class in ["1", "10", "2"] {
        for image in ["a", "b", "c", "d"] {
            train.write(&format!("{class}/{image}.ppm"), b"P6 1 1 255\nabc");
            test.write(&format!("{class}/{image}.ppm"), b"P6 1 1 255\nxyz");
        }
    }
    let images = |folder: &Folder| Source::of(InputSource::images(folder.path()));
    let labels = test.write("y.csv", "10\n2\n1\n1\n2\n2\n10\n1\n1\n1\n1\n1\n");
    let test = Source { labels: Some(labels), ..images(&test) };
    let set = DataSet::open(&with_test(images(&train), test), Link::Softmax).unwrap();
    assert_eq!(single(&set.test.unwrap(), 0), 1, "the folder 10 is the second");
}

#[test]
fn held_out_folders_match_those_that_a_file_renames() {
    let (train, test) = (Folder::new(), Folder::new());
    let picture = b"P6 1 1 255\nabc";
    for image in ["a", "b", "c", "d"] {
        train.write(&format!("n01/{image}.ppm"), picture);
        train.write(&format!("n02/{image}.ppm"), picture);
    }
    let names = train.write("names.txt", "tench\nshark\n");
    test.write("n02/a.ppm", picture);
    let images = |folder: &Folder| Source::of(InputSource::images(folder.path()));
    let data = Data { class_names: Some(names.into()), ..with_test(images(&train), images(&test)) };
    let set = DataSet::open(&data, Link::Softmax).unwrap();
    assert_eq!(set.class_names, ["tench", "shark"]);
    assert_eq!(single(&set.test.unwrap(), 0), 1);
    // Two folders that training does not have are not the two classes in order.
    test.write("n07/a.ppm", picture);
    let message = refusal(&data, Link::Softmax);
    assert!(message.contains("\"n07\""), "{message}");
}

#[test]
fn the_hub_names_the_classes_of_embeddings() {
    let folder = Folder::new();
    let schema = format!("{} required int64 label;", list_of("vector", "float element;"));
    let note = r#"{"info":{"features":{"label":{"names":["cat","dog"],"_type":"ClassLabel"}}}}"#;
    let file = parquet_columns(&schema, Some(("huggingface", note)), |group| {
        group.lists(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0], &[7.0, 8.0]]);
        group.numbers(&[0, 1, 0, 1]);
    });
    let file = folder.write("x.parquet", file);
    let inputs = InputSource::Features(format!("{file}#vector"));
    let source = Source { labels: Some(format!("{file}#label")), ..Source::of(inputs) };
    assert_eq!(DataSet::open(&data(source), Link::Softmax).unwrap().class_names, ["cat", "dog"]);
}
