//! Every number of a matrix of embeddings.

use aleator_run::Split as SplitName;
use aleator_run::recipe::Normalize;
use rayon::prelude::*;
use serde::Serialize;

use super::images::{Hash, half};
use crate::error::DataError;
use crate::sources::source::Source;
use crate::variation::Variation;

/// Rows that are read at once.
const ROWS: usize = 1_024;

/// Rows and columns that a report names; all are counted.
const NAMED: usize = 20;

/// Scales are those of at most this many rows, evenly spaced.
const SCALED_ROWS: usize = 50_000;

/// One source of embeddings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeatureReport {
    /// `"train"`, `"validation"` or `"test"`.
    pub split: &'static str,
    /// Examples.
    pub rows: usize,
    /// Numbers of an example.
    pub width: usize,
    /// The type of the numbers in the file.
    pub stored: String,
    /// Rows with a number that is not finite.
    pub non_finite_rows: usize,
    /// The first of them, counted from 0.
    pub non_finite: Vec<usize>,
    /// Columns that have the same number in all rows, and so say nothing.
    pub constant_columns: usize,
    /// The first of them, by name or counted from 0.
    pub constant: Vec<String>,
    /// How the other columns vary; only for the training source.
    pub scales: Option<ScaleReport>,
}

/// How the columns of the training source vary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleReport {
    /// The column with the smallest standard deviation.
    pub narrowest: Deviation,
    /// The column with the largest standard deviation.
    pub widest: Deviation,
    /// Columns whose middle half is one number.
    pub mostly_one_value_columns: usize,
    /// The first of them.
    pub mostly_one_value: Vec<String>,
    /// Columns with a standard deviation of more than twice what their middle half suggests.
    pub heavy_tailed_columns: usize,
    /// The first of them.
    pub heavy_tailed: Vec<String>,
    /// What `aleator train` tries, and chooses from by the held-out loss.
    pub tried: Vec<Normalize>,
}

/// A column and its standard deviation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Its name, or its number counted from 0.
    pub column: String,
    /// The standard deviation.
    pub deviation: f64,
}

impl ScaleReport {
    /// Of these rows; `None` where nothing varies.
    fn of(source: &Source, rows: &[usize]) -> Result<Option<Self>, DataError> {
        if rows.is_empty() {
            return Ok(None);
        }
        let variation = Variation::of(&source.inputs, rows)?;
        let Some((low, high)) = variation.extremes() else { return Ok(None) };
        let deviation = |at: usize| Deviation {
            column: column_name(source, at),
            deviation: variation.deviations[at],
        };
        let columns = 0..variation.deviations.len();
        let (ones, mostly_one_value) =
            named(source, columns.clone().filter(|at| variation.is_mostly_one_value(*at)));
        let (heavy, heavy_tailed) =
            named(source, columns.filter(|at| variation.has_heavy_tails(*at)));
        Ok(Some(Self {
            narrowest: deviation(low),
            widest: deviation(high),
            mostly_one_value_columns: ones,
            mostly_one_value,
            heavy_tailed_columns: heavy,
            heavy_tailed,
            // The presets for embeddings start with it.
            tried: variation.scales(Normalize::Global),
        }))
    }
}

/// How many columns there are, and the names of the first.
fn named(source: &Source, columns: impl Iterator<Item = usize>) -> (usize, Vec<String>) {
    let columns: Vec<usize> = columns.collect();
    let names = columns.iter().take(NAMED).map(|at| column_name(source, *at));
    (columns.len(), names.collect())
}

fn column_name(source: &Source, at: usize) -> String {
    let name = source.inputs.feature_names().and_then(|names| names.get(at).cloned());
    name.unwrap_or_else(|| at.to_string())
}

struct Block {
    hashes: Vec<(Hash, usize)>,
    non_finite: Vec<usize>,
    constant: Vec<bool>,
}

pub(super) fn scan(
    split: &'static str,
    source: &Source,
    count: &(impl Fn(usize) + Sync),
) -> Result<(FeatureReport, Vec<(Hash, usize)>), DataError> {
    let (rows, width) = (source.ids.len(), source.inputs.shape().len());
    let mut first = vec![0.0; width];
    source.inputs.read(source.row(0), &mut first)?;
    let block = |at: usize| -> Result<Block, DataError> {
        let mut block = Block { hashes: vec![], non_finite: vec![], constant: vec![true; width] };
        let (mut row, mut bytes) = (vec![0.0; width], vec![0; 4 * width]);
        let range = at * ROWS..rows.min((at + 1) * ROWS);
        for at in range.clone() {
            source.inputs.read(source.row(at), &mut row)?;
            for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(&row) {
                *bytes = f32::to_le_bytes(*value);
            }
            block.hashes.push((half(&blake3::hash(&bytes)), at));
            if row.iter().any(|value| !value.is_finite()) {
                block.non_finite.push(at);
            }
            let columns = block.constant.iter_mut().zip(row.iter().zip(&first));
            columns.for_each(|(constant, (value, first))| *constant &= value == first);
        }
        count(range.len());
        Ok(block)
    };
    let blocks: Vec<Result<Block, DataError>> =
        (0..rows.div_ceil(ROWS)).into_par_iter().map(block).collect();
    let (mut hashes, mut non_finite, mut constant) = (vec![], vec![], vec![rows > 1; width]);
    for block in blocks {
        let block = block?;
        hashes.extend(block.hashes);
        non_finite.extend(block.non_finite);
        constant.iter_mut().zip(block.constant).for_each(|(all, here)| *all &= here);
    }
    let constant = (0..width).filter(|column| constant[*column]);
    let (constant_columns, constant) = named(source, constant);
    let scales = if split == SplitName::Train.name() {
        let sound: Vec<usize> = (0..rows)
            .step_by(rows.div_ceil(SCALED_ROWS))
            .filter(|example| non_finite.binary_search(example).is_err())
            .map(|example| source.row(example))
            .collect();
        ScaleReport::of(source, &sound)?
    } else {
        None
    };
    let report = FeatureReport {
        split,
        rows,
        width,
        stored: source.inputs.stored_type().unwrap_or("float32").to_string(),
        non_finite_rows: non_finite.len(),
        non_finite: non_finite.into_iter().take(NAMED).collect(),
        constant_columns,
        constant,
        scales,
    };
    Ok((report, hashes))
}
