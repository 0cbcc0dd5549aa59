//! Lines over steps.

use super::scale::Scale;
use super::{Anchor, Figure, Ink, SMALL, scaled, text_width};
use crate::escape::label;

/// What is drawn.
pub(crate) struct LineChart<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: String,
    pub series: Vec<Series>,
    /// Whether values are shares.
    pub percent: bool,
}

/// One line; lines of the same label share a colour.
pub(crate) struct Series {
    pub label: String,
    pub colour: usize,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 236.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const LEFT: f64 = 46.0;

/// Most labels at the ends of lines.
const LABELLED: usize = 6;
const LABEL_CHARACTERS: usize = 14;

/// Longer series are down-sampled to this many points.
const POINTS: usize = 240;

impl LineChart<'_> {
    pub fn draw(&self) -> Figure {
        let mut figure = Figure::new(self.name, self.title, &self.description, (WIDTH, HEIGHT));
        let mut ends = self.ends();
        let label_width =
            ends.iter().map(|(_, label, _)| text_width(label, SMALL)).fold(0.0, f64::max);
        let right = WIDTH - if ends.is_empty() { 12.0 } else { label_width + 12.0 };
        let all = || self.series.iter().flat_map(|series| &series.points);
        let (times, unit) = scaled(self.percent);
        let last = all().map(|point| point.0).fold(0.0, f64::max);
        let x = Scale::new((0.0, last), (LEFT, right));
        let y = Scale::nice(all().map(|point| times * point.1), (HEIGHT - BOTTOM, TOP));
        axes(&mut figure, &x, &y, right);
        figure.heading(unit);
        for series in &self.series {
            let place = |point: &(f64, f64)| (x.place(point.0), y.place(times * point.1));
            let points: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            match points.as_slice() {
                [] => {}
                [point] => figure.circle(*point, 2.5, Ink::Series(series.colour)),
                _ => figure.line(points, Ink::Series(series.colour), 1.4),
            }
        }
        ends.iter_mut().for_each(|(value, ..)| *value = y.place(times * *value));
        apart(&mut ends, (TOP, HEIGHT - BOTTOM));
        for (place, label, colour) in ends {
            figure.text((right + 6.0, place + 4.0), &label, Ink::Series(colour), Anchor::Start);
        }
        figure
    }

    /// The last value, the name and the colour of each group of named lines.
    fn ends(&self) -> Vec<(f64, String, usize)> {
        let mut ends: Vec<(f64, String, usize)> = vec![];
        for series in self.series.iter().filter(|series| !series.label.is_empty()) {
            let label = label(&series.label, LABEL_CHARACTERS);
            let Some(last) = series.points.last() else { continue };
            if !ends.iter().any(|(_, other, _)| *other == label) {
                ends.push((last.1, label, series.colour));
            }
        }
        if ends.len() > LABELLED { vec![] } else { ends }
    }
}

fn axes(figure: &mut Figure, x: &Scale, y: &Scale, right: f64) {
    let bottom = HEIGHT - BOTTOM;
    figure.grid(y, LEFT, right);
    figure.line(vec![(LEFT, bottom), (right, bottom)], Ink::Axis, 1.0);
    let ticks = x.ticks(6);
    let widest = ticks.iter().map(|(_, label)| text_width(label, SMALL)).fold(0.0, f64::max);
    let room = (right - LEFT) / ticks.len() as f64;
    for (value, label) in if widest + 8.0 < room { ticks } else { x.ticks(3) } {
        let at = x.place(value);
        figure.line(vec![(at, bottom), (at, bottom + 4.0)], Ink::Axis, 1.0);
        figure.text((at, bottom + 17.0), &label, Ink::Muted, Anchor::Middle);
    }
    figure.text(((LEFT + right) / 2.0, HEIGHT - 6.0), "step", Ink::Muted, Anchor::Middle);
}

/// Moves labels down, then up, until no two overlap.
fn apart<T: Ord>(labels: &mut [(f64, T, usize)], within: (f64, f64)) {
    const STEP: f64 = 13.0;
    labels.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut free = within.0;
    for label in labels.iter_mut() {
        label.0 = label.0.max(free);
        free = label.0 + STEP;
    }
    let mut free = within.1;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(free);
        free = label.0 - STEP;
    }
}

/// Down-samples long series to means over equal ranges of steps.
pub(crate) fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let mean = |stretch: &[(f64, f64)]| {
        let count = stretch.len() as f64;
        let sum = stretch.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (sum.0 / count, sum.1 / count)
    };
    let border = |at: usize| at * points.len() / POINTS;
    (0..POINTS).map(|at| mean(&points[border(at)..border(at + 1)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_become_means_of_stretches() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|at| (at as f64, 2.0)).collect();
        let thin = thinned(&points);
        assert_eq!(thin.len(), POINTS);
        assert!(thin.iter().all(|point| point.1 == 2.0));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(thinned(&points[..3]), points[..3]);
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut labels = [(10.0, "a", 0), (11.0, "b", 1), (100.0, "c", 2), (99.0, "d", 3)];
        apart(&mut labels, (0.0, 100.0));
        assert!(labels.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 13.0), "{labels:?}");
        assert!(labels.iter().all(|label| label.0 <= 100.0));
    }
}
