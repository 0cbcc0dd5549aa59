//! A recipe as a tree in which every value knows where it came from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::recipe_error::RecipeError;
use crate::schema::{MAX_DEPTH, Shape};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file; printed as `file:line`.
    Line {
        /// The file, or "preset NAME".
        file: Arc<str>,
        /// Counted from 1.
        line: usize,
    },
    /// An argument of the command line; printed as it was given.
    Argument(Arc<str>),
}

impl Origin {
    /// The line of a file; what the command line gives comes after all lines.
    pub(crate) fn line(&self) -> usize {
        match self {
            Self::Line { line, .. } => *line,
            Self::Argument(_) => usize::MAX,
        }
    }

    /// The error for what stands here; `message` names the key.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> RecipeError {
        RecipeError::Wrong { origin: self.clone(), message: message.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Argument(text) => f.write_str(text),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where its key stands.
    pub origin: Origin,
}

impl Node {
    /// The error for a value of another type.
    pub(crate) fn wrong_type(&self, key: &str, expected: &str) -> RecipeError {
        self.origin.refuse(format!("{key} must be {expected}, found {}", self.value.describe()))
    }
}

/// Keys and their values.
pub type Table = BTreeMap<String, Node>;

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `"text"`.
    String(String),
    /// `3`; wide enough for any seed.
    Integer(i128),
    /// `0.5`.
    Float(f64),
    /// `true`.
    Boolean(bool),
    /// `2026-01-31`, as it was written. No key of a recipe takes one.
    Date(String),
    /// `[1, 2]`.
    Array(Vec<Node>),
    /// `[section]` or `{ key = 1 }`.
    Table(Table),
}

/// A recipe as a tree in which every value knows where it came from.
///
/// ```
/// use aleator_run::Document;
///
/// let mut document = Document::parse("[head]\nrank = 15\n", "my.toml")?;
/// document.set("head.temperature=0.9")?;
/// assert_eq!(document.get("head.rank").unwrap().origin.to_string(), "my.toml:2");
/// assert_eq!(document.to_toml(), "[head]\nrank = 15\ntemperature = 0.9\n");
/// # Ok::<(), aleator_run::RecipeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub(crate) name: Arc<str>,
    pub(crate) root: Table,
}

impl Document {
    /// Parses TOML. `name` is what messages call it.
    pub fn parse(text: &str, name: &str) -> Result<Self, RecipeError> {
        let name: Arc<str> = name.into();
        let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let origin = |at: usize| {
            let line = 1 + line_ends.partition_point(|end| *end < at);
            Origin::Line { file: name.clone(), line }
        };
        let root = DeTable::parse(text).map_err(|error| {
            origin(error.span().map_or(0, |span| span.start)).refuse(error.message())
        })?;
        let root = convert_table(root.into_inner(), &origin)?;
        Ok(Self { name, root })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything in it.
    pub fn root(&self) -> &Table {
        &self.root
    }

    /// The value of a dotted key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let mut parts = key.split('.');
        let first = self.root.get(parts.next()?)?;
        parts.try_fold(first, |node, part| match &node.value {
            Value::Table(table) => table.get(part),
            _ => None,
        })
    }

    /// Carries out `--set key=value`.
    ///
    /// The value is read as TOML (`6`, `[0, 1]`, `{ low = 0.3, high = 3.0 }`); what is not TOML is
    /// a text, so that words need no quotes. The value of a path, or of `summary`, is a text even
    /// if it looks like a number, a date or a list; quotes around it go away. No value, or `null`,
    /// removes the key, or the whole section; to remove what is not there changes nothing.
    ///
    /// ```
    /// # use aleator_run::{Document, Value};
    /// let mut document = Document::parse("[data.noise]\nrate = 0.3\n", "my.toml")?;
    /// document.set(r"data.train.features=C:\embeddings #2\x.npy")?;
    /// document.set("data.noise=")?;
    /// let features = &document.get("data.train.features").unwrap().value;
    /// assert_eq!(*features, Value::String(r"C:\embeddings #2\x.npy".to_string()));
    /// assert_eq!(document.get("data.noise"), None);
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    pub fn set(&mut self, assignment: &str) -> Result<(), RecipeError> {
        let origin = Origin::Argument(format!("--set {assignment}").into());
        let Some((key, text)) = assignment.split_once('=') else {
            return Err(origin.refuse("expected key=value, as in --set head.rank=6"));
        };
        let (key, text) = (key.trim(), text.trim());
        if key.split('.').any(str::is_empty) {
            return Err(origin.refuse("expected a dotted key, as in --set head.rank=6"));
        }
        let shape = Shape::recipe();
        if key.split('.').count() > MAX_DEPTH {
            return Err(shape.unknown_key(&origin, key));
        }
        if text.is_empty() || text == "null" {
            if shape.at(key).is_none() {
                return Err(shape.unknown_key(&origin, key));
            }
            self.remove(key);
            return Ok(());
        }
        let is_text = matches!(shape.at(key), Some(Shape::Text)) && !text.starts_with(['"', '\'']);
        let value =
            if is_text { Value::String(text.to_string()) } else { argument_value(text, &origin)? };
        self.insert(key, Node { value, origin })
    }

    /// Puts a value at a dotted key, with the sections above it; a refusal says what is in the way.
    pub(crate) fn insert(&mut self, key: &str, node: Node) -> Result<(), RecipeError> {
        self.forget_other_spelling(key);
        let mut table = &mut self.root;
        let mut rest = key;
        let mut depth = 0;
        while let Some((section, below)) = rest.split_once('.') {
            depth += section.len() + 1;
            let entry = table.entry(section.to_string()).or_insert_with(|| Node {
                value: Value::Table(Table::new()),
                origin: node.origin.clone(),
            });
            let found = entry.value.describe();
            let Value::Table(inner) = &mut entry.value else {
                let section = &key[..depth - 1];
                return Err(node.origin.refuse(format!(
                    "{section} is {found} ({}), which has no keys below it; remove it first by \
                     --set {section}=",
                    entry.origin
                )));
            };
            (table, rest) = (inner, below);
        }
        table.insert(rest.to_string(), node);
        Ok(())
    }

    /// Where a dotted key stands; if it is absent, where the section around it does. `key[1]` is
    /// an item of a list.
    pub(crate) fn origin(&self, key: &str) -> Option<&Origin> {
        let (key, index) = match key.strip_suffix(']').and_then(|key| key.rsplit_once('[')) {
            Some((key, index)) => (key, index.parse().ok()),
            None => (key, None),
        };
        let section = || self.origin(key.rsplit_once('.')?.0);
        let Some(node) = self.get(key) else { return section() };
        match (&node.value, index) {
            (Value::Array(items), Some(index)) => {
                items.get::<usize>(index).map(|item| &item.origin)
            }
            _ => Some(&node.origin),
        }
    }

    /// Removes a dotted key or section; returns what stood there.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Node> {
        let Some((section, last)) = key.rsplit_once('.') else { return self.root.remove(key) };
        let mut table = &mut self.root;
        for part in section.split('.') {
            match &mut table.get_mut(part)?.value {
                Value::Table(inner) => table = inner,
                _ => return None,
            }
        }
        table.remove(last)
    }

    /// This document laid over another: sections are merged, any other value replaces that of
    /// the base.
    pub fn over(self, mut base: Self) -> Self {
        self.root.keys().for_each(|key| base.forget_other_spelling(key));
        merge(&mut base.root, self.root);
        Self { name: self.name, root: base.root }
    }

    /// `seed = 1` is another way to write `seeds = [1]`: what sets one replaces the other.
    fn forget_other_spelling(&mut self, key: &str) {
        match key {
            "seed" => drop(self.root.remove("seeds")),
            "seeds" => drop(self.root.remove("seed")),
            _ => {}
        }
    }
}

impl Value {
    pub(crate) fn is_text(&self, text: &str) -> bool {
        matches!(self, Self::String(own) if own == text)
    }

    /// For messages: "the integer 3".
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::String(text) => format!("the text {text:?}"),
            Self::Integer(value) => format!("the integer {value}"),
            Self::Float(value) => format!("the number {value:?}"),
            Self::Boolean(value) => value.to_string(),
            Self::Date(text) => format!("the date {text}"),
            Self::Array(items) => format!("a list of {}", items.len()),
            Self::Table(_) => "a section".to_string(),
        }
    }
}

fn merge(base: &mut Table, over: Table) {
    for (key, node) in over {
        match (base.get_mut(&key).map(|below| &mut below.value), node.value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => drop(base.insert(key, Node { value, origin: node.origin })),
        }
    }
}

/// The value that a text of the command line means.
fn argument_value(text: &str, origin: &Origin) -> Result<Value, RecipeError> {
    match DeValue::parse(text) {
        Ok(value) => convert(value, &|_| origin.clone()),
        // Quotes and brackets are TOML or a slip.
        Err(error) if text.starts_with(['"', '\'', '[', '{']) => Err(origin.refuse(format!(
            "{text} is not a TOML value: {}; a text that begins so goes in quotes of its own, as \
             in --set 'key=\"[text\"'",
            error.message()
        ))),
        Err(_) => Ok(Value::String(text.to_string())),
    }
}

/// From the parser's values to ours; `origin` says where a byte of the text stands.
fn convert(
    value: Spanned<DeValue<'_>>,
    origin: &dyn Fn(usize) -> Origin,
) -> Result<Value, RecipeError> {
    let at = value.span().start;
    Ok(match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix())
            .map(Value::Integer)
            .map_err(|_| origin(at).refuse(format!("the integer {digits} is too large")))?,
        DeValue::Float(digits) => digits
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| origin(at).refuse(format!("{digits} is not a number")))?,
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => {
            let item = |item: Spanned<DeValue<'_>>| {
                Ok(Node { origin: origin(item.span().start), value: convert(item, origin)? })
            };
            Value::Array(items.into_iter().map(item).collect::<Result<_, RecipeError>>()?)
        }
        DeValue::Table(table) => Value::Table(convert_table(table, origin)?),
    })
}

fn convert_table(
    table: DeTable<'_>,
    origin: &dyn Fn(usize) -> Origin,
) -> Result<Table, RecipeError> {
    let entry = |(key, value): (Spanned<Cow<'_, str>>, _)| {
        // The line of the key: of a value over several lines it is the one to look at.
        let node = Node { origin: origin(key.span().start), value: convert(value, origin)? };
        Ok((key.into_inner().into_owned(), node))
    };
    table.into_iter().map(entry).collect()
}
