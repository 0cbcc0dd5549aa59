//! WebDataset: tar files whose entries `key.jpg`, `key.cls`, `key.json` are one example.

mod entries;
mod samples;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;
use rayon::prelude::*;

use super::encoded::{self, Container, Pieces, Places};
use super::folder::short;
use super::names::Names;
use super::spool::Spool;
use super::{CarriedLabels, Opened};
use crate::ending::Ending;
use crate::error::DataError;
use crate::labels::Words;
use samples::{Sample, Samples};

pub(crate) use samples::first_images;

/// The most entries of all shards together: some gigabytes of names and positions.
const MOST_ENTRIES: usize = 100_000_000;

/// Whether the name is that of a shard.
pub(crate) fn is_shard(path: &Path) -> bool {
    Ending::of(path) == Some(Ending::Tar) || is_gzipped(path)
}

fn is_gzipped(path: &Path) -> bool {
    Ending::of(path) == Some(Ending::TarGzip)
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
    let first_gzipped = shards.iter().find(|shard| is_gzipped(shard));
    let mut spool = first_gzipped.map(|shard| Spool::new(shard)).transpose()?;
    // Plain shards are read in parallel; gzipped ones one after the other, as their images go to
    // one spool.
    let plain: Vec<Option<Result<Samples, DataError>>> = shards
        .par_iter()
        .map(|shard| (!is_gzipped(shard)).then(|| Samples::read(shard, most, None)))
        .collect();
    let mut indexed = vec![];
    for (shard, samples) in shards.iter().zip(plain) {
        let gzipped = || Samples::read(shard, most, spool.as_mut());
        indexed.push(samples.unwrap_or_else(gzipped)?);
    }
    let total: usize = indexed.iter().map(|samples| samples.entries).sum();
    if total > most {
        let message = format!("its shards have {total} entries, more than {most}; take fewer");
        return Err(DataError::invalid(source, message));
    }
    let mut all = Examples::default();
    for (shard, samples) in shards.iter().zip(indexed) {
        all.add(shard, samples)?;
    }
    all.pieces.spool = spool.map(Spool::into_file).transpose()?;
    all.finish(source, framing)
}

/// The examples of all shards so far.
#[derive(Default)]
struct Examples {
    pieces: Pieces,
    names: Names,
    keys: Vec<String>,
    labels: Words,
    clean: Words,
    weights: Vec<f32>,
}

impl Examples {
    fn add(&mut self, shard: &Path, samples: Samples) -> Result<(), DataError> {
        let (path, spooled) = (shard.to_path_buf(), is_gzipped(shard));
        let first_row = self.keys.len();
        self.pieces.containers.push(Container { path, spooled, first_row });
        for sample in samples.samples {
            let Sample { key, image, label, clean, weight } = sample;
            for (what, has, count) in [
                ("label (.cls, .txt or .json)", label.is_some(), self.labels.positions.len()),
                ("clean_label", clean.is_some(), self.clean.positions.len()),
                ("weight", weight.is_some(), self.weights.len()),
            ] {
                // All examples before have one, or none has.
                if has != (count > 0) && !self.keys.is_empty() {
                    let has = if has { "a" } else { "no" };
                    let message = format!(
                        "has {has} {what}, unlike the examples before it; give one to all or to \
                         none"
                    );
                    return Err(DataError::invalid(shard.join(key), message));
                }
            }
            label.map(|word| self.labels.push(&word));
            clean.map(|word| self.clean.push(&word));
            self.weights.extend(weight);
            self.pieces.pieces.push(image.piece);
            self.names.push(&image.name);
            self.keys.push(key);
        }
        Ok(())
    }

    fn finish(mut self, source: &Path, framing: &Framing) -> Result<Opened, DataError> {
        if self.keys.is_empty() {
            let message = "holds no images; entries are called key.jpg (or .png, .webp, …) with \
                           key.cls, key.txt or key.json for each, the key without a dot";
            return Err(DataError::invalid(source, message));
        }
        let ids = ids(self.keys, &self.pieces);
        let written =
            |words: Words| (!words.positions.is_empty()).then(|| words.written(source, None));
        self.pieces.names = Some(self.names);
        Ok(Opened {
            labels: written(self.labels).map(CarriedLabels::Written),
            clean_labels: written(self.clean),
            weights: Some(self.weights).filter(|weights| !weights.is_empty()),
            ids: Some(ids),
            ..Opened::new(encoded::open(source, Places::Pieces(self.pieces), framing)?)
        })
    }
}

/// The keys; if one of them is in two shards, all with the shard's name before them.
fn ids(keys: Vec<String>, pieces: &Pieces) -> Vec<String> {
    let distinct = keys.iter().collect::<BTreeSet<_>>().len();
    if distinct == keys.len() {
        return keys;
    }
    let stems: Vec<String> = pieces.containers.iter().map(|shard| stem(&shard.path)).collect();
    let named = |(row, key)| format!("{}/{key}", stems[pieces.container_at(row)]);
    keys.into_iter().enumerate().map(named).collect()
}

/// A shard's name without its ending.
fn stem(shard: &Path) -> String {
    let name = short(shard);
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
