//! A report on data before anything is trained on it: what it holds, and what is odd about it.

mod duplicates;
mod features;
mod images;
mod print;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use aleator_run::recipe::{Data, Framing, HeldOut, LabelKind, Link};
use serde::Serialize;

use crate::error::DataError;
use crate::inputs::InputShape;
use crate::inputs::recognise::{ColumnNames, Family, Recognised, recognise_columns};
use crate::labels::Labels;
use crate::sources::Sources;
use crate::sources::source::Source;
pub use duplicates::{Copied, Duplicates, Group};
pub use features::{Deviation, FeatureReport, ScaleReport};
pub use images::{Corrupt, ImageReport};

/// What [`examine`] found. Its `Display` is a page of text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What was recognised, in one or two sentences.
    pub recognised: String,
    /// A better way to train on such data than the one that `aleator train` chooses.
    pub advice: Option<String>,
    /// The sources that were found, `train` first.
    pub splits: Vec<SplitCount>,
    /// In the order of the classes' numbers.
    pub classes: Vec<ClassCount>,
    /// How unequal the classes of the training source are.
    pub balance: Option<Balance>,
    /// Classes with a single training example: it cannot be both learned from and measured on.
    pub occur_once: Vec<String>,
    /// The sizes and colours, if the inputs are images.
    pub images: Option<ImageReport>,
    /// Each source of embeddings.
    pub features: Vec<FeatureReport>,
    /// Images or rows with equal content.
    pub duplicates: Duplicates,
    /// Images that cannot be decoded, by split and id.
    pub corrupt: Vec<Corrupt>,
}

/// One source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SplitCount {
    /// `"train"`, `"validation"` or `"test"`.
    pub name: &'static str,
    /// Its examples.
    pub examples: usize,
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// Its name, or its number if it has none.
    pub name: String,
    /// Training examples that have it; with several annotators, annotations.
    pub train: usize,
    /// Examples of the other sources that have it.
    pub held_out: usize,
}

/// The smallest and the largest class of the training source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// Examples of the smallest class that has any.
    pub smallest: usize,
    /// Examples of the largest class.
    pub largest: usize,
    /// Their ratio, at least 1.
    pub ratio: f64,
}

/// Examines all that a path holds: labels, and every image or number. `progress` is called with
/// the number of examples done and in all.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// for class in ["cat", "dog"] {
///     std::fs::create_dir(folder.join(class))?;
///     std::fs::write(folder.join(class).join("1.ppm"), b"P6 1 1 255\nabc")?;
/// }
/// let diagnosis = aleator_data::examine(folder, &|_, _| {})?;
/// assert_eq!(diagnosis.splits[0].examples, 2);
/// // The same picture is a cat and a dog.
/// assert!(diagnosis.duplicates.groups[0].different_labels);
/// println!("{diagnosis}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When it is not clear what the path holds, or its labels cannot be read.
pub fn examine(
    path: &Path,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Diagnosis, DataError> {
    examine_columns(path, &ColumnNames::default(), progress)
}

/// [`examine`], where the user says what some columns of a table are.
///
/// # Errors
/// As [`examine`].
pub fn examine_columns(
    path: &Path,
    columns: &ColumnNames,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Diagnosis, DataError> {
    let recognised = recognise_columns(path, columns)?;
    let (data, link) = recipe(&recognised);
    let opened = Sources::read(&data, link)?;
    let shape = opened.shape();
    let sources: Vec<(&'static str, &Source)> =
        opened.all().map(|(split, source)| (split.name(), source)).collect();

    let total = sources.iter().map(|(_, source)| source.ids.len()).sum();
    let done = AtomicUsize::new(0);
    let count = |more: usize| progress(done.fetch_add(more, Ordering::Relaxed) + more, total);
    let mut hashes = vec![];
    let (mut measured, mut corrupt, mut features) = (vec![], vec![], vec![]);
    for (at, (name, source)) in sources.iter().enumerate() {
        match shape {
            InputShape::Image { .. } => {
                let found = images::scan(name, source, &count);
                hashes.extend(found.hashes.into_iter().map(|(hash, row)| (hash, at, row)));
                measured.extend(found.sizes);
                corrupt.extend(found.corrupt);
            }
            InputShape::Features(_) => {
                let (report, found) = features::scan(name, source, &count)?;
                hashes.extend(found.into_iter().map(|(hash, row)| (hash, at, row)));
                features.push(report);
            }
        }
    }
    corrupt.sort();
    let classes = class_counts(opened.class_names(), &sources);
    Ok(Diagnosis {
        advice: recognised.advice(path),
        recognised: [Some(recognised.explanation.clone()), recognised.resizing()]
            .into_iter()
            .flatten()
            .chain(opened.notes())
            .collect::<Vec<_>>()
            .join(" "),
        splits: sources
            .iter()
            .map(|(name, source)| SplitCount { name, examples: source.ids.len() })
            .collect(),
        balance: balance(&classes),
        occur_once: classes
            .iter()
            .filter(|class| class.train == 1)
            .map(|class| class.name.clone())
            .collect(),
        classes,
        images: ImageReport::of(measured),
        features,
        duplicates: Duplicates::find(hashes, &sources),
        corrupt,
    })
}

/// The data as a recipe would describe them.
fn recipe(recognised: &Recognised) -> (Data, Link) {
    let link = match recognised.preset_family {
        Family::Multilabel => Link::Sigmoid,
        Family::Features | Family::Images => Link::Softmax,
    };
    let found = recognised.data.clone();
    let validation = found.validation.unwrap_or(HeldOut::Fraction { fraction: 0.5, seed: 0 });
    let data = Data {
        label_kind: found.label_kind.unwrap_or(LabelKind::Auto),
        class_names: found.class_names,
        framing: Framing { size: found.image_size.flatten(), ..Framing::PLAIN },
        test: found.test,
        ..Data::of(recognised.train.clone(), validation)
    };
    (data, link)
}

fn class_counts(names: &[String], sources: &[(&'static str, &Source)]) -> Vec<ClassCount> {
    let mut classes: Vec<ClassCount> =
        names.iter().map(|name| ClassCount { name: name.clone(), train: 0, held_out: 0 }).collect();
    for (at, (_, source)) in sources.iter().enumerate() {
        let mut add = |class: u32| {
            let class = &mut classes[class as usize];
            let count = if at == 0 { &mut class.train } else { &mut class.held_out };
            *count += 1;
        };
        match &source.labels {
            Labels::Single(labels) => labels.iter().for_each(|class| add(*class)),
            Labels::MultiHot(rows) => rows.classes.iter().for_each(|class| add(*class)),
            Labels::Annotations(votes) => votes.labels.iter().for_each(|class| add(*class)),
            Labels::Soft(_) => {
                let hard = source.labels.hard(0, &source.ids).unwrap_or_default();
                hard.into_iter().for_each(add);
            }
        }
    }
    classes
}

fn balance(classes: &[ClassCount]) -> Option<Balance> {
    let counts = || classes.iter().map(|class| class.train).filter(|count| *count > 0);
    let (smallest, largest) = (counts().min()?, counts().max()?);
    Some(Balance { smallest, largest, ratio: largest as f64 / smallest as f64 })
}
