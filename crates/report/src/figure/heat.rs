//! A square matrix of classes as colours.

use std::ops::Range;

use super::{Anchor, Figure, Ink, Mark, NORMAL, Place, SMALL, raster, text_width, widest};
use crate::cluster::Order;
use crate::escape::label;
use crate::number;

/// A matrix in an order of its classes.
pub(crate) struct HeatMap<'a> {
    pub name: &'a str,
    pub title: &'a str,
    /// Ends before the largest value, which is added to it.
    pub description: String,
    /// The titles of the axes.
    pub rows: &'a str,
    pub columns: &'a str,
    pub class_names: &'a [String],
    /// The classes, first row and column first. Its bands are named when there are too many classes
    /// to name each.
    pub order: &'a Order,
    /// Between −1 and 1.
    pub value: &'a dyn Fn(usize, usize) -> f64,
    /// Whether values are shares; otherwise they are correlations.
    pub percent: bool,
}

/// Up to this many classes, each cell shows its number.
const NUMBERED: usize = 12;

/// Up to this many classes, each cell is a mark and each class is named.
pub(crate) const NAMED: usize = 40;

/// As wide as any line of text above a map, so that maps of the same classes have cells of the same
/// size when they are scaled to the same width.
const NARROWEST: f64 = 350.0;

const TOP: f64 = 44.0;
const CHARACTERS: usize = 14;

impl HeatMap<'_> {
    pub fn draw(&self) -> Figure {
        let full = self.largest();
        if self.order.classes.len() <= NAMED { self.cells(full) } else { self.image(full) }
    }

    /// The largest value off the diagonal, which gets the full colour.
    fn largest(&self) -> f64 {
        let classes = self.order.classes.len();
        let all = (0..classes).flat_map(|i| (0..classes).map(move |j| (i, j)));
        let apart = all.filter(|(i, j)| i != j).map(|(i, j)| (self.value)(i, j).abs());
        let largest = apart.fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn shown(&self, value: f64) -> String {
        if self.percent { number::percent(value, 1) } else { number::fixed(value, 2) }
    }

    fn cells(&self, full: f64) -> Figure {
        let classes = &self.order.classes;
        let count = classes.len();
        let cell = match count {
            0..=NUMBERED => (300.0 / count.max(1) as f64).min(44.0),
            _ => (340.0 / count as f64).max(12.0),
        };
        let size = if count <= NUMBERED { NORMAL } else { 10.0 };
        let names: Vec<String> =
            classes.iter().map(|class| label(&self.class_names[*class], CHARACTERS)).collect();
        let widest = widest(&names, size);
        let (left, top) = (widest + 24.0, TOP + widest.max(size));
        let side = cell * count as f64;
        let mut figure = self.frame((left + side + 8.0, top + side + 8.0), full);
        for (at, name) in names.iter().enumerate() {
            let middle = (at as f64 + 0.5) * cell;
            let y = top + middle + size / 3.0;
            figure.sized_text((left - 6.0, y), name, Ink::Text, Anchor::End, size);
            if widest <= cell - 2.0 {
                let place = (left + middle, top - 6.0);
                figure.sized_text(place, name, Ink::Text, Anchor::Middle, size);
            } else {
                let at = (left + middle + size / 3.0, top - 6.0);
                let (text, ink, anchor) = (name.clone(), Ink::Text, Anchor::Start);
                figure.marks.push(Mark::Text { at, text, ink, size, anchor, upward: true });
            }
        }
        for (row, i) in classes.iter().enumerate() {
            for (column, j) in classes.iter().enumerate() {
                let (x, y) = (left + column as f64 * cell, top + row as f64 * cell);
                let at = Place { x: x + 0.5, y: y + 0.5, width: cell - 1.0, height: cell - 1.0 };
                self.cell(&mut figure, at, (*i, *j), full);
            }
        }
        figure
    }

    fn cell(&self, figure: &mut Figure, at: Place, (i, j): (usize, usize), full: f64) {
        let value = (self.value)(i, j);
        // The diagonal is agreement, not confusion: it has no colour.
        let strength = if i == j { 0.0 } else { (value.abs() / full).min(1.0) };
        let ink = match value {
            _ if i == j => Ink::Grid,
            value if value < 0.0 => Ink::HeatNegative,
            _ => Ink::Heat,
        };
        let short = |class: usize| label(&self.class_names[class], 40);
        let tooltip = Some(format!("{} → {}: {}", short(i), short(j), self.shown(value)));
        // The faintest cell must still be visible.
        let opacity = if i == j { 1.0 } else { 0.03 + 0.97 * strength };
        figure.marks.push(Mark::Rect { at, ink, opacity, tooltip });
        if self.order.classes.len() > NUMBERED || (i == j && !self.percent) {
            return;
        }
        let text = if self.percent {
            number::fixed(100.0 * value, 0)
        } else {
            number::fixed(value, 1).replace("0.", ".")
        };
        if matches!(text.as_str(), "0" | ".0") {
            return;
        }
        let ink = match strength {
            0.0..0.6 => Ink::Text,
            0.6..0.82 => Ink::OnMiddle,
            _ => Ink::OnHeat,
        };
        let middle = (at.x + at.width / 2.0, at.y + at.height / 2.0 + 4.0);
        figure.sized_text(middle, &text, ink, Anchor::Middle, SMALL);
    }

    /// One image, with the names of groups next to it.
    fn image(&self, full: f64) -> Figure {
        const SIDE: f64 = 340.0;
        const LABELS: f64 = 122.0;
        let classes = &self.order.classes;
        let scaled = |row: usize, column: usize| {
            if row == column {
                return 0.0;
            }
            let value = (self.value)(classes[row], classes[column]) / full;
            // Square roots make rare confusions visible next to common ones.
            value.signum() * value.abs().min(1.0).sqrt()
        };
        let mut figure = self.frame((LABELS + SIDE + 8.0, TOP + SIDE + 14.0), full);
        let (left, top) = (LABELS, TOP + 4.0);
        let at = Place { x: left, y: top, width: SIDE, height: SIDE };
        figure.marks.push(Mark::Image { at, png: raster::png(classes.len(), &scaled) });
        let place = |index: usize| SIDE * index as f64 / classes.len() as f64;
        let mut free = top;
        for band in &self.order.bands {
            let (from, to) = (top + place(band.start), top + place(band.end));
            figure.line(vec![(left - 6.0, from), (left + SIDE, from)], Ink::Grid, 0.7);
            let across = left + place(band.start);
            figure.line(vec![(across, top), (across, top + SIDE)], Ink::Grid, 0.7);
            let middle = (from + to) / 2.0 + 4.0;
            if middle < free {
                continue;
            }
            free = middle + 12.0;
            let name = self.band_name(band);
            figure.sized_text((left - 10.0, middle), &name, Ink::Text, Anchor::End, 10.0);
        }
        let corners = [(0.0, 0.0), (SIDE, 0.0), (SIDE, SIDE), (0.0, SIDE), (0.0, 0.0)];
        let border = corners.map(|(x, y)| (left + x, top + y));
        figure.line(border.to_vec(), Ink::Axis, 1.0);
        figure
    }

    /// The class in the middle of a group, and how many others there are.
    fn band_name(&self, band: &Range<usize>) -> String {
        let middle = self.order.classes[(band.start + band.end - 1) / 2];
        let name = label(&self.class_names[middle], CHARACTERS);
        if band.len() == 1 { name } else { format!("{name} +{}", band.len() - 1) }
    }

    fn frame(&self, size: (f64, f64), full: f64) -> Figure {
        let (rows, columns, most) = (self.rows, self.columns, self.shown(full));
        let sign = if self.percent { "" } else { "±" };
        let sides = format!("rows: {rows} · columns: {columns} · full colour: {sign}{most}");
        let width = size.0.max(text_width(&sides, SMALL) + 16.0).max(NARROWEST);
        let description = format!("{} {most}.", self.description);
        let mut figure = Figure::new(self.name, self.title, &description, (width, size.1));
        figure.heading("");
        figure.text((0.0, 29.0), &sides, Ink::Muted, Anchor::Start);
        figure
    }
}
