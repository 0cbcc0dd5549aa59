//! `decisions.jsonl`: every decision in order, each on disk before the page shows the next issue.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aleator_run::{RunError, open_own, read_file};
use serde::{Deserialize, Serialize};

use crate::decision::Line;

pub(crate) const NAME: &str = "decisions.jsonl";
const FORMAT: u32 = 1;

/// The first line: which labels the decisions are about.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u32,
    fingerprint: String,
}

/// The file, open for appending.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// The length of all complete lines in bytes.
    length: u64,
}

/// The content of the file when it was opened.
pub(crate) struct OpenedJournal {
    pub journal: Journal,
    /// Each with its number in the file, from 1.
    pub lines: Vec<(usize, Line)>,
    /// The beginning of a line that a killed process left; it was never confirmed and is dropped.
    pub torn: Option<String>,
}

impl Journal {
    /// Opens the file of a directory, or creates it.
    pub fn open(dir: &Path, fingerprint: &str) -> Result<OpenedJournal, RunError> {
        let path = dir.join(NAME);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(RunError::io("read", &path)(error)),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let torn = (whole < bytes.len())
            .then(|| String::from_utf8_lossy(&bytes[whole..]).chars().take(80).collect());
        let lines = parse(&path, &bytes[..whole], fingerprint)?;
        let options = File::options().create(true).write(true).truncate(false).clone();
        let file = open_own(&path, &options).map_err(RunError::io("write", &path))?;
        let mut journal = Self { path, file, length: whole as u64 };
        if torn.is_some() {
            journal.truncate()?;
        }
        if whole == 0 {
            let head = Head { format: FORMAT, fingerprint: fingerprint.to_string() };
            journal.append(&head)?;
            sync_dir(dir)?;
        }
        Ok(OpenedJournal { journal, lines, torn })
    }

    /// Appends a line and syncs it to disk; on failure the file is unchanged.
    pub fn append(&mut self, value: &impl Serialize) -> Result<(), RunError> {
        let mut text = serde_json::to_string(value)
            .map_err(|error| RunError::damaged(&self.path, error.to_string()))?;
        text.push('\n');
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(text.as_bytes()))
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If this fails too, the rest of the line is dropped when the file is opened again.
                let _ = self.truncate();
                Err(RunError::io("write", &self.path)(error))
            }
        }
    }

    fn truncate(&mut self) -> Result<(), RunError> {
        let cut = self.file.set_len(self.length).and_then(|()| self.file.sync_data());
        cut.map_err(RunError::io("write", &self.path))
    }
}

fn parse(path: &Path, bytes: &[u8], fingerprint: &str) -> Result<Vec<(usize, Line)>, RunError> {
    let wrong = |number: usize, message: String| wrong_line(path, number, message);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        wrong(before + 1, "is not valid UTF-8".to_string())
    })?;
    let mut lines = text.lines().zip(1..);
    if let Some((first, number)) = lines.next() {
        let head: Head =
            serde_json::from_str(first).map_err(|error| wrong(number, error.to_string()))?;
        if head.format != FORMAT {
            let message = format!("has format {}; this program reads {FORMAT}", head.format);
            return Err(wrong(number, message));
        }
        if head.fingerprint != fingerprint {
            let message = "the decisions are about other data than this audit".to_string();
            return Err(wrong(number, message));
        }
    }
    let line = |(line, number): (&str, usize)| {
        let line = serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
        Ok((number, line))
    };
    lines.map(line).collect()
}

/// A line of the file that cannot be read or replayed.
pub(crate) fn wrong_line(path: &Path, number: usize, message: String) -> RunError {
    let advice = "correct the line, or move the file away to start again";
    RunError::damaged(path, format!("line {number}: {message}; {advice}"))
}

/// The name of a new file is on disk only after its directory is synced.
fn sync_dir(dir: &Path) -> Result<(), RunError> {
    if cfg!(unix) {
        let synced = File::open(dir).and_then(|dir| dir.sync_all());
        return synced.map_err(RunError::io("write", dir));
    }
    Ok(())
}
