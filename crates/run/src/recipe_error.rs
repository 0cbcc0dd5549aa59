//! What can be wrong with a recipe, and what to do about it.

use std::io;

use crate::document::Origin;

/// Why a recipe was refused.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Neither a preset nor a file has this name.
    #[error("{name:?} is neither a file nor a preset{} The presets are: {presets}",
        did_you_mean(nearest.as_deref()))]
    NotFound {
        /// The name.
        name: String,
        /// The preset that it resembles.
        nearest: Option<String>,
        /// All presets.
        presets: String,
    },
    /// A key that must be there.
    #[error("{recipe}: {key} is missing{}", how_to_give(key, placeholder.as_deref()))]
    Missing {
        /// The recipe.
        recipe: String,
        /// The key's full dotted name.
        key: String,
        /// What kind of value it takes, as `FILE`, if the command line can give it.
        placeholder: Option<String>,
    },
    /// Anything else that is wrong: no TOML, an unknown key, a value of another type, one that
    /// cannot be meant alone or together with another, or the recipe as a whole.
    #[error("{origin}: {message}")]
    Wrong {
        /// Where it stands; the recipe's name if there is no such place.
        origin: Origin,
        /// The key, what it must be, and what was found.
        message: String,
    },
}

/// The end of a sentence, with what may have been meant.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(".".to_string(), |nearest| format!("; did you mean {nearest}?"))
}

/// How to give a key that is missing.
fn how_to_give(key: &str, placeholder: Option<&str>) -> String {
    let Some(placeholder) = placeholder else { return String::new() };
    let place = match key.rsplit_once('.') {
        Some((section, key)) => format!("write {key} in section [{section}] of the recipe"),
        None => format!("write {key} at the top of the recipe"),
    };
    format!(": give it by --set {key}={placeholder}, or {place}")
}
