//! Recipes as TOML that people read: the same content always gives the same text.

use serde::Serialize;

use crate::document::{Document, Node, Origin, Table, Value};
use crate::recipe::Recipe;
use crate::schema::Shape;

impl Recipe {
    /// The recipe as TOML, complete: [`load`](crate::load) reads it back as it is.
    ///
    /// ```
    /// let resolved = aleator_run::load("digits-none", &[], Some(3))?;
    /// assert!(resolved.recipe.to_toml().contains("seeds = [3]\n"));
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    pub fn to_toml(&self) -> String {
        Document::of(self).to_toml()
    }
}

impl Document {
    /// A recipe as a document.
    pub(crate) fn of(recipe: &Recipe) -> Self {
        Self { name: "the recipe".into(), root: table(recipe, Shape::recipe(), "the recipe") }
    }

    /// The document as TOML: what stands at the top first, then the sections, each with its keys
    /// in the order of a recipe.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for (name, shape) in Shape::recipe().sections("") {
            let table = match (name.as_str(), self.get(&name).map(|node| &node.value)) {
                ("", _) => &self.root,
                (_, Some(Value::Table(table))) => table,
                _ => continue,
            };
            write_section(&mut out, &name, table, shape);
        }
        out
    }
}

/// What a type writes, as a table in which all values have one origin.
pub(crate) fn table(value: &impl Serialize, shape: &Shape, origin: &str) -> Table {
    let json = serde_json::to_value(value).expect("recipes are numbers, texts, lists and tables");
    match node(json, shape, &Origin::Argument(origin.into())).map(|node| node.value) {
        Some(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

fn node(json: serde_json::Value, shape: &Shape, origin: &Origin) -> Option<Node> {
    use serde_json::Value as Json;
    let value = match json {
        Json::Null => return None,
        Json::Bool(value) => Value::Boolean(value),
        Json::Number(number) => match number.as_i128() {
            Some(value) => Value::Integer(value),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::String(text),
        Json::Array(items) => {
            let item = |item| node(item, &Shape::Value, origin);
            Value::Array(items.into_iter().filter_map(item).collect())
        }
        // serde writes a variant as a table of its own; here it is the table around it.
        Json::Object(entries) if matches!(shape, Shape::Enum(_)) => {
            return node(entries.into_values().next()?, &Shape::Value, origin);
        }
        Json::Object(entries) => {
            let mut table = Table::new();
            for (key, json) in entries {
                insert(&mut table, &key, json, shape, origin);
            }
            Value::Table(table)
        }
    };
    Some(Node { value, origin: origin.clone() })
}

/// Puts a field where its keys are in a document; see [`decode`](crate::decode) for `..`.
fn insert(table: &mut Table, key: &str, json: serde_json::Value, shape: &Shape, origin: &Origin) {
    use serde_json::Value as Json;
    let Some(tag) = key.strip_prefix("..") else {
        let inner = shape.at(key).unwrap_or(&Shape::Value);
        table.extend(node(json, inner, origin).map(|node| (key.to_string(), node)));
        return;
    };
    match json {
        Json::Object(entries) if tag.is_empty() => {
            entries.into_iter().for_each(|(key, json)| insert(table, &key, json, shape, origin));
        }
        Json::Object(entries) => {
            for (variant, fields) in entries {
                insert(table, tag, Json::String(variant), shape, origin);
                insert(table, "..", fields, shape, origin);
            }
        }
        word => insert(table, tag, word, shape, origin),
    }
}

fn write_section(out: &mut String, name: &str, table: &Table, shape: &Shape) {
    let (sections, own): (Vec<_>, Vec<_>) = table.iter().partition(|(key, node)| {
        matches!(node.value, Value::Table(_)) && shape.key(key).is_some_and(Shape::is_section)
    });
    // A section that only has sections below it needs no header of its own.
    if !name.is_empty() && (!own.is_empty() || sections.is_empty()) {
        let gap = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{gap}[{name}]\n"));
    }
    for line in assignments(own, shape) {
        out.push_str(&(line + "\n"));
    }
}

/// `key = value` of each entry of a table, in the order of its type.
fn assignments(mut entries: Vec<(&String, &Node)>, shape: &Shape) -> Vec<String> {
    let names = shape.names();
    // Stable: unknown keys stay by name, after the others.
    entries
        .sort_by_key(|(key, _)| names.iter().position(|name| name == key).unwrap_or(names.len()));
    let assignment = |(key, node): (&String, &Node)| {
        let inner = shape.key(key).unwrap_or(&Shape::Value);
        format!("{} = {}", key_text(key), in_order(&node.value, inner))
    };
    entries.into_iter().map(assignment).collect()
}

/// A value on one line.
pub(crate) fn value_text(value: &Value) -> String {
    in_order(value, &Shape::Value)
}

/// A value on one line, the keys of a table in the order of its type.
fn in_order(value: &Value, shape: &Shape) -> String {
    match value {
        Value::String(text) => string_text(text),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "nan".to_string(),
        // The shortest text that reads back as the same number.
        Value::Float(value) => format!("{value:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Date(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| value_text(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) if table.is_empty() => "{}".to_string(),
        Value::Table(table) => {
            format!("{{ {} }}", assignments(table.iter().collect(), shape).join(", "))
        }
    }
}

fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_string() } else { string_text(key) }
}

/// In single quotes where that spares escapes, as in Windows paths; else in double quotes.
fn string_text(text: &str) -> String {
    let awkward = text.contains(['"', '\\']);
    if awkward && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_string(),
        '\t' => "\\t".to_string(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}
