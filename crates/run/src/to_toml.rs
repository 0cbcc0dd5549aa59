//! A document as TOML that people read: the same content always gives the same text.

use std::fmt::Write;

use crate::document::{Document, Node, Table, Value};
use crate::schema::{self, SECTIONS};

impl Document {
    /// Every key directly in a section, as `--set` takes it: what sets them elsewhere.
    ///
    /// ```
    /// let document = aleator_run::Document::parse("[head]\nrank = 6\nnoise = \"full\"", "my.toml")?;
    /// assert_eq!(document.settings("head"), ["head.noise=\"full\"", "head.rank=6"]);
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    pub fn settings(&self, section: &str) -> Vec<String> {
        let Some(Node { value: Value::Table(table), .. }) = self.get(section) else {
            return vec![];
        };
        let own = table.iter().filter(|(key, _)| !schema::is_section(&schema::join(section, key)));
        let setting = |(key, node): (&String, &Node)| {
            let name = schema::join(section, key);
            format!("{name}={}", value_text(&name, &node.value))
        };
        in_recipe_order(section, own.collect()).into_iter().map(setting).collect()
    }

    /// The document as TOML: what stands at the top first, then the sections, each with its keys
    /// in the order of a recipe.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for section in SECTIONS {
            let table = match section.name {
                "" => &self.root,
                name => match self.get(name).map(|node| &node.value) {
                    Some(Value::Table(table)) => table,
                    _ => continue,
                },
            };
            write_section(&mut out, section.name, table);
        }
        out
    }
}

fn write_section(out: &mut String, name: &str, table: &Table) {
    let is_section = |key: &str, value: &Value| {
        matches!(value, Value::Table(_)) && schema::is_section(&schema::join(name, key))
    };
    let (sections, own): (Vec<_>, Vec<_>) =
        table.iter().partition(|(key, node)| is_section(key, &node.value));
    // A section that only has sections below it needs no header of its own.
    if !name.is_empty() && (!own.is_empty() || sections.is_empty()) {
        let gap = if out.is_empty() { "" } else { "\n" };
        out.push_str(&format!("{gap}[{name}]\n"));
    }
    for (key, node) in in_recipe_order(name, own) {
        out.push_str(&format!(
            "{} = {}\n",
            key_text(key),
            value_text(&schema::join(name, key), &node.value)
        ));
    }
}

/// Known keys in the order of a recipe, then any others by name.
fn in_recipe_order<'a, T>(
    section: &str,
    mut entries: Vec<(&'a String, T)>,
) -> Vec<(&'a String, T)> {
    let known = schema::keys_of(section).unwrap_or_default();
    let place = |key: &str| known.iter().position(|known| *known == key).unwrap_or(known.len());
    // Stable: the table gives its keys by name.
    entries.sort_by_key(|(key, _)| place(key));
    entries
}

/// The value of the dotted key `name`, on one line.
pub(crate) fn value_text(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => string_text(text),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "nan".to_string(),
        // The shortest text that reads back as the same number.
        Value::Float(value) => format!("{value:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Date(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| value_text(name, &item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) if table.is_empty() => "{}".to_string(),
        Value::Table(table) => {
            let entry = |(key, node): (&String, &Node)| {
                let value = value_text(&schema::join(name, key), &node.value);
                format!("{} = {value}", key_text(key))
            };
            let entries = in_recipe_order(name, table.iter().collect());
            let entries: Vec<String> = entries.into_iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
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
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
