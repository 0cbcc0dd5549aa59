//! Marks as pixels, with the fonts of the system.

use std::path::{Path, PathBuf};

use tiny_skia::{
    Color, FillRule, FilterQuality, Paint, PathBuilder, Pixmap, PixmapPaint, Rect, Stroke,
    StrokeDash, Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::{Anchor, Figure, Ink, Mark};

/// Pixels for each unit, so that a figure is sharp in print.
const SCALE: f32 = 2.0;

/// Fonts to write with: the first that has a character writes it.
///
/// Characters are set one after the other, from left to right; one that no font has is seen as
/// an empty box.
#[derive(Clone, Debug)]
pub struct Fonts {
    files: Vec<Vec<u8>>,
}

/// Without fonts a figure would have no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no fonts were found on this system (a package such as fonts-dejavu or fonts-liberation has \
     some): PNG figures would have no text; without --png the figures are written as SVG"
)]
pub struct NoFonts;

/// Where systems keep fonts for all.
const FOLDERS: [&str; 6] = [
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "/run/current-system/sw/share/X11/fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "C:\\Windows\\Fonts",
];

/// The plain fonts of systems, the one to write with first.
const PREFERRED: [&str; 9] = [
    "LiberationSans-Regular",
    "Arial",
    "Helvetica",
    "segoeui",
    "NotoSans-Regular",
    "DejaVuSans",
    "Roboto-Regular",
    "NotoSansCJK-Regular",
    "NotoSansSymbols-Regular",
];

/// So many are read at most.
const READ: usize = 6;

impl Fonts {
    /// The fonts that are installed for all users.
    ///
    /// # Errors
    /// When there are none.
    pub fn of_system() -> Result<Self, NoFonts> {
        let mut paths = vec![];
        FOLDERS.iter().for_each(|folder| find(Path::new(folder), 0, &mut paths));
        paths.sort_by_key(|path| (rank(path), path.clone()));
        let files: Vec<Vec<u8>> = paths
            .iter()
            .filter_map(|path| std::fs::read(path).ok())
            .filter(|bytes| Face::parse(bytes, 0).is_ok())
            .take(READ)
            .collect();
        if files.is_empty() { Err(NoFonts) } else { Ok(Self { files }) }
    }

    fn faces(&self) -> Vec<Face<'_>> {
        self.files.iter().filter_map(|bytes| Face::parse(bytes, 0).ok()).collect()
    }
}

fn rank(path: &Path) -> usize {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let same = |name: &&str| stem.as_deref() == Some(name.to_lowercase().as_str());
    PREFERRED.iter().position(|name| same(&name)).unwrap_or(PREFERRED.len())
}

/// Files of fonts below a folder; links may lead in circles, so not arbitrarily deep.
fn find(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ending = path.extension().map(|it| it.to_string_lossy().to_lowercase());
        if matches!(ending.as_deref(), Some("ttf" | "otf" | "ttc")) {
            out.push(path);
        } else if depth < 6 && path.is_dir() {
            find(&path, depth + 1, out);
        }
    }
}

impl Figure {
    /// The figure on white as a PNG, with twice as many pixels as it has units.
    pub fn png(&self, fonts: &Fonts) -> Vec<u8> {
        let side = |units: f64| (units as f32 * SCALE).ceil().clamp(1.0, 20_000.0) as u32;
        let mut pixmap =
            Pixmap::new(side(self.width), side(self.height)).expect("sides of at least one pixel");
        pixmap.fill(Color::WHITE);
        let mut canvas = Canvas { pixmap, faces: fonts.faces() };
        self.marks.iter().for_each(|mark| canvas.draw(mark));
        canvas.pixmap.encode_png().expect("memory takes all that is written")
    }
}

struct Canvas<'a> {
    pixmap: Pixmap,
    faces: Vec<Face<'a>>,
}

impl Canvas<'_> {
    fn draw(&mut self, mark: &Mark) {
        let scale = Transform::from_scale(SCALE, SCALE);
        match mark {
            Mark::Rect { at, ink, opacity, .. } => {
                let [x, y, width, height] = [at.x, at.y, at.width, at.height].map(|it| it as f32);
                if let Some(rect) = Rect::from_xywh(x, y, width, height) {
                    self.pixmap.fill_rect(rect, &paint(*ink, *opacity), scale, None);
                }
            }
            Mark::Line { points, ink, width, dashed } => {
                let mut path = PathBuilder::new();
                for (at, (x, y)) in points.iter().enumerate() {
                    let (x, y) = (*x as f32, *y as f32);
                    if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                let dash = if *dashed { StrokeDash::new(vec![4.0, 3.0], 0.0) } else { None };
                let stroke = Stroke { width: *width as f32, dash, ..Stroke::default() };
                if let Some(path) = path.finish() {
                    self.pixmap.stroke_path(&path, &paint(*ink, 1.0), &stroke, scale, None);
                }
            }
            Mark::Circle { center, radius, ink } => {
                let (x, y) = (center.0 as f32, center.1 as f32);
                if let Some(path) = PathBuilder::from_circle(x, y, *radius as f32) {
                    let paint = paint(*ink, 1.0);
                    self.pixmap.fill_path(&path, &paint, FillRule::Winding, scale, None);
                }
            }
            Mark::Text { at, text, ink, size, anchor, upward } => {
                let turn = if *upward { -90.0 } else { 0.0 };
                let place = Transform::from_translate(at.0 as f32, at.1 as f32).pre_rotate(turn);
                self.write(text, *size as f32, *anchor, *ink, place.post_concat(scale));
            }
            Mark::Image { at, png } => {
                let Ok(image) = Pixmap::decode_png(png) else { return };
                let sides = (
                    at.width as f32 / image.width() as f32,
                    at.height as f32 / image.height() as f32,
                );
                let place = Transform::from_translate(at.x as f32, at.y as f32)
                    .pre_scale(sides.0, sides.1)
                    .post_concat(scale);
                let paint =
                    PixmapPaint { quality: FilterQuality::Bilinear, ..PixmapPaint::default() };
                self.pixmap.draw_pixmap(0, 0, image.as_ref(), &paint, place, None);
            }
        }
    }

    /// Writes a line of text, anchored at the origin of `place`.
    fn write(&mut self, text: &str, size: f32, anchor: Anchor, ink: Ink, place: Transform) {
        let mut path = PathBuilder::new();
        let mut x = 0.0;
        for character in text.chars() {
            x += self.glyph(character, size, x, &mut path);
        }
        let start = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -x / 2.0,
            Anchor::End => -x,
        };
        if let Some(path) = path.finish() {
            let place = place.pre_translate(start, 0.0);
            self.pixmap.fill_path(&path, &paint(ink, 1.0), FillRule::Winding, place, None);
        }
    }

    /// Draws one character, and says how wide it is.
    fn glyph(&self, character: char, size: f32, x: f32, path: &mut PathBuilder) -> f32 {
        // Thin spaces are not in every font.
        let character = if character == '\u{202f}' { '\u{a0}' } else { character };
        let has = |face: &&Face<'_>| face.glyph_index(character).is_some();
        let face = self.faces.iter().find(has).or(self.faces.first());
        let Some(face) = face else { return 0.0 };
        let glyph = face.glyph_index(character).unwrap_or(GlyphId(0));
        let scale = size / face.units_per_em() as f32;
        face.outline_glyph(glyph, &mut Outline { path, scale, x });
        scale * face.glyph_hor_advance(glyph).unwrap_or(0) as f32
    }
}

fn paint(ink: Ink, opacity: f64) -> Paint<'static> {
    let colour = ink.colour();
    let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0);
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(part(1), part(3), part(5), (255.0 * opacity).round() as u8);
    paint
}

/// The outline of a glyph, with y upward, on a line of text, with y downward.
struct Outline<'a> {
    path: &'a mut PathBuilder,
    scale: f32,
    x: f32,
}

impl Outline<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Outline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
