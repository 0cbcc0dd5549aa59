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

use self::fault::Fault;
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
    pub fn refuse(&self, key: &str, message: impl Into<String>) -> RecipeError {
        self.origin(key).unwrap_or(&Origin::Argument(self.name.clone())).refuse(message)
    }
}

/// Decodes a document. `example` gives a value for a key that is missing.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(
    document: &Document,
    shape: &Shape,
    example: fn(&str) -> Option<String>,
) -> Result<T, RecipeError> {
    let root = Node { value: Value::Table(document.root.clone()), origin: ABSENT.origin.clone() };
    check_keys(shape, "", &root.value, shape)?;
    let decoded = nest(shape, String::new(), &root).and_then(|tree| tree.decode(PhantomData::<T>));
    decoded.map_err(|fault| match fault {
        Fault::Placed(error) => *error,
        Fault::MissingKey(key) => {
            let key = key_in_file(&key, shape);
            let placeholder = example(&key);
            RecipeError::Missing { recipe: document.name().to_string(), key, placeholder }
        }
        fault => document.refuse("", fault.to_string()),
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
fn check_keys(root: &Shape, name: &str, value: &Value, shape: &Shape) -> Result<(), RecipeError> {
    match (value, shape) {
        (Value::Table(table), _) if shape.has_keys() => {
            for (key, node) in table {
                let name = join(name, key);
                let Some(inner) = shape.key(key) else {
                    return Err(root.unknown_key(&node.origin, &name));
                };
                check_keys(root, &name, &node.value, inner)?;
            }
        }
        (Value::Array(items), Shape::List(inner)) => {
            for (at, item) in items.iter().enumerate() {
                check_keys(root, &format!("{name}[{at}]"), &item.value, inner)?;
            }
        }
        _ => {}
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
                    Some(tag) => nest_flattened(field, tag, &key, node, table)?,
                    None => {
                        // Then the message names the first key that is missing in the section.
                        let needed = field.shape.is_section() && !field.optional;
                        let value = table.get(field.name).or(needed.then_some(&*ABSENT));
                        let nest = |value| nest(&field.shape, join(&key, field.name), value);
                        value.map(nest).transpose()?
                    }
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

/// A field whose keys stand in the table of other fields.
fn nest_flattened<'a>(
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
                    Err(value.origin.refuse(message).into())
                }
            }
        }
        (Shape::Enum(variants), tag) => {
            let Some(chosen) = table.get(tag) else { return Ok(None) };
            let is_chosen = |(name, _): &&(&str, Shape)| chosen.value.is_text(name);
            let Some((name, inner)) = variants.iter().find(is_chosen) else {
                // As a plain value it is refused with the words that there are.
                return nest(&Shape::Value, join(key, tag), chosen).map(Some);
            };
            refuse_stale(&field.shape, inner, tag, key, table)?;
            Ok(Some(tree(name, nest(inner, key.to_string(), node)?)))
        }
        (shape, _) => {
            let absent =
                field.optional && !shape.names().into_iter().any(|name| table.contains_key(name));
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
    let meant = chosen.names();
    let is_stale = |name: &&str| *name != tag && table.contains_key(*name) && !meant.contains(name);
    let stale: Vec<&str> = all.names().into_iter().filter(is_stale).collect();
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
    first.origin.refuse(format!(
        "{} {have} no meaning with {} = {} ({}); remove {them}: on the command line by {}, in a \
         recipe with a base by without = {names:?}",
        names.join(", "),
        join(section, choice),
        value_text(&chosen.value),
        chosen.origin,
        sets.join(" "),
    ))
}
