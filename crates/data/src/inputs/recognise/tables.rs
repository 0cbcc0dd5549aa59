//! Tables with a column for each feature: which column is what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aleator_run::recipe::{DataOverlay, HeldOut, InputSource, TableSource};

use super::super::wide::{Content, TableFile};
use super::units::{Split, split_of};
use super::{ColumnNames, Family, Recognised, folder, short, source, text};
use crate::array::listed;
use crate::ending::Ending;
use crate::error::DataError;

const LABELS: [&str; 10] = [
    "label",
    "labels",
    "class",
    "target",
    "y",
    "category",
    "given_label",
    "noisy_label",
    "fine_label",
    "class_label",
];
const CLEAN_LABELS: [&str; 4] = ["clean_label", "true_label", "clean_labels", "gold_label"];
const IDS: [&str; 10] = [
    "id",
    "ids",
    "example",
    "example_id",
    "sample_id",
    "uuid",
    "path",
    "filename",
    "file_name",
    "index",
];
const SPLITS: [&str; 4] = ["split", "subset", "partition", "set"];

/// The table of a folder, or one for each split by their names. None where other arrays are, or
/// where no file is such a table.
pub(super) fn in_folder(path: &Path, names: &ColumnNames) -> Result<Option<Recognised>, DataError> {
    let files = folder::files_in(path)?;
    let is_array = |file: &PathBuf| {
        matches!(Ending::of(file), Some(Ending::Npy | Ending::Safetensors | Ending::Npz))
    };
    if files.iter().any(is_array) {
        return Ok(None);
    }
    let tables: Vec<PathBuf> = files.into_iter().filter(|file| is_table(file)).collect();
    let of = |split| -> Vec<&PathBuf> {
        tables.iter().filter(|file| split_of(&short(file)) == split).collect()
    };
    let (train, unsaid) = (of(Some(Split::Train)), of(None));
    match (&train[..], &unsaid[..]) {
        ([only], _) | ([], [only]) => in_file(only, names),
        _ => Ok(None),
    }
}

/// A file that is a table with features and labels; tables beside it whose names say that they are
/// for validation or test are those splits.
pub(super) fn in_file(path: &Path, names: &ColumnNames) -> Result<Option<Recognised>, DataError> {
    if !is_table(path) {
        return Ok(None);
    }
    let table = TableFile::open(path)?;
    let (contents, rows) = table.survey()?;
    let columns: Vec<(String, Content)> = table.names().into_iter().zip(contents).collect();
    let has_lists = columns.iter().any(|(_, content)| *content == Content::Lists);
    let choice = Choice { path, table, columns, rows, ignored: vec![] };
    let named = [&names.label, &names.id, &names.split];
    for name in named.into_iter().flatten().chain(&names.ignore) {
        choice.table.check_column(name)?;
    }
    // Embeddings alone have their labels in another file.
    if has_lists && names.label.is_none() && choice.by_name(&LABELS).is_empty() {
        return Ok(None);
    }
    choice.recognise(names).map(Some)
}

fn is_table(path: &Path) -> bool {
    matches!(Ending::of(path), Some(Ending::Csv | Ending::Tsv | Ending::Parquet))
}

/// A table while its columns are assigned.
struct Choice<'a> {
    path: &'a Path,
    table: TableFile,
    columns: Vec<(String, Content)>,
    rows: usize,
    /// What is said of columns that are not used.
    ignored: Vec<String>,
}

impl Choice<'_> {
    fn recognise(mut self, names: &ColumnNames) -> Result<Recognised, DataError> {
        let mut found = TableSource { file: text(self.path)?, ..TableSource::default() };
        found.ignore.clone_from(&names.ignore);
        self.ignored = names.ignore.iter().map(|name| format!("{name:?}")).collect();
        found.split = match &names.split {
            Some(split) => Some(split.clone()),
            None => self.split()?,
        };
        found.clean_label = self.by_name(&CLEAN_LABELS).first().cloned();
        found.id = match &names.id {
            Some(id) => Some(id.clone()),
            None => self.id(&found, names)?,
        };
        found.label = match &names.label {
            Some(label) => Some(label.clone()),
            None => Some(self.label(&found)?),
        };
        let features = self.features(&mut found)?;
        let mut explanation = format!(
            "A table of {} rows in {}: {features}; labels in column {:?}",
            self.rows,
            short(self.path),
            found.label.as_deref().unwrap_or_default()
        );
        for (what, column) in [("true labels", &found.clean_label), ("ids", &found.id)] {
            if let Some(column) = column {
                explanation += &format!("; {what} in column {column:?}");
            }
        }
        let mut recognised = Recognised {
            preset_family: Family::Features,
            train: source(InputSource::Table(found.clone())),
            data: DataOverlay::default(),
            longest_side: None,
            explanation,
        };
        match found.split.clone() {
            Some(split) => self.divide(&split, &found, &mut recognised)?,
            None => self.add_siblings(&found, &mut recognised)?,
        }
        if !self.ignored.is_empty() {
            recognised.note(&format!("not used: {}", self.ignored.join(", ")));
        }
        recognised.explanation.push('.');
        Ok(recognised)
    }

    /// The columns with one of these names, the more usual name first.
    fn by_name(&self, names: &[&str]) -> Vec<String> {
        let is = |name: &&str| {
            self.columns.iter().map(|it| &it.0).find(|column| column.eq_ignore_ascii_case(name))
        };
        names.iter().filter_map(is).cloned().collect()
    }

    fn label(&self, found: &TableSource) -> Result<String, DataError> {
        let (named, index) = (self.by_name(&LABELS), self.table.index());
        let is_free = |name: &String| {
            let taken = [&found.split, &found.id, &found.clean_label];
            !taken.into_iter().flatten().chain(&found.ignore).any(|other| other == name)
        };
        let named: Vec<String> = named.into_iter().filter(is_free).collect();
        let words: Vec<String> = self
            .columns
            .iter()
            .filter(|(_, content)| *content == Content::Words)
            .filter(|(name, _)| is_free(name) && !index.contains(name))
            .map(|(name, _)| name.clone())
            .collect();
        match (&named[..], &words[..]) {
            ([only], _) | ([], [only]) => Ok(only.clone()),
            ([], _) => Err(self.refuse(format!(
                "which column holds the labels? Name it with --label COLUMN; it has {}",
                self.described()
            ))),
            (several, _) => Err(self.refuse(format!(
                "its labels could be in {}; choose with --label COLUMN, and leave out the others \
                 with --ignore COLUMN",
                several.join(" or ")
            ))),
        }
    }

    /// A column of ids, if all are distinct.
    fn id(
        &mut self,
        found: &TableSource,
        names: &ColumnNames,
    ) -> Result<Option<String>, DataError> {
        let mut candidates = self.by_name(&IDS);
        let ends = |name: &str| name.to_lowercase().ends_with("_id") || name.ends_with("Id");
        candidates.extend(self.columns.iter().map(|it| it.0.clone()).filter(|name| ends(name)));
        let index = self.table.index();
        let names_rows = |it: &&(String, Content)| it.1 == Content::Words && index.contains(&it.0);
        candidates.extend(self.columns.iter().filter(names_rows).map(|it| it.0.clone()));
        let mut id = None;
        for name in candidates {
            if Some(&name) == names.label.as_ref() || found.ignore.contains(&name) {
                continue;
            }
            let is_usual = IDS.iter().any(|usual| name.eq_ignore_ascii_case(usual));
            let words = self.table.words(&name)?;
            let distinct: BTreeSet<&String> = words.iter().collect();
            let is_id = distinct.len() == words.len() && !distinct.contains(&String::new());
            match (is_id, &id) {
                (true, None) => id = Some(name),
                (true, Some(first)) if name != *first => {
                    self.ignored.push(format!("{name:?} (also ids)"));
                }
                (false, _) if is_usual => self.ignored.push(format!("{name:?} (ids that repeat)")),
                _ => {}
            }
        }
        Ok(id)
    }

    /// A column whose values are names of splits.
    fn split(&self) -> Result<Option<String>, DataError> {
        for name in self.by_name(&SPLITS) {
            let words: BTreeSet<String> = self.table.words(&name)?.into_iter().collect();
            if words.iter().all(|word| split_of(word).is_some()) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Says what the features are; columns that cannot be any are left out, and that is said.
    fn features(&mut self, found: &mut TableSource) -> Result<String, DataError> {
        let used = [&found.label, &found.clean_label, &found.id, &found.split];
        let used: Vec<String> = used.into_iter().flatten().chain(&found.ignore).cloned().collect();
        let free: Vec<(String, Content)> =
            self.columns.iter().filter(|(name, _)| !used.contains(name)).cloned().collect();
        let of = |content: Content| -> Vec<String> {
            free.iter().filter(|it| it.1 == content).map(|it| it.0.clone()).collect()
        };
        let (numbers, lists) = (of(Content::Numbers), of(Content::Lists));
        let index = self.table.index();
        let already = |name: &String| {
            self.ignored.iter().any(|said| said.starts_with(&format!("{name:?} (")))
        };
        let mut features = vec![];
        let mut ignored = vec![];
        for (name, content) in &free {
            let why = match content {
                _ if already(name) => "",
                _ if index.contains(name) => "the index of the rows",
                Content::Lists if lists.len() == 1 => {
                    features.push(name.clone());
                    continue;
                }
                Content::Numbers if lists.is_empty() => {
                    features.push(name.clone());
                    continue;
                }
                Content::Numbers => "beside the lists",
                Content::Words => "words: encode them as numbers to use them",
                Content::Lists => "several columns of lists",
                Content::Other => "neither numbers nor words",
            };
            found.ignore.push(name.clone());
            if !why.is_empty() {
                ignored.push(format!("{name:?} ({why})"));
            }
        }
        self.ignored.extend(ignored);
        match (&lists[..], &features[..]) {
            ([_, _, ..], _) => Err(self.refuse(format!(
                "has several columns of lists: {}; leave out all but one with --ignore COLUMN",
                lists.join(", ")
            ))),
            ([only], _) => {
                Ok(format!("lists of {} in column {only:?}", self.table.list_content(only)))
            }
            (_, []) => Err(self.refuse(format!(
                "has no column of numbers that could be a feature; it has {}",
                self.described()
            ))),
            (_, [only]) => Ok(format!("1 feature, {only:?}")),
            _ if features.len() <= 4 => Ok(format!(
                "{} features ({})",
                numbers.len().min(features.len()),
                listed(&features, ", ")
            )),
            _ => {
                let (first, last) = (&features[0], &features[features.len() - 1]);
                Ok(format!("{} features ({first} to {last})", features.len()))
            }
        }
    }

    /// The rows of each split.
    fn divide(
        &self,
        split: &str,
        found: &TableSource,
        recognised: &mut Recognised,
    ) -> Result<(), DataError> {
        let words: BTreeSet<String> = self.table.words(split)?.into_iter().collect();
        let part = |wanted: Split| -> Result<Option<InputSource>, DataError> {
            let named: Vec<&String> =
                words.iter().filter(|word| split_of(word) == Some(wanted)).collect();
            match named[..] {
                [] => Ok(None),
                [only] => Ok(Some(InputSource::Table(TableSource {
                    rows: Some(only.clone()),
                    ..found.clone()
                }))),
                _ => Err(self.refuse(format!("column {split:?} names one split in several ways"))),
            }
        };
        let unknown = words.iter().find(|word| split_of(word).is_none());
        let (Some(train), None) = (part(Split::Train)?, unknown) else {
            let words: Vec<String> = words.iter().cloned().collect();
            return Err(self.refuse(format!(
                "column {split:?} must say train, validation or test in each row; it says {}. Leave \
                 it out with --ignore {split}, or replace its values",
                listed(&words, ", ")
            )));
        };
        recognised.train = source(train);
        let held_out = |split| Ok(part(split)?.map(|inputs| HeldOut::Source(source(inputs))));
        recognised.data.validation = held_out(Split::Validation)?;
        recognised.data.test = held_out(Split::Test)?;
        let words: Vec<String> = words.into_iter().collect();
        recognised.note(&format!("splits in column {split:?} ({})", words.join(", ")));
        Ok(())
    }

    /// `test.csv` beside `train.csv`, if it has the columns of the training table.
    fn add_siblings(
        &mut self,
        found: &TableSource,
        recognised: &mut Recognised,
    ) -> Result<(), DataError> {
        if split_of(&short(self.path)) != Some(Split::Train) {
            return Ok(());
        }
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let files = folder::files_in(folder.unwrap_or(Path::new(".")))?;
        for split in [Split::Validation, Split::Test] {
            let is_it = |file: &&PathBuf| {
                split_of(&short(file)) == Some(split) && Ending::of(file) == Ending::of(self.path)
            };
            let named: Vec<&PathBuf> = files.iter().filter(is_it).collect();
            let [file] = named[..] else { continue };
            let label = found.label.as_deref().unwrap_or_default();
            let has_label = TableFile::open(file)?.check_column(label).is_ok();
            if !has_label {
                self.ignored.push(format!("{} (no column {label:?})", short(file)));
                continue;
            }
            let known = TableFile::open(file)?.names();
            let own = |column: &Option<String>| column.clone().filter(|it| known.contains(it));
            let table = TableSource {
                file: text(file)?,
                label: found.label.clone(),
                clean_label: own(&found.clean_label),
                id: own(&found.id),
                ..TableSource::default()
            };
            let held_out = Some(HeldOut::Source(source(InputSource::Table(table))));
            let name = if split == Split::Test { "test" } else { "validation" };
            recognised.note(&format!("{name} data in {}", short(file)));
            match split {
                Split::Test => recognised.data.test = held_out,
                _ => recognised.data.validation = held_out,
            }
        }
        Ok(())
    }

    /// The columns and what they hold, for messages.
    fn described(&self) -> String {
        let kind = |content: &Content| match content {
            Content::Numbers => "numbers",
            Content::Words => "words",
            Content::Lists => "lists",
            Content::Other => "other",
        };
        let columns = self.columns.iter().map(|(name, it)| format!("{name} ({})", kind(it)));
        listed(&columns.collect::<Vec<_>>(), ", ")
    }

    fn refuse(&self, message: String) -> DataError {
        DataError::invalid(self.path, message)
    }
}
