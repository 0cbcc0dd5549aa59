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
    #[error("{}{name:?} is neither a file nor a preset{} The presets are: {presets}",
        origin.as_ref().map(|origin| format!("{origin}: base ")).unwrap_or_default(),
        did_you_mean(nearest.as_deref()))]
    NotFound {
        /// Where it was named, if in a recipe.
        origin: Option<Origin>,
        /// The name.
        name: String,
        /// The preset that it resembles.
        nearest: Option<String>,
        /// All presets.
        presets: String,
    },
    /// The text is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// A `--set` that cannot be carried out.
    #[error("--set {text}: {message}")]
    Set {
        /// What was given.
        text: String,
        /// Why not, and what to give.
        message: String,
    },
    /// A key that no recipe has.
    #[error("{origin}: unknown key {key}{} Known here: {known}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// Its full dotted name.
        key: String,
        /// What may have been meant.
        nearest: Option<String>,
        /// The keys of the same section.
        known: String,
    },
    /// A value of another type.
    #[error("{origin}: {key} must be {expected}, found {found}")]
    Type {
        /// Where it stands.
        origin: Origin,
        /// Its full dotted name.
        key: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
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
    /// A value that cannot be meant, alone or beside another.
    #[error("{origin}: {message}")]
    Impossible {
        /// Where it stands.
        origin: Origin,
        /// The key, what it must be, and what was found.
        message: String,
    },
    /// A recipe that is based on itself.
    #[error("{origin}: the recipe is based on itself: {chain}")]
    Cycle {
        /// The `base` that closes the circle.
        origin: Origin,
        /// From recipe to base to base.
        chain: String,
    },
    /// Something is wrong with the recipe as a whole, as a sweep that makes no runs.
    #[error("{recipe}: {message}")]
    Recipe {
        /// The recipe.
        recipe: String,
        /// What is wrong with it.
        message: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
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
