//! The loadings V of some examples, in the form in which predictions hold them.

use std::borrow::Cow;

use aleator_layers::dense::{self, DenseShape};
use aleator_run::Predictions;
use rayon::prelude::*;

/// d and V of n examples.
#[derive(Debug)]
pub struct LowRank<'a> {
    /// K.
    pub classes: usize,
    /// R; 0 if no two classes share noise.
    pub rank: usize,
    /// d, `[n, K]`.
    pub diag: Cow<'a, [f32]>,
    /// V.
    pub loadings: Loadings<'a>,
}

/// V of n examples.
#[derive(Debug)]
pub enum Loadings<'a> {
    /// No two classes share noise.
    None,
    /// V(x), `[n, K, R]`.
    Full(Cow<'a, [f32]>),
    /// v(x), `[n, K]`, and V.
    Shared(Cow<'a, [f32]>, &'a SharedFactors),
}

/// V of all examples of noise `"shared"`.
#[derive(Debug)]
pub struct SharedFactors {
    /// `[K, R]`.
    pub rows: Vec<f32>,
    /// `[R, K]`.
    pub columns: Vec<f32>,
    /// ‖V_k‖², `[K]`.
    squares: Vec<f64>,
}

impl SharedFactors {
    /// From V `[K, R]`.
    pub fn new(loadings: &[f32], classes: usize, rank: usize) -> Self {
        let columns = (0..rank)
            .flat_map(|factor| (0..classes).map(move |class| loadings[class * rank + factor]));
        let square = |class: usize| square_norm(&loadings[class * rank..(class + 1) * rank]);
        Self {
            columns: columns.collect(),
            squares: (0..classes).map(square).collect(),
            rows: loadings.to_vec(),
        }
    }
}

/// Classes whose products are added up in 32-bit floats before they join a sum of 64 bits.
const BLOCK: usize = 1024;

impl<'a> LowRank<'a> {
    /// The noise of predictions that have one; `shared` is made of their shared loadings.
    pub fn of(predictions: &'a Predictions, shared: Option<&'a SharedFactors>) -> Option<Self> {
        let Predictions { classes, rank, loadings, loading_scale, .. } = predictions;
        let loadings = match (loadings, loading_scale, shared) {
            (Some(loadings), ..) => Loadings::Full(Cow::Borrowed(loadings)),
            (None, Some(scale), Some(shared)) => Loadings::Shared(Cow::Borrowed(scale), shared),
            _ => Loadings::None,
        };
        let diag = Cow::Borrowed(predictions.diag_scale.as_deref()?);
        Some(Self { classes: *classes, rank: *rank, diag, loadings })
    }

    /// n.
    pub fn examples(&self) -> usize {
        self.diag.len() / self.classes
    }

    /// d² of one example, `[K]`.
    pub fn diag_squares(&self, example: usize) -> impl Iterator<Item = f64> {
        let row = &self.diag[example * self.classes..(example + 1) * self.classes];
        row.iter().map(|scale| (*scale as f64).powi(2))
    }

    /// The row of V of one class, `[R]`.
    pub fn loading(&self, example: usize, class: usize) -> Vec<f64> {
        let (at, rank) = (example * self.classes + class, self.rank);
        match &self.loadings {
            Loadings::Full(values) => {
                values[at * rank..(at + 1) * rank].iter().map(|value| *value as f64).collect()
            }
            Loadings::Shared(scale, shared) => {
                let row = &shared.rows[class * rank..(class + 1) * rank];
                row.iter().map(|value| scale[at] as f64 * *value as f64).collect()
            }
            Loadings::None => vec![0.0; rank],
        }
    }

    /// ‖V_k‖² of one example and class.
    pub fn square(&self, example: usize, class: usize) -> f64 {
        let (at, rank) = (example * self.classes + class, self.rank);
        match &self.loadings {
            Loadings::Full(values) => square_norm(&values[at * rank..(at + 1) * rank]),
            Loadings::Shared(scale, shared) => (scale[at] as f64).powi(2) * shared.squares[class],
            Loadings::None => 0.0,
        }
    }

    /// Vᵀ1, `[n, R]`.
    pub fn sums(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.examples() * self.rank];
        if out.is_empty() {
            return out;
        }
        match &self.loadings {
            Loadings::Full(values) => {
                let examples = values.par_chunks_exact(self.classes * self.rank);
                out.par_chunks_exact_mut(self.rank).zip(examples).for_each(|(sums, values)| {
                    for row in values.chunks_exact(self.rank) {
                        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += *value as f64);
                    }
                });
            }
            Loadings::Shared(scale, shared) => self.shared_sums(scale, shared, &mut out),
            Loadings::None => {}
        }
        out
    }

    fn shared_sums(&self, scale: &[f32], shared: &SharedFactors, out: &mut [f64]) {
        let mut product = vec![0.0; out.len()];
        for start in (0..self.classes).step_by(BLOCK) {
            let block = start..self.classes.min(start + BLOCK);
            let inputs = block.len();
            let scale: Vec<f32> = scale
                .chunks_exact(self.classes)
                .flat_map(|row| row[block.clone()].iter().copied())
                .collect();
            let rows = &shared.rows[start * self.rank..block.end * self.rank];
            let shape = DenseShape { batch: self.examples(), inputs, outputs: self.rank };
            dense::forward(&scale, rows, None, &mut product, shape);
            out.iter_mut().zip(&product).for_each(|(sum, value)| *sum += *value as f64);
        }
    }

    /// V f for a vector f `[R]` of each example, `[n, K]`.
    pub fn times(&self, factors: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.diag.len()];
        if factors.is_empty() {
            return out;
        }
        match &self.loadings {
            Loadings::Full(values) => {
                let examples = values.par_chunks_exact(self.classes * self.rank);
                let factors = factors.par_chunks_exact(self.rank);
                let rows = out.par_chunks_exact_mut(self.classes).zip(examples.zip(factors));
                rows.for_each(|(out, (values, factors))| {
                    for (out, row) in out.iter_mut().zip(values.chunks_exact(self.rank)) {
                        *out = row.iter().zip(factors).map(|(a, b)| *a as f64 * b).sum();
                    }
                });
            }
            Loadings::Shared(scale, shared) => {
                let factors: Vec<f32> = factors.iter().map(|value| *value as f32).collect();
                let mut product = vec![0.0; out.len()];
                let (batch, inputs, outputs) = (self.examples(), self.rank, self.classes);
                let shape = DenseShape { batch, inputs, outputs };
                dense::forward(&factors, &shared.columns, None, &mut product, shape);
                let values = product.par_iter().zip(&scale[..]).map(|(a, b)| *a as f64 * *b as f64);
                out.par_iter_mut().zip(values).for_each(|(out, value)| *out = value);
            }
            Loadings::None => {}
        }
        out
    }
}

fn square_norm(values: &[f32]) -> f64 {
    values.iter().map(|value| (*value as f64).powi(2)).sum()
}
