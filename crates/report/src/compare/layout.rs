//! Planned tables: `reports/*.toml`.

use std::path::{Component, Path};

use aleator_run::{Document, Split};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

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
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Layout {
    /// The name of its file, without directory and extension.
    #[serde(skip)]
    pub name: String,
    /// The title.
    pub title: String,
    /// Its name in the paper, such as "Table 1"; `None` for our own tables.
    pub paper: Option<String>,
    /// The test behind †.
    pub test: Test,
    /// At least one.
    #[serde(rename = "column")]
    pub columns: Vec<LayoutColumn>,
    /// At least one.
    #[serde(rename = "row")]
    pub rows: Vec<LayoutRow>,
}

/// A column of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LayoutColumn {
    /// What is compared.
    #[serde(rename = "metric")]
    pub measure: Measure,
    /// The heading, if it differs from the measure's.
    pub name: Option<String>,
    /// On which examples.
    #[serde(deserialize_with = "held_out")]
    pub split: Split,
    /// Against which labels; by default clean if they are known, otherwise given.
    pub labels: Option<Labels>,
}

/// A row of a [`Layout`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LayoutRow {
    /// The group of rows that it is compared with; all rows without groups.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
    /// The recipe of its runs; `None` if there is no recipe.
    pub recipe: Option<String>,
    /// The directory of its runs, inside that of all runs; `None` for a row without runs.
    #[serde(default, deserialize_with = "inner_dir")]
    pub run: Option<String>,
    /// The paper's numbers in each column; empty for our own tables.
    #[serde(default, rename = "paper", deserialize_with = "published")]
    pub published: Vec<Option<Published>>,
}

/// The built-in tables: those of the paper, then our own.
///
/// # Errors
/// When a built-in file is wrong, which a test rules out.
pub fn layouts() -> Result<Vec<Layout>, CompareError> {
    LAYOUTS.iter().map(Layout::built_in).collect()
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
        if let Some(built_in) = LAYOUTS.iter().find(|(name, _)| *name == name_or_path) {
            return Self::built_in(built_in);
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            let known: Vec<&str> = LAYOUTS.iter().map(|(name, _)| *name).collect();
            let (name, known) = (name_or_path.to_string(), known.join(", "));
            return Err(CompareError::NoLayout { name, known });
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::decode(&Document::load(path)?, &stem)
    }

    fn built_in((name, text): &(&str, &str)) -> Result<Self, CompareError> {
        Self::decode(&Document::parse(text, &format!("table {name}"))?, name)
    }

    fn decode(document: &Document, name: &str) -> Result<Self, CompareError> {
        let layout = Self { name: name.to_string(), ..document.decode()? };
        let columns = layout.columns.len();
        for (key, count) in [("column", columns), ("row", layout.rows.len())] {
            if count == 0 {
                let message = format!("{key} must be tables, each under [[{key}]], found none");
                return Err(document.refuse(key, message).into());
            }
        }
        for (at, row) in layout.rows.iter().enumerate() {
            let found = row.published.len();
            if found > 0 && found != columns {
                let key = format!("row[{at}].paper");
                let message =
                    format!("{key} must have a text for each of {columns} columns, found {found}");
                return Err(document.refuse(&key, message).into());
            }
        }
        Ok(layout)
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
    /// What stands above it.
    pub fn heading(&self) -> &str {
        self.name.as_deref().unwrap_or(self.measure.heading())
    }
}

/// A split to compare on.
fn held_out<'de, D: Deserializer<'de>>(from: D) -> Result<Split, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum HeldOut {
        Test,
        Validation,
    }
    Ok(match HeldOut::deserialize(from)? {
        HeldOut::Test => Split::Test,
        HeldOut::Validation => Split::Validation,
    })
}

fn published<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Published>>, D::Error> {
    struct Cell(Option<Published>);
    impl<'de> Deserialize<'de> for Cell {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            Published::parse(&String::deserialize(from)?).map(Self).map_err(Error::custom)
        }
    }
    Ok(Vec::<Cell>::deserialize(from)?.into_iter().map(|cell| cell.0).collect())
}

/// A path relative to the directory of all runs.
fn inner_dir<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let path = String::deserialize(from)?;
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.is_empty() {
        return Err(Error::custom("must name a file or folder"));
    }
    if Path::new(&path).components().all(inside) {
        return Ok(Some(path));
    }
    let expected = "a directory inside that of all runs";
    Err(Error::invalid_value(Unexpected::Str(&path), &expected))
}
