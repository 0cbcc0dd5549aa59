//! One class of one example with all classes.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::low_rank::LowRank;
use crate::moments::inverse_deviation;

/// How covariances are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Σ, as the paper has it.
    Raw,
    /// C Σ C / τ², the part of Σ that the likelihood depends on.
    Centred,
    /// The correlation of C Σ C.
    Correlation,
}

/// The covariance of a class of an example with another class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tie {
    /// The other class.
    pub class: usize,
    /// Σ(x) of both.
    pub covariance: f64,
    /// C Σ(x) C / τ² of both.
    pub centred: f64,
    /// The correlation of C Σ(x) C; `None` if a variance is only rounding.
    pub correlation: Option<f64>,
}

impl Tie {
    /// The value by one of the measures; an undefined correlation counts as zero.
    pub fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Raw => self.covariance,
            Measure::Centred => self.centred,
            Measure::Correlation => self.correlation.unwrap_or(0.0),
        }
    }
}

/// In which units and form covariances mean something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// τ.
    pub temperature: f64,
    /// Whether only C Σ C can be told from the labels, because a constant that is added to all
    /// utilities changes no probability.
    pub is_shift_free: bool,
}

/// Calls `find` with the ties of one class of an example to all classes, `[K]`, for each of `wanted`:
/// an example of `noise` and its class. An example is wanted at most once.
pub fn map_ties<T: Send>(
    noise: &LowRank<'_>,
    wanted: &[(usize, usize)],
    units: Units,
    find: impl Fn(usize, &[Tie]) -> T + Sync,
) -> Vec<T> {
    let (classes, rank) = (noise.classes, noise.rank);
    // V_c with the wanted class of each example; zero if there is none.
    let mut loadings = vec![0.0; noise.examples() * rank];
    for (example, class) in wanted {
        let loading = noise.loading(*example, *class);
        loadings[example * rank..(example + 1) * rank].copy_from_slice(&loading);
    }
    // V V_cᵀ and V Vᵀ 1, `[n, K]`.
    let (with_class, with_all) = (noise.times(&loadings), noise.times(&noise.sums()));
    let found = |(at, (example, class)): (usize, &(usize, usize))| {
        let span = example * classes..(example + 1) * classes;
        let (raw, all) = (&with_class[span.clone()], &with_all[span]);
        find(at, &ties(noise, *example, *class, raw, all, units))
    };
    wanted.par_iter().enumerate().map(found).collect()
}

/// Of one class of an example, from V V_cᵀ and V Vᵀ 1 of the example, `[K]`.
fn ties(
    noise: &LowRank<'_>,
    example: usize,
    class: usize,
    with_class: &[f64],
    with_all: &[f64],
    units: Units,
) -> Vec<Tie> {
    let own: Vec<f64> = noise.diag_squares(example).collect();
    let k = noise.classes as f64;
    // The means of the rows of Σ(x), and their mean.
    let row = |(own, all): (&f64, &f64)| if units.is_shift_free { (own + all) / k } else { 0.0 };
    let rows: Vec<f64> = own.iter().zip(with_all).map(row).collect();
    let mean = rows.iter().sum::<f64>() / k;
    let inverse = |other: usize| {
        inverse_deviation(own[other] + noise.square(example, other), rows[other], mean)
    };
    let own_inverse = inverse(class);
    let tie = |other: usize| {
        let diagonal = if other == class { own[class] } else { 0.0 };
        let covariance = with_class[other] + diagonal;
        let centred = covariance - rows[other] - rows[class] + mean;
        let inverse = inverse(other) * own_inverse;
        Tie {
            class: other,
            covariance,
            centred: centred / units.temperature.powi(2),
            correlation: (inverse > 0.0).then(|| (centred * inverse).clamp(-1.0, 1.0)),
        }
    };
    (0..noise.classes).map(tie).collect()
}
