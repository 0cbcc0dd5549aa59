//! JPEG: what its header says, and as many of its rows as are wanted.

use image::metadata::Orientation;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

const START_OF_SCAN: u8 = 0xda;
const END_OF_IMAGE: u8 = 0xd9;

/// Whether the content begins as a JPEG.
pub(super) fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8, 0xff])
}

/// The header of a file.
pub(super) struct Header {
    /// Of the pixels as they are stored, before the orientation.
    pub width: usize,
    pub height: usize,
    pub orientation: Orientation,
    /// Where the two bytes of the height are.
    height_at: usize,
    components: usize,
    /// The components' names say which colours they are.
    named_rgb: bool,
    /// Rows of pixels that are coded together.
    unit_rows: usize,
    /// Pixels follow from top to bottom, once.
    sequential: bool,
    /// Where Adobe's byte for the colour space is, if it says that there is no transform.
    untransformed_at: Option<usize>,
    /// There are bytes between segments that belong to none.
    has_junk: bool,
    scan_at: usize,
}

impl Header {
    /// Reads all segments up to the pixels.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut header = Self {
            width: 0,
            height: 0,
            orientation: Orientation::NoTransforms,
            height_at: 0,
            components: 0,
            named_rgb: false,
            unit_rows: 8,
            sequential: false,
            untransformed_at: None,
            has_junk: false,
            scan_at: 0,
        };
        let mut at = 2;
        loop {
            let (marker, content) = header.next_segment(bytes, &mut at).ok_or_else(cut_off)?;
            header.note(marker, content, at - content.len());
            if marker == START_OF_SCAN {
                header.sequential &=
                    content.first().copied() == u8::try_from(header.components).ok();
                header.scan_at = at;
                break;
            }
        }
        match header.components {
            0 => Err("is a JPEG without a frame that is known (baseline or progressive); write \
                      it again"
                .into()),
            _ => Ok(header),
        }
    }

    /// The next marker and what its segment holds; `at` moves behind it.
    fn next_segment<'a>(&mut self, bytes: &'a [u8], at: &mut usize) -> Option<(u8, &'a [u8])> {
        loop {
            let marker = *bytes.get(*at + 1)?;
            if bytes[*at] != 0xff || marker == 0 {
                self.has_junk = true;
                *at += 1;
                continue;
            }
            match marker {
                // A fill byte.
                0xff => *at += 1,
                // Markers without content.
                0x01 | 0xd0..=0xd8 => *at += 2,
                END_OF_IMAGE => return None,
                _ => {
                    let length = bytes.get(*at + 2..*at + 4)?;
                    let length = usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
                    let content = bytes.get(*at + 4..*at + 2 + length)?;
                    *at += 2 + length;
                    return Some((marker, content));
                }
            }
        }
    }

    /// Keeps what the segment that begins at `offset` says.
    fn note(&mut self, marker: u8, content: &[u8], offset: usize) {
        match (marker, content) {
            (0xc0..=0xc2, &[_, h1, h0, w1, w0, components, ref parts @ ..]) => {
                self.height = usize::from(u16::from_be_bytes([h1, h0]));
                self.width = usize::from(u16::from_be_bytes([w1, w0]));
                self.height_at = offset + 1;
                self.components = usize::from(components);
                let vertical = parts.chunks_exact(3).map(|part| usize::from(part[1] & 15));
                self.unit_rows = 8 * vertical.max().unwrap_or(1).max(1);
                self.named_rgb = parts.iter().step_by(3).eq(b"RGB");
                self.sequential = marker != 0xc2;
            }
            (0xe1, [b'E', b'x', b'i', b'f', 0, 0, exif @ ..]) => {
                self.orientation =
                    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms);
            }
            (0xee, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, 0, ..]) => {
                self.untransformed_at = Some(offset + 11);
            }
            _ => {}
        }
    }

    /// Decodes at least the first `rows` rows, in colour, to `out`; returns how many there are.
    ///
    /// What is below them is not decoded where the file allows it. Pixels are the same as
    /// those of the whole image.
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, String> {
        self.check_complete(bytes)?;
        let mut patched = None;
        let rows = self.rows_to_decode(rows);
        if rows < self.height {
            let height = (rows as u16).to_be_bytes();
            let bytes = patched.get_or_insert_with(|| bytes.to_vec());
            bytes[self.height_at..self.height_at + 2].copy_from_slice(&height);
        }
        let mut colours = ColorSpace::RGB;
        if let (Some(at), 3, false) = (self.untransformed_at, self.components, self.named_rgb) {
            // The decoder takes three untransformed channels for damaged CMYK. As channels that
            // are declared and requested as YCbCr, it returns them unchanged.
            patched.get_or_insert_with(|| bytes.to_vec())[at] = 1;
            colours = ColorSpace::YCbCr;
        }
        let options = DecoderOptions::default()
            .set_max_width(usize::from(u16::MAX))
            .set_max_height(usize::from(u16::MAX))
            .jpeg_set_out_colorspace(colours)
            .set_strict_mode(!self.has_junk);
        let bytes = patched.as_deref().unwrap_or(bytes);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        out.resize(self.width * rows * 3, 0);
        decoder.decode_into(out).map_err(|error| {
            format!("cannot be decoded as an image ({error:?}); replace or remove it")
        })?;
        Ok(rows)
    }

    /// The most bytes that decoding this many rows takes: the pixels, and beside them the
    /// coefficients of all rows or a turned copy.
    pub(super) fn memory(&self, rows: usize) -> u64 {
        let row = self.width as u64;
        let pixels = 3 * row * self.rows_to_decode(rows) as u64;
        let coefficients =
            if self.sequential { 0 } else { 2 * self.components as u64 * row * self.height as u64 };
        let copy = if self.orientation == Orientation::NoTransforms { 0 } else { pixels };
        pixels + coefficients.max(copy)
    }

    /// Of the rows below those that are wanted, one unit is needed: colours of less resolution
    /// are interpolated between units.
    fn rows_to_decode(&self, wanted: usize) -> usize {
        let units = wanted.div_ceil(self.unit_rows) + 1;
        if self.sequential { self.height.min(units * self.unit_rows) } else { self.height }
    }

    /// The decoder would fill what is missing with grey.
    fn check_complete(&self, bytes: &[u8]) -> Result<(), String> {
        let scan = &bytes[self.scan_at..];
        // Every block of 8 × 8 pixels takes at least one bit.
        let blocks = self.width.div_ceil(8) * self.height.div_ceil(8);
        let ends = scan.windows(2).rev().any(|pair| pair == [0xff, END_OF_IMAGE]);
        if ends && blocks <= 8 * scan.len() { Ok(()) } else { Err(cut_off()) }
    }
}

fn cut_off() -> String {
    "is cut off: its end is missing; copy it again, or remove it".into()
}
