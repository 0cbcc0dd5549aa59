//! What the second-order expansion says about learning: the coefficients of Σ in log p_k.
//!
//! With s = softmax(μ/τ), Σ in units of τ² and the label k,
//!
//! ```text
//! ∂ log p_k/∂Σ_kk = ½ (1 − s_k)(1 − 2s_k)
//! ∂ log p_k/∂Σ_jj = −½ s_j (1 − 2s_j)                 j ≠ k
//! ∂ log p_k/∂Σ_jk = −s_j (1 − 2s_k)                   j ≠ k; Σ_jk and Σ_kj move together
//! ```
//!
//! Figure 3 of the paper has the first two without their ½, Figure 4 the third one. The paper's text
//! has a ½ too many in the third (deviation D1); its figure is "up to a constant multiplier".

use std::path::Path;

use aleator_kernels::Temperature;
use aleator_run::{CsvFile, RunError};

use crate::covariance::Latents;
use crate::figure::Figure;
use crate::figure::curves::{Axis, Curve, Curves};
use crate::figure::plane::Plane;

/// (1 − s_k)(1 − 2s_k): twice the coefficient of the variance of the label's class.
///
/// Positive while the label is improbable: its noise grows to explain it.
pub fn own_variance(s_k: f64) -> f64 {
    (1.0 - s_k) * (1.0 - 2.0 * s_k)
}

/// −s_j (1 − 2s_j): twice the coefficient of the variance of another class.
///
/// Positive if another class is predicted.
pub fn other_variance(s_j: f64) -> f64 {
    -s_j * (1.0 - 2.0 * s_j)
}

/// −s_j (1 − 2s_k): the coefficient of the covariance of the label's class with another.
///
/// Negative while the label is improbable: both become substitutes.
pub fn covariance(s_j: f64, s_k: f64) -> f64 {
    -s_j * (1.0 - 2.0 * s_k)
}

/// Where a labelled example is on the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// s_k of its label.
    pub label: f64,
    /// s_j of the most probable other class.
    pub other: f64,
}

/// The places of labelled examples.
///
/// # Panics
/// When there is not one label for each example.
pub fn placed(latents: &Latents, temperature: Temperature, labels: &[u32]) -> Vec<Placed> {
    let softmax = latents.softmax(temperature);
    assert_eq!(softmax.len(), labels.len() * latents.classes, "one label for each example");
    let place = |(row, label): (&[f64], &u32)| {
        let others = row.iter().enumerate().filter(|(class, _)| *class != *label as usize);
        let other = others.map(|(_, s)| *s).fold(0.0, f64::max);
        Placed { label: row[*label as usize], other }
    };
    softmax.chunks_exact(latents.classes).zip(labels).map(place).collect()
}

/// Figures 3 and 4 of the paper, with these examples on them.
pub fn coefficient_figures(examples: &[Placed]) -> [Figure; 2] {
    [variances(examples), covariances(examples)]
}

/// Steps of the curves and of the table, from 0 to 1.
const STEPS: usize = 100;

fn grid() -> impl Iterator<Item = f64> {
    (0..=STEPS).map(|step| step as f64 / STEPS as f64)
}

fn variances(examples: &[Placed]) -> Figure {
    let curve = |label: &str, colour, value: fn(f64) -> f64, marks: Vec<f64>| Curve {
        label: label.to_string(),
        colour,
        points: grid().map(|s| (s, value(s))).collect(),
        marks: marks.into_iter().map(|s| (s, value(s))).collect(),
    };
    let labels = examples.iter().map(|it| it.label).collect();
    let others = examples.iter().map(|it| it.other).collect();
    let curves = vec![
        curve("(1−s)(1−2s), label", 0, own_variance, labels),
        curve("−s(1−2s), others", 1, other_variance, others),
    ];
    let description = "The coefficients of the variances in the expansion of the log-likelihood, by \
                       the softmax s of the class: of the label's class, and of any other. Both are \
                       zero at one half."
        .to_string();
    let (name, title) = ("coefficients-of-variances", "Coefficients of the variances");
    let (x, y) = (Axis::plain("softmax s of the class"), Axis::plain(""));
    Curves { name, title, description, x, y, curves, at: Some(0.5) }.draw()
}

fn covariances(examples: &[Placed]) -> Figure {
    let description =
        "The coefficient of the covariance of the label's class k and another class j, \
                       −s_j (1 − 2 s_k). Only the part below the dashed line can occur: both \
                       probabilities add up to at most one."
            .to_string();
    Plane {
        name: "coefficients-of-covariances",
        title: "Coefficient of the covariance, −s_j (1 − 2s_k)",
        description,
        x: "s_j of the other class",
        y: "s_k of the label",
        value: &covariance,
        points: examples.iter().map(|it| (it.other, it.label)).collect(),
        border: vec![(0.0, 1.0), (1.0, 0.0)],
    }
    .draw()
}

/// The curves of Figure 3 as a table.
pub fn write_coefficients(path: &Path) -> Result<(), RunError> {
    CsvFile::write(path, &["softmax", "own_variance", "other_variance"], |table| {
        for s in grid() {
            table.row(&[s, own_variance(s), other_variance(s)].map(|number| number.to_string()))?;
        }
        Ok(())
    })
}
