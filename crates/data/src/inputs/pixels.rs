//! Images as bytes in mapped files: records of equal size, one byte a pixel and channel.

use aleator_run::recipe::PixelValues;

use super::InputShape;
use super::mapped::Mapped;
use crate::picture::{Picture, affine};

/// The images of one or more files, in order.
#[derive(Debug)]
pub(crate) struct Pixels {
    parts: Vec<Part>,
    /// Bytes before the pixels of each record, where labels stand.
    skip: usize,
    shape: InputShape,
    values: PixelValues,
    rows: usize,
}

#[derive(Debug)]
struct Part {
    file: Mapped,
    start: usize,
    first_row: usize,
}

impl Pixels {
    /// No images yet; each record has `skip` bytes, then the pixels.
    pub(crate) fn new(skip: usize, shape: InputShape, values: PixelValues) -> Self {
        Self { parts: vec![], skip, shape, values, rows: 0 }
    }

    /// Bytes of one record.
    pub(crate) fn record(&self) -> usize {
        self.skip + self.shape.len()
    }

    /// Appends all records of a file from byte `start`.
    ///
    /// # Panics
    /// Unless they are whole.
    pub(crate) fn push(&mut self, file: Mapped, start: usize) {
        let len = file.bytes().len() - start;
        assert!(len.is_multiple_of(self.record()), "records must be whole");
        let first_row = self.rows;
        self.rows += len / self.record();
        self.parts.push(Part { file, start, first_row });
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn shape(&self) -> InputShape {
        self.shape
    }

    /// The bytes of one image, channel first.
    pub(crate) fn bytes(&self, row: usize) -> &[u8] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let part = &self.parts[self.parts.partition_point(|part| part.first_row <= row) - 1];
        let from = part.start + (row - part.first_row) * self.record() + self.skip;
        &part.file.bytes()[from..from + self.shape.len()]
    }

    /// Channels, and the pixels of one.
    fn planes(&self) -> (usize, usize) {
        match self.shape {
            InputShape::Image { channels, height, width } => (channels, height * width),
            InputShape::Features(pixels) => (1, pixels),
        }
    }

    /// The numbers of one image.
    pub(crate) fn read(&self, row: usize, out: &mut [f32]) {
        let (_, plane) = self.planes();
        let planes = out.chunks_exact_mut(plane).zip(self.bytes(row).chunks_exact(plane));
        for (channel, (out, bytes)) in planes.enumerate() {
            let (scale, shift) = affine(self.values, channel);
            for (out, byte) in out.iter_mut().zip(bytes) {
                *out = f32::from(*byte) * scale + shift;
            }
        }
    }

    /// One image.
    pub(crate) fn picture(&self, row: usize) -> Picture {
        let (channels, plane) = self.planes();
        let (height, width) = match self.shape {
            InputShape::Image { height, width, .. } => (height, width),
            InputShape::Features(pixels) => (1, pixels),
        };
        let bytes = self.bytes(row);
        let pixels = (0..plane).flat_map(|at| (0..channels).map(move |c| bytes[c * plane + at]));
        Picture { width, height, channels, bytes: pixels.collect() }
    }
}
