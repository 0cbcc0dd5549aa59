//! Small data sets in folders that go away.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::Path;

use aleator_data::{DataError, DataSet, Split};
use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
use tempfile::TempDir;

/// A folder that goes away.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with the folders above it, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    }

    /// Features `[rows, 2]` that are all different.
    pub fn features(&self, name: &str, rows: usize) -> InputSource {
        let values: Vec<f32> = (0..2 * rows).map(|at| at as f32).collect();
        InputSource::Features(self.write(name, npy("<f4", &[rows, 2], &values)))
    }

    /// A training source of `rows` examples with these labels.
    pub fn source(&self, rows: usize, labels: &str) -> Source {
        Source {
            inputs: self.features("x.npy", rows),
            labels: Some(self.write("labels.csv", labels)),
            clean_labels: None,
            ids: None,
        }
    }
}

/// The bytes of a `.npy` file of 4-byte floats.
pub fn npy(descr: &str, shape: &[usize], values: &[f32]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape})}}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// A recipe's `[data]` that holds out a quarter of `train`.
pub fn data(train: Source) -> Data {
    Data::of(train, HeldOut::Fraction { fraction: 0.25, seed: 0 })
}

pub fn digits() -> Source {
    Source::of(InputSource::Digits)
}

/// The message that opening `data` is refused with.
pub fn refusal(data: &Data, link: Link) -> String {
    let error: DataError = DataSet::open(data, link).map(|_| ()).unwrap_err();
    error.to_string()
}

/// All labels of the source, in the order of its rows: `label(split, position)` of each example.
pub fn in_source_order<T>(set: &DataSet, label: impl Fn(&Split, usize) -> T) -> Vec<T> {
    let mut found: Vec<(usize, T)> = [&set.train, &set.validation]
        .into_iter()
        .flat_map(|split| split.rows.iter().enumerate().map(|(at, row)| (*row, label(split, at))))
        .collect();
    found.sort_by_key(|(row, _)| *row);
    found.into_iter().map(|(_, label)| label).collect()
}

/// Sparse targets as a row of K weights for each example.
pub fn dense(targets: &aleator_data::Targets, classes: usize) -> Vec<f32> {
    let aleator_data::Targets::Sparse(rows) = targets else { panic!("{targets:?}") };
    let mut out = vec![0.0; rows.len() * classes];
    for (example, out) in out.chunks_exact_mut(classes).enumerate() {
        rows.row(example).for_each(|(class, weight)| out[class as usize] = weight);
    }
    out
}
