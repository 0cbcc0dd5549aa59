//! Reading a section of a recipe key by key: each value is checked where it enters.

use std::fmt::Display;

use crate::document::{Document, Node, Origin, Table, Value};
use crate::recipe_error::RecipeError;
use crate::schema;

/// A section, which may be absent: then each of its keys is.
pub(crate) struct Section<'a> {
    document: &'a Document,
    name: &'static str,
    table: Option<&'a Table>,
}

impl<'a> Section<'a> {
    pub fn new(document: &'a Document, name: &'static str) -> Result<Self, RecipeError> {
        let table = match document.get(name) {
            None if name.is_empty() => Some(&document.root),
            None => None,
            Some(Node { value: Value::Table(table), .. }) => Some(table),
            Some(node) => {
                let key = name.to_string();
                return Err(Field { key, node }.wrong_type(format!("a section [{name}]")));
            }
        };
        Ok(Self { document, name, table })
    }

    /// Whether the recipe has the section at all.
    pub fn is_there(&self) -> bool {
        self.table.is_some()
    }

    pub fn optional(&self, key: &'static str) -> Option<Field<'a>> {
        let name = schema::join(self.name, key);
        debug_assert!(schema::is_known(&name), "{name} is asked for but stands in no section");
        let node = self.table?.get(key)?;
        Some(Field { key: name, node })
    }

    /// The key; if it is missing, the message shows `placeholder` for its value.
    pub fn required(&self, key: &'static str, placeholder: &str) -> Result<Field<'a>, RecipeError> {
        self.optional(key).ok_or_else(|| self.missing(key, placeholder))
    }

    pub fn missing(&self, key: &str, placeholder: &str) -> RecipeError {
        RecipeError::Missing {
            recipe: self.document.name().to_string(),
            key: schema::join(self.name, key),
            placeholder: placeholder.to_string(),
        }
    }

    /// Refuses keys that mean nothing beside the value of `choice`.
    pub fn refuse(&self, keys: &[&'static str], choice: &Field<'a>) -> Result<(), RecipeError> {
        let stale: Vec<Field<'a>> = keys.iter().filter_map(|key| self.optional(key)).collect();
        let Some(first) = stale.first() else { return Ok(()) };
        let names: Vec<&str> = stale.iter().map(|field| field.key.as_str()).collect();
        let sets: Vec<String> = names.iter().map(|name| format!("--set {name}=")).collect();
        let (have, them) = if names.len() == 1 { ("has", "it") } else { ("have", "them") };
        Err(first.impossible(format!(
            "{} {have} no meaning with {} = {} ({}); remove {them}: on the command line by {}, in \
             a recipe with a base by without = {names:?}",
            names.join(", "),
            choice.key,
            crate::to_toml::value_text(&choice.key, &choice.node.value),
            choice.node.origin,
            sets.join(" "),
        )))
    }
}

/// A key with its value, checked as it is read.
///
/// ```
/// use aleator_run::{Document, KeyField};
///
/// let document = Document::parse("title = 3", "table.toml")?;
/// let node = document.get("title").unwrap();
/// let message = KeyField { key: "title".to_string(), node }.text().unwrap_err().to_string();
/// assert_eq!(message, "table.toml:1: title must be a text, found the integer 3");
/// # Ok::<(), aleator_run::RecipeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// Its full dotted name.
    pub key: String,
    /// What stands there.
    pub node: &'a Node,
}

/// Refuses a key that a table of a file does not have, by its name and line.
pub fn check_keys(section: &str, table: &Table, known: &[&str]) -> Result<(), RecipeError> {
    let Some((key, node)) = table.iter().find(|(key, _)| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    Err(RecipeError::UnknownKey {
        origin: node.origin.clone(),
        key: schema::join(section, key),
        nearest: schema::most_similar(key, known).map(String::from),
        known: known.join(", "),
    })
}

impl<'a> Field<'a> {
    /// A text.
    pub fn text(&self) -> Result<&'a str, RecipeError> {
        match &self.node.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("a text")),
        }
    }

    /// The path of a file or folder.
    pub fn path(&self) -> Result<String, RecipeError> {
        let Value::String(path) = &self.node.value else {
            // A folder named 2024 is a number to TOML.
            return Err(self.wrong_type(format!("a path in quotes, as in {} = \"x\"", self.key)));
        };
        if path.is_empty() {
            return Err(self.impossible(format!("{} must name a file or folder", self.key)));
        }
        if path.contains(char::is_control) {
            return Err(self.impossible(format!(
                "{} must not contain line breaks or other control characters, found {path:?}; in \
                 double quotes TOML takes \\n and \\t for such: put a path with \\ in single \
                 quotes",
                self.key
            )));
        }
        Ok(path.clone())
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool, RecipeError> {
        match self.node.value {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// Any number; integers count.
    pub fn number(&self) -> Result<f64, RecipeError> {
        match self.node.value {
            Value::Float(value) => Ok(value),
            Value::Integer(value) => Ok(value as f64),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// A finite number for which `is_possible` holds; `expected` says so in words.
    pub fn number_that(
        &self,
        expected: &str,
        is_possible: impl FnOnce(f64) -> bool,
    ) -> Result<f64, RecipeError> {
        let value = self.number()?;
        if value.is_finite() && is_possible(value) {
            Ok(value)
        } else {
            Err(self.must_be(expected))
        }
    }

    /// A number above 0.
    pub fn positive(&self) -> Result<f64, RecipeError> {
        self.number_that("a finite number above 0", |value| value > 0.0)
    }

    /// A number of 0 or more.
    pub fn not_negative(&self) -> Result<f64, RecipeError> {
        self.number_that("a finite number of at least 0", |value| value >= 0.0)
    }

    /// A share that may be nothing but not all.
    pub fn below_one(&self) -> Result<f64, RecipeError> {
        self.number_that("at least 0 and below 1", |value| (0.0..1.0).contains(&value))
    }

    /// A share that is neither nothing nor all.
    pub fn fraction(&self) -> Result<f64, RecipeError> {
        self.number_that("above 0 and below 1", |value| value > 0.0 && value < 1.0)
    }

    /// An integer between bounds, both included.
    pub fn integer(&self, low: u64, high: u64) -> Result<u64, RecipeError> {
        let Value::Integer(value) = self.node.value else {
            return Err(self.wrong_type("an integer"));
        };
        match u64::try_from(value) {
            Ok(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(self.must_be(&format!("an integer from {low} to {high}"))),
        }
    }

    /// An integer of at least `low`; `high` keeps sums and products within a machine's numbers.
    pub fn size(&self, low: usize, high: usize) -> Result<usize, RecipeError> {
        let value = self.integer(low as u64, high as u64)?;
        // It is not above `high`.
        Ok(value as usize)
    }

    /// Any seed.
    pub fn seed(&self) -> Result<u64, RecipeError> {
        self.integer(0, u64::MAX)
    }

    /// The items of a list, each as a field of its own.
    pub fn list(&self) -> Result<Vec<Field<'a>>, RecipeError> {
        let Value::Array(items) = &self.node.value else {
            return Err(self.wrong_type("a list, as in [1, 2]"));
        };
        let item = |(index, node)| Field { key: format!("{}[{index}]", self.key), node };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// A list that is not empty and not absurdly long.
    pub fn short_list(&self, high: usize) -> Result<Vec<Field<'a>>, RecipeError> {
        let items = self.list()?;
        if items.is_empty() || items.len() > high {
            let found = items.len();
            return Err(self.impossible(format!(
                "{} must be a list of 1 to {high} values, found {found}",
                self.key
            )));
        }
        Ok(items)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Result<T, RecipeError> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let expected = || {
            let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            if words.len() == 1 { quoted.join("") } else { format!("one of {}", quoted.join(", ")) }
        };
        let Value::String(found) = &self.node.value else {
            return Err(self.wrong_type(expected()));
        };
        match choices.iter().find(|(word, _)| word == found) {
            Some((_, value)) => Ok(*value),
            None => {
                let hint = schema::most_similar(found, &words)
                    .map(|word| format!("; did you mean {word:?}?"))
                    .unwrap_or_default();
                let expected = expected();
                Err(self
                    .impossible(format!("{} must be {expected}, found {found:?}{hint}", self.key)))
            }
        }
    }

    /// Where it stands.
    pub fn origin(&self) -> &'a Origin {
        &self.node.origin
    }

    /// The error for a value of another type.
    pub fn wrong_type(&self, expected: impl Display) -> RecipeError {
        RecipeError::Type {
            origin: self.node.origin.clone(),
            key: self.key.clone(),
            expected: expected.to_string(),
            found: self.node.value.describe(),
        }
    }

    /// The value has the right type and is out of bounds.
    pub fn must_be(&self, expected: &str) -> RecipeError {
        let found = crate::to_toml::value_text(&self.key, &self.node.value);
        self.impossible(format!("{} must be {expected}, found {found}", self.key))
    }

    /// The error for a value that cannot be meant; `message` names the key.
    pub fn impossible(&self, message: String) -> RecipeError {
        RecipeError::Impossible { origin: self.node.origin.clone(), message }
    }
}
