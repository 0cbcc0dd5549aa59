//! Stable ids of examples, which do not depend on the order of rows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use crate::error::DataError;
use crate::labels::pick;

/// The ids of a split's examples.
///
/// ```
/// use aleator_data::Ids;
///
/// let ids = Ids::named(vec!["cat/1.png".into(), "dog/7.png".into()], "photos")?;
/// assert_eq!(ids.name(1), "dog/7.png");
/// assert_eq!(ids.select(&[1]).key(0), ids.key(1));
/// assert_eq!(Ids::Rows(3).name(2), "2");
/// # Ok::<(), aleator_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// This many examples, whose ids are their rows in the source.
    Rows(usize),
    /// Some examples, whose ids are these rows of the source.
    Selected(Vec<usize>),
    /// Examples with distinct names.
    Names(Vec<String>),
}

impl Ids {
    /// Names from `path`; an empty one, or one that occurs twice, is refused.
    pub fn named(names: Vec<String>, path: impl AsRef<Path>) -> Result<Self, DataError> {
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for (row, name) in names.iter().enumerate() {
            let refuse = |message| Err(DataError::invalid(&path, message));
            if name.is_empty() {
                return refuse(format!("row {row} (counted from 0) has no id; give it one"));
            }
            if let Some(first) = rows.insert(name, row) {
                return refuse(format!(
                    "rows {first} and {row} (counted from 0) have the same id {name:?}; \
                     ids must be distinct"
                ));
            }
        }
        Ok(Self::Names(names))
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(count) => *count,
            Self::Selected(rows) => rows.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of example `index`.
    pub fn name(&self, index: usize) -> Cow<'_, str> {
        match self {
            Self::Rows(count) => {
                assert!(index < *count, "example {index} of {count}");
                index.to_string().into()
            }
            Self::Selected(rows) => rows[index].to_string().into(),
            Self::Names(names) => names[index].as_str().into(),
        }
    }

    /// The number of example `index` in random draws: its row in the source, or the first
    /// 64 bits of BLAKE3 of its name.
    pub fn key(&self, index: usize) -> u64 {
        match self {
            Self::Rows(count) => {
                assert!(index < *count, "example {index} of {count}");
                index as u64
            }
            Self::Selected(rows) => rows[index] as u64,
            Self::Names(names) => {
                let hash = blake3::hash(names[index].as_bytes());
                let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
                u64::from_le_bytes(*first)
            }
        }
    }

    /// These ids, then others of the same source.
    pub(crate) fn followed_by(&self, next: &Self) -> Self {
        let rows = |ids: &Self| match ids {
            Self::Rows(count) => (0..*count).collect(),
            Self::Selected(rows) => rows.clone(),
            Self::Names(_) => panic!("ids of one source are of one kind"),
        };
        match (self, next) {
            (Self::Names(own), Self::Names(next)) => Self::Names([&own[..], next].concat()),
            _ => Self::Selected([rows(self), rows(next)].concat()),
        }
    }

    /// The ids of these examples, in this order.
    pub fn select(&self, examples: &[usize]) -> Self {
        match self {
            Self::Rows(count) => {
                assert!(examples.iter().all(|index| index < count), "examples below {count}");
                Self::Selected(examples.to_vec())
            }
            Self::Selected(rows) => Self::Selected(pick(rows, examples)),
            Self::Names(names) => Self::Names(pick(names, examples)),
        }
    }
}

/// Finds examples by their ids.
#[derive(Clone, Debug)]
pub struct IdIndex {
    ids: Ids,
    /// The examples in the order of their names.
    sorted: Vec<usize>,
}

impl IdIndex {
    /// An index of these ids.
    ///
    /// ```
    /// use aleator_data::Ids;
    /// use aleator_data::ids::IdIndex;
    ///
    /// let index = IdIndex::new(Ids::Rows(12));
    /// assert_eq!(index.row("11"), Some(11));
    /// assert_eq!(index.row("011"), None);
    /// ```
    pub fn new(ids: Ids) -> Self {
        let mut sorted: Vec<usize> = match ids {
            Ids::Rows(_) => vec![],
            Ids::Selected(_) | Ids::Names(_) => (0..ids.len()).collect(),
        };
        sorted.sort_by(|a, b| ids.name(*a).cmp(&ids.name(*b)));
        Self { ids, sorted }
    }

    /// The ids.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// The position of the example with this id.
    pub fn row(&self, name: &str) -> Option<usize> {
        if let Ids::Rows(count) = self.ids {
            let row: usize = name.parse().ok()?;
            return (row < count && row.to_string() == name).then_some(row);
        }
        let at = self.sorted.binary_search_by(|at| self.ids.name(*at).as_ref().cmp(name)).ok()?;
        Some(self.sorted[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_id_twice_is_refused_with_both_rows() {
        let names = ["a", "b", "a"].map(String::from).to_vec();
        let message = Ids::named(names, "ids.csv").unwrap_err().to_string();
        assert_eq!(
            message,
            "ids.csv: rows 0 and 2 (counted from 0) have the same id \"a\"; ids must be distinct"
        );
    }

    #[test]
    fn an_empty_id_is_refused() {
        let message = Ids::named(vec!["a".into(), String::new()], "ids.csv").unwrap_err();
        assert!(message.to_string().contains("row 1"), "{message}");
    }

    #[test]
    fn selected_rows_keep_their_names_and_keys() {
        let ids = Ids::Rows(10).select(&[7, 3]).select(&[1]);
        assert_eq!((ids.len(), ids.name(0).as_ref(), ids.key(0)), (1, "3", 3));
    }

    /// A change of the hash would change which examples every run holds out.
    #[test]
    fn the_key_of_a_name_never_changes() {
        let ids = Ids::named(vec!["cat/1.png".into()], "photos").unwrap();
        assert_eq!(ids.key(0), 15_200_844_649_428_628_555);
    }
}
