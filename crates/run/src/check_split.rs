//! How a split is given: as data of its own, or as a part of the training data.

use crate::decode::no_meaning;
use crate::document::{Document, Table, Value};
use crate::presets::example;
use crate::recipe_error::RecipeError;
use crate::schema::join;

impl Document {
    /// Refuses a split that mixes the ways to give it, or lacks the key that tells the way.
    pub(crate) fn check_split(&self, split: &str) -> Result<(), RecipeError> {
        const INPUTS: [&str; 5] = ["features", "table", "images", "builtin", "memory"];
        const SOURCE: [&str; 8] =
            ["features", "table", "images", "builtin", "memory", "labels", "clean_labels", "ids"];
        let section = join("data", split);
        let absent = Table::new();
        let table = match self.get(&section).map(|node| &node.value) {
            Some(Value::Table(table)) => table,
            None if split != "test" => &absent,
            _ => return Ok(()),
        };
        let has = |key: &str| table.contains_key(key);
        let missing = |key: &str, placeholder: Option<String>| {
            let key = join(&section, key);
            Err(RecipeError::Missing { recipe: self.name().to_string(), key, placeholder })
        };
        let missing_key = |key: &str| missing(key, example(&join(&section, key)));
        let impossible = |key: &str, message: String| {
            Err(table[key].origin.refuse(format!("{section}.{key} {message}")))
        };
        let source = SOURCE.into_iter().find(|key| has(key));
        if split != "train" {
            const PARTS: [&str; 3] = ["folds", "count", "fraction"];
            if let Some(part) = PARTS.into_iter().find(|key| has(key)) {
                let stale = PARTS.into_iter().find(|key| *key != part && has(key));
                return match source {
                    _ if part == "folds" && split == "validation" => {
                        impossible(part, "is for data.test: hold out a fraction here".to_string())
                    }
                    Some(other) => impossible(
                        part,
                        format!(
                            "takes a part of the training data, and {section}.{other} ({}) gives data \
                         of its own: keep one; --set {section}= before the other settings of \
                         {section} removes all that the recipe says of it",
                            table[other].origin
                        ),
                    ),
                    None => match stale {
                        Some(stale) if part == "folds" => {
                            let (first, chosen) = (&table[stale], &table[part]);
                            Err(no_meaning(&section, &[stale], first, part, chosen))
                        }
                        Some(other) => impossible(
                            part,
                            format!(
                                "and {section}.{other} ({}) are both given: keep one; on the \
                                 command line --set {section}.{part}= removes this one",
                                table[other].origin
                            ),
                        ),
                        None => Ok(()),
                    },
                };
            }
            if source.is_none() {
                return missing_key(if has("fold") { "folds" } else { "fraction" });
            }
            if has("seed") {
                return impossible(
                    "seed",
                    format!(
                        "chooses a fraction of the training data, and this split has data of its own; \
                     remove it: on the command line by --set {section}.seed="
                    ),
                );
            }
        }
        if !INPUTS.into_iter().any(has) {
            let kind = self.get("network.kind").map(|node| &node.value);
            let is_of_features = |kind: &str| matches!(kind, "none" | "mlp");
            return match kind {
                Some(Value::String(kind)) if !is_of_features(kind) => missing_key("images"),
                _ if split == "train" => missing(
                    "features",
                    Some("FILE (or --set data.train.images=FOLDER)".to_string()),
                ),
                _ => missing_key("features"),
            };
        }
        if has("features") && !has("labels") { missing_key("labels") } else { Ok(()) }
    }
}
