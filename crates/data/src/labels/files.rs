//! Labels of examples whose inputs are not read, because a model has predicted them already.

use std::path::{Path, PathBuf};

use aleator_run::recipe::{LabelKind, Link};

use super::Labels;
use super::classes::Classes;
use super::read::{CleanLabels, RawLabels, Role};
use super::table::Table;
use crate::error::DataError;
use crate::ids::Ids;
use crate::sources::source::read_ids;

/// Files with the labels of N examples in K classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFiles {
    /// The labels, `file` or `file#column`, of any kind that training takes.
    pub labels: String,
    /// The true classes, where they are known.
    pub clean_labels: Option<String>,
    /// The ids of the examples; without it they are numbered from 0.
    pub ids: Option<String>,
    /// The names of the classes, one per line, in the order of their numbers.
    pub class_names: Option<PathBuf>,
}

/// What [`LabelFiles`] hold.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledExamples {
    /// The names of the classes, in the order of their numbers, `[K]`.
    pub class_names: Vec<String>,
    /// The ids of the examples, `[N]`.
    pub ids: Ids,
    /// The labels.
    pub labels: Labels,
    /// The true classes, where they are known.
    pub clean_labels: Option<Vec<u32>>,
}

impl LabelFiles {
    /// Reads the labels of `examples` examples in `classes` classes, some of which may have no
    /// example.
    ///
    /// # Errors
    /// When a file cannot be read, or does not fit the number of examples or classes.
    pub fn read(
        &self,
        examples: usize,
        classes: usize,
        link: Link,
    ) -> Result<LabelledExamples, DataError> {
        let ids = match &self.ids {
            Some(spec) => read_ids(spec, examples)?,
            None => Ids::Rows(examples),
        };
        let raw = RawLabels::load(&self.labels, LabelKind::Auto, link, Role::Training)?;
        let clean = self.clean_labels.as_deref().map(Table::load).transpose()?;
        let clean = clean.map(CleanLabels::Table);
        let classes = self.classes(&raw, clean.as_ref(), classes)?;
        Ok(LabelledExamples {
            labels: raw.read(&classes, &ids, link)?,
            clean_labels: clean.map(|clean| clean.read(&classes, &ids)).transpose()?,
            class_names: classes.names,
            ids,
        })
    }

    fn classes(
        &self,
        labels: &RawLabels,
        clean: Option<&CleanLabels>,
        expected: usize,
    ) -> Result<Classes, DataError> {
        let names = self.class_names.as_deref();
        let find = |count| Classes::find(count, names, labels, clean, None);
        let numbers: Vec<String> = (0..expected).map(|class| class.to_string()).collect();
        // Numbers such as −1 and 1 are classes in the order of the columns of probabilities.
        let encoded = find(None).ok().filter(|it| it.note().is_some() && it.len() == expected);
        let classes = match names {
            Some(_) => find(None)?,
            None if encoded.is_some() => find(None)?,
            None => match find(Some(expected)) {
                Ok(classes) if classes.names == numbers => Classes::given(&numbers, labels)?,
                Ok(classes) => classes,
                // Words or columns of another number; any other error is found again.
                Err(_) => find(None)?,
            },
        };
        let found = classes.len();
        if found == expected {
            return Ok(classes);
        }
        let (path, what) = match names {
            Some(path) => (path, "names"),
            None => (Path::new(&self.labels), "classes"),
        };
        let message = format!(
            "has {found} {what}, but there are probabilities of {expected} classes; name all \
             classes in a file, one per line, in the order of the probabilities"
        );
        Err(DataError::invalid(path, message))
    }
}
