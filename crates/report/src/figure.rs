//! Figures: a few marks on a plane, drawn as SVG inside a page or as a file of their own.

pub(crate) mod chart;
pub(crate) mod dots;
pub(crate) mod heat;
mod raster;
pub(crate) mod reliability;
mod scale;
mod svg;

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
    pub(crate) fn new(name: &str, title: &str, description: String, size: (f64, f64)) -> Self {
        Self {
            name: name.to_string(),
            title: title.to_string(),
            description,
            width: size.0,
            height: size.1,
            marks: vec![],
        }
    }

    pub(crate) fn rect(&mut self, at: Place, ink: Ink, opacity: f64) {
        self.marks.push(Mark::Rect { at, ink, opacity, tooltip: None });
    }

    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points, ink, width, dashed: false });
    }

    pub(crate) fn dashed(&mut self, points: Vec<(f64, f64)>, ink: Ink) {
        self.marks.push(Mark::Line { points, ink, width: 1.0, dashed: true });
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

    /// Text that runs upward.
    pub(crate) fn upward_text(&mut self, at: (f64, f64), text: &str, ink: Ink, size: f64) {
        let (text, anchor) = (text.to_string(), Anchor::Start);
        self.marks.push(Mark::Text { at, text, ink, size, anchor, upward: true });
    }
}

/// The approximate width of a text; wide scripts have square characters.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |character: char| if (character as u32) < 0x1100 { 0.56 } else { 1.0 };
    size * text.chars().map(width).sum::<f64>()
}
