//! The tables of an audit as CSV files, made for spreadsheets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aleator_run::{CsvFile, Link, RunError};

use super::record::{
    AnnotatorFinding, Answer, AuditSummary, ClassFinding, Consensus, Issue, PairFinding,
};
use crate::spreadsheet::{class_cell, guarded, unguarded};

/// The number of confusions of a class or an annotator that have columns.
pub(super) const CONFUSIONS: usize = 3;

/// One row of a table.
pub(super) trait Record: Sized {
    /// The names of the columns, which may differ with the link.
    fn columns(link: Link) -> Vec<String>;

    /// The cells below them; those at the end that are left out are empty.
    fn cells(&self, names: &[String]) -> Vec<String>;

    /// What the cells say.
    fn parse(row: &Row) -> Result<Self, String>;
}

/// Writes a table of an audit.
pub(super) fn write<'a, T: Record + 'a>(
    path: &Path,
    rows: impl IntoIterator<Item = &'a T>,
    AuditSummary { link, class_names, .. }: &AuditSummary,
) -> Result<(), RunError> {
    let columns = T::columns(*link);
    CsvFile::write(path, &columns, |table| {
        rows.into_iter().try_for_each(|row| {
            let mut cells = row.cells(class_names);
            cells.resize(columns.len(), String::new());
            table.row(&cells)
        })
    })
}

/// Reads what [`write()`] wrote.
pub(super) fn read<T: Record>(
    path: &Path,
    AuditSummary { link, class_names, .. }: &AuditSummary,
) -> Result<Vec<T>, RunError> {
    let columns = T::columns(*link);
    let classes = class_names.iter().map(String::as_str).zip(0..).collect();
    let failed = |error: csv::Error| {
        let message = error.to_string();
        match error.into_kind() {
            csv::ErrorKind::Io(source) => RunError::io("read", path)(source),
            _ => RunError::damaged(path, message),
        }
    };
    let file = aleator_run::open_file(path).map_err(RunError::io("read", path))?;
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().map_err(failed)?;
    if header.iter().ne(&columns) {
        let found: Vec<&str> = header.iter().collect();
        let message = format!("the columns must be {columns:?}, found {found:?}");
        return Err(RunError::damaged(path, message));
    }
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, csv::Position::line);
        T::parse(&Row { columns: &columns, classes: &classes, record })
            .map_err(|message| RunError::damaged(path, format!("line {line}: {message}")))
    };
    reader.records().map(row).collect()
}

/// [`read()`] of a table that not every audit has.
pub(super) fn read_if_there<T: Record>(
    path: &Path,
    summary: &AuditSummary,
) -> Result<Vec<T>, RunError> {
    if path.exists() { read(path, summary) } else { Ok(vec![]) }
}

/// `issues.csv`; classes that are on or off have a column of their own.
impl Record for Issue {
    fn columns(link: Link) -> Vec<String> {
        let class: &[&str] = if link == Link::Sigmoid { &["class"] } else { &[] };
        let answers = ["given", "suggested", "given_probability", "suggested_probability"];
        let rest = ["score", "wrong", "covariance", "correlation", "true"];
        [&["id", "path"], class, &answers, &rest].concat().into_iter().map(String::from).collect()
    }

    fn cells(&self, names: &[String]) -> Vec<String> {
        let answer = |answer: Answer| match answer {
            Answer::Class(class) => class_cell(class as usize, names),
            Answer::On(_) => "on".to_string(),
            Answer::Off(_) => "off".to_string(),
        };
        let path = self.path.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
        let mut cells = vec![guarded(&self.id).into_owned(), guarded(&path).into_owned()];
        if let Answer::On(class) | Answer::Off(class) = self.given {
            cells.push(class_cell(class as usize, names));
        }
        cells.extend([
            answer(self.given),
            answer(self.suggested),
            exact(self.given_probability),
            exact(self.suggested_probability),
            exact(self.score),
            if self.wrong { "yes" } else { "no" }.to_string(),
            maybe(self.covariance),
            maybe(self.correlation),
            self.truth.map_or(String::new(), answer),
        ]);
        cells
    }

    fn parse(row: &Row) -> Result<Self, String> {
        let is_entry = row.columns.iter().any(|column| column == "class");
        let class = is_entry.then(|| row.class("class")).transpose()?;
        let answer = |column: &str| match class {
            None => row.class(column).map(Answer::Class),
            Some(class) if row.is("on", "off", column)? => Ok(Answer::On(class)),
            Some(class) => Ok(Answer::Off(class)),
        };
        Ok(Self {
            id: row.text("id").to_string(),
            path: row.path("path"),
            given: answer("given")?,
            suggested: answer("suggested")?,
            given_probability: row.number("given_probability")?,
            suggested_probability: row.number("suggested_probability")?,
            score: row.number("score")?,
            wrong: row.is("yes", "no", "wrong")?,
            covariance: row.optional("covariance")?,
            correlation: row.optional("correlation")?,
            truth: row.has("true").then(|| answer("true")).transpose()?,
        })
    }
}

/// `classes.csv`.
impl Record for ClassFinding {
    fn columns(_: Link) -> Vec<String> {
        let columns =
            ["class", "given", "expected", "noise_rate", "missed_rate", "known_noise_rate"];
        let confusions = (1..=CONFUSIONS)
            .flat_map(|place| [format!("rather_{place}"), format!("rather_{place}_share")]);
        columns.map(String::from).into_iter().chain(confusions).collect()
    }

    fn cells(&self, names: &[String]) -> Vec<String> {
        let mut cells = vec![
            class_cell(self.class as usize, names),
            self.given.to_string(),
            number(self.expected),
            number(self.noise_rate),
            number(self.missed_rate),
            maybe(self.known_noise_rate),
        ];
        for (class, share) in self.confused_with.iter().take(CONFUSIONS) {
            cells.extend([class_cell(*class as usize, names), number(*share)]);
        }
        cells
    }

    fn parse(row: &Row) -> Result<Self, String> {
        let mut confused_with = vec![];
        for place in 1..=CONFUSIONS {
            let column = format!("rather_{place}");
            if row.has(&column) {
                let share = row.number(&format!("{column}_share"))?;
                confused_with.push((row.class(&column)?, share));
            }
        }
        Ok(Self {
            class: row.class("class")?,
            given: row.count("given")?,
            expected: row.number("expected")?,
            noise_rate: row.number("noise_rate")?,
            missed_rate: row.number("missed_rate")?,
            known_noise_rate: row.optional("known_noise_rate")?,
            confused_with,
        })
    }
}

/// `pairs.csv`.
impl Record for PairFinding {
    fn columns(_: Link) -> Vec<String> {
        ["given", "true", "count", "flip_probability", "covariance", "correlation"]
            .map(String::from)
            .to_vec()
    }

    fn cells(&self, names: &[String]) -> Vec<String> {
        vec![
            class_cell(self.given as usize, names),
            class_cell(self.truth as usize, names),
            number(self.count),
            maybe(self.flip_probability),
            maybe(self.covariance),
            maybe(self.correlation),
        ]
    }

    fn parse(row: &Row) -> Result<Self, String> {
        Ok(Self {
            given: row.class("given")?,
            truth: row.class("true")?,
            count: row.number("count")?,
            flip_probability: row.optional("flip_probability")?,
            covariance: row.optional("covariance")?,
            correlation: row.optional("correlation")?,
        })
    }
}

/// `annotators.csv`.
impl Record for AnnotatorFinding {
    fn columns(_: Link) -> Vec<String> {
        let columns = [
            "annotator",
            "annotations",
            "error_rate",
            "error_rate_low",
            "error_rate_high",
            "new_error_rate",
            "new_error_rate_low",
            "new_error_rate_high",
            "known_error_rate",
        ];
        let confusions = (1..=CONFUSIONS).flat_map(|place| {
            ["true", "given", "count"].map(|what| format!("confuses_{place}_{what}"))
        });
        columns.map(String::from).into_iter().chain(confusions).collect()
    }

    fn cells(&self, names: &[String]) -> Vec<String> {
        let mut cells = vec![
            guarded(&self.name).into_owned(),
            self.annotations.to_string(),
            number(self.error_rate),
            number(self.error_rate_bounds[0]),
            number(self.error_rate_bounds[1]),
            number(self.new_error_rate),
            number(self.new_error_rate_bounds[0]),
            number(self.new_error_rate_bounds[1]),
            maybe(self.known_error_rate),
        ];
        for (truth, given, count) in self.confuses.iter().take(CONFUSIONS) {
            cells.extend([*truth, *given].map(|class| class_cell(class as usize, names)));
            cells.push(number(*count));
        }
        cells
    }

    fn parse(row: &Row) -> Result<Self, String> {
        let mut confuses = vec![];
        for place in 1..=CONFUSIONS {
            let [truth, given, count] =
                ["true", "given", "count"].map(|what| format!("confuses_{place}_{what}"));
            if row.has(&truth) {
                confuses.push((row.class(&truth)?, row.class(&given)?, row.number(&count)?));
            }
        }
        Ok(Self {
            name: row.text("annotator").to_string(),
            annotations: row.count("annotations")?,
            error_rate: row.number("error_rate")?,
            error_rate_bounds: [row.number("error_rate_low")?, row.number("error_rate_high")?],
            new_error_rate: row.number("new_error_rate")?,
            new_error_rate_bounds: [
                row.number("new_error_rate_low")?,
                row.number("new_error_rate_high")?,
            ],
            known_error_rate: row.optional("known_error_rate")?,
            confuses,
        })
    }
}

/// `consensus.csv`; `data.train.labels` reads it.
impl Record for Consensus {
    fn columns(_: Link) -> Vec<String> {
        ["id", "label", "probability", "majority", "annotations"].map(String::from).to_vec()
    }

    fn cells(&self, names: &[String]) -> Vec<String> {
        vec![
            guarded(&self.id).into_owned(),
            class_cell(self.label as usize, names),
            maybe(self.probability),
            class_cell(self.majority as usize, names),
            self.annotations.to_string(),
        ]
    }

    fn parse(row: &Row) -> Result<Self, String> {
        Ok(Self {
            id: row.text("id").to_string(),
            label: row.class("label")?,
            probability: row.optional("probability")?,
            majority: row.class("majority")?,
            annotations: row.count("annotations")?,
        })
    }
}

fn number(value: f64) -> String {
    format!("{value:.6}")
}

/// With as many digits as give the same number back, so that sorting by it gives the order back.
pub(super) fn exact(value: f64) -> String {
    // Unlike `Display`, this writes small numbers with an exponent.
    format!("{value:?}")
}

fn maybe(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}

/// One row of a table that is read.
pub(super) struct Row<'a> {
    columns: &'a [String],
    /// The classes by their names.
    classes: &'a BTreeMap<&'a str, u32>,
    record: csv::StringRecord,
}

impl Row<'_> {
    pub(super) fn text(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        unguarded(at.and_then(|at| self.record.get(at)).unwrap_or_default())
    }

    pub(super) fn path(&self, column: &str) -> Option<PathBuf> {
        self.has(column).then(|| self.text(column).into())
    }

    /// Whether the cell is not empty.
    fn has(&self, column: &str) -> bool {
        !self.text(column).is_empty()
    }

    fn wrong(&self, column: &str, expected: &str) -> String {
        format!("column {column} must be {expected}, found {:?}", self.text(column))
    }

    fn class(&self, column: &str) -> Result<u32, String> {
        let class = self.classes.get(self.text(column)).copied();
        class.ok_or_else(|| self.wrong(column, "one of the audit's classes"))
    }

    /// Whether the cell is one word and not the other.
    pub(super) fn is(&self, word: &str, other: &str, column: &str) -> Result<bool, String> {
        match self.text(column) {
            text if text == word => Ok(true),
            text if text == other => Ok(false),
            _ => Err(self.wrong(column, &format!("{word} or {other}"))),
        }
    }

    pub(super) fn number(&self, column: &str) -> Result<f64, String> {
        let number = self.text(column).parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(column, "a number"))
    }

    fn optional(&self, column: &str) -> Result<Option<f64>, String> {
        self.has(column).then(|| self.number(column)).transpose()
    }

    pub(super) fn count(&self, column: &str) -> Result<usize, String> {
        self.text(column).parse().map_err(|_| self.wrong(column, "a whole number"))
    }
}
