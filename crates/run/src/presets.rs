//! The recipes inside the program.

use crate::document::Document;
use crate::load::{find_preset, resolve};
use crate::recipe_error::RecipeError;
use crate::schema::{Shape, most_similar};
use crate::to_toml::value_text;

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
    "features-xl",
    "features-batches",
    "features-bootstrapping",
    "features-label-smoothing",
    "features-gce",
    "features-forward-correction",
    "features-data-parameters",
    "features-elr",
    "features-sop",
    "features-cores",
    "features-har",
    "features-mixup",
    "features-mentornet",
    "features-mentornet-learned",
    "features-mentormix",
    "features-co-teaching",
    "features-dividemix",
    "features-curriculumnet",
    "features-cleannet",
    "features-audit",
    "multilabel-none",
    "multilabel-diagonal",
    "multilabel-full",
    "multilabel-shared",
    "multilabel-joint",
    "images-none",
    "images-diagonal",
    "images-full",
    "images-shared",
    "images-xl",
    "images-bootstrapping",
    "images-label-smoothing",
    "images-gce",
    "images-forward-correction",
    "images-data-parameters",
    "images-elr",
    "images-sop",
    "images-cores",
    "images-har",
    "images-mixup",
    "images-mentornet",
    "images-mentornet-learned",
    "images-mentormix",
    "images-co-teaching",
    "images-dividemix",
    "images-curriculumnet",
    "images-cleannet",
    "finetune-none",
    "finetune-diagonal",
    "finetune-full",
    "finetune-shared",
    "digits-none",
    "digits-diagonal",
    "digits-full",
    "digits-shared",
];

/// The experiments of the paper, folder by folder, and their small twins.
const PAPER: &[(&str, &str)] = presets![
    "ilsvrc12/none",
    "ilsvrc12/diagonal",
    "ilsvrc12/diagonal-taylor",
    "ilsvrc12/full",
    "ilsvrc12/none-90",
    "ilsvrc12/diagonal-90",
    "ilsvrc12/full-90",
    "ilsvrc12/none-sigmoid",
    "ilsvrc12/full-sigmoid",
    "ilsvrc12/none-equal-parameters",
    "ilsvrc12/full-samples-1",
    "ilsvrc12/full-samples-10",
    "ilsvrc12/full-samples-100",
    "ilsvrc12/full-samples-1000",
    "ilsvrc12/samples",
    "webvision/none",
    "webvision/diagonal",
    "webvision/full",
    "imagenet21k/none",
    "imagenet21k/diagonal-tau-1",
    "imagenet21k/diagonal",
    "imagenet21k/shared",
    "jft/none",
    "jft/diagonal-tau-1",
    "jft/diagonal",
    "jft/shared",
    "ensembles/none",
    "ensembles/full",
    "transfer/vtab",
    "transfer/vtab-small",
    "transfer/vtab-tasks",
    "small/ilsvrc12-none",
    "small/ilsvrc12-diagonal",
    "small/ilsvrc12-full",
    "small/webvision-none",
    "small/webvision-diagonal",
    "small/webvision-full",
    "small/imagenet21k-none",
    "small/imagenet21k-diagonal",
    "small/imagenet21k-shared",
    "small/jft-none",
    "small/jft-diagonal",
    "small/jft-shared",
    "small/ensembles-none",
    "small/ensembles-full",
    "small/transfer",
];

/// A recipe inside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What [`load`](crate::load) takes, or [`load_sweep`](crate::load_sweep) if it is a sweep, or
    /// [`load_tasks`](crate::load_tasks) if it is a list of tasks.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// The recipe as it was written, with its comments.
    pub text: &'static str,
}

impl Preset {
    fn new(&(name, text): &(&'static str, &'static str)) -> Self {
        Self { name, summary: summary(text), text }
    }

    /// The folder that it stands in, as `ilsvrc12`; `None` for the presets at the top.
    ///
    /// ```
    /// assert_eq!(aleator_run::presets()[0].folder(), None);
    /// assert_eq!(aleator_run::paper_recipes()[0].folder(), Some("ilsvrc12"));
    /// ```
    pub fn folder(&self) -> Option<&'static str> {
        self.name.split_once('/').map(|(folder, _)| folder)
    }

    /// Whether it has axes: then it is run by `aleator sweep`.
    pub fn is_sweep(&self) -> bool {
        self.text.lines().any(|line| line == "[axes]")
    }

    /// Whether it is a list of tasks: then it is for `aleator transfer`.
    ///
    /// ```
    /// let recipes = aleator_run::paper_recipes();
    /// let tasks = recipes.iter().find(|recipe| recipe.is_tasks()).unwrap();
    /// assert_eq!(tasks.name, "transfer/vtab-tasks");
    /// ```
    pub fn is_tasks(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("[tasks."))
    }
}

/// Whether this is the name of a list of tasks inside the program.
pub(crate) fn is_tasks(name: &str) -> bool {
    paper_recipes().iter().any(|preset| preset.name == name && preset.is_tasks())
}

/// The recipes inside the program that suit data of one's own.
///
/// ```
/// let names: Vec<&str> = aleator_run::presets().iter().map(|preset| preset.name).collect();
/// assert!(names.contains(&"features-full"));
/// ```
pub fn presets() -> Vec<Preset> {
    PRESETS.iter().map(Preset::new).collect()
}

/// The experiments of the paper as recipes inside the program, those of a folder together, their
/// small twins last.
///
/// ```
/// let recipes = aleator_run::paper_recipes();
/// let full = recipes.iter().find(|recipe| recipe.name == "ilsvrc12/full").unwrap();
/// assert!(full.text.contains("# Paper: top-1 79.3"));
/// ```
pub fn paper_recipes() -> Vec<Preset> {
    PAPER.iter().map(Preset::new).collect()
}

/// Name and text of every recipe inside the program.
fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    PRESETS.iter().chain(PAPER)
}

/// The text of the recipe inside the program that has this name.
pub(crate) fn preset_text(name: &str) -> Option<&'static str> {
    all().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Document {
    /// A recipe inside the program, with its bases under it.
    pub fn preset(name: &str) -> Result<Self, RecipeError> {
        find_preset(name).ok_or_else(|| not_found(name))?.and_then(resolve)
    }
}

/// What a key that is missing may be: the value of a preset, or `FILE`.
pub(crate) fn example(key: &str) -> Option<String> {
    if let Some(Shape::Text) = Shape::recipe().at(key) {
        let kind = match key.rsplit('.').next() {
            Some("summary") => "TEXT",
            Some("images") => "FOLDER",
            _ => "FILE",
        };
        return Some(kind.to_string());
    }
    let value = |(name, text): &(&str, &str)| {
        let document = Document::parse(text, name).ok()?;
        document.get(key).map(|node| value_text(&node.value))
    };
    Some(all().find_map(value).unwrap_or("VALUE".to_string()))
}

/// The error for a name that is neither a preset nor a file.
pub(crate) fn not_found(name: &str) -> RecipeError {
    let every: Vec<&str> = all().map(|(name, _)| *name).collect();
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    RecipeError::NotFound {
        name: name.to_string(),
        nearest: most_similar(name, &every).map(str::to_string),
        presets: format!("{}; `aleator recipes` lists those of the paper too", names.join(", ")),
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
        for preset in presets().into_iter().chain(paper_recipes()) {
            let document = Document::preset(preset.name).unwrap();
            let summary = &document.get("summary").unwrap().value;
            assert_eq!(
                *summary,
                crate::Value::String(preset.summary.to_string()),
                "{}",
                preset.name
            );
            assert!(!preset.summary.is_empty() && preset.text.starts_with("# "), "{}", preset.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_with_all() {
        let message = Document::preset("features-ful").unwrap_err().to_string();
        assert!(message.contains("did you mean features-full?"), "{message}");
        assert!(message.contains("digits-shared"), "{message}");
        let message = Document::preset("ilsvrc12/ful").unwrap_err().to_string();
        assert!(message.contains("did you mean ilsvrc12/full?"), "{message}");
    }
}
