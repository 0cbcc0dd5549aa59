//! The keys that a document can have: read off the types that decode them.

use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::document::Origin;
use crate::recipe::Recipe;
use crate::recipe_error::RecipeError;

/// No key has more parts than this.
pub(crate) const MAX_DEPTH: usize = 3;

/// What a type asks a deserializer for.
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
        trace(probe::<T>, &[]).1
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
        let nested: Vec<(&'static str, &Self)> = match self {
            Self::Struct(fields) | Self::Inline(fields) => {
                fields.iter().flat_map(Field::keys).collect()
            }
            Self::Enum(variants) => variants.iter().flat_map(|(_, inner)| inner.keys()).collect(),
            _ => vec![],
        };
        let mut keys: Vec<(&'static str, &Self)> = vec![];
        for (name, shape) in nested {
            if keys.iter().all(|(known, _)| *known != name) {
                keys.push((name, shape));
            }
        }
        keys
    }

    /// The shape of a dotted key or section; `key[0]` is an item of a list.
    pub fn at(&self, name: &str) -> Option<&Self> {
        if name.is_empty() {
            return Some(self);
        }
        name.split('.').try_fold(self, |shape, part| {
            let (part, index) = part.split_once('[').unwrap_or((part, ""));
            let found = match shape {
                Self::Map(inner) => &**inner,
                _ => shape.keys().into_iter().find(|(key, _)| *key == part)?.1,
            };
            match (found, index.is_empty()) {
                (Self::List(inner), false) => Some(&**inner),
                _ => Some(found),
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
        let names = |shape: &Self| shape.keys().into_iter().map(|(name, _)| name).collect();
        let here: Vec<&str> = self.at(section).map(names).unwrap_or_default();
        if let Some(similar) = most_similar(key, &here) {
            return Some(join(section, similar));
        }
        let sections = self.sections("").into_iter();
        let elsewhere: Vec<String> = sections
            .filter(|(_, shape)| shape.keys().iter().any(|(name, _)| *name == key))
            .map(|(section, _)| join(&section, key))
            .collect();
        (!elsewhere.is_empty()).then(|| elsewhere.join(" or "))
    }

    /// The error for a key that there is not; if there is no such section, for the section.
    pub fn unknown_key(&self, origin: Origin, key: &str) -> RecipeError {
        let ends = key.match_indices('.').map(|(at, _)| at).chain([key.len()]);
        let unknown = ends.map(|end| &key[..end]).find(|part| self.at(part).is_none());
        let key = unknown.unwrap_or(key);
        let (section, last) = key.rsplit_once('.').unwrap_or(("", key));
        let keys = self.at(section).map(Self::keys).unwrap_or_default();
        let names: Vec<&str> = keys.into_iter().map(|(name, _)| name).collect();
        RecipeError::UnknownKey {
            origin,
            key: key.to_string(),
            nearest: self.nearest(section, last),
            known: match names.is_empty() {
                false => names.join(", "),
                true => format!("nothing, since {section} is no section"),
            },
        }
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

/// What a type asks for first.
#[derive(Clone, Copy)]
enum Form {
    Value,
    Text,
    List,
    Map,
    Struct { inline: bool, names: &'static [&'static str] },
    Enum { names: &'static [&'static str] },
}

/// Whether a part of a type is optional, and its shape. `steps` leads to the part: at each step
/// the number of a field or variant.
fn trace(probe: fn(&[usize]) -> (bool, Form), steps: &[usize]) -> (bool, Shape) {
    let (optional, form) = probe(steps);
    let part = |at: usize| trace(probe, &[steps, &[at]].concat());
    let shape = match form {
        Form::Value => Shape::Value,
        Form::Text => Shape::Text,
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
    (optional, shape)
}

/// Asks a type what its part is. Nothing is decoded.
fn probe<T: for<'de> Deserialize<'de>>(steps: &[usize]) -> (bool, Form) {
    let found = RefCell::new((false, Form::Value));
    T::deserialize(Probe { steps, found: &found }).err();
    found.into_inner()
}

/// A deserializer that walks to one part of a type, notes what that asks for, and stops.
#[derive(Clone, Copy)]
struct Probe<'a> {
    steps: &'a [usize],
    found: &'a RefCell<(bool, Form)>,
}

#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type has told its shape")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl Probe<'_> {
    /// Notes the form, or goes on to one of its parts.
    fn meet<'de, V: Visitor<'de>>(self, form: Form, visitor: V) -> Result<V::Value, Stop> {
        let Some((step, rest)) = self.steps.split_first() else {
            self.found.borrow_mut().1 = form;
            return Err(Stop);
        };
        let part = Probe { steps: rest, found: self.found };
        match form {
            Form::Value | Form::Text => Err(Stop),
            Form::List => visitor.visit_seq(SeqDeserializer::new(std::iter::once(part))),
            Form::Map => visitor.visit_map(MapDeserializer::new(std::iter::once(("", part)))),
            Form::Struct { names, .. } => {
                visitor.visit_map(MapDeserializer::new(std::iter::once((names[*step], part))))
            }
            Form::Enum { names } => visitor.visit_enum(Named(part, names[*step])),
        }
    }
}

impl<'de> IntoDeserializer<'de, Stop> for Probe<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.meet(Form::Value, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.meet(Form::Text, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.meet(Form::List, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.meet(Form::Map, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.found.borrow_mut().0 |= self.steps.is_empty();
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.meet(Form::Struct { inline: name == "inline", names }, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.meet(Form::Enum { names }, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// A variant by its name.
struct Named<'a>(Probe<'a>, &'static str);

impl<'de, 'a> de::EnumAccess<'de> for Named<'a> {
    type Error = Stop;
    type Variant = Probe<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Probe<'a>), Stop> {
        let name: StrDeserializer<'_, Stop> = self.1.into_deserializer();
        Ok((seed.deserialize(name)?, self.0))
    }
}

impl<'de> de::VariantAccess<'de> for Probe<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        self.meet(Form::Value, de::IgnoredAny).map(|_| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        self.meet(Form::List, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.meet(Form::Struct { inline: false, names }, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_the_documentation() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md");
        let text = std::fs::read_to_string(document).unwrap();
        let keys = text.split("## Every key").nth(1).unwrap().split("## Sweeps").next().unwrap();
        let mut count = 0;
        for (name, section) in Shape::recipe().sections("") {
            let header = format!("| `[{name}]`");
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
