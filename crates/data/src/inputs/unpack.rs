//! Gzipped content, of which no file may unpack to more than its bytes warrant.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::file_bytes::open_file;
use crate::error::DataError;

/// A gzipped byte may expand to this many: images hardly shrink, drawings on white to a
/// twentieth, labels that are nearly all the same to a hundredth.
pub(crate) const LARGEST_RATIO: u64 = 100;

/// No gzipped file may become more than 512 GiB.
pub(crate) const LARGEST_CONTENT: u64 = 512 << 30;

/// Files may always expand to this size, whatever their ratio.
const SMALL_CONTENT: u64 = 16 << 20;

/// The content of a gzipped file, up to its limit.
pub(crate) struct GzipContent {
    content: MultiGzDecoder<BufReader<File>>,
    packed: u64,
    /// Bytes read so far.
    pub position: u64,
}

impl GzipContent {
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let file = open_file(path)?;
        let packed = file.metadata().map_err(|error| DataError::io(path, error))?.len();
        let content = MultiGzDecoder::new(BufReader::with_capacity(1 << 18, file));
        Ok(Self { content, packed, position: 0 })
    }
}

/// The most bytes that a gzipped file of this length may become.
pub(crate) fn limit(packed: u64) -> u64 {
    packed.saturating_mul(LARGEST_RATIO).clamp(SMALL_CONTENT, LARGEST_CONTENT)
}

impl Read for GzipContent {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(bytes)?;
        self.position += read as u64;
        let (packed, most) = (self.packed, limit(self.packed));
        if self.position > most {
            let message = format!(
                "{packed} gzipped bytes become more than {most}, which no images do; if it is \
                 right, unpack it with gunzip"
            );
            return Err(io::Error::other(message));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_with_the_file_and_ends() {
        assert_eq!(limit(0), 16 << 20);
        assert_eq!(limit(10 << 20), 1_000 << 20);
        assert_eq!(limit(u64::MAX), LARGEST_CONTENT);
    }

    #[test]
    fn a_bomb_ends_in_an_error() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.gz");
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        for _ in 0..64 {
            encoder.write_all(&vec![0; 1 << 20]).unwrap();
        }
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        let mut content = GzipContent::open(&path).unwrap();
        let error = io::copy(&mut content, &mut io::sink()).unwrap_err().to_string();
        assert!(error.contains("become more than"), "{error}");
    }
}
