//! Figures: a few marks on a plane, drawn as SVG inside a page or as a file of their own.

pub(crate) mod chart;
pub(crate) mod curves;
pub(crate) mod dots;
pub(crate) mod heat;
pub(crate) mod plane;
mod raster;
pub(crate) mod reliability;
mod scale;
mod svg;
pub(crate) mod trials;

/// A drawing with its title and what it shows in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of its file, without extension.
    pub name: String,
    /// What is drawn.
    pub title: String,
    /// A description for screen readers.
    pub description: String,
    /// Width in the units of the marks; pixels unless it is scaled.
    pub width: f64,
    /// Height in the same units.
    pub height: f64,
    pub(crate) marks: Vec<Mark>,
}

/// The role of a colour; the page's style chooses the colour in light and in dark mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Muted,
    Axis,
    Grid,
    /// One of [`SERIES`] colours that the colour-blind can tell apart.
    Series(usize),
    /// Cells above zero.
    Heat,
    /// Cells below zero.
    HeatNegative,
    /// Text on a cell of full colour.
    OnHeat,
    /// Text on a cell of medium colour: dark in both modes.
    OnMiddle,
}

/// The margin of a figure in a file of its own.
const MARGIN: f64 = 12.0;

/// How many colours series have.
pub(crate) const SERIES: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    Rect { at: Place, ink: Ink, opacity: f64, tooltip: Option<String> },
    Line { points: Vec<(f64, f64)>, ink: Ink, width: f64, dashed: bool },
    Circle { center: (f64, f64), radius: f64, ink: Ink },
    Text { at: (f64, f64), text: String, ink: Ink, size: f64, anchor: Anchor, upward: bool },
    Image { at: Place, png: Vec<u8> },
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// The sizes of texts.
pub(crate) const SMALL: f64 = 11.0;
pub(crate) const NORMAL: f64 = 12.0;

impl Figure {
    pub(crate) fn new(name: &str, title: &str, description: &str, size: (f64, f64)) -> Self {
        Self {
            name: name.to_string(),
            title: title.to_string(),
            description: description.to_string(),
            width: size.0,
            height: size.1,
            marks: vec![],
        }
    }

    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points, ink, width, dashed: false });
    }

    pub(crate) fn circle(&mut self, center: (f64, f64), radius: f64, ink: Ink) {
        self.marks.push(Mark::Circle { center, radius, ink });
    }

    pub(crate) fn text(&mut self, at: (f64, f64), text: &str, ink: Ink, anchor: Anchor) {
        self.sized_text(at, text, ink, anchor, SMALL);
    }

    pub(crate) fn sized_text(
        &mut self,
        at: (f64, f64),
        text: &str,
        ink: Ink,
        anchor: Anchor,
        size: f64,
    ) {
        let text = text.to_string();
        self.marks.push(Mark::Text { at, text, ink, size, anchor, upward: false });
    }

    /// The title with its unit above the drawing.
    fn heading(&mut self, unit: &str) {
        let text = format!("{}{unit}", self.title);
        self.sized_text((0.0, 13.0), &text, Ink::Text, Anchor::Start, 12.5);
    }

    /// Lines across the drawing at the ticks of `y`, with their numbers on the left.
    fn grid(&mut self, y: &scale::Scale, left: f64, right: f64) {
        for (value, label) in y.ticks(5) {
            let at = y.place(value);
            self.line(vec![(left, at), (right, at)], Ink::Grid, 1.0);
            self.text((left - 6.0, at + 4.0), &label, Ink::Muted, Anchor::End);
        }
    }
}

/// The factor by which values are multiplied to be shown, and their unit.
fn scaled(percent: bool) -> (f64, &'static str) {
    if percent { (100.0, ", %") } else { (1.0, "") }
}

/// The approximate width of the widest text.
fn widest(texts: &[String], size: f64) -> f64 {
    texts.iter().map(|text| text_width(text, size)).fold(0.0, f64::max)
}

/// The approximate width of a text; wide scripts have square characters.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |character: char| if (character as u32) < 0x1100 { 0.56 } else { 1.0 };
    size * text.chars().map(width).sum::<f64>()
}
