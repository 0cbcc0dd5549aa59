//! One hash that changes when anything in the data changes.

use std::collections::BTreeMap;

use aleator_run::Split;

use super::source::Source;
use crate::error::DataError;
use crate::ids::Ids;
use crate::labels::Labels;

/// The hash of all sources in hexadecimal, and a warning for each source that repeats the inputs
/// of another. Also checks that every number in the inputs is finite.
pub(super) fn fingerprint<'a>(
    class_names: &[String],
    sources: impl Iterator<Item = (Split, &'a Source)>,
) -> Result<(String, Vec<String>), DataError> {
    let mut whole = Framed::new("aleator data 1");
    whole.field("classes", |field| field.words(class_names));
    let mut inputs = BTreeMap::new();
    let mut repeated = vec![];
    for (split, source) in sources {
        let name = split.name();
        let mut hasher = blake3::Hasher::new();
        source.inputs.fingerprint_into(&mut hasher)?;
        let of_inputs = *hasher.finalize().as_bytes();
        if let Some(first) = inputs.insert(of_inputs, name) {
            repeated.push(format!(
                "the {name} source has the same inputs as the {first} source: what is measured on \
                 it says nothing about new examples"
            ));
        }
        whole.field(name, |field| {
            field.bytes(&of_inputs);
            field.ids(&source.ids);
            field.labels(&source.labels);
            field.labels(&Labels::Single(source.clean_labels.clone().unwrap_or_default()));
            if let Some(weights) = &source.weights {
                field.numbers(weights.iter().map(|weight| u64::from(weight.to_bits())));
            }
        });
    }
    Ok((whole.hasher.finalize().to_hex().to_string(), repeated))
}

/// A hasher to which everything goes with its length before it, so that no two different
/// contents feed it the same bytes.
struct Framed {
    hasher: blake3::Hasher,
}

impl Framed {
    fn new(name: &str) -> Self {
        let mut framed = Self { hasher: blake3::Hasher::new() };
        framed.bytes(name.as_bytes());
        framed
    }

    fn field(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let mut field = Self::new(name);
        fill(&mut field);
        self.hasher.update(field.hasher.finalize().as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    fn words(&mut self, words: &[String]) {
        self.hasher.update(&(words.len() as u64).to_le_bytes());
        words.iter().for_each(|word| self.bytes(word.as_bytes()));
    }

    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.hasher.update(&(numbers.len() as u64).to_le_bytes());
        for number in numbers {
            self.hasher.update(&number.to_le_bytes());
        }
    }

    fn classes(&mut self, classes: &[u32]) {
        self.numbers(classes.iter().map(|class| u64::from(*class)));
    }

    fn offsets(&mut self, offsets: &[usize]) {
        self.numbers(offsets.iter().map(|offset| *offset as u64));
    }

    fn ids(&mut self, ids: &Ids) {
        match ids {
            Ids::Rows(count) => self.field("rows", |field| field.offsets(&[*count])),
            Ids::Selected(rows) => self.field("selected", |field| field.offsets(rows)),
            Ids::Names(names) => self.field("names", |field| field.words(names)),
        }
    }

    fn labels(&mut self, labels: &Labels) {
        match labels {
            Labels::Single(classes) => self.field("single", |field| field.classes(classes)),
            Labels::MultiHot(rows) => self.field("multi-hot", |field| {
                field.offsets(&rows.offsets);
                field.classes(&rows.classes);
            }),
            Labels::Soft(rows) => self.field("soft", |field| {
                field.offsets(&[rows.classes]);
                field.numbers(rows.values.iter().map(|prob| u64::from(prob.to_bits())));
            }),
            Labels::Annotations(votes) => self.field("annotations", |field| {
                field.offsets(&votes.offsets);
                field.classes(&votes.annotators);
                field.classes(&votes.labels);
                field.words(&votes.annotator_names);
            }),
        }
    }
}
