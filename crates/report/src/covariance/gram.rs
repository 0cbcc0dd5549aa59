//! Σ_n V V ᵀ of many classes, block by block.
//!
//! With loadings of each example the sum is the product of one long matrix, `[N·R, K]`, with
//! itself; with shared ones it is V Vᵀ times the mean of v vᵀ, number by number. Products of a
//! thousand terms are taken in 32-bit floats and added up in 64 bits.

use std::ops::Range;

use aleator_layers::dense::{self, DenseShape};
use aleator_run::Field;
use rayon::prelude::*;

use super::low_rank::SharedFactors;
use super::open::Covariances;
use super::{Observer, Step};
use crate::error::ReportError;

/// The numbers of mean V Vᵀ in some rows, from the first of these on to the right.
pub(super) struct Block {
    pub rows: Range<usize>,
    /// `[rows, K − rows.start]`.
    pub values: Vec<f64>,
}

/// Terms of a product in 32-bit floats.
const DEPTH: usize = 1024;

/// Rows of a block: enough for a fast product, few enough that what lies left of the diagonal is
/// no waste.
const ROWS: usize = 1024;
const FEW_ROWS: usize = 256;
const FEW_CLASSES: usize = 4096;

impl Covariances {
    /// Whether [`for_each_block`](Self::for_each_block) gives the product of centred loadings.
    /// They are where that is possible: what centring takes away cannot be lost to rounding then.
    pub(super) fn blocks_are_centred(&self) -> bool {
        self.reader.file.has(Field::Loadings)
    }

    /// Calls `visit` with all blocks of mean V Vᵀ, from the first class to the last.
    pub(super) fn for_each_block(
        &mut self,
        observer: Observer,
        mut visit: impl FnMut(&Block),
    ) -> Result<(), ReportError> {
        let (classes, total) = (self.classes(), self.reader.file.examples());
        let passes = plan(classes, self.memory);
        let steps = passes.len() * total;
        let examples = match self.shared {
            Some(_) => DEPTH,
            None => (DEPTH / self.reader.file.rank().max(1)).max(1),
        };
        let mut scratch = Scratch::default();
        for (pass, blocks) in passes.iter().enumerate() {
            let zero = |rows: &Range<usize>| Block {
                values: vec![0.0; rows.len() * (classes - rows.start)],
                rows: rows.clone(),
            };
            let mut blocks: Vec<Block> = blocks.iter().map(zero).collect();
            let mut read = 0;
            while self.has_factors() && read < total {
                let rows = read..total.min(read + examples);
                read = rows.end;
                let columns = self.columns(rows)?;
                blocks.iter_mut().for_each(|block| block.add(&columns, classes, &mut scratch));
                let done = pass * total + read;
                observer(Step { what: "examples: pairs of classes", done, total: steps });
            }
            for mut block in blocks {
                block.finish(total, classes, self.shared.as_ref(), &mut scratch);
                visit(&block);
            }
        }
        Ok(())
    }

    /// The matrix whose product with itself is added up, `[terms, K]`.
    fn columns(&mut self, rows: Range<usize>) -> Result<Vec<f32>, ReportError> {
        if self.shared.is_some() {
            return Ok(self.reader.read(Field::LoadingScale, rows)?);
        }
        let (classes, rank) = (self.classes(), self.reader.file.rank());
        let noise = self.noise(rows)?;
        let sums = noise.sums();
        let super::low_rank::Loadings::Full(values) = &noise.loadings else { return Ok(vec![]) };
        let mut out = vec![0.0; values.len()];
        let width = classes * rank;
        let examples = values.par_chunks_exact(width).zip(sums.par_chunks_exact(rank));
        out.par_chunks_exact_mut(width).zip(examples).for_each(|(out, (values, sums))| {
            for (factor, (out, sum)) in out.chunks_exact_mut(classes).zip(sums).enumerate() {
                let mean = sum / classes as f64;
                let column = values[factor..].iter().step_by(rank);
                out.iter_mut().zip(column).for_each(|(out, value)| {
                    *out = (*value as f64 - mean) as f32;
                });
            }
        });
        Ok(out)
    }
}

impl Block {
    /// The numbers of one row, from its own class on.
    pub fn row(&self, row: usize, classes: usize) -> &[f64] {
        let width = classes - self.rows.start;
        let within = row - self.rows.start;
        &self.values[within * width + within..(within + 1) * width]
    }

    /// Adds the product of `[terms, K]` columns.
    fn add(&mut self, columns: &[f32], classes: usize, scratch: &mut Scratch) {
        let product = scratch.product(columns, classes, &self.rows);
        self.values.par_iter_mut().zip(product).for_each(|(sum, value)| *sum += *value as f64);
    }

    /// Turns sums into means, and sums of v vᵀ into those of V Vᵀ.
    fn finish(
        &mut self,
        examples: usize,
        classes: usize,
        shared: Option<&SharedFactors>,
        scratch: &mut Scratch,
    ) {
        let over = (examples as f64).recip();
        match shared {
            None => self.values.par_iter_mut().for_each(|value| *value *= over),
            Some(shared) => {
                let product = scratch.product(&shared.columns, classes, &self.rows);
                let values = self.values.par_iter_mut().zip(product);
                values.for_each(|(value, product)| *value *= over * *product as f64);
            }
        }
    }
}

/// Memory that is used again: fresh pages cost more than the arithmetic in them.
#[derive(Default)]
struct Scratch {
    left: Vec<f32>,
    right: Vec<f32>,
    out: Vec<f32>,
}

impl Scratch {
    /// The product of `[terms, K]` columns with themselves, for the rows of a block.
    fn product(&mut self, columns: &[f32], classes: usize, rows: &Range<usize>) -> &[f32] {
        let batch = columns.len() / classes;
        let (inputs, outputs) = (rows.len(), classes - rows.start);
        cut(columns, classes, rows.clone(), &mut self.left);
        cut(columns, classes, rows.start..classes, &mut self.right);
        self.out.resize(inputs * outputs, 0.0);
        let shape = DenseShape { batch, inputs, outputs };
        dense::backward_weight(&self.left, &self.right, &mut self.out, shape);
        &self.out
    }
}

/// Some columns of a matrix.
fn cut(matrix: &[f32], width: usize, columns: Range<usize>, out: &mut Vec<f32>) {
    out.clear();
    let rows = matrix.chunks_exact(width);
    rows.for_each(|row| out.extend_from_slice(&row[columns.clone()]));
}

/// The blocks of each pass over the file: as many as fit in `memory`, at least one.
fn plan(classes: usize, memory: usize) -> Vec<Vec<Range<usize>>> {
    let bytes = |rows: &Range<usize>| rows.len() * (classes - rows.start) * size_of::<f64>();
    let most = if classes <= FEW_CLASSES { FEW_ROWS } else { ROWS };
    let rows = (memory / (classes * size_of::<f64>()).max(1)).clamp(1, most);
    let mut passes: Vec<Vec<Range<usize>>> = vec![];
    let mut room = 0;
    for start in (0..classes).step_by(rows) {
        let block = start..classes.min(start + rows);
        match passes.last_mut() {
            Some(pass) if bytes(&block) <= room => {
                room -= bytes(&block);
                pass.push(block);
            }
            _ => {
                room = memory.saturating_sub(bytes(&block));
                passes.push(vec![block]);
            }
        }
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_every_row_once_and_keeps_to_its_memory() {
        for (classes, memory) in [(1, 0), (10, 0), (10, 200), (1000, 1 << 20), (21_843, 1 << 30)] {
            let passes = plan(classes, memory);
            let rows: Vec<usize> = passes.iter().flatten().flat_map(Clone::clone).collect();
            assert_eq!(rows, (0..classes).collect::<Vec<_>>());
            for pass in passes.iter().filter(|pass| pass.len() > 1) {
                let bytes: usize =
                    pass.iter().map(|rows| 8 * rows.len() * (classes - rows.start)).sum();
                assert!(bytes <= memory, "{classes} classes: {bytes} of {memory}");
            }
        }
        assert_eq!(plan(21_843, 1 << 30).len(), 2);
    }
}
