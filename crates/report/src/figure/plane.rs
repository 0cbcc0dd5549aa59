//! A function on the unit square as colours, with points on it.

use super::scale::Scale;
use super::{Anchor, Figure, Ink, Mark, Place, raster};
use crate::number;

/// What is drawn.
pub(crate) struct Plane<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub description: String,
    /// The titles of the axes.
    pub x: &'a str,
    pub y: &'a str,
    /// f(x, y).
    pub value: &'a dyn Fn(f64, f64) -> f64,
    pub points: Vec<(f64, f64)>,
    /// A dashed line.
    pub border: Vec<(f64, f64)>,
}

const LEFT: f64 = 46.0;
const TOP: f64 = 46.0;
const SIDE: f64 = 280.0;
const BOTTOM: f64 = 40.0;

/// Cells on a side.
const CELLS: usize = 100;

impl Plane<'_> {
    pub fn draw(&self) -> Figure {
        let size = (LEFT + SIDE + 16.0, TOP + SIDE + BOTTOM);
        let mut figure = Figure::new(self.name, self.title, &self.description, size);
        let middle = |cell: usize| (cell as f64 + 0.5) / CELLS as f64;
        // The first row of an image is its top.
        let at = |row: usize, column: usize| (self.value)(middle(column), middle(CELLS - 1 - row));
        let cells = (0..CELLS).flat_map(|row| (0..CELLS).map(move |column| (row, column)));
        let full =
            cells.map(|(row, column)| at(row, column).abs()).fold(f64::MIN_POSITIVE, f64::max);
        let png = raster::png(CELLS, &|row, column| at(row, column) / full);
        let place = Place { x: LEFT, y: TOP, width: SIDE, height: SIDE };
        figure.marks.push(Mark::Image { at: place, png });
        figure.heading("");
        let colours =
            format!("blue above zero, orange below; full colour: ±{}", number::fixed(full, 2));
        figure.text((0.0, 29.0), &colours, Ink::Muted, Anchor::Start);
        let x = Scale::new((0.0, 1.0), (LEFT, LEFT + SIDE));
        let y = Scale::new((0.0, 1.0), (TOP + SIDE, TOP));
        self.axes(&mut figure, &x, &y);
        let spot = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
        let points: Vec<(f64, f64)> = self.border.iter().map(spot).collect();
        figure.marks.push(Mark::Line { points, ink: Ink::Text, width: 1.0, dashed: true });
        for point in &self.points {
            figure.circle(spot(point), 1.6, Ink::Text);
        }
        figure
    }

    fn axes(&self, figure: &mut Figure, x: &Scale, y: &Scale) {
        let bottom = TOP + SIDE;
        for (value, label) in x.ticks(5) {
            let at = x.place(value);
            figure.line(vec![(at, bottom), (at, bottom + 4.0)], Ink::Axis, 1.0);
            figure.text((at, bottom + 17.0), &label, Ink::Muted, Anchor::Middle);
            let at = y.place(value);
            figure.text((LEFT - 6.0, at + 4.0), &label, Ink::Muted, Anchor::End);
        }
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
        let border = corners.map(|(a, b)| (x.place(a), y.place(b)));
        figure.line(border.to_vec(), Ink::Axis, 1.0);
        let middle = LEFT + SIDE / 2.0;
        figure.text((middle, bottom + 34.0), self.x, Ink::Muted, Anchor::Middle);
        figure.text((LEFT, TOP - 5.0), self.y, Ink::Muted, Anchor::Start);
    }
}
