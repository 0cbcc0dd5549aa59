//! The trials of a tuning: held-out loss by the decay of the mean.

use aleator_run::recipe::Normalize;
use aleator_run::tuning::{Trial, Tuning};

use super::scale::Scale;
use super::{Anchor, Figure, Ink, SMALL, text_width};
use crate::number;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 236.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 196.0;
const LEFT: f64 = 46.0;

/// Lines for trials without noise, one for each scale of the features, and dots for those with.
pub(crate) fn draw(name: &str, tuning: &Tuning) -> Figure {
    let best = tuning.trials.iter().map(|trial| trial.nll).fold(f64::INFINITY, f64::min);
    let description = format!(
        "{} trials; the lowest held-out NLL is {}.",
        tuning.trials.len(),
        number::fixed(best, 4)
    );
    let mut figure =
        Figure::new(name, "Held-out NLL by decay of the mean", &description, (WIDTH, HEIGHT));
    let scales = scales(&tuning.trials);
    let labels: Vec<&str> = scales.iter().map(|kind| label(*kind)).collect();
    let widest = labels.iter().map(|label| text_width(label, SMALL)).fold(0.0, f64::max);
    let right = WIDTH - widest - 14.0;
    let exponent = |trial: &Trial| trial.settings.mean.max(f64::MIN_POSITIVE).log10();
    let range = tuning.trials.iter().map(exponent);
    let low = range.clone().fold(f64::INFINITY, f64::min).floor();
    let high = range.fold(f64::NEG_INFINITY, f64::max).ceil();
    let x = Scale::new((low, high), (LEFT, right));
    let y = Scale::nice(tuning.trials.iter().map(|trial| trial.nll), (BOTTOM, TOP));
    let place = |trial: &Trial| (x.place(exponent(trial)), y.place(trial.nll));
    figure.heading("");
    figure.grid(&y, LEFT, right);
    figure.line(vec![(LEFT, BOTTOM), (right, BOTTOM)], Ink::Axis, 1.0);
    let step = ((high - low) / 6.0).ceil().max(1.0);
    let mut power = low;
    while power <= high {
        let at = x.place(power);
        figure.line(vec![(at, BOTTOM), (at, BOTTOM + 4.0)], Ink::Axis, 1.0);
        let text = format!("1e{}", number::fixed(power, 0));
        figure.text((at, BOTTOM + 17.0), &text, Ink::Muted, Anchor::Middle);
        power += step;
    }
    figure.text(((LEFT + right) / 2.0, HEIGHT - 6.0), "decay", Ink::Muted, Anchor::Middle);
    for trial in tuning.trials.iter().filter(|trial| trial.settings.noise.is_some()) {
        figure.circle(place(trial), 2.5, Ink::Axis);
    }
    let mut free = f64::NEG_INFINITY;
    for (at, (kind, label)) in scales.iter().zip(labels).enumerate() {
        let ink = Ink::Series(at);
        let is_own =
            |trial: &&Trial| trial.settings.normalize == *kind && trial.settings.noise.is_none();
        let mut own: Vec<&Trial> = tuning.trials.iter().filter(is_own).collect();
        own.sort_by(|a, b| a.settings.mean.total_cmp(&b.settings.mean));
        let points: Vec<(f64, f64)> = own.into_iter().map(place).collect();
        points.iter().for_each(|point| figure.circle(*point, 2.5, ink));
        let Some(end) = points.last().copied() else { continue };
        figure.line(points, ink, 1.4);
        free = (free + 13.0).max(end.1 + 4.0);
        figure.text((right + 8.0, free), label, ink, Anchor::Start);
    }
    if let Some(chosen) = tuning.trials.iter().find(|trial| trial.settings == tuning.chosen) {
        figure.circle(place(chosen), 4.5, Ink::Text);
    }
    figure
}

/// In the order in which they were tried.
fn scales(trials: &[Trial]) -> Vec<Normalize> {
    let mut scales = vec![];
    for trial in trials {
        if !scales.contains(&trial.settings.normalize) {
            scales.push(trial.settings.normalize);
        }
    }
    scales
}

fn label(kind: Normalize) -> &'static str {
    match kind {
        Normalize::None => "as they are",
        Normalize::Global => "one scale",
        Normalize::PerFeature => "per feature",
        Normalize::Robust => "robust",
    }
}
