//! Entries of a shard that belong together: an image, its label and its metadata.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::encoded::{LARGEST_IMAGE, Piece, too_large};
use super::super::manifest::{weight_of, word};
use super::super::spool::Spool;
use super::entries::{self, Entry, damaged};
use super::{Packing, packing};
use crate::ending::IMAGES;
use crate::error::DataError;

/// The most bytes of a `.txt` that is the name of a class; longer ones are captions, and skipped.
const LONGEST_CLASS: u64 = 256;
/// The most bytes of a `.cls`: a number.
const LONGEST_NUMBER: u64 = 64;
/// The most bytes of a `.json`.
const LONGEST_JSON: u64 = 1 << 20;

/// One example.
pub(super) struct Sample {
    pub key: String,
    pub image: Image,
    pub label: Option<String>,
    pub clean: Option<String>,
    pub weight: Option<f32>,
}

/// Where an image lies, and what its entry is called.
pub(super) struct Image {
    pub name: String,
    pub piece: Piece,
}

/// The examples of one shard.
pub(super) struct Samples {
    pub samples: Vec<Sample>,
    pub entries: usize,
}

impl Samples {
    pub(super) fn of_plain(path: &Path, most: usize) -> Result<Self, DataError> {
        let mut parts = Parts::new(path);
        let entries = entries::in_plain(path, most, &mut |entry| {
            parts.add(entry, None)?;
            Ok(ControlFlow::Continue(()))
        })?;
        parts.finish(entries)
    }

    /// The images' bytes go to `spool`.
    pub(super) fn of_packed(
        path: &Path,
        most: usize,
        spool: &mut Spool,
    ) -> Result<Self, DataError> {
        let mut parts = Parts::new(path);
        let entries = entries::in_packed(path, most, &mut |entry| {
            parts.add(entry, Some(spool))?;
            Ok(ControlFlow::Continue(()))
        })?;
        parts.finish(entries)
    }
}

/// The first images of a shard, at most `count`, with their names for messages.
pub(crate) fn first_images(
    path: &Path,
    count: usize,
) -> Result<Vec<(PathBuf, Vec<u8>)>, DataError> {
    let mut images = vec![];
    let mut visit = |mut entry: Entry| {
        let (_, ending) = key_and_ending(&entry.name);
        if IMAGES.contains(&ending.as_str()) {
            check_image(path, &entry)?;
            let content = content(path, &mut entry, LARGEST_IMAGE)?;
            images.push((path.join(&entry.name), content));
        }
        Ok(if images.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    match packing(path) {
        Some(Packing::Gzip) => entries::in_packed(path, usize::MAX, &mut visit)?,
        _ => entries::in_plain(path, usize::MAX, &mut visit)?,
    };
    Ok(images)
}

/// The entries seen so far, by their keys.
struct Parts<'a> {
    path: &'a Path,
    positions: BTreeMap<String, usize>,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Part {
    key: String,
    image: Option<Image>,
    /// The texts of `.cls`, `.txt` and `.json`.
    number: Option<String>,
    class: Option<String>,
    json: Option<Value>,
}

impl<'a> Parts<'a> {
    fn new(path: &'a Path) -> Self {
        Self { path, positions: BTreeMap::new(), parts: vec![] }
    }

    fn add(&mut self, mut entry: Entry, spool: Option<&mut Spool>) -> Result<(), DataError> {
        let (key, ending) = key_and_ending(&entry.name);
        let is_image = IMAGES.contains(&ending.as_str());
        let is_hidden = key.rsplit('/').next().is_none_or(str::is_empty);
        if is_hidden || !(is_image || matches!(ending.as_str(), "cls" | "txt" | "json")) {
            return Ok(());
        }
        let path = self.path;
        let at = *self.positions.entry(key.clone()).or_insert(self.parts.len());
        if at == self.parts.len() {
            self.parts.push(Part { key, ..Part::default() });
        }
        let part = &mut self.parts[at];
        let twice = match ending.as_str() {
            "cls" => {
                let text = text(path, &mut entry, LONGEST_NUMBER)?;
                let number: Result<u64, _> = text.parse();
                if number.is_err() {
                    let message = format!("is {text:?}; a .cls holds the number of a class");
                    return Err(DataError::invalid(path.join(&entry.name), message));
                }
                part.number.replace(text).is_some()
            }
            "txt" if entry.len > LONGEST_CLASS => false,
            "txt" => part.class.replace(text(path, &mut entry, LONGEST_CLASS)?).is_some(),
            "json" => part.json.replace(json(path, &mut entry)?).is_some(),
            _ => {
                let piece = place(path, &mut entry, spool)?;
                let name = entry.name.clone();
                part.image.replace(Image { name, piece }).is_some()
            }
        };
        if twice {
            let what = if is_image { "image".to_string() } else { format!(".{ending}") };
            let message = format!(
                "is the second {what} of the key {:?}; a key names one example of a shard",
                part.key
            );
            return Err(DataError::invalid(path.join(&entry.name), message));
        }
        Ok(())
    }

    fn finish(self, entries: usize) -> Result<Samples, DataError> {
        let mut samples = vec![];
        for part in self.parts {
            samples.extend(part.sample(self.path)?);
        }
        Ok(Samples { samples, entries })
    }
}

impl Part {
    /// The example, if there is an image; a label without one is refused.
    fn sample(self, path: &Path) -> Result<Option<Sample>, DataError> {
        let Self { key, image, number, class, json } = self;
        let invalid = |message: String| Err(DataError::invalid(path.join(&key), message));
        let field = |name: &str| -> Result<Option<String>, String> {
            let found = word(json.as_ref().and_then(|json| json.get(name)));
            found.map(|word| Some(word).filter(|word| !word.is_empty()))
        };
        let Some(image) = image else {
            if number.is_some() || class.is_some() {
                return invalid(format!("has a label but no image (.{})", IMAGES.join(", .")));
            }
            // Metadata of the whole shard.
            return Ok(None);
        };
        let label = match (number, field("label"), class) {
            (Some(number), _, _) => Some(number),
            (None, Ok(Some(label)), _) => Some(label),
            (None, Ok(None), class) => class.filter(|class| !class.is_empty()),
            (None, Err(what), _) => return invalid(format!("label of its .json {what}")),
        };
        let clean = match field("clean_label") {
            Ok(clean) => clean,
            Err(what) => return invalid(format!("clean_label of its .json {what}")),
        };
        let weight = match field("weight").map(|weight| weight.map(|weight| weight_of(&weight))) {
            Ok(None) => None,
            Ok(Some(Ok(weight))) => Some(weight),
            Ok(Some(Err(what))) => return invalid(what),
            Err(what) => return invalid(format!("weight of its .json {what}")),
        };
        Ok(Some(Sample { key, image, label, clean, weight }))
    }
}

/// `a/b` and `jpg` of `a/b.jpg`: a key ends at the first dot of the last name.
fn key_and_ending(name: &str) -> (String, String) {
    let from = name.rfind('/').map_or(0, |at| at + 1);
    match name[from..].find('.') {
        Some(dot) => (name[..from + dot].to_string(), name[from + dot + 1..].to_lowercase()),
        None => (name.to_string(), String::new()),
    }
}

fn check_image(path: &Path, entry: &Entry) -> Result<u32, DataError> {
    match u32::try_from(entry.len) {
        Ok(len) if entry.len <= LARGEST_IMAGE => Ok(len),
        _ => Err(DataError::invalid(path.join(&entry.name), too_large(entry.len))),
    }
}

/// Where the bytes of an image can be read later: where they are, or in the spool.
fn place(path: &Path, entry: &mut Entry, spool: Option<&mut Spool>) -> Result<Piece, DataError> {
    let len = check_image(path, entry)?;
    let Some(spool) = spool else { return Ok(Piece { start: entry.start, len }) };
    let start = spool.len();
    let mut left = u64::from(len);
    let mut buffer = vec![0; (1 << 16).min(len as usize)];
    while left > 0 {
        let room = left.min(buffer.len() as u64) as usize;
        match entry.content.read(&mut buffer[..room]) {
            Ok(0) => return Err(cut_short(path, &entry.name)),
            Ok(read) => {
                spool.write(&buffer[..read])?;
                left -= read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damaged(path, &error)),
        }
    }
    Ok(Piece { start, len })
}

fn content(path: &Path, entry: &mut Entry, most: u64) -> Result<Vec<u8>, DataError> {
    if entry.len > most {
        let message = format!("has {} bytes; at most {most} were expected", entry.len);
        return Err(DataError::invalid(path.join(&entry.name), message));
    }
    let mut bytes = vec![];
    let read = std::io::Read::read_to_end(&mut entry.content, &mut bytes);
    read.map_err(|error| damaged(path, &error))?;
    if bytes.len() as u64 == entry.len { Ok(bytes) } else { Err(cut_short(path, &entry.name)) }
}

fn cut_short(path: &Path, name: &str) -> DataError {
    DataError::invalid(path, format!("ends within its entry {name:?}; fetch it again"))
}

fn text(path: &Path, entry: &mut Entry, most: u64) -> Result<String, DataError> {
    let bytes = content(path, entry, most)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.trim().to_string()),
        Err(_) => Err(DataError::invalid(path.join(&entry.name), "is not valid UTF-8")),
    }
}

fn json(path: &Path, entry: &mut Entry) -> Result<Value, DataError> {
    let bytes = content(path, entry, LONGEST_JSON)?;
    let mut value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        DataError::invalid(path.join(&entry.name), format!("is not JSON ({error})"))
    })?;
    // What else it says is not kept until the shard is read.
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| matches!(name.as_str(), "label" | "clean_label" | "weight"));
    }
    Ok(value)
}
