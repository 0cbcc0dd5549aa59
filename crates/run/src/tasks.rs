//! The tasks that a trained network is carried over to.

use std::path::{Path, PathBuf};

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, de};

use crate::document::Document;
use crate::load::find_preset;
use crate::presets::is_tasks;
use crate::recipe::range::some_path;
use crate::recipe_error::RecipeError;

/// A file of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Tasks {
    /// One line for people.
    #[serde(default)]
    pub summary: Option<String>,
    /// The recipe of the tasks that name none, where the file names one.
    #[serde(default, deserialize_with = "some_path")]
    pub recipe: Option<String>,
    /// In the order of the file; never empty.
    #[serde(deserialize_with = "by_name")]
    pub tasks: Vec<Task>,
}

/// Data to learn from, with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Task {
    /// Fit for the name of a folder.
    #[serde(skip)]
    pub name: String,
    /// One line for people: what is classified.
    #[serde(default)]
    pub summary: Option<String>,
    /// Its own recipe.
    #[serde(default, deserialize_with = "some_path")]
    pub recipe: Option<String>,
    /// Data to look at, as `--data` takes it.
    #[serde(default, deserialize_with = "some_path")]
    pub data: Option<PathBuf>,
    /// Settings, as `--set` takes them.
    #[serde(default, rename = "set")]
    pub sets: Vec<String>,
}

/// Reads a file of tasks, or the one inside the program that has this name: a section for each,
/// with the data that it learns from.
///
/// ```toml
/// recipe = "transfer/vtab"
///
/// [tasks.cifar10]
/// recipe = "transfer/vtab-small"
/// data = "cifar-10-batches-bin"
///
/// [tasks.digits]
/// set = ["data.train.builtin=digits", "data.test.fraction=0.5", "data.test.seed=0"]
/// ```
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("tasks.toml");
/// std::fs::write(&path, "[tasks.flowers]\ndata = \"flowers\"\n").unwrap();
/// let tasks = aleator_run::load_tasks(&path)?;
/// assert_eq!(tasks.tasks[0].name, "flowers");
/// # Ok::<(), aleator_run::RecipeError>(())
/// ```
///
/// # Errors
/// When the file cannot be read, has an unknown key, or has no task.
pub fn load_tasks(path: &Path) -> Result<Tasks, RecipeError> {
    let inside = path.to_str().filter(|name| is_tasks(name));
    match inside.and_then(find_preset) {
        Some(preset) => preset?.document.decode(),
        None => Document::load(path)?.decode(),
    }
}

/// The tasks of `[tasks.NAME]`.
fn by_name<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Task>, D::Error> {
    struct ByName;
    impl<'de> Visitor<'de> for ByName {
        type Value = Vec<Task>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a section for each task, [tasks.NAME]")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Task>, A::Error> {
            let mut tasks = vec![];
            while let Some(name) = map.next_key()? {
                tasks.push(Task { name, ..map.next_value()? });
            }
            Ok(tasks)
        }
    }
    let tasks = from.deserialize_map(ByName)?;
    tasks.iter().try_for_each(Task::check)?;
    if tasks.is_empty() { Err(Error::missing_field("NAME.data")) } else { Ok(tasks) }
}

impl Task {
    fn check<E: de::Error>(&self) -> Result<(), E> {
        let Self { name, data, sets, .. } = self;
        let safe = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(safe) {
            return Err(E::custom(format!(
                "{name:?}: the name of a task becomes that of a folder: use letters, digits, - and _"
            )));
        }
        if data.is_none() && sets.is_empty() {
            return Err(E::custom(format!(
                "tasks.{name} has no data: give data = \"PATH\", or set = \
                 [\"data.train.images=PATH\"]"
            )));
        }
        Ok(())
    }
}
