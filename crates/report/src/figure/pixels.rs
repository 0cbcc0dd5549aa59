//! Marks as pixels, with the fonts of the system.

use std::f32::consts::TAU;
use std::path::{Path, PathBuf};

use ab_glyph_rasterizer::{Point, Rasterizer, point};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::{Anchor, Figure, Ink, MARGIN, Mark, Place};

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
    PREFERRED
        .iter()
        .position(|name| stem.as_deref() == Some(name.to_lowercase().as_str()))
        .unwrap_or(PREFERRED.len())
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
        let side = |units: f64| {
            let pixels = (units + 2.0 * MARGIN) as f32 * SCALE;
            pixels.ceil().clamp(1.0, 20_000.0) as usize
        };
        let (width, height) = (side(self.width), side(self.height));
        let mut canvas =
            Canvas { width, height, pixels: vec![255; 3 * width * height], faces: fonts.faces() };
        self.marks.iter().for_each(|mark| canvas.draw(mark));
        canvas.encode().expect("memory takes all that is written")
    }
}

/// Pixels, three bytes each.
struct Canvas<'a> {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    faces: Vec<Face<'a>>,
}

impl Canvas<'_> {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Rect { at, ink, opacity, .. } => {
                let (right, bottom) = (at.x + at.width, at.y + at.height);
                let corners = [(at.x, at.y), (right, at.y), (right, bottom), (at.x, bottom)];
                let mut shape = self.shape();
                polygon(&mut shape, corners.map(pixel));
                self.fill(&shape, *ink, *opacity as f32);
            }
            Mark::Line { points, ink, width, dashed } => {
                let mut shape = self.shape();
                let points: Vec<Point> = points.iter().copied().map(pixel).collect();
                let half = *width as f32 * SCALE / 2.0;
                points.windows(2).for_each(|ends| match dashed {
                    true => dashes(&mut shape, ends[0], ends[1], half),
                    false => stroke(&mut shape, ends[0], ends[1], half),
                });
                let bends = points.len().saturating_sub(1);
                points.iter().take(bends).skip(1).for_each(|bend| disc(&mut shape, *bend, half));
                self.fill(&shape, *ink, 1.0);
            }
            Mark::Circle { center, radius, ink } => {
                let mut shape = self.shape();
                disc(&mut shape, pixel(*center), *radius as f32 * SCALE);
                self.fill(&shape, *ink, 1.0);
            }
            Mark::Text { at, text, ink, size, anchor, upward } => {
                let mut shape = self.shape();
                let line = Line {
                    origin: pixel(*at),
                    size: *size as f32 * SCALE,
                    anchor: *anchor,
                    upward: *upward,
                };
                self.write(text, &line, &mut shape);
                self.fill(&shape, *ink, 1.0);
            }
            Mark::Image { at, png } => {
                if let Ok(image) = Decoded::of(png) {
                    self.image(at, &image);
                }
            }
        }
    }

    fn shape(&self) -> Rasterizer {
        Rasterizer::new(self.width, self.height)
    }

    /// Colours what a shape covers.
    fn fill(&mut self, shape: &Rasterizer, ink: Ink, opacity: f32) {
        let colour = ink.colour();
        let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0);
        let colour = [part(1), part(3), part(5)];
        shape.for_each_pixel(|at, covered| {
            if covered > 0.0 {
                blend(&mut self.pixels[3 * at..3 * at + 3], colour, opacity * covered.min(1.0));
            }
        });
    }

    /// The glyphs of a line of text.
    fn write(&self, text: &str, line: &Line, shape: &mut Rasterizer) {
        let glyphs: Vec<(&Face<'_>, GlyphId)> =
            text.chars().filter_map(|character| self.glyph(character)).collect();
        let advance = |(face, glyph): &(&Face<'_>, GlyphId)| {
            let units = face.glyph_hor_advance(*glyph).unwrap_or(0) as f32;
            units * line.size / face.units_per_em() as f32
        };
        let width: f32 = glyphs.iter().map(advance).sum();
        let mut x = match line.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        for (face, glyph) in &glyphs {
            let scale = line.size / face.units_per_em() as f32;
            let start = point(0.0, 0.0);
            let mut outline = Outline { shape, line, scale, x, first: start, last: start };
            face.outline_glyph(*glyph, &mut outline);
            x += advance(&(*face, *glyph));
        }
    }

    /// The first font that has a character; else the empty box of the first font.
    fn glyph(&self, character: char) -> Option<(&Face<'_>, GlyphId)> {
        // Thin spaces are not in every font.
        let character = if character == '\u{202f}' { '\u{a0}' } else { character };
        let has = |face: &&Face<'_>| face.glyph_index(character).is_some();
        let face = self.faces.iter().find(has).or(self.faces.first())?;
        Some((face, face.glyph_index(character).unwrap_or(GlyphId(0))))
    }

    /// Each pixel takes what lies under its middle.
    fn image(&mut self, at: &Place, image: &Decoded) {
        let scale = SCALE as f64;
        let corner = pixel((at.x, at.y));
        let (left, top) = (corner.x as usize, corner.y as usize);
        let (wide, high) = ((at.width * scale) as usize, (at.height * scale) as usize);
        for y in 0..high.min(self.height.saturating_sub(top)) {
            for x in 0..wide.min(self.width.saturating_sub(left)) {
                let from = (x * image.width / wide, y * image.height / high);
                let found = image.pixels[from.1 * image.width + from.0];
                let place = 3 * ((top + y) * self.width + left + x);
                let colour = [found[0], found[1], found[2]];
                blend(&mut self.pixels[place..place + 3], colour, found[3] as f32 / 255.0);
            }
        }
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut out = vec![];
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(out)
    }
}

fn blend(under: &mut [u8], colour: [u8; 3], share: f32) {
    for (under, over) in under.iter_mut().zip(colour) {
        let mixed = *under as f32 + (over as f32 - *under as f32) * share;
        *under = mixed.round() as u8;
    }
}

/// An image with its transparency.
struct Decoded {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

impl Decoded {
    fn of(png: &[u8]) -> Result<Self, png::DecodingError> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
        let mut reader = decoder.read_info()?;
        let mut bytes = vec![0; reader.output_buffer_size().unwrap_or(0)];
        let frame = reader.next_frame(&mut bytes)?;
        let (pixels, _) = bytes.as_chunks::<4>();
        let (width, height) = (frame.width as usize, frame.height as usize);
        Ok(Self { width, height, pixels: pixels.to_vec() })
    }
}

/// Where a place of the figure is, inside the margin.
fn pixel((x, y): (f64, f64)) -> Point {
    point((x + MARGIN) as f32 * SCALE, (y + MARGIN) as f32 * SCALE)
}

fn polygon(shape: &mut Rasterizer, corners: impl IntoIterator<Item = Point>) {
    let corners: Vec<Point> = corners.into_iter().collect();
    for (at, corner) in corners.iter().enumerate() {
        shape.draw_line(*corner, corners[(at + 1) % corners.len()]);
    }
}

/// A line as a rectangle, turned as discs are, so that what overlaps adds up.
fn stroke(shape: &mut Rasterizer, from: Point, to: Point, half: f32) {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy);
    if length > 0.0 {
        let (nx, ny) = (-dy / length * half, dx / length * half);
        let corners = [(from, -1.0), (to, -1.0), (to, 1.0), (from, 1.0)];
        polygon(shape, corners.map(|(end, side)| point(end.x + side * nx, end.y + side * ny)));
    }
}

fn dashes(shape: &mut Rasterizer, from: Point, to: Point, half: f32) {
    const DASH: f32 = 4.0 * SCALE;
    const GAP: f32 = 3.0 * SCALE;
    let length = (to.x - from.x).hypot(to.y - from.y);
    let at = |along: f32| {
        let share = (along / length).min(1.0);
        point(from.x + share * (to.x - from.x), from.y + share * (to.y - from.y))
    };
    let count = (length / (DASH + GAP)).ceil() as usize;
    for dash in 0..count {
        let start = dash as f32 * (DASH + GAP);
        stroke(shape, at(start), at(start + DASH), half);
    }
}

fn disc(shape: &mut Rasterizer, center: Point, radius: f32) {
    const CORNERS: usize = 32;
    let corner = |at: usize| {
        let angle = TAU * at as f32 / CORNERS as f32;
        point(center.x + radius * angle.cos(), center.y + radius * angle.sin())
    };
    polygon(shape, (0..CORNERS).map(corner));
}

/// Where a line of text stands.
struct Line {
    origin: Point,
    size: f32,
    anchor: Anchor,
    /// Read from below.
    upward: bool,
}

/// The outline of a glyph, with y upward, on a line of text.
struct Outline<'a> {
    shape: &'a mut Rasterizer,
    line: &'a Line,
    scale: f32,
    x: f32,
    first: Point,
    last: Point,
}

impl Outline<'_> {
    fn at(&self, x: f32, y: f32) -> Point {
        let (along, up) = (self.x + self.scale * x, self.scale * y);
        let origin = self.line.origin;
        match self.line.upward {
            true => point(origin.x - up, origin.y - along),
            false => point(origin.x + along, origin.y - up),
        }
    }
}

impl OutlineBuilder for Outline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.first = self.at(x, y);
        self.last = self.first;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.shape.draw_line(self.last, to);
        self.last = to;
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (control, to) = (self.at(x1, y1), self.at(x, y));
        self.shape.draw_quad(self.last, control, to);
        self.last = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (first, second, to) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.shape.draw_cubic(self.last, first, second, to);
        self.last = to;
    }

    fn close(&mut self) {
        self.shape.draw_line(self.last, self.first);
        self.last = self.first;
    }
}
