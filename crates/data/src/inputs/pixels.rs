//! Images as bytes in mapped files: records of equal size, one byte a pixel and channel.

use super::InputShape;
use super::mapped::Mapped;

/// The images of one or more files, in order.
#[derive(Debug)]
pub(crate) struct Pixels {
    parts: Vec<Part>,
    /// Bytes before the pixels of each record, where labels stand.
    skip: usize,
    shape: InputShape,
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
    pub(crate) fn new(skip: usize, shape: InputShape) -> Self {
        Self { parts: vec![], skip, shape, rows: 0 }
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
}

/// 0 to 255 → −1 to 1.
pub(crate) fn scale(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}
