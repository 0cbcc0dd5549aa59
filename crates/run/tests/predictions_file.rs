//! Files of predictions that are read by ranges of their rows, and every way to damage one.

use std::fs;
use std::path::PathBuf;

use aleator_run::{
    Field, Predictions, PredictionsFile, PredictionsWriter, RunError, TopPredictionsWriter,
};
use tempfile::TempDir;

const EXAMPLES: usize = 5;
const CLASSES: usize = 3;
const RANK: usize = 2;

fn numbers(count: usize, salt: f32) -> Vec<f32> {
    (0..count).map(|at| salt - at as f32 / 4.0).collect()
}

fn predictions() -> Predictions {
    let cells = EXAMPLES * CLASSES;
    Predictions {
        classes: CLASSES,
        rank: RANK,
        temperature: 0.5,
        log_probs: numbers(cells, -1.0),
        log_probs_off: None,
        mean: numbers(cells, 3.0),
        diag_scale: Some(numbers(cells, 9.0)),
        loadings: Some(numbers(cells * RANK, 1.0)),
        loading_scale: Some(numbers(cells, 2.0)),
        shared_loadings: Some(numbers(CLASSES * RANK, 5.0)),
        joint_log_probs: Some(numbers(EXAMPLES, -4.0)),
    }
}

/// A file in a folder that goes away.
struct Saved {
    _folder: TempDir,
    path: PathBuf,
}

impl Saved {
    fn new(predictions: &Predictions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.safetensors");
        predictions.save(&path).unwrap();
        Self { _folder: folder, path }
    }

    fn altered(&self, alter: impl FnOnce(&mut Vec<u8>)) -> Result<PredictionsFile, RunError> {
        let mut bytes = fs::read(&self.path).unwrap();
        alter(&mut bytes);
        fs::write(&self.path, bytes).unwrap();
        PredictionsFile::open(&self.path)
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, RunError>, words: &[&str]) {
    let message = result.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

#[test]
fn rows_are_those_of_the_whole_file() {
    let whole = predictions();
    let saved = Saved::new(&whole);
    let mut file = PredictionsFile::open(&saved.path).unwrap();
    assert_eq!((file.examples(), file.classes(), file.rank()), (EXAMPLES, CLASSES, RANK));
    assert_eq!(file.temperature(), 0.5);
    assert_eq!(file.shared_loadings(), whole.shared_loadings.as_deref());
    for (start, end) in [(0, 5), (3, 5), (1, 2), (2, 2), (5, 5)] {
        let cut = |values: &[f32], width: usize| values[start * width..end * width].to_vec();
        let rows = file.rows(start..end).unwrap();
        assert_eq!(rows.log_probs, cut(&whole.log_probs, CLASSES));
        assert_eq!(rows.mean, cut(&whole.mean, CLASSES));
        assert_eq!(rows.loadings, whole.loadings.as_deref().map(|it| cut(it, CLASSES * RANK)));
        assert_eq!(rows.diag_scale, whole.diag_scale.as_deref().map(|it| cut(it, CLASSES)));
        assert_eq!(rows.log_probs_off, None);
        assert_eq!(rows.shared_loadings, whole.shared_loadings);
        assert_eq!(file.read(Field::Mean, start..end).unwrap(), Some(rows.mean));
    }
    assert!(file.has(Field::Loadings) && !file.has(Field::LogProbsOff));
}

/// More numbers than are read at a time.
#[test]
fn long_rows_are_read_whole() {
    let classes = 70_000;
    let long = Predictions {
        classes,
        rank: 0,
        log_probs: numbers(2 * classes, 0.0),
        mean: numbers(2 * classes, 1.0),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
        ..predictions()
    };
    let saved = Saved::new(&long);
    let mut file = PredictionsFile::open(&saved.path).unwrap();
    assert_eq!(file.rows(1..2).unwrap().mean, long.mean[classes..]);
}

#[test]
fn a_number_that_is_none_is_named_by_its_row() {
    let whole = predictions();
    let saved = Saved::new(&whole);
    // The last tensor is `shared_loadings`, before it stands `mean`.
    let from_end = (CLASSES * RANK + CLASSES) * 4;
    let mut file = saved
        .altered(|bytes| {
            let at = bytes.len() - from_end + 4;
            bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        })
        .unwrap();
    assert!(file.rows(0..4).is_ok());
    refused(file.rows(3..5), &["test.safetensors", "\"mean\": row 4, number 1", "NaN"]);
    refused(Predictions::load(&saved.path), &["row 4"]);
}

#[test]
fn a_number_of_the_shared_loadings_that_is_none_is_found_when_opening() {
    let saved = Saved::new(&predictions());
    let opened = saved.altered(|bytes| {
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    refused(opened, &["\"shared_loadings\": row 2, number 1"]);
}

#[test]
fn a_file_that_is_cut_short_or_goes_on_is_refused() {
    let saved = Saved::new(&predictions());
    let whole = fs::read(&saved.path).unwrap();
    for length in [0, 7, 8, 100, whole.len() - 4] {
        fs::write(&saved.path, &whole[..length]).unwrap();
        refused(PredictionsFile::open(&saved.path), &["test.safetensors", "not a complete"]);
    }
    fs::write(&saved.path, [&whole[..], &[0; 4]].concat()).unwrap();
    refused(PredictionsFile::open(&saved.path), &["not a complete", "bytes, found"]);
    fs::remove_file(&saved.path).unwrap();
    refused(PredictionsFile::open(&saved.path), &["cannot read", "test.safetensors"]);
}

/// A length of 2⁶³ must not be asked of the memory.
#[test]
fn a_header_larger_than_the_file_is_refused() {
    let saved = Saved::new(&predictions());
    for length in [u64::MAX, 1 << 63, 50_000_000] {
        let opened = saved.altered(|bytes| bytes[..8].copy_from_slice(&length.to_le_bytes()));
        refused(opened, &["a header of", &length.to_string()]);
    }
}

/// Opens the file with one text of its header in place of another of the same length.
fn with_header(from: &str, to: &str) -> Result<PredictionsFile, RunError> {
    assert_eq!(from.len(), to.len());
    Saved::new(&predictions()).altered(|bytes| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("no {from}"));
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    })
}

#[test]
fn a_header_that_disagrees_is_refused_by_name() {
    for (from, to, words) in [
        ("\"aleator\"", "\"aleater\"", "no entry \"aleator\""),
        ("F32", "I32", "must hold F32, found I32"),
        ("\"mean\"", "\"meen\"", "tensor \"mean\" is missing"),
        ("\"loading_scale\"", "\"loading_skale\"", "must both be present"),
        ("[5,3,2]", "[5,2,3]", "must be [5, 3, 2], found [5, 2, 3]"),
        ("[3,2]", "[2,3]", "\"shared_loadings\" must be [3, 2], found [2, 3]"),
        ("classes\\\":3", "classes\\\":5", "must be [5, 5]"),
        ("classes\\\":3", "classes\\\":0", "classes must be at least 1"),
        ("temperature\\\":0.5", "temperature\\\":-.5", "the metadata's entry"),
        ("temperature\\\":0.5", "temperature\\\":0.0", "temperature must be"),
        ("{", "[", "its header"),
    ] {
        refused(with_header(from, to), &["test.safetensors", words]);
    }
}

#[test]
#[should_panic(expected = "rows 4..6 of 5")]
fn rows_that_are_not_there_are_a_mistake_of_the_caller() {
    let saved = Saved::new(&predictions());
    let _ = PredictionsFile::open(&saved.path).unwrap().rows(4..6);
}

/// The rows of some tensors of [`predictions`].
fn piece(rows: std::ops::Range<usize>) -> Predictions {
    let part =
        |values: Vec<f32>, width: usize| values[rows.start * width..rows.end * width].to_vec();
    let all = predictions();
    Predictions {
        log_probs: part(all.log_probs, CLASSES),
        mean: part(all.mean, CLASSES),
        diag_scale: all.diag_scale.map(|it| part(it, CLASSES)),
        loadings: all.loadings.map(|it| part(it, CLASSES * RANK)),
        loading_scale: all.loading_scale.map(|it| part(it, CLASSES)),
        joint_log_probs: all.joint_log_probs.map(|it| part(it, 1)),
        ..all
    }
}

#[test]
fn a_file_written_in_pieces_has_the_bytes_that_the_library_of_the_format_writes() {
    let saved = Saved::new(&predictions());
    let written = fs::read(&saved.path).unwrap();
    for size in [1, 2, EXAMPLES] {
        let mut writer = PredictionsWriter::create(&saved.path, EXAMPLES).unwrap();
        for start in (0..EXAMPLES).step_by(size) {
            writer.push(&piece(start..EXAMPLES.min(start + size))).unwrap();
        }
        assert!(fs::read(&saved.path).unwrap() == written, "replaced before it is complete");
        writer.commit().unwrap();
        assert!(fs::read(&saved.path).unwrap() == written, "pieces of {size}");
    }
    let tensors = safetensors::SafeTensors::deserialize(&written).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&written).unwrap();
    assert_eq!(tensors.len(), 7);
    let again = safetensors::serialize(tensors.tensors(), header.metadata().clone()).unwrap();
    assert!(again == written, "the library writes other bytes");
}

#[test]
fn a_piece_that_is_not_a_number_is_refused_with_its_row_and_leaves_the_old_file() {
    let saved = Saved::new(&predictions());
    let written = fs::read(&saved.path).unwrap();
    let mut writer = PredictionsWriter::create(&saved.path, EXAMPLES).unwrap();
    writer.push(&piece(0..3)).unwrap();
    let mut bad = piece(3..5);
    bad.mean[4] = f32::NAN;
    refused(writer.push(&bad), &["\"mean\"", "row 4, number 1"]);
    drop(writer);
    assert!(fs::read(&saved.path).unwrap() == written);
    assert_eq!(fs::read_dir(saved.path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn the_most_probable_classes_are_written_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.top.safetensors");
    let mut writer = TopPredictionsWriter::create(&path, EXAMPLES, 2).unwrap();
    writer.push(&piece(0..2)).unwrap();
    writer.push(&piece(2..5)).unwrap();
    writer.commit().unwrap();
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let numbers = |name: &str| {
        let (words, _) = file.tensor(name).unwrap().data().as_chunks::<4>();
        words.to_vec()
    };
    let classes: Vec<i32> = numbers("classes").into_iter().map(i32::from_le_bytes).collect();
    let log_probs: Vec<f32> = numbers("log_probs").into_iter().map(f32::from_le_bytes).collect();
    assert_eq!(classes, [0, 1].repeat(EXAMPLES));
    let expected = predictions().log_probs;
    let expected: Vec<f32> = expected.chunks(CLASSES).flat_map(|row| row[..2].to_vec()).collect();
    assert_eq!(log_probs, expected);
}
