//! `metrics.jsonl`: one JSON object a line, appended and never changed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::RunError;
use crate::regular::{open_own, read_text};

/// A file that grows at its end and can be taken back to an earlier length.
///
/// Each record is written in one call: other readers see whole records, and they survive the end
/// of the process. After [`sync`](Self::sync) they also survive a power cut.
#[derive(Debug)]
pub(crate) struct AppendFile {
    file: File,
    path: PathBuf,
    /// The length of the file in bytes.
    pub position: u64,
}

impl AppendFile {
    pub fn create(path: &Path) -> Result<Self, RunError> {
        let options = File::options().write(true).create(true).truncate(true).clone();
        let file = open_own(path, &options).map_err(RunError::io("create", path))?;
        Ok(Self { file, path: path.to_path_buf(), position: 0 })
    }

    /// To append at `position`, after [`cut_back`](Self::cut_back) has removed what follows it.
    pub fn open(path: &Path, position: u64) -> Result<Self, RunError> {
        // At 0 nothing need be there yet.
        let new = position == 0;
        let options = File::options().read(true).write(true).create(new).truncate(false).clone();
        let file = open_own(path, &options).map_err(RunError::io("open", path))?;
        let length = file.metadata().map_err(RunError::io("read", path))?.len();
        if length < position {
            let message = format!(
                "the checkpoint was saved when this file had {position} bytes, it has only \
                 {length}: it was changed or damaged; restore it, or resume from an earlier \
                 checkpoint"
            );
            return Err(RunError::damaged(path, message));
        }
        Ok(Self { file, path: path.to_path_buf(), position })
    }

    pub fn append(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        if let Err(source) = self.file.write_all(bytes) {
            // A disk that fills up may have taken a part; the next reader should not find it.
            let _ = self.cut_back();
            return Err(RunError::io("write", &self.path)(source));
        }
        self.position += bytes.len() as u64;
        Ok(())
    }

    pub fn sync(&mut self) -> Result<(), RunError> {
        self.file.sync_data().map_err(RunError::io("write", &self.path))
    }

    /// The byte before the position; `None` at the beginning.
    fn last_byte(&mut self) -> Result<Option<u8>, RunError> {
        let Some(at) = self.position.checked_sub(1) else { return Ok(None) };
        let mut byte = [0];
        let mut read = || -> std::io::Result<()> {
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut byte)
        };
        read().map_err(RunError::io("read", &self.path))?;
        Ok(Some(byte[0]))
    }

    /// Removes what stands after the position.
    pub fn cut_back(&mut self) -> Result<(), RunError> {
        let mut cut = || -> std::io::Result<()> {
            self.file.set_len(self.position)?;
            self.file.seek(SeekFrom::Start(self.position)).map(|_| ())
        };
        cut().map_err(RunError::io("write", &self.path))
    }
}

/// The log of a run's numbers.
///
/// Any record that serializes to a JSON object can be a line. Numbers that are not finite become
/// `null`, since JSON has no others.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("metrics.jsonl");
/// use aleator_run::MetricsLog;
/// use serde_json::json;
///
/// let mut log = MetricsLog::create(&path)?;
/// log.append(&json!({ "step": 1, "loss": 2.3 }))?;
/// let checkpoint = log.position();
/// log.append(&json!({ "step": 2, "loss": 2.2 }))?;
/// drop(log); // killed here
///
/// let mut log = MetricsLog::open_at(&path, checkpoint)?;
/// log.append(&json!({ "step": 2, "loss": 2.1 }))?;
/// assert_eq!(MetricsLog::read(&path)?[1]["loss"], 2.1);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct MetricsLog {
    file: AppendFile,
}

impl MetricsLog {
    /// A new log; one that stood there is emptied.
    pub fn create(path: &Path) -> Result<Self, RunError> {
        Ok(Self { file: AppendFile::create(path)? })
    }

    /// Continues at `position`, which [`position`](Self::position) returned, and removes everything
    /// after it, such as a line that a kill cut off. At 0 the file need not exist.
    pub fn open_at(path: &Path, position: u64) -> Result<Self, RunError> {
        let mut file = AppendFile::open(path, position)?;
        if file.last_byte()?.is_some_and(|byte| byte != b'\n') {
            let message = format!("byte {position} is within a line: the file was changed");
            return Err(RunError::damaged(path, message));
        }
        file.cut_back()?;
        Ok(Self { file })
    }

    /// One more line.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), RunError> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| RunError::damaged(&self.file.path, error))?;
        line.push(b'\n');
        self.file.append(&line)
    }

    /// Everything appended so far outlives a power cut.
    pub fn sync(&mut self) -> Result<(), RunError> {
        self.file.sync()
    }

    /// The length of the log in bytes, to come back to with [`open_at`](Self::open_at).
    pub fn position(&self) -> u64 {
        self.file.position
    }

    /// All lines of a log.
    pub fn read(path: &Path) -> Result<Vec<Map<String, Value>>, RunError> {
        let text = read_text(path).map_err(RunError::io("read", path))?;
        let line = |(index, line): (usize, &str)| {
            let number = index + 1;
            let damaged = |what: String| RunError::damaged(path, format!("line {number} {what}"));
            let whole = line.strip_suffix('\n').ok_or_else(|| {
                let why = "is cut off: its writer was killed; `aleator resume` repairs it";
                damaged(why.to_string())
            })?;
            serde_json::from_str(whole)
                .map_err(|error| damaged(format!("is not a JSON object: {error}")))
        };
        text.split_inclusive('\n').enumerate().map(line).collect()
    }
}
