//! The true classes of some training examples, which somebody has checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use aleator_run::recipe::{LabelKind, Link};

use super::by_id::LabelsById;
use super::classes::Classes;
use super::read::Role;
use super::votes::unknown_example;
use crate::dataset::{DataSet, Split};
use crate::error::DataError;
use crate::ids::Ids;

impl DataSet {
    /// The verified class of each training example, `[N]`: a table with the columns `id` and
    /// `label` has those of some. Rows about other examples of the same source, which are held out
    /// or not used, are passed over.
    ///
    /// ```
    /// use aleator_data::DataSet;
    /// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
    ///
    /// let held_out = HeldOut::Fraction { fraction: 0.1, seed: 0 };
    /// let digits = Data::of(Source::of(InputSource::Digits), held_out);
    /// let digits = DataSet::open(&digits, Link::Softmax)?;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("verified.csv").display().to_string();
    /// let id = digits.train.ids.name(2);
    /// std::fs::write(&path, format!("id,label\n{id},7\n")).unwrap();
    /// assert_eq!(digits.verified(&path)?[..4], [None, None, Some(7), None]);
    /// # Ok::<(), aleator_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// When the file is no such table, names an unknown example or class, or an example twice.
    pub fn verified(&self, spec: &str) -> Result<Vec<Option<u32>>, DataError> {
        let invalid = |message: &str| DataError::invalid(spec, message);
        let table = LabelsById::load(spec, LabelKind::Single, Link::Softmax, Role::Training)?;
        let Some(table) = table else {
            return Err(invalid(
                "must be a CSV or TSV table with a header and the columns id and label: a row for \
                 each example whose true class is known",
            ));
        };
        if !LabelsById::has_one_column_of_labels(spec)? {
            return Err(invalid(
                "has several columns beside the ids; call the one of the true classes label",
            ));
        }
        let (ids, labels) = table.in_rows(&Classes::of_run(&self.class_names)?, Link::Softmax)?;
        let labels = labels.hard(0, &Ids::Rows(ids.len())).expect("labels of one class");
        let of_split = positions(&self.train);
        let held_out = [Some(&self.validation), self.test.as_ref()];
        let same_source = |split: &&Arc<Split>| Arc::ptr_eq(&split.inputs, &self.train.inputs);
        let others: Vec<BTreeMap<String, usize>> =
            held_out.into_iter().flatten().filter(same_source).map(|it| positions(it)).collect();
        let mut verified = vec![None; self.train.len()];
        let mut rows = BTreeMap::new();
        for (row, (id, label)) in ids.iter().zip(labels).enumerate() {
            let id = id.trim();
            if let Some(first) = rows.insert(id, row) {
                return Err(invalid(&format!(
                    "rows {first} and {row} (counted from 0) both have the example {id:?}; keep one \
                     of them"
                )));
            }
            match of_split.get(id) {
                Some(example) => verified[*example] = Some(label),
                None if others.iter().any(|other| other.contains_key(id)) => {}
                None => self.check_unused(id).map_err(|message| {
                    invalid(&format!("row {row} (counted from 0): {message}"))
                })?,
            }
        }
        Ok(verified)
    }

    /// Refuses an id that no example of the training source has. Where examples have names, only
    /// those of the splits are known.
    fn check_unused(&self, id: &str) -> Result<(), String> {
        let rows = self.train.inputs.len();
        match &self.train.ids {
            Ids::Names(_) => Err(unknown_example(id, &self.train.ids)),
            _ if id.parse().is_ok_and(|row: usize| row < rows) => Ok(()),
            _ => Err(unknown_example(id, &Ids::Rows(rows))),
        }
    }
}

/// The position of each example by its id.
fn positions(split: &Split) -> BTreeMap<String, usize> {
    (0..split.len()).map(|at| (split.ids.name(at).trim().to_string(), at)).collect()
}
