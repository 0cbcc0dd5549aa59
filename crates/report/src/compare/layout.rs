//! Planned tables: `reports/*.toml`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path};

use aleator_run::{
    Document, KeyField, Node, RecipeError, RunError, Split, Table, Value, check_keys,
};

use super::error::CompareError;
use super::measure::Measure;
use super::published::Published;
use super::score::Test;
use super::view::Labels;

macro_rules! layouts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../reports/", $name, ".toml")))),*]
    };
}

/// Name and text of each, in the order of the list that users see.
const LAYOUTS: &[(&str, &str)] = layouts![
    "ilsvrc12",
    "webvision",
    "imagenet21k-jft",
    "vtab",
    "ensembles",
    "taylor",
    "samples",
    "equal-parameters",
    "sigmoid",
    "digits",
    "cifar10n",
];

/// Which runs make which table.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The name of its file, without directory and extension.
    pub name: String,
    /// The title.
    pub title: String,
    /// Its name in the paper, such as "Table 1"; `None` for our own tables.
    pub paper: Option<String>,
    /// The test behind †.
    pub test: Test,
    /// At least one.
    pub columns: Vec<LayoutColumn>,
    /// At least one.
    pub rows: Vec<LayoutRow>,
}

/// A column of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutColumn {
    /// What is compared.
    pub measure: Measure,
    /// The heading, if it differs from the measure's.
    pub name: Option<String>,
    /// On which examples.
    pub split: Split,
    /// Against which labels; by default clean if they are known, otherwise given.
    pub labels: Option<Labels>,
}

/// A row of a [`Layout`].
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRow {
    /// The group of rows that it is compared with; all rows without groups.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
    /// The recipe of its runs; `None` if there is no recipe.
    pub recipe: Option<String>,
    /// The directory of its runs, inside that of all runs; `None` for a row without runs.
    pub run: Option<String>,
    /// The paper's numbers in each column; empty for our own tables.
    pub published: Vec<Option<Published>>,
}

/// The built-in tables: those of the paper, then our own.
///
/// # Errors
/// When a built-in file is wrong, which a test rules out.
pub fn layouts() -> Result<Vec<Layout>, CompareError> {
    let parse = |(name, text): &(&str, &str)| Layout::parse(text, name, &format!("table {name}"));
    LAYOUTS.iter().map(parse).collect()
}

impl Layout {
    /// The built-in table of this name, or the one in the file of this path.
    ///
    /// ```
    /// use aleator_report::compare::Layout;
    ///
    /// let layout = Layout::load("ilsvrc12")?;
    /// assert_eq!(layout.paper.as_deref(), Some("Table 1"));
    /// # Ok::<(), aleator_report::compare::CompareError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such table, or the file has an unknown key or a wrong value.
    pub fn load(name_or_path: &str) -> Result<Self, CompareError> {
        if let Some((name, text)) = LAYOUTS.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(text, name, &format!("table {name}"));
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            let known: Vec<&str> = LAYOUTS.iter().map(|(name, _)| *name).collect();
            let (name, known) = (name_or_path.to_string(), known.join(", "));
            return Err(CompareError::NoLayout { name, known });
        }
        let io = |source| RunError::Io { action: "read", path: path.to_path_buf(), source };
        let text = read(path).map_err(io)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&text, &stem, &path.display().to_string())
    }

    fn parse(text: &str, name: &str, shown: &str) -> Result<Self, CompareError> {
        let document = Document::parse(text, shown)?;
        let root = Keys { section: String::new(), table: document.root(), place: shown };
        root.check(&["title", "paper", "test", "column", "row"])?;
        let tests = [("unpaired", Test::Unpaired), ("paired", Test::PairedBySeed)];
        let columns: Vec<LayoutColumn> =
            root.tables("column")?.iter().map(LayoutColumn::parse).collect::<Result<_, _>>()?;
        let row = |keys: &Keys<'_>| LayoutRow::parse(keys, columns.len());
        Ok(Self {
            name: name.to_string(),
            title: root.required("title")?.text()?.to_string(),
            paper: root.optional_text("paper")?,
            test: root.required("test")?.choice(&tests)?,
            rows: root.tables("row")?.iter().map(row).collect::<Result<_, _>>()?,
            columns,
        })
    }

    /// Whether the paper has numbers in a column.
    pub fn is_published(&self, column: usize) -> bool {
        self.rows.iter().any(|row| row.published.get(column).is_some_and(Option::is_some))
    }

    /// The names of the groups in their order; a single `None` without groups.
    pub fn groups(&self) -> Vec<Option<&str>> {
        let mut groups: Vec<Option<&str>> = vec![];
        for row in &self.rows {
            if !groups.contains(&row.group.as_deref()) {
                groups.push(row.group.as_deref());
            }
        }
        groups
    }
}

impl LayoutColumn {
    fn parse(keys: &Keys<'_>) -> Result<Self, CompareError> {
        keys.check(&["metric", "name", "split", "labels"])?;
        let measures: Vec<(&'static str, Measure)> =
            Measure::ALL.into_iter().map(|measure| (measure.key(), measure)).collect();
        let splits = [("test", Split::Test), ("validation", Split::Validation)];
        let labels = [("given", Labels::Given), ("clean", Labels::Clean)];
        Ok(Self {
            measure: keys.required("metric")?.choice(&measures)?,
            name: keys.optional_text("name")?,
            split: keys.required("split")?.choice(&splits)?,
            labels: keys.optional("labels").map(|field| field.choice(&labels)).transpose()?,
        })
    }

    /// What stands above it.
    pub fn heading(&self) -> &str {
        self.name.as_deref().unwrap_or(self.measure.heading())
    }
}

impl LayoutRow {
    fn parse(keys: &Keys<'_>, columns: usize) -> Result<Self, CompareError> {
        keys.check(&["group", "name", "recipe", "run", "paper"])?;
        let run = keys.optional("run").map(|field| inner_directory(&field)).transpose()?;
        let published = match keys.optional("paper") {
            Some(field) => published(&field, columns)?,
            None => vec![],
        };
        Ok(Self {
            group: keys.optional_text("group")?,
            name: keys.required("name")?.text()?.to_string(),
            recipe: keys.optional_text("recipe")?,
            run,
            published,
        })
    }
}

fn published(field: &KeyField<'_>, columns: usize) -> Result<Vec<Option<Published>>, CompareError> {
    let items = field.list()?;
    if items.len() != columns {
        let (key, found) = (&field.key, items.len());
        let message =
            format!("{key} must have a text for each of {columns} columns, found {found}");
        return Err(field.impossible(message).into());
    }
    let cell = |item: &KeyField<'_>| {
        let parsed = Published::parse(item.text()?);
        parsed.map_err(|message| item.impossible(format!("{}: {message}", item.key)))
    };
    Ok(items.iter().map(cell).collect::<Result<_, RecipeError>>()?)
}

/// A path relative to the directory of all runs.
fn inner_directory(field: &KeyField<'_>) -> Result<String, RecipeError> {
    let path = field.path()?;
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if Path::new(&path).components().all(inside) {
        Ok(path)
    } else {
        Err(field.must_be("a directory inside the directory of all runs"))
    }
}

/// A table of the file.
struct Keys<'a> {
    section: String,
    table: &'a Table,
    /// Where it stands.
    place: &'a str,
}

impl<'a> Keys<'a> {
    fn check(&self, known: &[&str]) -> Result<(), RecipeError> {
        check_keys(&self.section, self.table, known)
    }

    fn name(&self, key: &str) -> String {
        if self.section.is_empty() { key.to_string() } else { format!("{}.{key}", self.section) }
    }

    fn optional(&self, key: &str) -> Option<KeyField<'a>> {
        self.table.get(key).map(|node| KeyField { key: self.name(key), node })
    }

    fn optional_text(&self, key: &str) -> Result<Option<String>, RecipeError> {
        self.optional(key).map(|field| field.text().map(String::from)).transpose()
    }

    fn required(&self, key: &str) -> Result<KeyField<'a>, CompareError> {
        self.optional(key).ok_or_else(|| CompareError::Missing {
            file: self.place.to_string(),
            key: self.name(key),
        })
    }

    /// The tables of `[[key]]`, at least one.
    fn tables(&self, key: &str) -> Result<Vec<Keys<'a>>, CompareError> {
        let field = self.required(key)?;
        let wrong = || field.wrong_type(format!("tables, each under [[{key}]]"));
        let Value::Array(items) = &field.node.value else { return Err(wrong().into()) };
        let table = |(at, node): (usize, &'a Node)| match &node.value {
            Value::Table(table) => {
                Ok(Keys { section: format!("{key}[{at}]"), table, place: self.place })
            }
            _ => Err(wrong()),
        };
        if items.is_empty() {
            return Err(wrong().into());
        }
        Ok(items.iter().enumerate().map(table).collect::<Result<_, RecipeError>>()?)
    }
}

/// The text of a layout; files that are too long are refused.
fn read(path: &Path) -> io::Result<String> {
    const MAX_BYTES: u64 = 1 << 20;
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("longer than 1 MiB: a table is a few lines of TOML"));
    }
    Ok(text)
}
