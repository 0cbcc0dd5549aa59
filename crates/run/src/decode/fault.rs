//! What is wrong with a value, and how a user is told.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

use crate::document::Node;
use crate::recipe_error::RecipeError;
use crate::schema::{join, most_similar};
use crate::to_toml::value_text;

/// What is wrong, at first without a place.
#[derive(Debug)]
pub(super) enum Fault {
    Placed(Box<RecipeError>),
    MissingKey(String),
    Missing(&'static str),
    Type(String),
    Value(String),
    Word { found: String, words: &'static [&'static str] },
    Custom(String),
}

impl Fault {
    /// The fault of a value or, if a field is missing, of a table.
    pub fn at(self, key: &str, node: &Node) -> Self {
        let message = match self {
            Self::Placed(_) | Self::MissingKey(_) => return self,
            Self::Missing(field) => return Self::MissingKey(join(key, field)),
            Self::Type(expected) => return node.wrong_type(key, &expected).into(),
            Self::Value(expected) => {
                format!("{key} must be {expected}, found {}", value_text(&node.value))
            }
            Self::Word { found, words } => {
                let hint = most_similar(&found, words);
                let hint = hint.map_or(String::new(), |word| format!("; did you mean {word:?}?"));
                format!("{key} must be {}, found {found:?}{hint}", one_of(words))
            }
            Self::Custom(message) if message.starts_with("must ") => format!("{key} {message}"),
            Self::Custom(message) => format!("{key}: {message}"),
        };
        node.origin.refuse(message).into()
    }
}

pub(super) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    if words.len() == 1 { quoted.join("") } else { format!("one of {}", quoted.join(", ")) }
}

/// What serde's own types expect, as a user says it.
fn in_words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list, as in [1, 2]",
        "a tuple of size 2" => "two numbers, as in [0.5, 1.0]",
        "i128" => "an integer",
        "f64" => "a number",
        other => other,
    }
    .to_string()
}

impl From<RecipeError> for Fault {
    fn from(error: RecipeError) -> Self {
        Self::Placed(Box::new(error))
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Type(in_words(expected))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Value(expected.to_string())
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::Value(in_words(expected))
    }

    fn unknown_variant(found: &str, words: &'static [&'static str]) -> Self {
        Self::Word { found: found.to_string(), words }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}
