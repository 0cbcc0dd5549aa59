//! Reliability diagrams: how often predictions are right, by confidence.

use aleator_metrics::calibration::ReliabilityBin;

use super::scale::Scale;
use super::{Anchor, Figure, Ink, Mark, Place};
use crate::number;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 372.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 348.0;
const TOP: f64 = 30.0;
/// The bottom of the diagram; the histogram is below it.
const BOTTOM: f64 = 262.0;
const HISTOGRAM: (f64, f64) = (280.0, 332.0);

/// The share of fewer predictions than this is chance: it is faded, and not joined to the others.
const HANDFUL: usize = 10;

/// The diagram of one summary's bins.
pub(crate) fn draw(name: &str, title: &str, bins: &[ReliabilityBin], ece: f64) -> Figure {
    let error = number::fixed(ece, 3);
    let description = format!("Share of predictions that came true, by confidence. ECE {error}.");
    let mut figure = Figure::new(name, title, &description, (WIDTH, HEIGHT));
    let x = Scale::new((0.0, 1.0), (LEFT, RIGHT));
    let y = Scale::new((0.0, 1.0), (BOTTOM, TOP));
    figure.heading("");
    figure.sized_text((RIGHT, 13.0), &format!("ECE {error}"), Ink::Text, Anchor::End, 12.5);
    figure.grid(&y, LEFT, RIGHT);
    let points = [0.0, 1.0].map(|value| (x.place(value), y.place(value))).to_vec();
    figure.marks.push(Mark::Line { points, ink: Ink::Axis, width: 1.0, dashed: true });
    figure.text((LEFT + 6.0, TOP + 14.0), "too careful", Ink::Muted, Anchor::Start);
    figure.text((RIGHT - 6.0, BOTTOM - 8.0), "too confident", Ink::Muted, Anchor::End);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let mut places = vec![];
    for bin in bins {
        let (Some(confidence), Some(accuracy)) = (bin.confidence, bin.accuracy) else { continue };
        let at = x.place(confidence);
        if bin.count < HANDFUL {
            figure.circle((at, y.place(accuracy)), 2.0, Ink::Axis);
            continue;
        }
        figure.line(vec![(at, y.place(confidence)), (at, y.place(accuracy))], Ink::Series(1), 2.0);
        places.push(((at, y.place(accuracy)), bin.count));
    }
    figure.line(places.iter().map(|(place, _)| *place).collect(), Ink::Series(0), 1.2);
    for (place, count) in &places {
        let radius = 2.0 + 4.0 * (*count as f64 / most as f64).sqrt();
        figure.circle(*place, radius, Ink::Series(0));
    }
    histogram(&mut figure, bins, &x, most);
    figure
}

fn histogram(figure: &mut Figure, bins: &[ReliabilityBin], x: &Scale, most: usize) {
    let (top, bottom) = HISTOGRAM;
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let height = (bottom - top) * bin.count as f64 / most as f64;
        let (left, right) = (x.place(bin.low), x.place(bin.high));
        let at = Place { x: left + 0.5, y: bottom - height, width: right - left - 1.0, height };
        let (ink, opacity) = (Ink::Series(0), 0.55);
        figure.marks.push(Mark::Rect { at, ink, opacity, tooltip: None });
    }
    figure.line(vec![(LEFT, bottom), (RIGHT, bottom)], Ink::Axis, 1.0);
    figure.text((LEFT, top - 4.0), &number::count(most), Ink::Muted, Anchor::Start);
    for (value, label) in x.ticks(5) {
        figure.text((x.place(value), bottom + 16.0), &label, Ink::Muted, Anchor::Middle);
    }
    let middle = (LEFT + RIGHT) / 2.0;
    figure.text((middle, HEIGHT - 6.0), "confidence", Ink::Muted, Anchor::Middle);
}
