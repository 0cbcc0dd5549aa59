//! The file that TensorBoard reads: scalars over steps.
//!
//! A TFRecord file of `Event` messages. Both formats are small enough to be written by hand:
//! a record is its length, a checksum of the length, the message, a checksum of the message; a
//! message is a list of (field number, value).

use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::error::RunError;
use crate::log::AppendFile;
use crate::regular::open_file;

/// Scalars for TensorBoard.
///
/// The time of each event is the caller's to give: this crate looks at no clock.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("events.out.tfevents.0.aleator");
/// use aleator_run::EventFile;
///
/// let mut events = EventFile::create(&path, 0.0)?;
/// events.scalars(1, 0.5, &[("train/loss", 2.3), ("train/learning_rate", 0.001)])?;
/// let checkpoint = events.position();
/// # drop(events);
/// let events = EventFile::open_at(&path, checkpoint)?;
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct EventFile {
    file: AppendFile,
}

impl EventFile {
    /// A new file; one that stood there is emptied. `wall_time` is in seconds since 1970.
    pub fn create(path: &Path, wall_time: f64) -> Result<Self, RunError> {
        let mut file = AppendFile::create(path)?;
        file.append(&record(&version_event(wall_time)))?;
        Ok(Self { file })
    }

    /// Continues at `position`, which [`position`](Self::position) returned, and removes everything
    /// after it.
    pub fn open_at(path: &Path, position: u64) -> Result<Self, RunError> {
        let mut file = AppendFile::open(path, position)?;
        if !ends_a_record(path, position).map_err(RunError::io("read", path))? {
            let message = format!("byte {position} is within a record: the file was changed");
            return Err(RunError::damaged(path, message));
        }
        file.cut_back()?;
        Ok(Self { file })
    }

    /// One event with the values of some quantities at a step.
    pub fn scalars(
        &mut self,
        step: i64,
        wall_time: f64,
        values: &[(&str, f32)],
    ) -> Result<(), RunError> {
        self.file.append(&record(&scalar_event(step, wall_time, values)))
    }

    /// Everything written so far outlives a power cut.
    pub fn sync(&mut self) -> Result<(), RunError> {
        self.file.sync()
    }

    /// The length of the file in bytes, to come back to with [`open_at`](Self::open_at).
    pub fn position(&self) -> u64 {
        self.file.position
    }
}

/// Whether whole records fill the file up to `position`.
fn ends_a_record(path: &Path, position: u64) -> io::Result<bool> {
    let mut file = BufReader::new(open_file(path)?);
    let mut at = 0_u64;
    while at < position {
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        // The data, its checksum and that of the length.
        let rest = u64::from_le_bytes(length).checked_add(8);
        let end = rest.and_then(|rest| rest.checked_add(at + 8));
        let (Some(rest), Some(end)) = (rest, end.filter(|end| *end <= position)) else {
            return Ok(false);
        };
        file.seek_relative(rest as i64)?;
        at = end;
    }
    Ok(true)
}

/// TFRecord: length, its checksum, data, its checksum; little-endian.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let parts: [&[u8]; 4] = [
        &length,
        &masked_checksum(&length).to_le_bytes(),
        data,
        &masked_checksum(data).to_le_bytes(),
    ];
    parts.concat()
}

/// CRC-32C, rotated and offset so that checksums of checksums stay good.
fn masked_checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time = 1, file_version = 3 }`.
fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = vec![];
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, b"brain.Event:2");
    event
}

/// `Event { wall_time = 1, step = 2, summary = 5 }`, `Summary { value = 1 }`,
/// `Value { tag = 1, simple_value = 2 }`.
fn scalar_event(step: i64, wall_time: f64, values: &[(&str, f32)]) -> Vec<u8> {
    let mut summary = vec![];
    for (tag, value) in values {
        let mut entry = vec![];
        put_bytes(&mut entry, 1, tag.as_bytes());
        // The value is one of several alternatives: there, no field means no value, not 0.
        put_varint(&mut entry, 2 << 3 | FIXED_32);
        entry.extend(value.to_le_bytes());
        put_bytes(&mut summary, 1, &entry);
    }
    let mut event = vec![];
    put_double(&mut event, 1, wall_time);
    put_integer(&mut event, 2, step);
    put_bytes(&mut event, 5, &summary);
    event
}

/// The wire types of Protocol Buffers that events need.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// As everywhere in this format, no field means 0; but see [`scalar_event`].
fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    if value.to_bits() != 0 {
        put_varint(out, field << 3 | FIXED_64);
        out.extend(value.to_le_bytes());
    }
}

fn put_integer(out: &mut Vec<u8>, field: u64, value: i64) {
    if value != 0 {
        put_varint(out, field << 3 | VARINT);
        // Negative numbers are written as their two's complement.
        put_varint(out, value as u64);
    }
}

fn put_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(out, field << 3 | BYTES);
    put_varint(out, value.len() as u64);
    out.extend(value);
}

/// Seven bits a byte, the lowest first; the high bit says that more follow.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
