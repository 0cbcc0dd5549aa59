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
        let [width, height] = [self.width, self.height].map(short);
        let mut out = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}\
             </title><desc id=\"{id}-d\">{description}</desc>\n"
        );
        self.marks.iter().for_each(|mark| write_mark(&mut out, mark, Paint::Page));
        out + "</svg>\n"
    }

    /// A file of its own, with fixed colours on white and a margin.
    pub fn standalone(&self) -> String {
        let (title, description) = (text(&self.title), text(&self.description));
        let [width, height] = [self.width, self.height].map(|side| short(side + 2.0 * MARGIN));
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"-{MARGIN} -{MARGIN} {width} {height}\" \
             role=\"img\" font-family=\"{FONTS}\"><title>{title}</title>\
             <desc>{description}</desc>\n<rect x=\"-{MARGIN}\" y=\"-{MARGIN}\" \
             width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        self.marks.iter().for_each(|mark| write_mark(&mut out, mark, Paint::Own));
        out + "</svg>\n"
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
            let (place, fill) = (place(at), colour("fill", *ink, paint));
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
            let (path, stroke) = (path(points), colour("stroke", *ink, paint));
            let width = short(*width);
            writeln!(
                out,
                "<path d=\"{path}\" fill=\"none\" {stroke} stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\"{dashes}/>"
            )
        }
        Mark::Circle { center, radius, ink } => {
            let (x, y, radius) = (short(center.0), short(center.1), short(*radius));
            let fill = colour("fill", *ink, paint);
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {fill}/>")
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
            let (fill, words) = (colour("fill", *ink, paint), text(words));
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

/// The attribute that colours a mark: `fill` or `stroke`.
fn colour(attribute: &str, ink: Ink, paint: Paint) -> String {
    let (class, colour) = ink.class_and_colour();
    match (paint, attribute) {
        (Paint::Own, _) => format!("{attribute}=\"{colour}\""),
        (Paint::Page, "fill") => format!("class=\"f-{class}\""),
        (Paint::Page, _) => format!("class=\"k-{class}\""),
    }
}

impl Ink {
    /// The class in `style.css`, after `f-` for fills and `k-` for strokes; the colour on white, as
    /// in the light mode of `style.css`.
    fn class_and_colour(self) -> (&'static str, &'static str) {
        const SERIES: [(&str, &str); super::SERIES] = [
            ("s0", "#1f6fb2"),
            ("s1", "#c2570c"),
            ("s2", "#0f7f69"),
            ("s3", "#8348b8"),
            ("s4", "#b8326f"),
            ("s5", "#7d6c0a"),
            ("s6", "#5f6670"),
        ];
        match self {
            Self::Text => ("text", "#1d2024"),
            Self::Muted => ("muted", "#5a6068"),
            Self::Axis => ("axis", "#8d9299"),
            Self::Grid => ("grid", "#e4e4df"),
            Self::Series(at) => SERIES[at % SERIES.len()],
            Self::Heat => ("heat", "#1c5fa6"),
            Self::HeatNegative => ("cold", "#b4491f"),
            Self::OnHeat => ("on", "#ffffff"),
            Self::OnMiddle => ("mid", "#1d2024"),
        }
    }
}

/// At most two digits after the point.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}
