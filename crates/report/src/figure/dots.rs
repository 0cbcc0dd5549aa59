//! A comparison of settings: a dot for the mean of each, a line for its spread.

use aleator_metrics::significance::{mean, sample_std};

use super::scale::Scale;
use super::{Anchor, Figure, Ink, SERIES, SMALL, scaled, widest};
use crate::escape::label;

/// One measure of several settings.
pub(crate) struct DotChart<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: String,
    /// The name of each setting, and its values.
    pub rows: Vec<(String, Vec<f64>)>,
    pub percent: bool,
}

const WIDTH: f64 = 360.0;
const ROW: f64 = 22.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 26.0;
const CHARACTERS: usize = 20;

impl DotChart<'_> {
    pub fn draw(&self) -> Figure {
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let mut figure = Figure::new(self.name, self.title, &self.description, (WIDTH, height));
        let labels: Vec<String> =
            self.rows.iter().map(|(name, _)| label(name, CHARACTERS)).collect();
        let widest = widest(&labels, SMALL);
        let (times, unit) = scaled(self.percent);
        let ends = |(_, values): &(String, Vec<f64>)| {
            let (mean, spread) = (mean(values).unwrap_or(f64::NAN), sample_std(values));
            [-1.0, 1.0].map(|side| times * (mean + side * spread.unwrap_or(0.0)))
        };
        let all = self.rows.iter().flat_map(ends);
        let x = Scale::nice(all, (widest + 22.0, WIDTH - 20.0));
        figure.heading(unit);
        for (value, label) in x.ticks(4) {
            let at = x.place(value);
            figure.line(vec![(at, TOP), (at, height - BOTTOM)], Ink::Grid, 1.0);
            figure.text((at, height - 8.0), &label, Ink::Muted, Anchor::Middle);
        }
        for (at, ((_, values), label)) in self.rows.iter().zip(&labels).enumerate() {
            let y = TOP + ROW * (at as f64 + 0.5);
            let ink = Ink::Series(at % SERIES);
            figure.text((widest + 4.0, y + 4.0), label, Ink::Text, Anchor::End);
            let Some(mean) = mean(values).filter(|mean| mean.is_finite()) else { continue };
            if let Some(spread) = sample_std(values) {
                let ends = [mean - spread, mean + spread].map(|value| (x.place(times * value), y));
                figure.line(ends.to_vec(), ink, 1.5);
            }
            figure.circle((x.place(times * mean), y), 4.0, ink);
        }
        figure
    }
}
