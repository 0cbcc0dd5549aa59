//! Two classes that somebody asks for, over a split and in single examples.

use serde::Serialize;

use super::best::Best;
use super::open::Covariances;
use super::pairs::{ClassPair, class_pair};
use super::{Observer, Step};
use crate::error::ReportError;

/// A pair of classes, and the examples in which they are tied most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedPair {
    /// The numbers over the split; its first class is the one of the lower index.
    pub pair: ClassPair,
    /// By the absolute covariance, the largest first; `None` where only sums over the examples are
    /// known.
    pub examples: Option<Vec<PairExample>>,
}

/// Two classes in one example.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairExample {
    /// The example's row in the split.
    pub row: usize,
    /// Σ(x)_ij.
    pub covariance: f64,
}

impl Covariances {
    /// The average covariance of two classes, as the paper's Figure 1 names it, with their other
    /// numbers and the `top` examples in which they are tied most.
    ///
    /// # Panics
    /// When the classes are equal or not below K.
    pub fn pair(
        &mut self,
        first: usize,
        second: usize,
        top: usize,
        observer: Observer,
    ) -> Result<NamedPair, ReportError> {
        let (i, j) = (first.min(second), first.max(second));
        assert!(i < j && j < self.classes(), "two classes below {}", self.classes());
        let entries = self.entries(observer)?;
        let (factors, examples) = match &mut self.sums {
            Some(sums) => (sums.pairs(i..i + 1)?[j - i], None),
            None => {
                let (factors, examples) = self.pair_of_examples(i, j, top, observer)?;
                (factors, Some(examples))
            }
        };
        let flips = self.flips([(i, j), (j, i)], observer)?;
        let pair = class_pair(&entries, &flips, self.has_factors(), (i, j), factors);
        Ok(NamedPair { pair, examples })
    }

    /// The pair's number of mean V Vᵀ, and the `top` examples.
    fn pair_of_examples(
        &mut self,
        i: usize,
        j: usize,
        top: usize,
        observer: Observer,
    ) -> Result<(f64, Vec<PairExample>), ReportError> {
        let (total, classes) = (self.total, self.classes() as f64);
        let centred = self.blocks_are_centred();
        let mut best = Best::new(top);
        let mut factors = 0.0;
        for rows in self.pieces() {
            let noise = self.noise(rows.clone())?;
            let sums = noise.sums();
            for (example, row) in rows.clone().enumerate() {
                let [a, b] = [i, j].map(|class| noise.loading(example, class));
                let covariance = dot(&a, &b);
                best.offer(covariance.abs(), row, covariance);
                factors += if centred {
                    let middle = &sums[example * noise.rank..(example + 1) * noise.rank];
                    let away = |row: &[f64]| -> Vec<f64> {
                        row.iter().zip(middle).map(|(value, sum)| value - sum / classes).collect()
                    };
                    dot(&away(&a), &away(&b))
                } else {
                    covariance
                };
            }
            observer(Step { what: "examples: the pair", done: rows.end, total });
        }
        let example = |(_, row, covariance)| PairExample { row, covariance };
        let examples = best.into_sorted().into_iter().map(example).collect();
        Ok((factors / total as f64, examples))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
