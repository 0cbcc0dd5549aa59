//! Files of covariances, and every way to damage one.

use std::fs;
use std::path::PathBuf;

use aleator_run::{
    CovarianceFile, CovarianceInfo, CovarianceSums, CovarianceWriter, RunError, TieRows,
};
use tempfile::TempDir;

use crate::support::refused;

const INFO: CovarianceInfo = CovarianceInfo {
    examples: 4,
    classes: 3,
    rank: 2,
    temperature: 0.5,
    centred: true,
    flips: true,
    ties: true,
};

fn ties() -> TieRows {
    let numbers = |salt: f32| (0..12).map(|at| salt + at as f32).collect();
    TieRows {
        classes: vec![0, 2, 1, 1],
        covariance: numbers(0.5),
        centred: numbers(20.0),
        correlation: [vec![f32::NAN; 3], vec![0.25; 9]].concat(),
    }
}

/// A file in a folder that goes away.
fn saved(info: CovarianceInfo) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.covariance.safetensors");
    let mut writer = CovarianceWriter::create(&path, info).unwrap();
    if info.ties {
        let all = ties();
        let part = |rows: std::ops::Range<usize>| TieRows {
            classes: all.classes[rows.clone()].to_vec(),
            covariance: all.covariance[3 * rows.start..3 * rows.end].to_vec(),
            centred: all.centred[3 * rows.start..3 * rows.end].to_vec(),
            correlation: all.correlation[3 * rows.start..3 * rows.end].to_vec(),
        };
        writer.write_ties(0, &part(0..3)).unwrap();
        writer.write_ties(3, &part(3..4)).unwrap();
    }
    for (row, values) in [&[1.0, 2.0, 3.0][..], &[4.0, 5.0], &[6.0]].into_iter().enumerate() {
        writer.write_pairs(row, values).unwrap();
    }
    let flips: Vec<f64> = (0..9).map(f64::from).collect();
    writer
        .commit(CovarianceSums {
            moments: &[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
            total: 10.0,
            flips: info.flips.then_some((&[1, 0, 3], &flips)),
        })
        .unwrap();
    (folder, path)
}

fn altered(alter: impl FnOnce(&mut Vec<u8>)) -> Result<CovarianceFile, RunError> {
    let (_folder, path) = saved(INFO);
    let mut bytes = fs::read(&path).unwrap();
    alter(&mut bytes);
    fs::write(&path, bytes).unwrap();
    CovarianceFile::open(&path)
}

#[test]
fn what_is_written_is_read() {
    let (_folder, path) = saved(INFO);
    let mut file = CovarianceFile::open(&path).unwrap();
    assert_eq!((file.info(), file.path()), (INFO, path.as_path()));
    let moments = vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    assert_eq!(file.moments().unwrap(), (moments, 10.0));
    assert_eq!(file.pairs(0..3).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(file.pairs(1..2).unwrap(), [4.0, 5.0]);
    assert_eq!(file.pairs(3..3).unwrap(), [0.0; 0]);
    assert_eq!(file.flips(2).unwrap(), Some((3.0, vec![6.0, 7.0, 8.0])));
    let found = file.ties(1..4).unwrap().unwrap();
    assert_eq!(found.classes, ties().classes[1..]);
    assert_eq!(found.covariance, ties().covariance[3..]);
    assert_eq!(found.centred, ties().centred[3..]);
    assert_eq!(found.correlation, ties().correlation[3..]);
    assert!(file.ties(0..1).unwrap().unwrap().correlation.iter().all(|it| it.is_nan()));

    let (_folder, path) = saved(CovarianceInfo { flips: false, ties: false, ..INFO });
    let mut file = CovarianceFile::open(&path).unwrap();
    assert_eq!((file.flips(0).unwrap(), file.ties(0..4).unwrap()), (None, None));
}

/// The format's own library reads it, too.
#[test]
fn other_programs_can_read_it() {
    let (_folder, path) = saved(INFO);
    let bytes = fs::read(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("pairs").unwrap().shape(), [6]);
    assert_eq!(tensors.tensor("flips").unwrap().shape(), [3, 3]);
    assert_eq!(tensors.tensor("covariance").unwrap().shape(), [4, 3]);
    assert_eq!(tensors.len(), 9);
}

#[test]
fn a_file_that_was_not_finished_does_not_appear() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.covariance.safetensors");
    let mut writer = CovarianceWriter::create(&path, INFO).unwrap();
    writer.write_pairs(0, &[1.0, 2.0, 3.0]).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_cut_short_or_goes_on_is_refused() {
    let (_folder, path) = saved(INFO);
    let whole = fs::read(&path).unwrap();
    for length in [0, 7, 100, whole.len() - 4] {
        fs::write(&path, &whole[..length]).unwrap();
        refused(CovarianceFile::open(&path), &["covariance.safetensors", "not a complete"]);
    }
    fs::write(&path, [&whole[..], &[0; 4]].concat()).unwrap();
    refused(CovarianceFile::open(&path), &["not a complete", "bytes, found"]);
}

#[test]
fn a_header_that_disagrees_is_refused_by_name() {
    for (from, to, words) in [
        ("\"aleator\"", "\"aleater\"", "not a file of covariances"),
        ("classes\\\":3", "classes\\\":5", "\"moments\" must be [5, 3], found [3, 3]"),
        ("classes\\\":3", "classes\\\":0", "classes must be 1 to"),
        ("examples\\\":4", "examples\\\":5", "must be [5], found [4]"),
        ("examples\\\":4", "examples\\\":0", "examples must be at least 1"),
        ("temperature\\\":0.5", "temperature\\\":0.0", "temperature must be"),
        ("\"pairs\"", "\"pears\"", "tensor \"pairs\" is missing"),
        ("\"I32\"", "\"F32\"", "\"tied_class\" must hold I32, found F32"),
        ("flips\\\":true", "flips\\\":null", "the metadata's entry"),
        ("{", "[", "its header"),
    ] {
        assert_eq!(from.len(), to.len());
        let opened = altered(|bytes| {
            let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
            let at = at.unwrap_or_else(|| panic!("no {from}"));
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        });
        refused(opened, &["covariance.safetensors", words]);
    }
    let unexpected = altered(|bytes| {
        let from = b"ties\\\":true";
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        // One letter more, which a space of the padding makes up for.
        bytes.splice(at..at + from.len(), *b"ties\\\":false");
        let length = u64::from_le_bytes(*bytes.first_chunk().unwrap());
        bytes[..8].copy_from_slice(&(length + 1).to_le_bytes());
    });
    refused(unexpected, &["tensor \"tied_class\" is not expected"]);
}

#[test]
fn numbers_that_are_none_are_named_by_their_tensor() {
    let end = |bytes: &[u8], back: usize| bytes.len() - back;
    // The tensors end with correlation, centred_covariance and covariance, 48 bytes each, after
    // tied_class with 16 bytes and flips with 72.
    let mut file = altered(|bytes| {
        let at = end(bytes, 2 * 48 + 4);
        bytes[at..at + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    })
    .unwrap();
    refused(file.ties(0..4), &["\"covariance\": number 11 is not finite"]);
    assert!(file.ties(0..3).is_ok());
    let mut file = altered(|bytes| {
        let at = end(bytes, 3 * 48 + 16);
        bytes[at..at + 4].copy_from_slice(&7_i32.to_le_bytes());
    })
    .unwrap();
    refused(file.ties(0..2), &["\"tied_class\" must hold classes below 3"]);
    let mut file = altered(|bytes| {
        let at = end(bytes, 3 * 48 + 16 + 72);
        bytes[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    })
    .unwrap();
    refused(file.flips(0), &["\"flips\": number 0 is not finite"]);
    assert!(file.flips(1).is_ok());
}
