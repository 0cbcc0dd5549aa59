//! Tables as CSV or Parquet files, written a piece at a time.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Some rows of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Strings.
    Words(Vec<String>),
    /// Numbers.
    Numbers(Vec<f32>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Words(to), Self::Words(mut from)) => to.append(&mut from),
            (Self::Numbers(to), Self::Numbers(mut from)) => to.append(&mut from),
            _ => panic!("a column holds words or numbers, the same in every piece"),
        }
    }
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Text with commas.
    Csv,
    /// Columns, compressed.
    Parquet,
}

/// Writes a table whose columns have names.
///
/// ```
/// use aleator_data::write::{Column, TableFormat, TableWriter};
///
/// let mut file = vec![];
/// let mut table = TableWriter::new(&mut file, TableFormat::Csv, &["id", "p"].map(String::from));
/// table.write(vec![Column::Words(vec!["a".into()]), Column::Numbers(vec![0.25])])?;
/// table.finish()?;
/// assert_eq!(file, b"id,p\na,0.25\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TableWriter<W: Write + Send> {
    names: Vec<String>,
    begun: bool,
    format: Writer<W>,
}

enum Writer<W: Write + Send> {
    Csv(csv::Writer<W>),
    /// What is written, or what it will be written to, and rows that are still to write.
    Parquet {
        out: Option<W>,
        file: Option<SerializedFileWriter<W>>,
        waiting: Vec<Column>,
    },
}

/// A row group of a Parquet file has about this many values: enough to compress well.
const ROW_GROUP: usize = 1 << 20;

impl<W: Write + Send> TableWriter<W> {
    /// A table with columns of these names.
    pub fn new(out: W, format: TableFormat, names: &[String]) -> Self {
        let format = match format {
            TableFormat::Csv => Writer::Csv(csv::Writer::from_writer(out)),
            TableFormat::Parquet => Writer::Parquet { out: Some(out), file: None, waiting: vec![] },
        };
        Self { names: names.to_vec(), begun: false, format }
    }

    /// Adds rows: a piece of every column.
    ///
    /// # Panics
    /// If there is another number of columns than of names, or columns differ in length.
    pub fn write(&mut self, columns: Vec<Column>) -> io::Result<()> {
        assert_eq!(columns.len(), self.names.len(), "a column for each name");
        let rows = columns.first().map_or(0, Column::len);
        assert!(columns.iter().all(|column| column.len() == rows), "columns of one length");
        match &mut self.format {
            Writer::Csv(writer) => {
                if !self.begun {
                    writer.write_record(&self.names)?;
                }
                for row in 0..rows {
                    for column in &columns {
                        match column {
                            Column::Words(words) => writer.write_field(&words[row])?,
                            Column::Numbers(numbers) => {
                                writer.write_field(numbers[row].to_string())?;
                            }
                        }
                    }
                    writer.write_record(None::<&[u8]>)?;
                }
            }
            Writer::Parquet { out, file, waiting } => {
                if let Some(out) = out.take() {
                    *file = Some(parquet_file(out, &self.names, &columns)?);
                }
                if waiting.is_empty() {
                    *waiting = columns;
                } else {
                    waiting.iter_mut().zip(columns).for_each(|(to, from)| to.append(from));
                }
                if waiting.first().map_or(0, Column::len) * waiting.len() >= ROW_GROUP {
                    write_row_group(file, waiting)?;
                }
            }
        }
        self.begun = true;
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(self) -> io::Result<()> {
        match self.format {
            Writer::Csv(mut writer) => writer.flush(),
            Writer::Parquet { mut file, mut waiting, .. } => {
                write_row_group(&mut file, &mut waiting)?;
                match file {
                    Some(mut file) => file.finish().map(drop).map_err(in_words),
                    None => Ok(()),
                }
            }
        }
    }
}

fn parquet_file<W: Write + Send>(
    out: W,
    names: &[String],
    columns: &[Column],
) -> io::Result<SerializedFileWriter<W>> {
    let field = |(name, column): (&String, &Column)| {
        let (physical, logical) = match column {
            Column::Words(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Numbers(_) => (Physical::FLOAT, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    };
    let fields = names.iter().zip(columns).map(field).collect::<Result<Vec<_>, ParquetError>>();
    let schema = fields.and_then(|fields| {
        Type::group_type_builder("predictions").with_fields(fields).build().map(Arc::new)
    });
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    schema
        .and_then(|schema| SerializedFileWriter::new(out, schema, Arc::new(properties)))
        .map_err(in_words)
}

fn write_row_group<W: Write + Send>(
    file: &mut Option<SerializedFileWriter<W>>,
    waiting: &mut Vec<Column>,
) -> io::Result<()> {
    let Some(file) = file.as_mut().filter(|_| !waiting.is_empty()) else { return Ok(()) };
    let written = (|| {
        let mut group = file.next_row_group()?;
        for column in waiting.drain(..) {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                Column::Words(words) => {
                    let bytes: Vec<ByteArray> =
                        words.iter().map(|word| ByteArray::from(word.as_str())).collect();
                    writer.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
                }
                Column::Numbers(numbers) => {
                    writer.typed::<FloatType>().write_batch(&numbers, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close().map(drop)
    })();
    written.map_err(in_words)
}

fn in_words(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
