//! The binary files of CIFAR-10 and CIFAR-100.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::mapped::Mapped;
use super::pixels::{Bytes, Pixels, Stored};
use super::{CarriedLabels, Inputs, Opened};
use crate::error::DataError;

const STORED: Stored = Stored { channels: 3, height: 32, width: 32 };
const PIXELS: usize = 3 * 32 * 32;

/// Which of the two data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cifar {
    /// One byte with the label.
    Ten,
    /// Two bytes: the coarse label, which is not used, then the fine one.
    Hundred,
}

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
    let mut kind = None;
    let mut pixels = None;
    let mut labels = vec![];
    for path in files {
        let file = Mapped::open(path)?;
        let this = recognise(path, file.bytes())?;
        if *kind.get_or_insert(this) != this {
            let message = "is of another CIFAR than the files before it";
            return Err(DataError::invalid(path, message));
        }
        let pixels = pixels.get_or_insert_with(|| Pixels::new(this.label_bytes(), STORED, framing));
        read_labels(path, file.bytes(), this, &mut labels)?;
        pixels.push(Bytes::File(file), 0);
    }
    let (Some(kind), Some(pixels)) = (kind, pixels) else {
        return Err(DataError::invalid(name, "holds no CIFAR files"));
    };
    let folder = files[0].parent().unwrap_or(Path::new(""));
    let inputs = Inputs::of_pixels(name, pixels);
    Ok(Opened {
        labels: Some(CarriedLabels::Classes(labels)),
        class_names: class_names(folder, kind)?,
        ..Opened::new(inputs)
    })
}

impl Cifar {
    pub(crate) fn label_bytes(self) -> usize {
        match self {
            Self::Ten => 1,
            Self::Hundred => 2,
        }
    }

    fn classes(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Hundred => 100,
        }
    }

    fn record(self) -> usize {
        self.label_bytes() + PIXELS
    }

    fn label(self, record: &[u8]) -> u8 {
        record[self.label_bytes() - 1]
    }

    /// The first record whose label is out of range, and that label.
    fn wrong_label(self, file: &[u8]) -> Option<(usize, u8)> {
        let labels = file.chunks_exact(self.record()).map(|record| self.label(record));
        labels.enumerate().find(|&(_, label)| usize::from(label) >= self.classes())
    }
}

/// By the size of a record; a file whose size suits both is the one whose labels make sense.
pub(crate) fn recognise(path: &Path, file: &[u8]) -> Result<Cifar, DataError> {
    let len = file.len();
    let fits = |kind: &Cifar| len > 0 && len.is_multiple_of(kind.record());
    let fitting: Vec<Cifar> = [Cifar::Ten, Cifar::Hundred].into_iter().filter(fits).collect();
    match fitting[..] {
        [] => Err(DataError::invalid(
            path,
            format!(
                "has {len} bytes, not a whole number of CIFAR-10 records (3073 bytes) or \
                 CIFAR-100 records (3074 bytes); it is cut short or of another format"
            ),
        )),
        [only] => Ok(only),
        [first, ..] => {
            let sensible = fitting.iter().find(|kind| kind.wrong_label(file).is_none());
            Ok(*sensible.unwrap_or(&first))
        }
    }
}

fn read_labels(
    path: &Path,
    file: &[u8],
    kind: Cifar,
    labels: &mut Vec<u32>,
) -> Result<(), DataError> {
    if let Some((record, label)) = kind.wrong_label(file) {
        let classes = kind.classes();
        let message = format!(
            "record {record} has label {label}; CIFAR-{classes} has labels 0 to {}: the file is \
             damaged or of another format",
            classes - 1
        );
        return Err(DataError::invalid(path, message));
    }
    labels.extend(file.chunks_exact(kind.record()).map(|record| u32::from(kind.label(record))));
    Ok(())
}

/// The names in the text file of the same folder, where there is one.
fn class_names(folder: &Path, kind: Cifar) -> Result<Option<Vec<String>>, DataError> {
    let path = folder.join(match kind {
        Cifar::Ten => "batches.meta.txt",
        Cifar::Hundred => "fine_label_names.txt",
    });
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(|error| DataError::io(&path, error))?;
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_string).collect();
    if names.len() != kind.classes() {
        let (found, expected) = (names.len(), kind.classes());
        let message = format!("has {found} names of classes, expected {expected}");
        return Err(DataError::invalid(&path, message));
    }
    Ok(Some(names))
}
