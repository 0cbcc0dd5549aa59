//! The tables of an audit as CSV files, made for spreadsheets.

use std::collections::BTreeMap;
use std::path::Path;

use aleator_run::{Link, RunError, write_file_by};

use super::record::{AnnotatorFinding, Answer, ClassFinding, Issue, PairFinding};
use crate::spreadsheet::{guarded, unguarded};

/// The number of confusions of a class or an annotator that have columns.
pub(super) const CONFUSIONS: usize = 3;

const NUMBERS: [&str; 6] =
    ["given_probability", "suggested_probability", "score", "wrong", "covariance", "correlation"];

/// `issues.csv`; the columns differ with the link.
pub(super) fn write_issues(
    path: &Path,
    issues: &[Issue],
    names: &[String],
) -> Result<(), RunError> {
    let entries = issues.first().is_some_and(|issue| !matches!(issue.given, Answer::Class(_)));
    let header = issue_columns(entries);
    let row = |issue: &Issue| {
        let mut cells = vec![
            guarded(&issue.id).into_owned(),
            issue
                .path
                .as_ref()
                .map_or(String::new(), |path| guarded(&path.to_string_lossy()).into_owned()),
        ];
        if entries {
            cells.push(class_cell(issue.given.class(), names));
        }
        cells.extend([issue.given, issue.suggested].map(|answer| answer_cell(answer, names)));
        cells.extend([
            number(issue.given_probability),
            number(issue.suggested_probability),
            number(issue.score),
            if issue.wrong { "yes" } else { "no" }.to_string(),
            maybe(issue.covariance),
            maybe(issue.correlation),
            issue.truth.map_or(String::new(), |answer| answer_cell(answer, names)),
        ]);
        cells
    };
    write(path, &header, issues.iter().map(row))
}

fn issue_columns(entries: bool) -> Vec<&'static str> {
    let mut columns = vec!["id", "path"];
    columns.extend(entries.then_some("class"));
    columns.extend(["given", "suggested"]);
    columns.extend(NUMBERS);
    columns.push("true");
    columns
}

pub(super) fn read_issues(path: &Path, names: &Names, link: Link) -> Result<Vec<Issue>, RunError> {
    let entries = link == Link::Sigmoid;
    let columns = issue_columns(entries);
    read(path, &columns, |row| {
        let class = if entries { Some(row.class("class", names)?) } else { None };
        let answer = |column: &str| match class {
            Some(class) => row.on_or_off(column, class),
            None => row.class(column, names).map(Answer::Class),
        };
        Ok(Issue {
            id: row.text("id").to_string(),
            path: Some(row.text("path")).filter(|path| !path.is_empty()).map(Into::into),
            given: answer("given")?,
            suggested: answer("suggested")?,
            given_probability: row.number("given_probability")?,
            suggested_probability: row.number("suggested_probability")?,
            score: row.number("score")?,
            wrong: row.yes_or_no("wrong")?,
            covariance: row.optional("covariance")?,
            correlation: row.optional("correlation")?,
            truth: if row.text("true").is_empty() { None } else { Some(answer("true")?) },
        })
    })
}

fn class_columns() -> Vec<String> {
    let mut columns: Vec<String> =
        ["class", "given", "expected", "noise_rate", "missed_rate", "known_noise_rate"]
            .map(String::from)
            .to_vec();
    for place in 1..=CONFUSIONS {
        columns.extend([format!("rather_{place}"), format!("rather_{place}_share")]);
    }
    columns
}

/// `classes.csv`.
pub(super) fn write_classes(
    path: &Path,
    classes: &[ClassFinding],
    names: &[String],
) -> Result<(), RunError> {
    let row = |class: &ClassFinding| {
        let mut cells = vec![
            class_cell(class.class, names),
            class.given.to_string(),
            number(class.expected),
            number(class.noise_rate),
            number(class.missed_rate),
            maybe(class.known_noise_rate),
        ];
        for place in 0..CONFUSIONS {
            let (other, share) = class.confused_with.get(place).map_or_else(
                || (String::new(), String::new()),
                |(other, share)| (class_cell(*other, names), number(*share)),
            );
            cells.extend([other, share]);
        }
        cells
    };
    write(path, &class_columns(), classes.iter().map(row))
}

pub(super) fn read_classes(path: &Path, names: &Names) -> Result<Vec<ClassFinding>, RunError> {
    read(path, &class_columns(), |row| {
        let mut confused_with = vec![];
        for place in 1..=CONFUSIONS {
            let column = format!("rather_{place}");
            if !row.text(&column).is_empty() {
                let share = row.number(&format!("{column}_share"))?;
                confused_with.push((row.class(&column, names)?, share));
            }
        }
        Ok(ClassFinding {
            class: row.class("class", names)?,
            given: row.count("given")?,
            expected: row.number("expected")?,
            noise_rate: row.number("noise_rate")?,
            missed_rate: row.number("missed_rate")?,
            known_noise_rate: row.optional("known_noise_rate")?,
            confused_with,
        })
    })
}

const PAIR_COLUMNS: [&str; 6] =
    ["given", "true", "count", "flip_probability", "covariance", "correlation"];

/// `pairs.csv`.
pub(super) fn write_pairs(
    path: &Path,
    pairs: &[PairFinding],
    names: &[String],
) -> Result<(), RunError> {
    let row = |pair: &PairFinding| {
        vec![
            class_cell(pair.given, names),
            class_cell(pair.truth, names),
            number(pair.count),
            maybe(pair.flip_probability),
            maybe(pair.covariance),
            maybe(pair.correlation),
        ]
    };
    write(path, &PAIR_COLUMNS, pairs.iter().map(row))
}

pub(super) fn read_pairs(path: &Path, names: &Names) -> Result<Vec<PairFinding>, RunError> {
    read(path, &PAIR_COLUMNS, |row| {
        Ok(PairFinding {
            given: row.class("given", names)?,
            truth: row.class("true", names)?,
            count: row.number("count")?,
            flip_probability: row.optional("flip_probability")?,
            covariance: row.optional("covariance")?,
            correlation: row.optional("correlation")?,
        })
    })
}

fn annotator_columns() -> Vec<String> {
    let mut columns: Vec<String> =
        ["annotator", "annotations", "error_rate", "known_error_rate"].map(String::from).to_vec();
    for place in 1..=CONFUSIONS {
        columns.extend(["true", "given", "count"].map(|what| format!("confuses_{place}_{what}")));
    }
    columns
}

/// `annotators.csv`.
pub(super) fn write_annotators(
    path: &Path,
    annotators: &[AnnotatorFinding],
    names: &[String],
) -> Result<(), RunError> {
    let row = |annotator: &AnnotatorFinding| {
        let mut cells = vec![
            guarded(&annotator.name).into_owned(),
            annotator.annotations.to_string(),
            number(annotator.error_rate),
            maybe(annotator.known_error_rate),
        ];
        for place in 0..CONFUSIONS {
            cells.extend(annotator.confuses.get(place).map_or_else(
                || [const { String::new() }; 3],
                |(truth, given, count)| {
                    [class_cell(*truth, names), class_cell(*given, names), number(*count)]
                },
            ));
        }
        cells
    };
    write(path, &annotator_columns(), annotators.iter().map(row))
}

pub(super) fn read_annotators(
    path: &Path,
    names: &Names,
) -> Result<Vec<AnnotatorFinding>, RunError> {
    read(path, &annotator_columns(), |row| {
        let mut confuses = vec![];
        for place in 1..=CONFUSIONS {
            let column = |what| format!("confuses_{place}_{what}");
            if !row.text(&column("true")).is_empty() {
                confuses.push((
                    row.class(&column("true"), names)?,
                    row.class(&column("given"), names)?,
                    row.number(&column("count"))?,
                ));
            }
        }
        Ok(AnnotatorFinding {
            name: row.text("annotator").to_string(),
            annotations: row.count("annotations")?,
            error_rate: row.number("error_rate")?,
            known_error_rate: row.optional("known_error_rate")?,
            confuses,
        })
    })
}

fn class_cell(class: u32, names: &[String]) -> String {
    guarded(&names[class as usize]).into_owned()
}

fn answer_cell(answer: Answer, names: &[String]) -> String {
    match answer {
        Answer::Class(class) => class_cell(class, names),
        Answer::On(_) => "on".to_string(),
        Answer::Off(_) => "off".to_string(),
    }
}

fn number(value: f64) -> String {
    format!("{value:.6}")
}

fn maybe(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}

fn write(
    path: &Path,
    header: &[impl AsRef<[u8]>],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<(), RunError> {
    let failed = |error: csv::Error| in_csv(path, "write", error);
    write_file_by(path, |temporary| {
        let mut writer = csv::Writer::from_path(temporary).map_err(failed)?;
        writer.write_record(header).map_err(failed)?;
        for row in rows {
            writer.write_record(row).map_err(failed)?;
        }
        writer.flush().map_err(|error| failed(error.into()))
    })
}

/// The classes by their names.
pub(super) struct Names<'a>(BTreeMap<&'a str, u32>);

impl<'a> Names<'a> {
    pub fn new(names: &'a [String]) -> Self {
        Self(names.iter().map(String::as_str).zip(0..).collect())
    }
}

/// One row of a table that is read.
struct Row<'a> {
    columns: Vec<&'a str>,
    record: csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, column: &str) -> &str {
        let at = self.columns.iter().position(|name| *name == column);
        unguarded(at.and_then(|at| self.record.get(at)).unwrap_or_default())
    }

    fn wrong(&self, column: &str, expected: &str) -> String {
        format!("column {column} must be {expected}, found {:?}", self.text(column))
    }

    fn class(&self, column: &str, names: &Names) -> Result<u32, String> {
        let class = names.0.get(self.text(column)).copied();
        class.ok_or_else(|| self.wrong(column, "one of the audit's classes"))
    }

    fn on_or_off(&self, column: &str, class: u32) -> Result<Answer, String> {
        match self.text(column) {
            "on" => Ok(Answer::On(class)),
            "off" => Ok(Answer::Off(class)),
            _ => Err(self.wrong(column, "on or off")),
        }
    }

    fn yes_or_no(&self, column: &str) -> Result<bool, String> {
        match self.text(column) {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(self.wrong(column, "yes or no")),
        }
    }

    fn number(&self, column: &str) -> Result<f64, String> {
        let number = self.text(column).parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(column, "a number"))
    }

    fn optional(&self, column: &str) -> Result<Option<f64>, String> {
        if self.text(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    fn count(&self, column: &str) -> Result<usize, String> {
        self.text(column).parse().map_err(|_| self.wrong(column, "a whole number"))
    }
}

fn read<T>(
    path: &Path,
    columns: &[impl AsRef<str>],
    parse: impl Fn(&Row) -> Result<T, String>,
) -> Result<Vec<T>, RunError> {
    let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    let failed = |error: csv::Error| in_csv(path, "read", error);
    let mut reader = csv::Reader::from_path(path).map_err(failed)?;
    let header = reader.headers().map_err(failed)?;
    if header.iter().ne(columns.iter().copied()) {
        let found: Vec<&str> = header.iter().collect();
        let message = format!("the columns must be {columns:?}, found {found:?}");
        return Err(RunError::Damaged { path: path.to_path_buf(), message });
    }
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, csv::Position::line);
        parse(&Row { columns: columns.clone(), record }).map_err(|message| RunError::Damaged {
            path: path.to_path_buf(),
            message: format!("line {line}: {message}"),
        })
    };
    reader.records().map(row).collect()
}

fn in_csv(path: &Path, action: &'static str, error: csv::Error) -> RunError {
    let (path, message) = (path.to_path_buf(), error.to_string());
    match error.into_kind() {
        csv::ErrorKind::Io(source) => RunError::Io { action, path, source },
        _ => RunError::Damaged { path, message },
    }
}
