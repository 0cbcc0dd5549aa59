//! Marks as SVG.

use std::fmt::Write;

use super::{Anchor, Figure, Ink, MARGIN, Mark, Place};
use crate::escape::{data_uri, text};

/// Where the colours come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    /// Classes, which the page's style turns into colours.
    Page,
    /// Fixed colours.
    Own,
}

/// Fonts of a standalone file.
const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

impl Figure {
    /// An element of a page; `id` must be unique there.
    pub(crate) fn inline(&self, id: &str) -> String {
        let (title, description) = (text(&self.title), text(&self.description));
        let size = self.size();
        let mut out = format!(
            "<svg {size} role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}\
             </title><desc id=\"{id}-d\">{description}</desc>\n"
        );
        self.marks.iter().for_each(|mark| write_mark(&mut out, mark, Paint::Page));
        out + "</svg>\n"
    }

    /// A file of its own, with fixed colours on white and a margin.
    pub fn standalone(&self) -> String {
        let (title, description) = (text(&self.title), text(&self.description));
        let [width, height] = [self.width, self.height].map(|side| short(side + 2.0 * MARGIN));
        let size = format!(
            "width=\"{width}\" height=\"{height}\" viewBox=\"-{MARGIN} -{MARGIN} {width} {height}\""
        );
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
             {size} role=\"img\" font-family=\"{FONTS}\"><title>{title}</title>\
             <desc>{description}</desc>\n<rect x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        self.marks.iter().for_each(|mark| write_mark(&mut out, mark, Paint::Own));
        out + "</svg>\n"
    }

    fn size(&self) -> String {
        let (width, height) = (short(self.width), short(self.height));
        format!("width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\"")
    }
}

// Writing to a string does not fail.
fn write_mark(out: &mut String, mark: &Mark, paint: Paint) {
    let _ = match mark {
        Mark::Rect { at, ink, opacity, tooltip } => {
            let opacity = match *opacity {
                1.0 => String::new(),
                share => format!(" fill-opacity=\"{}\"", short(share)),
            };
            let (place, fill) = (place(at), fill(*ink, paint));
            match tooltip {
                None => writeln!(out, "<rect {place} {fill}{opacity}/>"),
                Some(words) => {
                    let words = text(words);
                    writeln!(out, "<rect {place} {fill}{opacity}><title>{words}</title></rect>")
                }
            }
        }
        Mark::Line { points, ink, width, dashed } => {
            let dashes = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            let (path, stroke) = (path(points), stroke(*ink, paint));
            let width = short(*width);
            writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" {stroke} stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\"{dashes}/>"
            )
        }
        Mark::Circle { center, radius, ink } => {
            let (x, y, radius) = (short(center.0), short(center.1), short(*radius));
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {}/>", fill(*ink, paint))
        }
        Mark::Text { at, text: words, ink, size, anchor, upward } => {
            let (x, y, size) = (short(at.0), short(at.1), short(*size));
            let turn =
                if *upward { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let (fill, words) = (fill(*ink, paint), text(words));
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{turn} {fill}>{words}</text>"
            )
        }
        Mark::Image { at, png } => {
            let (place, uri) = (place(at), data_uri("image/png", png));
            writeln!(
                out,
                "<image {place} preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" \
                 href=\"{uri}\"/>"
            )
        }
    };
}

fn place(at: &Place) -> String {
    let [x, y, width, height] = [at.x, at.y, at.width, at.height].map(short);
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

fn path(points: &[(f64, f64)]) -> String {
    let step = |(at, point): (usize, &(f64, f64))| {
        let letter = if at == 0 { 'M' } else { 'L' };
        format!("{letter}{} {}", short(point.0), short(point.1))
    };
    points.iter().enumerate().map(step).collect()
}

fn fill(ink: Ink, paint: Paint) -> String {
    match paint {
        Paint::Page => format!("class=\"f{}\"", ink.class()),
        Paint::Own => format!("fill=\"{}\"", ink.colour()),
    }
}

fn stroke(ink: Ink, paint: Paint) -> String {
    match paint {
        Paint::Page => format!("class=\"k{}\"", ink.class()),
        Paint::Own => format!("stroke=\"{}\"", ink.colour()),
    }
}

impl Ink {
    /// The class in `style.css`, after `f` for fills and `k` for strokes.
    fn class(self) -> String {
        match self {
            Self::Text => "-text".to_string(),
            Self::Muted => "-muted".to_string(),
            Self::Axis => "-axis".to_string(),
            Self::Grid => "-grid".to_string(),
            Self::Series(at) => format!("-s{at}"),
            Self::Heat => "-heat".to_string(),
            Self::HeatNegative => "-cold".to_string(),
            Self::OnHeat => "-on".to_string(),
            Self::OnMiddle => "-mid".to_string(),
        }
    }

    /// The colour on white, as in the light mode of `style.css`.
    fn colour(self) -> &'static str {
        const SERIES: [&str; super::SERIES] =
            ["#1f6fb2", "#c2570c", "#0f7f69", "#8348b8", "#b8326f", "#7d6c0a", "#5f6670"];
        match self {
            Self::Text | Self::OnMiddle => "#1d2024",
            Self::Muted => "#5a6068",
            Self::Axis => "#8d9299",
            Self::Grid => "#e4e4df",
            Self::Series(at) => SERIES[at % SERIES.len()],
            Self::Heat => "#1c5fa6",
            Self::HeatNegative => "#b4491f",
            Self::OnHeat => "#ffffff",
        }
    }
}

/// At most two digits after the point.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}
