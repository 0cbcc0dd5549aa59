//! Temperature as bias against variance, as a table and as figures.

use std::path::Path;

use aleator_run::{CsvFile, RunError};
use serde::Serialize;

use crate::figure::Figure;
use crate::figure::curves::{Axis, Curve, Curves};

/// Bias and variance at one temperature, means over the examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TemperaturePoint {
    /// τ.
    pub temperature: f64,
    /// The total variation ½ Σ_c ∣p_τ − p_0∣.
    pub bias: f64,
    /// The largest ∣p_τ − p_0∣ of any example and class.
    pub largest_bias: f64,
    /// ‖E g‖² of the gradient g of −log p_τ(label) by μ.
    pub gradient: f64,
    /// E‖g − E g‖² over the keys.
    pub gradient_variance: f64,
}

/// A row for each temperature.
pub fn write_temperatures(path: &Path, points: &[TemperaturePoint]) -> Result<(), RunError> {
    let header = ["temperature", "bias", "largest_bias", "gradient", "gradient_variance"];
    CsvFile::write(path, &header, |table| {
        for point in points {
            let TemperaturePoint { temperature, bias, largest_bias, gradient, gradient_variance } =
                point;
            let cells = [temperature, bias, largest_bias, gradient, gradient_variance];
            table.row(&cells.map(|cell| cell.to_string()))?;
        }
        Ok(())
    })
}

/// Bias, and variance of the gradient, over the temperature; `own` is that of a run.
pub fn temperature_figures(points: &[TemperaturePoint], own: Option<f64>) -> [Figure; 2] {
    let curve = |label: &str, colour, value: fn(&TemperaturePoint) -> f64| Curve {
        label: label.to_string(),
        colour,
        points: points.iter().map(|point| (point.temperature, value(point))).collect(),
        marks: vec![],
    };
    let draw = |name, title, description: &str, curves| {
        let (x, y) = (Axis::logarithmic("temperature τ"), Axis::logarithmic(""));
        let description = description.to_string();
        Curves { name, title, description, x, y, curves, at: own }.draw()
    };
    [
        draw(
            "temperature-bias",
            "Bias against the limit τ → 0",
            "How far the probabilities at each temperature are from those without one.",
            vec![
                curve("mean", 0, |point| point.bias),
                curve("largest", 1, |point| point.largest_bias),
            ],
        ),
        draw(
            "temperature-variance",
            "Gradient by μ: variance over the noise",
            "The variance of the sampled gradient at each temperature, and the square of its mean.",
            vec![
                curve("variance", 1, |point| point.gradient_variance),
                curve("mean²", 0, |point| point.gradient),
            ],
        ),
    ]
}
