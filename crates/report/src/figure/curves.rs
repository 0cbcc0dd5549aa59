//! Curves of one variable on plain or logarithmic axes, with marks on them.

use super::scale::Scale;
use super::{Anchor, Figure, Ink, Mark, SMALL, text_width};

/// What is drawn.
pub(crate) struct Curves<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    pub curves: Vec<Curve>,
    /// A value of x that gets a dashed line.
    pub at: Option<f64>,
}

/// The direction of an axis, and its title.
pub(crate) struct Axis {
    title: String,
    logarithmic: bool,
}

/// One curve, with the points on it that are marked.
pub(crate) struct Curve {
    pub label: String,
    pub colour: usize,
    pub points: Vec<(f64, f64)>,
    pub marks: Vec<(f64, f64)>,
}

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 260.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;
const LEFT: f64 = 54.0;

impl Axis {
    pub fn plain(title: &str) -> Self {
        Self { title: title.to_string(), logarithmic: false }
    }

    pub fn logarithmic(title: &str) -> Self {
        Self { title: title.to_string(), logarithmic: true }
    }

    /// What is drawn for a value; NaN if the axis has no place for it.
    fn shown(&self, value: f64) -> f64 {
        match self.logarithmic {
            true if value > 0.0 => value.log10(),
            true => f64::NAN,
            false => value,
        }
    }

    /// Ticks with their labels, in what is drawn.
    fn ticks(&self, scale: &Scale) -> Vec<(f64, String)> {
        if !self.logarithmic {
            return scale.ticks(5);
        }
        let ticks: Vec<f64> = scale.ticks(5).into_iter().map(|(power, _)| power).collect();
        let whole = |power: &f64| (power - power.round()).abs() < 1e-9;
        let powers: Vec<f64> = ticks.iter().copied().filter(whole).collect();
        if powers.len() < 2 {
            return ticks
                .iter()
                .map(|power| (*power, format!("{:.2}", 10f64.powf(*power))))
                .collect();
        }
        let label = |power: f64| match power {
            -3.0..=3.0 => format!("{}", 10f64.powf(power)),
            _ => format!("1e{power}"),
        };
        powers.into_iter().map(|power| (power, label(power.round()))).collect()
    }
}

impl Curves<'_> {
    pub fn draw(&self) -> Figure {
        let mut figure = Figure::new(self.name, self.title, &self.description, (WIDTH, HEIGHT));
        let widest = self.curves.iter().map(|it| text_width(&it.label, SMALL)).fold(0.0, f64::max);
        let (right, bottom) = (WIDTH - widest - 16.0, HEIGHT - BOTTOM);
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let x = range(all().map(|point| self.x.shown(point.0)), (LEFT, right));
        let y = Scale::nice(all().map(|point| self.y.shown(point.1)), (bottom, TOP));
        self.axes(&mut figure, &x, &y, right);
        figure.heading("");
        if let Some(at) = self.at {
            let place = x.place(self.x.shown(at));
            let points = vec![(place, TOP), (place, bottom)];
            figure.marks.push(Mark::Line { points, ink: Ink::Axis, width: 1.0, dashed: true });
        }
        let place = |point: &(f64, f64)| {
            let place = (x.place(self.x.shown(point.0)), y.place(self.y.shown(point.1)));
            (place.0.is_finite() && place.1.is_finite()).then_some(place)
        };
        let mut free = f64::NEG_INFINITY;
        let mut ends: Vec<(f64, &Curve)> = vec![];
        for curve in &self.curves {
            let points: Vec<(f64, f64)> = curve.points.iter().filter_map(place).collect();
            ends.extend(points.last().map(|last| (last.1, curve)));
            figure.line(points, Ink::Series(curve.colour), 1.4);
            for mark in curve.marks.iter().filter_map(place) {
                figure.circle(mark, 2.0, Ink::Series(curve.colour));
            }
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (end, curve) in ends {
            free = end.max(free + 13.0);
            let ink = Ink::Series(curve.colour);
            figure.text((right + 6.0, free + 4.0), &curve.label, ink, Anchor::Start);
        }
        figure
    }

    fn axes(&self, figure: &mut Figure, x: &Scale, y: &Scale, right: f64) {
        let bottom = HEIGHT - BOTTOM;
        for (value, label) in self.y.ticks(y) {
            let at = y.place(value);
            figure.line(vec![(LEFT, at), (right, at)], Ink::Grid, 1.0);
            figure.text((LEFT - 6.0, at + 4.0), &label, Ink::Muted, Anchor::End);
        }
        figure.line(vec![(LEFT, bottom), (right, bottom)], Ink::Axis, 1.0);
        for (value, label) in self.x.ticks(x) {
            let at = x.place(value);
            figure.line(vec![(at, bottom), (at, bottom + 4.0)], Ink::Axis, 1.0);
            figure.text((at, bottom + 17.0), &label, Ink::Muted, Anchor::Middle);
        }
        let middle = ((LEFT + right) / 2.0, HEIGHT - 6.0);
        figure.text(middle, &self.x.title, Ink::Muted, Anchor::Middle);
        figure.text((LEFT, TOP - 4.0), &self.y.title, Ink::Muted, Anchor::Start);
    }
}

/// From the smallest to the largest value, exactly.
fn range(values: impl Iterator<Item = f64>, to: (f64, f64)) -> Scale {
    let ends = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let ends = if ends.0 <= ends.1 { ends } else { (0.0, 1.0) };
    Scale::new(ends, to)
}
