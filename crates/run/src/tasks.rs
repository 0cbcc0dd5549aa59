//! The tasks that a trained network is carried over to.

use std::path::{Path, PathBuf};

use crate::document::{Node, Value};
use crate::load::find_file;
use crate::recipe_error::RecipeError;
use crate::section::{Field, check_keys};

/// A file of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// The recipe of every task, where the file names one.
    pub recipe: Option<String>,
    /// In the order of the file; never empty.
    pub tasks: Vec<Task>,
}

/// Data to learn from, with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Fit for the name of a folder.
    pub name: String,
    /// Data to look at, as `--data` takes it.
    pub data: Option<PathBuf>,
    /// Settings, as `--set` takes them.
    pub sets: Vec<String>,
}

/// Reads a file of tasks: a section for each, with the data that it learns from.
///
/// ```toml
/// recipe = "transfer/vtab"
///
/// [tasks.cifar10]
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
    let document = find_file(path)?.document;
    check_keys("", &document.root, &["recipe", "tasks"])?;
    let field = |key: &str, node: &'_ Node| Field { key: key.to_string(), node }.path();
    let recipe = document.get("recipe").map(|node| field("recipe", node)).transpose()?;
    let missing = || RecipeError::Missing {
        recipe: document.name().to_string(),
        key: "tasks.NAME.data".to_string(),
        placeholder: "PATH".to_string(),
    };
    let tasks = match document.get("tasks") {
        Some(Node { value: Value::Table(tasks), .. }) if !tasks.is_empty() => tasks,
        Some(node) if !matches!(node.value, Value::Table(_)) => {
            let key = "tasks".to_string();
            return Err(Field { key, node }.wrong_type("a section for each task, [tasks.NAME]"));
        }
        _ => return Err(missing()),
    };
    let mut in_order: Vec<(&String, &Node)> = tasks.iter().collect();
    in_order.sort_by_key(|(_, node)| node.origin.line());
    let tasks = in_order.into_iter().map(|(name, node)| task(name, node));
    Ok(Tasks { recipe, tasks: tasks.collect::<Result<_, _>>()? })
}

fn task(name: &str, node: &Node) -> Result<Task, RecipeError> {
    let key = format!("tasks.{name}");
    let whole = Field { key: key.clone(), node };
    let safe = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(safe) {
        return Err(whole.impossible(format!(
            "{key}: the name of a task becomes that of a folder: use letters, digits, - and _"
        )));
    }
    let Value::Table(table) = &node.value else {
        return Err(whole.wrong_type(format!("a section [{key}] with data or set")));
    };
    check_keys(&key, table, &["data", "set"])?;
    let field = |own: &str| table.get(own).map(|node| Field { key: format!("{key}.{own}"), node });
    let data = field("data").map(|data| data.path().map(PathBuf::from)).transpose()?;
    let sets = match field("set") {
        Some(list) => {
            let texts = list.list()?;
            texts.iter().map(|set| set.text().map(String::from)).collect::<Result<_, _>>()?
        }
        None => vec![],
    };
    if data.is_none() && sets.is_empty() {
        return Err(whole.impossible(format!(
            "{key} has no data: give data = \"PATH\", or set = [\"data.train.images=PATH\"]"
        )));
    }
    Ok(Task { name: name.to_string(), data, sets })
}
