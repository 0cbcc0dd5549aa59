//! Every number of a matrix of embeddings.

use rayon::prelude::*;
use serde::Serialize;

use super::images::{Hash, half};
use crate::error::DataError;
use crate::sources::source::Source;

/// Rows that are read at once.
const ROWS: usize = 1_024;

/// Rows and columns that a report names; all are counted.
const NAMED: usize = 20;

/// One source of embeddings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// The first of them, counted from 0.
    pub constant: Vec<usize>,
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
    source.inputs.read(0, &mut first)?;
    let block = |at: usize| -> Result<Block, DataError> {
        let mut block = Block { hashes: vec![], non_finite: vec![], constant: vec![true; width] };
        let (mut row, mut bytes) = (vec![0.0; width], vec![0; 4 * width]);
        let range = at * ROWS..rows.min((at + 1) * ROWS);
        for at in range.clone() {
            source.inputs.read(at, &mut row)?;
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
    let constant: Vec<usize> = (0..width).filter(|column| constant[*column]).collect();
    let report = FeatureReport {
        split,
        rows,
        width,
        stored: source.inputs.stored_type().unwrap_or("float32").to_string(),
        non_finite_rows: non_finite.len(),
        non_finite: non_finite.into_iter().take(NAMED).collect(),
        constant_columns: constant.len(),
        constant: constant.into_iter().take(NAMED).collect(),
    };
    Ok((report, hashes))
}
