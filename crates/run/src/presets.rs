//! The recipes inside the program.

use crate::document::Document;
use crate::load::{find, resolve};
use crate::recipe_error::RecipeError;
use crate::schema;

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../recipes/", $name, ".toml")))),*]
    };
}

/// Name and text of each, in the order of the list that users see.
const PRESETS: &[(&str, &str)] = presets![
    "features-none",
    "features-diagonal",
    "features-full",
    "features-shared",
    "multilabel-none",
    "multilabel-diagonal",
    "multilabel-full",
    "multilabel-shared",
    "images-none",
    "images-diagonal",
    "images-full",
    "images-shared",
    "digits-none",
    "digits-diagonal",
    "digits-full",
    "digits-shared",
];

/// A recipe inside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What [`load`](crate::load) takes.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// The recipe as it was written, with its comments.
    pub text: &'static str,
}

/// The recipes inside the program.
///
/// ```
/// let names: Vec<&str> = aleator_run::presets().iter().map(|preset| preset.name).collect();
/// assert!(names.contains(&"features-full"));
/// ```
pub fn presets() -> Vec<Preset> {
    let preset = |&(name, text)| Preset { name, summary: summary(text), text };
    PRESETS.iter().map(preset).collect()
}

impl Document {
    /// A recipe inside the program, with its bases under it.
    pub fn preset(name: &str) -> Result<Self, RecipeError> {
        if PRESETS.iter().any(|(known, _)| *known == name) {
            resolve(find(name, None)?)
        } else {
            Err(not_found(name))
        }
    }
}

/// The preset of this name alone, without its bases; `None` if there is none.
pub(crate) fn parse_preset(name: &str) -> Option<Result<Document, RecipeError>> {
    let (name, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
    Some(Document::parse(text, &format!("preset {name}")))
}

/// The error for a name that is neither a preset nor a file.
pub(crate) fn not_found(name: &str) -> RecipeError {
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    RecipeError::NotFound {
        origin: None,
        name: name.to_string(),
        nearest: schema::most_similar(name, &names).map(str::to_string),
        presets: names.join(", "),
    }
}

/// The value of the line `summary = "..."`; a test holds every preset to having one.
fn summary(text: &'static str) -> &'static str {
    let line = text.lines().find_map(|line| line.strip_prefix("summary = \""));
    line.and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_a_summary_and_says_in_comments_what_it_is_for() {
        for preset in presets() {
            let document = Document::preset(preset.name).unwrap();
            let said = &document.get("summary").unwrap().value;
            assert_eq!(*said, crate::Value::String(preset.summary.to_string()), "{}", preset.name);
            assert!(!preset.summary.is_empty() && preset.text.starts_with("# "), "{}", preset.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_with_all() {
        let message = Document::preset("features-ful").unwrap_err().to_string();
        assert!(message.contains("did you mean features-full?"), "{message}");
        assert!(message.contains("digits-shared"), "{message}");
    }
}
