//! The binary files of CIFAR-10 and CIFAR-100.

use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::file_bytes::FileBytes;
use super::pixels::{Bytes, Pixels};
use super::{CarriedLabels, Inputs, Opened, Storage};
use crate::error::DataError;

/// Height and width of an image.
pub(super) const SIDE: usize = 32;
const STORED: [usize; 3] = [3, SIDE, SIDE];
const PIXELS: usize = 3 * SIDE * SIDE;

/// How one of the two data sets is stored.
#[derive(Debug, PartialEq, Eq)]
struct Cifar {
    classes: usize,
    /// The label is the last of them.
    label_bytes: usize,
    /// The file with the names of the classes.
    class_names: &'static str,
}

const KINDS: [Cifar; 2] = [
    Cifar { classes: 10, label_bytes: 1, class_names: "batches.meta.txt" },
    // The coarse label, which is not used, then the fine one.
    Cifar { classes: 100, label_bytes: 2, class_names: "fine_label_names.txt" },
];

/// The names that the distributed archives use.
pub(crate) const TRAIN_10: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];
pub(crate) const TEST_10: &str = "test_batch.bin";
pub(crate) const TRAIN_100: &str = "train.bin";
pub(crate) const TEST_100: &str = "test.bin";

/// The training files of a folder; empty if it is not a folder of CIFAR.
pub(crate) fn training_files(folder: &Path) -> Vec<PathBuf> {
    let here = |name: &&str| folder.join(name);
    let batches: Vec<PathBuf> = TRAIN_10.iter().map(here).filter(|path| path.is_file()).collect();
    let train_100 = folder.join(TRAIN_100);
    if batches.is_empty() && train_100.is_file() { vec![train_100] } else { batches }
}

/// Opens files, in this order; `name` is the path that the user gave.
pub(crate) fn open(name: &Path, files: &[PathBuf], framing: &Framing) -> Result<Opened, DataError> {
    let mut opened = None;
    let mut labels = vec![];
    for path in files {
        let bytes = FileBytes::open(path)?.all()?;
        let this = recognise(path, &bytes)?;
        let new = || (this, Pixels::new(this.label_bytes, STORED, framing));
        let (kind, pixels) = opened.get_or_insert_with(new);
        if *kind != this {
            let message = "is of another CIFAR than the files before it";
            return Err(DataError::invalid(path, message));
        }
        labels.extend(read_labels(path, &bytes, this)?);
        pixels.push(Bytes::Memory(bytes), 0);
    }
    let Some((kind, pixels)) = opened else {
        return Err(DataError::invalid(name, "holds no CIFAR files"));
    };
    let folder = files[0].parent().unwrap_or(Path::new(""));
    Ok(Opened {
        labels: Some(CarriedLabels::Classes(labels)),
        class_names: class_names(&folder.join(kind.class_names), kind.classes)?,
        ..Opened::new(Inputs::new(name, Storage::Pixels(pixels)))
    })
}

impl Cifar {
    fn labels<'a>(&self, file: &'a [u8]) -> impl Iterator<Item = u8> + use<'a> {
        let at = self.label_bytes - 1;
        file.chunks_exact(self.label_bytes + PIXELS).map(move |record| record[at])
    }

    /// The first record whose label is out of range, and that label.
    fn wrong_label(&self, file: &[u8]) -> Option<(usize, u8)> {
        self.labels(file).enumerate().find(|&(_, label)| usize::from(label) >= self.classes)
    }
}

/// By the size of a record; a file whose size suits both is the one whose labels make sense.
fn recognise(path: &Path, file: &[u8]) -> Result<&'static Cifar, DataError> {
    let len = file.len();
    let fits = |kind: &&Cifar| len > 0 && len.is_multiple_of(kind.label_bytes + PIXELS);
    let mut fitting = KINDS.iter().filter(fits);
    let sensible = fitting.clone().find(|kind| kind.wrong_label(file).is_none());
    sensible.or_else(|| fitting.next()).ok_or_else(|| {
        let message = format!(
            "has {len} bytes, not a whole number of CIFAR-10 records (3073 bytes) or CIFAR-100 \
             records (3074 bytes); it is cut short or of another format"
        );
        DataError::invalid(path, message)
    })
}

fn read_labels(path: &Path, file: &[u8], kind: &Cifar) -> Result<Vec<u32>, DataError> {
    if let Some((record, label)) = kind.wrong_label(file) {
        let classes = kind.classes;
        let message = format!(
            "record {record} has label {label}; CIFAR-{classes} has labels 0 to {}: the file is \
             damaged or of another format",
            classes - 1
        );
        return Err(DataError::invalid(path, message));
    }
    Ok(kind.labels(file).map(u32::from).collect())
}

/// The names in the text file of the same folder, where there is one.
fn class_names(path: &Path, expected: usize) -> Result<Option<Vec<String>>, DataError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = aleator_run::read_text(path).map_err(|error| DataError::io(path, error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let names: Vec<String> = lines.map(str::to_string).collect();
    if names.len() != expected {
        let message = format!("has {} names of classes, expected {expected}", names.len());
        return Err(DataError::invalid(path, message));
    }
    Ok(Some(names))
}
