//! WebDataset: tar files whose entries `key.jpg`, `key.cls`, `key.json` are one example.

mod entries;
mod samples;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;
use rayon::prelude::*;

use super::encoded::{self, Container, Piece, Places};
use super::names::Names;
use super::spool::Spool;
use super::{CarriedLabels, Opened};
use crate::ending::Ending;
use crate::error::DataError;
use crate::labels::{Vocabulary, WrittenLabels};
use samples::{Sample, Samples};

pub(crate) use samples::first_images;

/// The most entries of all shards together: some gigabytes of names and positions.
const MOST_ENTRIES: usize = 100_000_000;

/// How a shard is packed, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
}

/// Whether the name is that of a shard.
pub(crate) fn packing(path: &Path) -> Option<Packing> {
    match Ending::of(path)? {
        Ending::Tar => Some(Packing::Plain),
        Ending::TarGzip => Some(Packing::Gzip),
        _ => None,
    }
}

/// Opens the examples of all shards, in the order of the shards and in each of its entries.
pub(crate) fn open(
    source: &Path,
    shards: &[PathBuf],
    framing: &Framing,
) -> Result<Opened, DataError> {
    open_at_most(source, shards, framing, MOST_ENTRIES)
}

fn open_at_most(
    source: &Path,
    shards: &[PathBuf],
    framing: &Framing,
    most: usize,
) -> Result<Opened, DataError> {
    let mut spool = None;
    let indexed = index(shards, most, &mut spool)?;
    let total: usize = indexed.iter().map(|samples| samples.entries).sum();
    if total > most {
        let message = format!("its shards have {total} entries, more than {most}; take fewer");
        return Err(DataError::invalid(source, message));
    }
    let spool = spool.map(Spool::into_file).transpose()?;
    let mut all = All::new(source, shards);
    for (shard, samples) in shards.iter().zip(indexed) {
        all.add(shard, samples)?;
    }
    all.finish(spool, framing)
}

/// The examples of each shard. Plain shards are read in parallel; packed ones one after
/// the other, as their images go to one spool.
fn index(
    shards: &[PathBuf],
    most: usize,
    spool: &mut Option<Spool>,
) -> Result<Vec<Samples>, DataError> {
    let plain: Vec<Option<Result<Samples, DataError>>> = shards
        .par_iter()
        .map(|shard| match packing(shard) {
            Some(Packing::Gzip) => None,
            _ => Some(Samples::of_plain(shard, most)),
        })
        .collect();
    let mut indexed = vec![];
    for (shard, samples) in shards.iter().zip(plain) {
        indexed.push(match samples {
            Some(samples) => samples?,
            None => {
                let spool = match spool {
                    Some(spool) => spool,
                    None => spool.insert(Spool::new(shard)?),
                };
                Samples::of_packed(shard, most, spool)?
            }
        });
    }
    Ok(indexed)
}

/// The examples of all shards so far.
struct All<'a> {
    source: &'a Path,
    shards: &'a [PathBuf],
    containers: Vec<Container>,
    pieces: Vec<Piece>,
    names: Names,
    keys: Vec<String>,
    labels: Vec<u32>,
    words: Vocabulary,
    clean: Vec<u32>,
    clean_words: Vocabulary,
    weights: Vec<f32>,
}

impl<'a> All<'a> {
    fn new(source: &'a Path, shards: &'a [PathBuf]) -> Self {
        Self {
            source,
            shards,
            containers: vec![],
            pieces: vec![],
            names: Names::default(),
            keys: vec![],
            labels: vec![],
            words: Vocabulary::default(),
            clean: vec![],
            clean_words: Vocabulary::default(),
            weights: vec![],
        }
    }

    fn add(&mut self, shard: &Path, samples: Samples) -> Result<(), DataError> {
        let spooled = packing(shard) == Some(Packing::Gzip);
        let first_row = self.pieces.len();
        self.containers.push(Container { path: shard.to_path_buf(), spooled, first_row });
        for sample in samples.samples {
            let Sample { key, image, label, clean, weight } = sample;
            let first = self.keys.is_empty();
            for (what, has, had) in [
                ("label (.cls, .txt or .json)", label.is_some(), !self.labels.is_empty()),
                ("clean_label", clean.is_some(), !self.clean.is_empty()),
                ("weight", weight.is_some(), !self.weights.is_empty()),
            ] {
                if has != had && !first {
                    let has = if has { "a" } else { "no" };
                    let message = format!(
                        "has {has} {what}, unlike the examples before it; give one to all or to \
                         none"
                    );
                    return Err(DataError::invalid(shard.join(key), message));
                }
            }
            self.labels.extend(label.map(|word| self.words.position(&word)));
            self.clean.extend(clean.map(|word| self.clean_words.position(&word)));
            self.weights.extend(weight);
            self.pieces.push(image.piece);
            self.names.push(&image.name);
            self.keys.push(key);
        }
        Ok(())
    }

    fn finish(self, spool: Option<std::fs::File>, framing: &Framing) -> Result<Opened, DataError> {
        if self.pieces.is_empty() {
            let message = "holds no images; entries are called key.jpg (or .png, .webp, …) with \
                           key.cls, key.txt or key.json for each, the key without a dot";
            return Err(DataError::invalid(self.source, message));
        }
        let ids = ids(self.keys, &self.containers, self.shards);
        let written = |words, positions| WrittenLabels::new(self.source, words, positions, None);
        let labels = (!self.labels.is_empty()).then(|| written(self.words, self.labels));
        let clean_labels = (!self.clean.is_empty()).then(|| written(self.clean_words, self.clean));
        let weights = (!self.weights.is_empty()).then_some(self.weights);
        let places = Places::Pieces {
            containers: self.containers,
            spool,
            pieces: self.pieces,
            names: Some(self.names),
        };
        let inputs = encoded::open(self.source, places, framing)?;
        let labels = labels.map(CarriedLabels::Written);
        Ok(Opened { labels, clean_labels, weights, ..Opened::new(inputs) }.with_ids(ids))
    }
}

/// The keys; if one of them is in two shards, all with the shard's name before them.
fn ids(keys: Vec<String>, containers: &[Container], shards: &[PathBuf]) -> Vec<String> {
    let distinct = keys.iter().collect::<BTreeSet<_>>().len();
    if distinct == keys.len() {
        return keys;
    }
    let stems: Vec<String> = shards.iter().map(|shard| stem(shard)).collect();
    let shard = |row: usize| containers.partition_point(|at| at.first_row <= row) - 1;
    let named = |(row, key): (usize, String)| format!("{}/{key}", stems[shard(row)]);
    keys.into_iter().enumerate().map(named).collect()
}

/// A shard's name without its ending.
fn stem(shard: &Path) -> String {
    let name = shard.file_name().map(|name| name.to_string_lossy().to_string());
    let name = name.unwrap_or_default();
    let lower = name.to_lowercase();
    let ending = [".tar.gz", ".tgz", ".tar"].into_iter().find(|ending| lower.ends_with(ending));
    name[..name.len() - ending.map_or(0, str::len)].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(folder: &Path, entries: usize) -> PathBuf {
        let path = folder.join("x.tar");
        let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
        for at in 0..entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            tar.append_data(&mut header, format!("{at}.jpg"), &b"x"[..]).unwrap();
        }
        tar.into_inner().unwrap();
        path
    }

    #[test]
    fn too_many_entries_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = shard(folder.path(), 4);
        let open =
            |most| open_at_most(&path, std::slice::from_ref(&path), &Framing::sized(2), most);
        assert!(open(4).is_ok());
        let message = open(3).unwrap_err().to_string();
        assert!(message.contains("x.tar") && message.contains("more than 3"), "{message}");
    }

    #[test]
    fn the_stem_of_a_shard_has_no_ending() {
        for (name, expected) in [("a/b-0.tar", "b-0"), ("b.TAR.GZ", "b"), ("b.tgz", "b")] {
            assert_eq!(stem(Path::new(name)), expected);
        }
    }
}
