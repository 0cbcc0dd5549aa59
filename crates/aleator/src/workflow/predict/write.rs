//! Predictions as files: JSON lines, CSV, Parquet, or a matrix in a `.npy` file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use aleator_data::write::{Column, TableFormat, TableWriter, npy_header};
use aleator_run::{RunError, open_own, write_file_by, write_json};
use aleator_train::{ExamplePrediction, PredictedPiece, Prediction};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::{Error, Event, Examples, Predictor, Watch};

/// What is written of each example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionColumns {
    /// The number of most probable classes to write; `None` writes all probabilities.
    pub top: Option<usize>,
    /// All probabilities of the true class too; a `.npy` file has them in place of those of the
    /// label.
    pub truth: bool,
}

/// A file of predictions that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictionFile {
    /// The number of examples that were predicted.
    pub examples: usize,
    /// The number of images that cannot be decoded.
    pub damaged: usize,
    /// The classes and ids of a `.npy` file, in a file beside it.
    pub names: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Format {
    JsonLines,
    Table(TableFormat),
    Npy,
}

impl Predictor {
    /// Predicts examples piece by piece into a file, whose ending decides its format: `.jsonl`,
    /// `.csv`, `.parquet` or `.npy`. The file appears when it is complete.
    ///
    /// A `.npy` file is the matrix `[N, K]` of f32; the names of its columns, and the ids of its
    /// rows if they have any, are in a `.json` file beside it.
    ///
    /// An image that cannot be decoded is left out with a warning; in a `.npy` file its row is NaN.
    ///
    /// # Errors
    /// When the ending is none of these, the columns are not there, no image can be decoded, or a
    /// prediction is not finite.
    pub fn write(
        &self,
        examples: &[Examples],
        path: &Path,
        columns: &PredictionColumns,
        watch: &mut Watch<'_>,
    ) -> Result<PredictionFile, Error> {
        let format = self.checked_format(path, columns)?;
        let total: usize = examples.iter().map(Examples::len).sum();
        let mut damaged = 0;
        let io = |error: io::Error| Error::from(RunError::io("write", path)(error));
        write_file_by(path, |temporary| {
            let file = open_own(temporary, File::options().write(true)).map_err(io)?;
            let file = BufWriter::new(file);
            let mut out = self.writer(file, format, columns, total).map_err(io)?;
            let mut done = 0;
            for piece in examples.iter().flat_map(|examples| self.predict_pieces(examples)) {
                let piece = piece?;
                piece.damaged.iter().for_each(|image| watch.warn(&image.to_string()));
                damaged += piece.damaged.len();
                done += piece.len();
                out.add(&piece).map_err(io)?;
                watch.event(Event::Progress { what: "examples", done, total });
            }
            if damaged == total {
                let message = format!("none of the {total} images can be decoded");
                return Err(Error::invalid(message));
            }
            out.finish().map_err(io)
        })?;
        let names = match format {
            Format::Npy => Some(self.write_names(path, examples, columns)?),
            Format::JsonLines | Format::Table(_) => None,
        };
        Ok(PredictionFile { examples: total - damaged, damaged, names })
    }

    /// Refuses what cannot be given, before anything is computed; `path` is the file to write.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn check_columns(
        &self,
        path: Option<&Path>,
        columns: &PredictionColumns,
    ) -> Result<(), Error> {
        match path {
            Some(path) => self.checked_format(path, columns).map(drop),
            None if columns.truth => self.check_true_class(),
            None => Ok(()),
        }
    }

    fn checked_format(&self, path: &Path, columns: &PredictionColumns) -> Result<Format, Error> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = match ending.as_str() {
            "jsonl" | "ndjson" => Format::JsonLines,
            "csv" => Format::Table(TableFormat::Csv),
            "parquet" | "pq" => Format::Table(TableFormat::Parquet),
            "npy" => Format::Npy,
            _ => {
                return Err(Error::invalid(format!(
                    "{}: predictions are written as .jsonl, .csv, .parquet or .npy; give the file \
                     one of these endings",
                    path.display()
                )));
            }
        };
        if matches!(format, Format::Npy) && columns.top.is_some() {
            return Err(Error::invalid(
                "a .npy file is the matrix of all classes: leave out --top, or write .csv",
            ));
        }
        if columns.truth {
            self.check_true_class()?;
        }
        Ok(format)
    }

    /// Says why there is no probability of the true class, where there is none.
    fn check_true_class(&self) -> Result<(), Error> {
        if self.knows_true_class() {
            return Ok(());
        }
        let message = match self.link() {
            aleator_run::Link::Sigmoid => {
                "a multilabel run has no probability of the true class: each class is on or off"
            }
            aleator_run::Link::Softmax => {
                "the run was evaluated before there was a probability of the true class: \
                 `aleator eval` adds it"
            }
        };
        Err(Error::invalid(message))
    }

    fn writer<W: Write + Send>(
        &self,
        mut out: W,
        format: Format,
        columns: &PredictionColumns,
        total: usize,
    ) -> io::Result<Writer<W>> {
        Ok(match format {
            Format::JsonLines => Writer::JsonLines { out, columns: *columns },
            Format::Table(format) => {
                let names = column_names(self, columns);
                let table = Box::new(TableWriter::new(out, format, &names));
                Writer::Table { table, columns: *columns }
            }
            Format::Npy => {
                let classes = self.class_names().len();
                out.write_all(&npy_header("<f4", &[total, classes]))?;
                Writer::Npy { out, classes, truth: columns.truth }
            }
        })
    }

    /// Writes what the rows and columns of a matrix are.
    fn write_names(
        &self,
        path: &Path,
        examples: &[Examples],
        columns: &PredictionColumns,
    ) -> Result<PathBuf, Error> {
        let names = path.with_extension("json");
        let of = if columns.truth { "true class" } else { "label" };
        let mut content =
            serde_json::json!({ "probability_of": of, "classes": self.class_names() });
        if examples.iter().any(Examples::has_names) {
            let ids: Vec<String> = examples.iter().flat_map(Examples::names).collect();
            content["ids"] = ids.into();
        }
        if let Some(step) = self.checkpoint() {
            content["checkpoint"] = step.into();
        }
        write_json(&names, &content)?;
        Ok(names)
    }
}

enum Writer<W: Write + Send> {
    JsonLines { out: W, columns: PredictionColumns },
    Table { table: Box<TableWriter<W>>, columns: PredictionColumns },
    Npy { out: W, classes: usize, truth: bool },
}

impl<W: Write + Send> Writer<W> {
    fn add(&mut self, piece: &PredictedPiece) -> io::Result<()> {
        match self {
            Self::JsonLines { out, columns } => {
                let Some(piece) = &piece.prediction else { return Ok(()) };
                (0..piece.len()).try_for_each(|row| write_json_line(out, piece, row, columns))
            }
            Self::Table { table, columns } => {
                let Some(piece) = &piece.prediction else { return Ok(()) };
                table.write(columns_of(piece, columns))
            }
            Self::Npy { out, classes, truth } => {
                let log_probs = piece.prediction.as_ref().and_then(|piece| {
                    let label = &piece.predictions.log_probs;
                    if *truth { piece.true_log_probs.as_ref() } else { Some(label) }
                });
                let mut rows = log_probs.into_iter().flat_map(|all| all.chunks_exact(*classes));
                let mut damaged = piece.damaged.iter().map(|image| image.at).peekable();
                for at in 0..piece.len() {
                    let bytes: Vec<u8> = match damaged.next_if_eq(&at) {
                        Some(_) => f32::NAN.to_le_bytes().repeat(*classes),
                        None => {
                            let row = rows.next().into_iter().flatten();
                            row.flat_map(|log_p| log_p.exp().to_le_bytes()).collect()
                        }
                    };
                    out.write_all(&bytes)?;
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::JsonLines { mut out, .. } | Self::Npy { mut out, .. } => out.flush(),
            Self::Table { table, .. } => table.finish(),
        }
    }
}

/// Writes an example as one JSON object on a line: its description, and all probabilities by class
/// unless only the most probable classes are asked for.
///
/// # Errors
/// When the output cannot be written to.
pub fn write_json_line(
    out: &mut impl Write,
    piece: &Prediction,
    row: usize,
    columns: &PredictionColumns,
) -> io::Result<()> {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        described: ExamplePrediction,
        #[serde(skip_serializing_if = "Option::is_none")]
        probabilities: Option<ByClass<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        true_probabilities: Option<ByClass<'a>>,
    }
    let by_class = |probs: Vec<f32>| ByClass { names: &piece.class_names, probs };
    let line = Line {
        described: piece.describe(row, columns.top),
        probabilities: columns.top.is_none().then(|| by_class(piece.probabilities(row))),
        true_probabilities: piece.true_probabilities(row).filter(|_| columns.truth).map(by_class),
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}

/// Probabilities by the names of their classes, in the order of the classes.
struct ByClass<'a> {
    names: &'a [String],
    probs: Vec<f32>,
}

impl Serialize for ByClass<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, prob) in self.names.iter().zip(&self.probs) {
            map.serialize_entry(name, prob)?;
        }
        map.end()
    }
}

/// The names of the columns of a table.
fn column_names(predictor: &Predictor, columns: &PredictionColumns) -> Vec<String> {
    let classes = predictor.class_names();
    let mut names = vec!["id".to_string()];
    match columns.top {
        None => names.extend(["class", "probability", "spread"].map(String::from)),
        Some(top) => {
            let place = |at: usize| ["class", "probability", "spread"].map(|n| format!("{n}_{at}"));
            names.extend((1..=top.min(classes.len())).flat_map(place));
        }
    }
    names.push("entropy".to_string());
    if predictor.knows_sets() {
        names.extend(["set", "set_probability"].map(String::from));
    }
    if predictor.is_given_labels() {
        names.push("known_probability".to_string());
    }
    if predictor.knows_true_class() {
        names.extend(["true_class", "true_probability"].map(String::from));
    }
    if columns.top.is_none() {
        names.extend(classes.iter().map(|class| format!("p:{class}")));
    }
    if columns.truth {
        names.extend(classes.iter().map(|class| format!("true:{class}")));
    }
    names.extend(predictor.checkpoint().map(|_| "checkpoint".to_string()));
    names
}

/// The columns of [`column_names`].
fn columns_of(piece: &Prediction, columns: &PredictionColumns) -> Vec<Column> {
    let top = columns.top.unwrap_or(1).min(piece.class_names.len());
    let described: Vec<ExamplePrediction> =
        (0..piece.len()).map(|row| piece.describe(row, Some(top))).collect();
    let words = |get: &dyn Fn(&ExamplePrediction) -> String| {
        Column::Words(described.iter().map(get).collect())
    };
    let numbers = |get: &dyn Fn(&ExamplePrediction) -> f64| {
        Column::Numbers(described.iter().map(|it| get(it) as f32).collect())
    };
    let mut all = vec![Column::Words(piece.ids.clone())];
    for at in 0..top {
        all.push(words(&|it| it.classes[at].class.clone()));
        all.push(numbers(&|it| it.classes[at].probability));
        all.push(numbers(&|it| it.classes[at].spread));
    }
    all.push(numbers(&|it| it.entropy));
    if let Some(sets) = &piece.sets {
        all.push(words(&|it| it.most_probable_set.clone().unwrap_or_default().join(";")));
        all.push(numbers(&|it| it.set_probability.unwrap_or_default()));
        if sets.known.is_some() {
            all.push(numbers(&|it| it.known_probability.unwrap_or_default()));
        }
    }
    if piece.true_log_probs.is_some() {
        all.push(words(&|it| it.true_class.clone().unwrap_or_default()));
        all.push(numbers(&|it| it.true_probability.unwrap_or_default()));
    }
    if columns.top.is_none() {
        all.extend(by_class(&piece.predictions.log_probs, piece.class_names.len()));
    }
    if let Some(log_probs) = piece.true_log_probs.as_ref().filter(|_| columns.truth) {
        all.extend(by_class(log_probs, piece.class_names.len()));
    }
    all.extend(piece.checkpoint.map(|step| Column::Words(vec![step.to_string(); piece.len()])));
    all
}

/// A column of probabilities for each class.
fn by_class(log_probs: &[f32], classes: usize) -> impl Iterator<Item = Column> + '_ {
    (0..classes).map(move |class| {
        let column = log_probs.iter().skip(class).step_by(classes);
        Column::Numbers(column.map(|log_p| log_p.exp()).collect())
    })
}
