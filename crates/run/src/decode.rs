//! From a document to the types that it describes.
//!
//! The types derive [`Deserialize`]; this deserializer knows where every value stands, so that
//! errors name file and line, or the argument, and the dotted key. Beyond plain serde it has two
//! conventions for fields whose keys stand in the table of other fields:
//! - A field called `..kind` is an enum; the key `kind` tells the variant, whose fields are keys of
//!   the same table.
//! - A field called `..` is a struct whose fields are keys of the same table; or an enum whose
//!   variants are named after keys, one of which is there.
//!
//! An enum that is a table by itself is the variant named after the first of its keys that is
//! there, or else the variant without a name.

mod fault;
mod tree;

use std::marker::PhantomData;

use serde::Deserialize;

use self::fault::{Fault, one_of};
use self::tree::{ABSENT, Content, Tree};
pub(crate) use self::tree::{Form, form_of};
use crate::document::{Document, Node, Origin, Table, Value};
use crate::recipe_error::RecipeError;
use crate::schema::{Field, Shape, join};
use crate::to_toml::value_text;

impl Document {
    /// The value of a type that derives its decoding: unknown keys are refused, and messages name
    /// line and key.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Table {
    ///     title: String,
    /// }
    ///
    /// let document = aleator_run::Document::parse("title = 3", "table.toml")?;
    /// let message = document.decode::<Table>().err().unwrap().to_string();
    /// assert_eq!(message, "table.toml:1: title must be a text, found the integer 3");
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    pub fn decode<T: for<'de> Deserialize<'de>>(&self) -> Result<T, RecipeError> {
        decode(self, &Shape::of::<T>(), |_| None)
    }

    /// The error for a value that cannot be meant; `message` names the key.
    pub fn refuse(&self, key: &str, message: String) -> RecipeError {
        let origin = self.origin(key).cloned();
        let origin = origin.unwrap_or(Origin::Argument(self.name().into()));
        RecipeError::Impossible { origin, message }
    }
}

/// Decodes a document. `example` gives a value for a key that is missing.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(
    document: &Document,
    shape: &Shape,
    example: fn(&str) -> Option<String>,
) -> Result<T, RecipeError> {
    check_keys(shape, "", &document.root, shape)?;
    let root = Node { value: Value::Table(document.root.clone()), origin: ABSENT.origin.clone() };
    let decoded = nest(shape, String::new(), &root).and_then(|tree| tree.decode(PhantomData::<T>));
    decoded.map_err(|fault| match fault {
        Fault::Placed(error) => *error,
        Fault::MissingKey(key) => {
            let key = key_in_file(&key, shape);
            let placeholder = example(&key);
            RecipeError::Missing { recipe: document.name().to_string(), key, placeholder }
        }
        fault => {
            let (recipe, message) = (document.name().to_string(), fault.to_string());
            RecipeError::Recipe { recipe, message }
        }
    })
}

/// The key that is missing if the field of this dotted name is.
fn key_in_file(name: &str, shape: &Shape) -> String {
    let Some((section, tag)) = name.rsplit_once("..") else { return name.to_string() };
    let section = section.trim_end_matches('.');
    if !tag.is_empty() {
        return join(section, tag);
    }
    let Some(Shape::Struct(fields)) = shape.at(section) else { return name.to_string() };
    let field = fields.iter().find(|field| field.name == "..");
    field.map_or(name.to_string(), |field| join(section, field.keys()[0].0))
}

/// Refuses the first key that there is not. A misspelt key is found before the key that is
/// missing because of it.
fn check_keys(
    root: &Shape,
    section: &str,
    table: &Table,
    shape: &Shape,
) -> Result<(), RecipeError> {
    let keys = shape.keys();
    for (key, node) in table {
        let name = join(section, key);
        let known = match shape {
            Shape::Map(inner) => Some(&**inner),
            _ => keys.iter().find(|(known, _)| known == key).map(|(_, shape)| *shape),
        };
        let Some(inner) = known else {
            return Err(root.unknown_key(node.origin.clone(), &name));
        };
        match (&node.value, inner) {
            (Value::Table(table), Shape::Map(_)) => check_keys(root, &name, table, inner)?,
            (Value::Table(table), _) if !inner.keys().is_empty() => {
                check_keys(root, &name, table, inner)?;
            }
            (Value::Array(items), Shape::List(inner)) if inner.is_section() => {
                for (at, item) in items.iter().enumerate() {
                    if let Value::Table(table) = &item.value {
                        check_keys(root, &format!("{name}[{at}]"), table, inner)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Arranges a value by the shape that it must have.
fn nest<'a>(shape: &'a Shape, key: String, node: &'a Node) -> Result<Tree<'a>, Fault> {
    let content = match (shape, &node.value) {
        (Shape::Map(inner), Value::Table(table)) => {
            let mut entries: Vec<(&String, &Node)> = table.iter().collect();
            entries.sort_by_key(|(_, node)| node.origin.line());
            let entry = |(name, node): (&'a String, _)| {
                Ok((&name[..], nest(inner, join(&key, name), node)?))
            };
            Content::Map(entries.into_iter().map(entry).collect::<Result<_, Fault>>()?)
        }
        (Shape::Struct(fields) | Shape::Inline(fields), Value::Table(table)) => {
            let mut entries = vec![];
            for field in fields {
                let tree = match field.name.strip_prefix("..") {
                    Some(tag) => beside(field, tag, &key, node, table)?,
                    None => nest_field(field, &key, table)?,
                };
                entries.extend(tree.map(|tree| (field.name, tree)));
            }
            Content::Map(entries)
        }
        (Shape::Enum(variants), Value::Table(table)) if shape.is_section() => {
            let is_there =
                |(name, _): &&(&str, Shape)| table.contains_key(*name) || name.is_empty();
            match variants.iter().find(is_there) {
                Some((name, inner)) => {
                    Content::Variant(name, Box::new(nest(inner, key.clone(), node)?))
                }
                None => return Err(Fault::Missing(variants[0].0).at(&key, node)),
            }
        }
        (Shape::Struct(_) | Shape::Enum(_), _) if shape.is_section() => {
            return Err(Fault::Type(format!("a section [{key}]")).at(&key, node));
        }
        (_, Value::Array(items)) => {
            let inner = if let Shape::List(inner) = shape { &**inner } else { &Shape::Value };
            let item = |(at, node)| nest(inner, format!("{key}[{at}]"), node);
            Content::List(items.iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        (Shape::List(inner), _) if inner.is_section() => {
            return Err(Fault::Type(format!("tables, each under [[{key}]]")).at(&key, node));
        }
        _ => Content::Leaf,
    };
    Ok(Tree { key, node, content })
}

/// A field with a key of its own.
fn nest_field<'a>(
    field: &'a Field,
    section: &str,
    table: &'a Table,
) -> Result<Option<Tree<'a>>, Fault> {
    let key = join(section, field.name);
    match table.get(field.name) {
        Some(node) => nest(&field.shape, key, node).map(Some),
        // So that the message names the first key that is missing in it.
        None if field.shape.is_section() && !field.optional => {
            nest(&field.shape, key, &ABSENT).map(Some)
        }
        None => Ok(None),
    }
}

/// A field whose keys stand in the table of other fields.
fn beside<'a>(
    field: &'a Field,
    tag: &'a str,
    key: &str,
    node: &'a Node,
    table: &'a Table,
) -> Result<Option<Tree<'a>>, Fault> {
    let tree = |name, inner| Tree {
        key: key.to_string(),
        node,
        content: Content::Variant(name, Box::new(inner)),
    };
    match (&field.shape, tag) {
        (Shape::Enum(keys), "") => {
            let mut there: Vec<(&'a str, &Shape, &Node)> = keys
                .iter()
                .filter_map(|(name, shape)| Some((*name, shape, table.get(*name)?)))
                .collect();
            there.sort_by_key(|(_, _, value)| value.origin.line());
            match there[..] {
                [] => Ok(None),
                [(name, shape, value)] => {
                    Ok(Some(tree(name, nest(shape, join(key, name), value)?)))
                }
                [(first, _, value), (second, _, other), ..] => {
                    let (first, second) = (join(key, first), join(key, second));
                    let other = &other.origin;
                    let message =
                        format!("{first} and {second} ({other}) are both given: keep one");
                    Err(value.refuse(message).into())
                }
            }
        }
        (Shape::Enum(variants), tag) => {
            let Some(chosen) = table.get(tag) else { return Ok(None) };
            let words =
                || -> Vec<&'static str> { variants.iter().map(|(name, _)| *name).collect() };
            let Value::String(word) = &chosen.value else {
                return Err(Fault::Type(one_of(&words())).at(&join(key, tag), chosen));
            };
            let Some((name, inner)) = variants.iter().find(|(name, _)| name == word) else {
                let fault = Fault::Word { found: word.clone(), words: words() };
                return Err(fault.at(&join(key, tag), chosen));
            };
            refuse_stale(&field.shape, inner, tag, key, table)?;
            Ok(Some(tree(name, nest(inner, key.to_string(), node)?)))
        }
        (shape, _) => {
            let mut keys = shape.keys().into_iter();
            let absent = field.optional && !keys.any(|(name, _)| table.contains_key(name));
            if absent { Ok(None) } else { nest(shape, key.to_string(), node).map(Some) }
        }
    }
}

/// Refuses keys of other variants than the chosen one.
fn refuse_stale(
    all: &Shape,
    chosen: &Shape,
    tag: &str,
    section: &str,
    table: &Table,
) -> Result<(), Fault> {
    let meant = chosen.keys();
    let is_stale = |name: &str| {
        name != tag && table.contains_key(name) && meant.iter().all(|(key, _)| *key != name)
    };
    let stale: Vec<&str> =
        all.keys().into_iter().map(|(name, _)| name).filter(|name| is_stale(name)).collect();
    match stale.first() {
        Some(first) => Err(no_meaning(section, &stale, &table[*first], tag, &table[tag]).into()),
        None => Ok(()),
    }
}

/// The error for keys that another key of their section makes useless.
pub(crate) fn no_meaning(
    section: &str,
    keys: &[&str],
    first: &Node,
    choice: &str,
    chosen: &Node,
) -> RecipeError {
    let names: Vec<String> = keys.iter().map(|key| join(section, key)).collect();
    let sets: Vec<String> = names.iter().map(|name| format!("--set {name}=")).collect();
    let (have, them) = if names.len() == 1 { ("has", "it") } else { ("have", "them") };
    RecipeError::Impossible {
        origin: first.origin.clone(),
        message: format!(
            "{} {have} no meaning with {} = {} ({}); remove {them}: on the command line by {}, in \
             a recipe with a base by without = {names:?}",
            names.join(", "),
            join(section, choice),
            value_text(&chosen.value),
            chosen.origin,
            sets.join(" "),
        ),
    }
}
