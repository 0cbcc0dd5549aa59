//! The keys that a document can have: read off the types that decode them.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::decode::{Form, form_of};
use crate::document::Origin;
use crate::recipe::Recipe;
use crate::recipe_error::{RecipeError, did_you_mean};

/// No key has more parts than this.
pub(crate) const MAX_DEPTH: usize = 4;

/// What a value of a type looks like in a document.
#[derive(Debug)]
pub(crate) enum Shape {
    Value,
    /// Any text: a text of the command line is never a number here.
    Text,
    List(Box<Shape>),
    /// A table with keys of the user's choice.
    Map(Box<Shape>),
    Struct(Vec<Field>),
    /// A table on one line, as `{ low = 0.3, high = 3.0 }`, in place of a value.
    Inline(Vec<Field>),
    Enum(Vec<(&'static str, Shape)>),
}

#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    pub optional: bool,
    pub shape: Shape,
}

impl Shape {
    /// That of recipes.
    pub fn recipe() -> &'static Self {
        static SHAPE: OnceLock<Shape> = OnceLock::new();
        SHAPE.get_or_init(|| {
            let mut shape = Self::of::<Recipe>();
            if let Self::Struct(fields) = &mut shape {
                let only_in_files = ["base", "without"];
                let field = |name| Field { name, optional: true, shape: Self::Value };
                fields.splice(0..0, only_in_files.map(field));
            }
            shape
        })
    }

    /// That of a type.
    pub fn of<T: for<'de> Deserialize<'de>>() -> Self {
        trace(form_of::<T>, &[]).1
    }

    pub fn is_section(&self) -> bool {
        match self {
            Self::Struct(_) | Self::Map(_) => true,
            Self::Enum(variants) => variants.iter().any(|(_, inner)| inner.is_section()),
            _ => false,
        }
    }

    /// Every key of a table of this shape, in the order of the types.
    pub fn keys(&self) -> Vec<(&'static str, &Self)> {
        let mut keys: Vec<(&'static str, &Self)> = match self {
            Self::Struct(fields) | Self::Inline(fields) => {
                fields.iter().flat_map(Field::keys).collect()
            }
            Self::Enum(variants) => variants.iter().flat_map(|(_, inner)| inner.keys()).collect(),
            _ => vec![],
        };
        let mut seen = BTreeSet::new();
        keys.retain(|(name, _)| seen.insert(*name));
        keys
    }

    /// The names of [`keys`](Self::keys).
    pub fn names(&self) -> Vec<&'static str> {
        self.keys().into_iter().map(|(name, _)| name).collect()
    }

    /// Whether a table of this shape has keys, be they of the user's choice.
    pub fn has_keys(&self) -> bool {
        matches!(self, Self::Map(_)) || !self.keys().is_empty()
    }

    /// The shape of a key of a table of this shape.
    pub fn key(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(inner) => Some(inner),
            _ => self.keys().into_iter().find(|(key, _)| *key == name).map(|(_, shape)| shape),
        }
    }

    /// The shape of a dotted key or section; `key[0]` is an item of a list.
    pub fn at(&self, name: &str) -> Option<&Self> {
        if name.is_empty() {
            return Some(self);
        }
        name.split('.').try_fold(self, |shape, part| {
            let (part, index) = part.split_once('[').unwrap_or((part, ""));
            match shape.key(part)? {
                Self::List(inner) if !index.is_empty() => Some(&**inner),
                inner => Some(inner),
            }
        })
    }

    /// This table and the sections below it, with their dotted names.
    pub fn sections(&self, name: &str) -> Vec<(String, &Self)> {
        let below = self.keys().into_iter().filter(|(_, shape)| shape.is_section());
        let below = below.flat_map(|(key, shape)| shape.sections(&join(name, key)));
        std::iter::once((name.to_string(), self)).chain(below).collect()
    }

    /// What the writer of an unknown key may have meant: a similar key of the same section, else
    /// the keys of that very name in others.
    fn nearest(&self, section: &str, key: &str) -> Option<String> {
        let here = self.at(section).map(Self::names).unwrap_or_default();
        if let Some(similar) = most_similar(key, &here) {
            return Some(join(section, similar));
        }
        let sections = self.sections("").into_iter();
        let elsewhere: Vec<String> = sections
            .filter(|(_, shape)| shape.names().contains(&key))
            .map(|(section, _)| join(&section, key))
            .collect();
        (!elsewhere.is_empty()).then(|| elsewhere.join(" or "))
    }

    /// The error for a key that there is not; if there is no such section, for the section.
    pub fn unknown_key(&self, origin: &Origin, key: &str) -> RecipeError {
        let ends = key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
        let unknown = ends.map(|end| &key[..end]).find(|part| self.at(part).is_none());
        let key = unknown.unwrap_or(key);
        let (section, last) = key.rsplit_once('.').unwrap_or(("", key));
        let names = self.at(section).map(Self::names).unwrap_or_default();
        let known = match names.is_empty() {
            false => names.join(", "),
            true => format!("nothing, since {section} is no section"),
        };
        let hint = did_you_mean(self.nearest(section, last).as_deref());
        origin.refuse(format!("unknown key {key}{hint} Known here: {known}"))
    }
}

impl Field {
    /// The keys of a table that belong to this field; see [`decode`](crate::decode) for `..`.
    pub fn keys(&self) -> Vec<(&'static str, &Shape)> {
        match (self.name.strip_prefix(".."), &self.shape) {
            (None, shape) => vec![(self.name, shape)],
            (Some(""), Shape::Enum(keys)) => {
                keys.iter().map(|(key, shape)| (*key, shape)).collect()
            }
            (Some(""), shape) => shape.keys(),
            (Some(tag), shape) => {
                std::iter::once((tag, &Shape::Value)).chain(shape.keys()).collect()
            }
        }
    }
}

/// `section.key`, or the key alone at the top.
pub(crate) fn join(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_string() } else { format!("{section}.{key}") }
}

/// The candidate that a word was probably meant to be.
pub(crate) fn most_similar<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    /// Below this, two words that both occur in recipes are meant as such.
    const SIMILAR: f64 = 0.8;
    let score = |candidate: &str| strsim::jaro_winkler(word, candidate);
    let best = candidates.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) >= SIMILAR).then_some(best)
}

/// Whether a part of a type is optional, and its shape. `steps` leads to the part, as in
/// [`form_of`].
fn trace(form_of: fn(&[usize]) -> Form, steps: &[usize]) -> (bool, Shape) {
    let part = |at: usize| trace(form_of, &[steps, &[at]].concat());
    let shape = match form_of(steps) {
        Form::Value => Shape::Value,
        Form::Text => Shape::Text,
        Form::Option => return (true, part(0).1),
        Form::List => Shape::List(Box::new(part(0).1)),
        Form::Map => Shape::Map(Box::new(part(0).1)),
        Form::Struct { inline, names } => {
            let field = |(at, name): (usize, &&'static str)| {
                let (optional, shape) = part(at);
                Field { name, optional, shape }
            };
            let fields = names.iter().enumerate().map(field).collect();
            if inline { Shape::Inline(fields) } else { Shape::Struct(fields) }
        }
        Form::Enum { names } => {
            let variants = names.iter().enumerate();
            Shape::Enum(variants.map(|(at, name)| (*name, part(at).1)).collect())
        }
    };
    (false, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_the_documentation() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let read = |name: &str| std::fs::read_to_string(format!("{docs}/{name}")).unwrap();
        let (recipes, methods) = (read("recipes.md"), read("methods.md"));
        let keys = recipes.split("## Every key").nth(1).unwrap().split("## Sweeps").next().unwrap();
        // The settings of a training method stand beside its description.
        let keys = format!("{keys}{methods}");
        let mut count = 0;
        for (name, section) in Shape::recipe().sections("") {
            let header = format!("`[{name}]`");
            assert!(name.is_empty() || keys.contains(&header), "{header}");
            for (key, _) in section.keys().iter().filter(|(_, shape)| !shape.is_section()) {
                assert!(keys.contains(&format!("`{key}`")), "{key} of [{name}]");
                count += 1;
            }
        }
        assert!(count > 80, "{count}");
    }

    #[test]
    fn keys_are_found_by_their_dotted_names() {
        let shape = Shape::recipe();
        assert_eq!(shape.at("optimizer").unwrap().keys().last().unwrap().0, "l2");
        let top: Vec<&str> = shape.keys().into_iter().map(|(name, _)| name).collect();
        assert!(top.contains(&"data") && !top.contains(&"train"));
        assert!(shape.at("data.noise").unwrap().is_section());
        assert!(shape.at("data.test").unwrap().is_section());
        assert!(!shape.at("head.temperature").unwrap().is_section());
        assert!(shape.at("head.temperature.low").is_some());
        assert!(shape.at("head.rank.low").is_none() && shape.at("heads").is_none());
        for text in ["summary", "data.class_names", "data.test.images", "network.pretrained"] {
            assert!(matches!(shape.at(text), Some(Shape::Text)), "{text}");
        }
        assert!(!matches!(shape.at("data.train.builtin"), Some(Shape::Text)));
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour_and_a_misplaced_one_its_place() {
        let nearest = |section, key| Shape::recipe().nearest(section, key);
        assert_eq!(nearest("head", "rnak").as_deref(), Some("head.rank"));
        assert_eq!(nearest("head", "temp").as_deref(), Some("head.temperature"));
        assert_eq!(nearest("", "rank").as_deref(), Some("head.rank"));
        assert_eq!(
            nearest("training", "samples").as_deref(),
            Some("head.samples or evaluation.samples")
        );
        assert_eq!(nearest("head", "zzz"), None);
    }
}
