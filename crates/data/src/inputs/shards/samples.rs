//! Entries of a shard that belong together: an image, its label and its metadata.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::encoded::{LARGEST_IMAGE, Piece, too_large};
use super::super::manifest::{label_word, weight_of, word};
use super::super::spool::Spool;
use super::entries::{self, Entry};
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
    /// The bytes of a gzipped shard's images go to `spool`.
    pub(super) fn read(
        path: &Path,
        most: usize,
        mut spool: Option<&mut Spool>,
    ) -> Result<Self, DataError> {
        let mut parts = Parts::default();
        let entries = entries::visit(path, most, &mut |entry| {
            parts.add(entry, spool.as_deref_mut())?;
            Ok(ControlFlow::Continue(()))
        })?;
        let samples = parts.parts.into_iter().filter_map(|part| part.sample(path).transpose());
        Ok(Self { samples: samples.collect::<Result<_, _>>()?, entries })
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
            check_image(&entry)?;
            images.push((entry.path(), entry.bytes(LARGEST_IMAGE)?));
        }
        Ok(if images.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    entries::visit(path, usize::MAX, &mut visit)?;
    Ok(images)
}

/// The entries seen so far, by their keys.
#[derive(Default)]
struct Parts {
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

impl Parts {
    fn add(&mut self, mut entry: Entry, spool: Option<&mut Spool>) -> Result<(), DataError> {
        let (key, ending) = key_and_ending(&entry.name);
        let is_image = IMAGES.contains(&ending.as_str());
        let is_hidden = key.rsplit('/').next().is_none_or(str::is_empty);
        if is_hidden || !(is_image || matches!(ending.as_str(), "cls" | "txt" | "json")) {
            return Ok(());
        }
        let at = *self.positions.entry(key.clone()).or_insert(self.parts.len());
        if at == self.parts.len() {
            self.parts.push(Part { key, ..Part::default() });
        }
        let part = &mut self.parts[at];
        let twice = match ending.as_str() {
            "cls" => {
                let text = text(&mut entry, LONGEST_NUMBER)?;
                if text.parse::<u64>().is_err() {
                    let message = format!("is {text:?}; a .cls holds the number of a class");
                    return Err(entry.invalid(message));
                }
                part.number.replace(text).is_some()
            }
            "txt" if entry.len > LONGEST_CLASS => false,
            "txt" => part.class.replace(text(&mut entry, LONGEST_CLASS)?).is_some(),
            "json" => part.json.replace(json(&mut entry)?).is_some(),
            _ => {
                let (piece, name) = (place(&mut entry, spool)?, entry.name.clone());
                part.image.replace(Image { name, piece }).is_some()
            }
        };
        if twice {
            let what = if is_image { "image".to_string() } else { format!(".{ending}") };
            let message = format!(
                "is the second {what} of the key {:?}; a key names one example of a shard",
                part.key
            );
            return Err(entry.invalid(message));
        }
        Ok(())
    }
}

impl Part {
    /// The example, if there is an image; a label without one is refused.
    fn sample(self, path: &Path) -> Result<Option<Sample>, DataError> {
        let Self { key, image, number, class, json } = self;
        let invalid = |message: String| DataError::invalid(path.join(&key), message);
        let field = |name: &str| {
            let value = json.as_ref().and_then(|json| json.get(name));
            let found = if name == "label" { label_word(value) } else { word(value) };
            let found = found.map_err(|what| invalid(format!("{name} of its .json {what}")))?;
            Ok(Some(found).filter(|word| !word.is_empty()))
        };
        let Some(image) = image else {
            if number.is_some() || class.is_some() {
                let images = IMAGES.join(", .");
                return Err(invalid(format!("has a label but no image (.{images})")));
            }
            // Metadata of the whole shard.
            return Ok(None);
        };
        let label = match number {
            Some(number) => Some(number),
            None => field("label")?.or(class.filter(|class| !class.is_empty())),
        };
        let clean = field("clean_label")?;
        let weight = field("weight")?.map(|word| weight_of(&word)).transpose().map_err(invalid)?;
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

fn check_image(entry: &Entry) -> Result<u32, DataError> {
    match u32::try_from(entry.len) {
        Ok(len) if entry.len <= LARGEST_IMAGE => Ok(len),
        _ => Err(entry.invalid(too_large(entry.len))),
    }
}

/// Where the bytes of an image can be read later: where they are, or in the spool.
fn place(entry: &mut Entry, spool: Option<&mut Spool>) -> Result<Piece, DataError> {
    let len = check_image(entry)?;
    let start = match spool {
        Some(spool) => spool.write(&entry.bytes(LARGEST_IMAGE)?)?,
        None => entry.start,
    };
    Ok(Piece { start, len })
}

fn text(entry: &mut Entry, most: u64) -> Result<String, DataError> {
    let bytes = entry.bytes(most)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| entry.invalid("is not valid UTF-8"))?;
    Ok(text.trim().to_string())
}

fn json(entry: &mut Entry) -> Result<Value, DataError> {
    let bytes = entry.bytes(LONGEST_JSON)?;
    let mut value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| entry.invalid(format!("is not JSON ({error})")))?;
    // What else it says is not kept until the shard is read.
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| matches!(name.as_str(), "label" | "clean_label" | "weight"));
    }
    Ok(value)
}
