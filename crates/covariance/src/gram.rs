//! Σ_n V V ᵀ of many classes, block by block.
//!
//! With loadings of each example the sum is the product of one long matrix, `[N·R, K]`, with
//! itself; with shared ones it is V Vᵀ times the mean of v vᵀ, number by number. Products of a
//! thousand terms are taken in 32-bit floats and added up in 64 bits.

use std::borrow::Cow;
use std::ops::Range;

use aleator_layers::dense::{self, DenseShape};
use rayon::prelude::*;

use crate::low_rank::{Loadings, LowRank, SharedFactors};

/// The numbers of mean V Vᵀ in some rows, from the first of these on to the right.
#[derive(Debug)]
pub struct Block {
    /// Which rows.
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

/// Whether [`columns`] are centred. They are where that is possible: what centring takes away cannot
/// be lost to rounding then.
pub fn columns_are_centred(loadings: &Loadings<'_>) -> bool {
    matches!(loadings, Loadings::Full(_))
}

/// How many examples go into one product of 32-bit floats.
pub fn examples_of_a_product(rank: usize, shared: bool) -> usize {
    if shared { DEPTH } else { (DEPTH / rank.max(1)).max(1) }
}

/// The matrix whose product with itself is added up, `[terms, K]`: the loadings of each example less
/// their means over the classes, or v(x).
pub fn columns<'a>(noise: &'a LowRank<'_>) -> Cow<'a, [f32]> {
    let (classes, rank) = (noise.classes, noise.rank);
    let values = match &noise.loadings {
        Loadings::None => return Cow::Borrowed(&[]),
        Loadings::Shared(scale, _) => return Cow::Borrowed(scale),
        Loadings::Full(values) => values,
    };
    let sums = noise.sums();
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
    Cow::Owned(out)
}

/// The sums of some blocks while examples are added.
///
/// Products are of the same examples however these are divided, so no bit depends on it.
#[derive(Debug)]
pub struct Gram {
    classes: usize,
    blocks: Vec<Block>,
    /// Columns that wait until they are enough for a product.
    waiting: Vec<f32>,
    /// How many numbers are.
    enough: usize,
    scratch: Scratch,
}

impl Gram {
    /// Of some rows of K classes. `width` is the number of columns of an example: R, or 1 with
    /// shared loadings; 0 if no two classes share noise.
    pub fn new(rows: Vec<Range<usize>>, classes: usize, width: usize, shared: bool) -> Self {
        let zero = |rows: Range<usize>| Block {
            values: vec![0.0; rows.len() * (classes - rows.start)],
            rows,
        };
        Self {
            classes,
            blocks: rows.into_iter().map(zero).collect(),
            waiting: vec![],
            enough: examples_of_a_product(width, shared) * width * classes,
            scratch: Scratch::default(),
        }
    }

    /// Adds the [`columns`] of the next examples.
    pub fn add(&mut self, mut columns: &[f32]) {
        while !columns.is_empty() {
            let room = self.enough - self.waiting.len();
            let (now, later) = columns.split_at(room.min(columns.len()));
            self.waiting.extend_from_slice(now);
            columns = later;
            if self.waiting.len() == self.enough {
                self.multiply();
            }
        }
    }

    fn multiply(&mut self) {
        let Self { classes, blocks, waiting, scratch, .. } = self;
        blocks.iter_mut().for_each(|block| block.add(waiting, *classes, scratch));
        waiting.clear();
    }

    /// The blocks of the mean over the examples; with `shared` the columns were those of v.
    pub fn finish(mut self, examples: usize, shared: Option<&SharedFactors>) -> Vec<Block> {
        if !self.waiting.is_empty() {
            self.multiply();
        }
        let Self { classes, mut blocks, mut scratch, .. } = self;
        for block in &mut blocks {
            block.finish(examples, classes, shared, &mut scratch);
        }
        blocks
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
#[derive(Debug, Default)]
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

/// The rows of the blocks of each pass over the examples: as many as fit in `memory` bytes, at least
/// one.
pub fn plan(classes: usize, memory: usize) -> Vec<Vec<Range<usize>>> {
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
