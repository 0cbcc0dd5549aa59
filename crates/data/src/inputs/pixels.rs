//! Images as bytes in files: records of equal size, one byte a pixel and channel.

use aleator_run::recipe::Framing;

use super::InputShape;
use super::file_bytes::FileBytes;
use crate::error::DataError;
use crate::picture::{Frame, Picture, affine};

/// The images of one or more files, in order.
#[derive(Debug)]
pub(crate) struct Pixels {
    parts: Vec<Part>,
    /// Bytes before the pixels of each record, where labels stand.
    skip: usize,
    /// `[channels, height, width]` of the images as the files have them.
    stored: [usize; 3],
    /// What evaluation sees.
    frame: Frame,
    channels: usize,
    pub rows: usize,
}

#[derive(Debug)]
struct Part {
    file: Bytes,
    start: usize,
    first_row: usize,
}

/// Where the records are.
#[derive(Debug)]
pub(crate) enum Bytes {
    File(FileBytes),
    Memory(Vec<u8>),
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::File(file) => file.len(),
            Self::Memory(bytes) => bytes.len(),
        }
    }
}

impl Pixels {
    /// No images yet; each record has `skip` bytes, then the pixels.
    pub(crate) fn new(skip: usize, stored: [usize; 3], framing: &Framing) -> Self {
        let [channels, height, width] = stored;
        let (width, height) = framing.size.map_or((width, height), |side| (side, side));
        let frame = Frame::new(framing, width, height);
        let channels = framing.channels.unwrap_or(channels);
        Self { parts: vec![], skip, stored, frame, channels, rows: 0 }
    }

    /// Bytes of one record.
    pub(crate) fn record(&self) -> usize {
        self.skip + self.stored.iter().product::<usize>()
    }

    /// Appends all records from byte `start` on.
    ///
    /// # Panics
    /// Unless they are whole.
    pub(crate) fn push(&mut self, file: Bytes, start: usize) {
        let len = file.len() - start;
        assert!(len.is_multiple_of(self.record()), "records must be whole");
        let first_row = self.rows;
        self.rows += len / self.record();
        self.parts.push(Part { file, start, first_row });
    }

    pub(crate) fn shape(&self) -> InputShape {
        let Frame { height, width, .. } = self.frame;
        InputShape::Image { channels: self.channels, height, width }
    }

    /// Calls `take` with the bytes of one image, channel first.
    pub(crate) fn with<T>(
        &self,
        row: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, DataError> {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        let part = &self.parts[self.parts.partition_point(|part| part.first_row <= row) - 1];
        let record = part.start + (row - part.first_row) * self.record();
        let range = record + self.skip..record + self.record();
        match &part.file {
            Bytes::File(file) => file.with(range, take),
            Bytes::Memory(bytes) => Ok(take(&bytes[range])),
        }
    }

    /// The numbers of one image.
    pub(crate) fn read(&self, row: usize, out: &mut [f32]) -> Result<(), DataError> {
        let [channels, height, width] = self.stored;
        let as_stored = self.channels == channels
            && (self.frame.width, self.frame.height) == (width, height)
            && self.frame.centre_crop.is_none();
        if !as_stored {
            self.frame.numbers(&self.frame.cut(&self.picture(row)?), out);
            return Ok(());
        }
        let plane = height * width;
        self.with(row, |bytes| {
            let planes = out.chunks_exact_mut(plane).zip(bytes.chunks_exact(plane));
            for (channel, (out, bytes)) in planes.enumerate() {
                let (scale, shift) = affine(self.frame.values, channel);
                for (out, byte) in out.iter_mut().zip(bytes) {
                    *out = f32::from(*byte) * scale + shift;
                }
            }
        })
    }

    /// One image.
    pub(crate) fn picture(&self, row: usize) -> Result<Picture, DataError> {
        let [channels, height, width] = self.stored;
        let plane = height * width;
        let bytes = self.with(row, |bytes| {
            let pixel = |at| (0..channels).map(move |channel| bytes[channel * plane + at]);
            (0..plane).flat_map(pixel).collect()
        })?;
        Ok(Picture { width, height, channels, bytes })
    }
}
