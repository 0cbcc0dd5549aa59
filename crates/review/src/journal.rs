//! `decisions.jsonl`: every decision in order, each on disk before the page shows the next issue.
//!
//! Other programs may remove or replace the file while a review is open: a synchronised folder, a
//! version control system. So it is opened by its name for each decision and compared with all that
//! was decided before, and a decision counts when it was read back from there.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aleator_run::{RunError, open_own, write_file};
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

/// The file, and what must be in it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    /// All complete lines. Every decision that was confirmed is here.
    confirmed: Vec<u8>,
    /// The last line that failed; all or a part of it may be in the file until it is cut off.
    failed: Vec<u8>,
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
        let mut bytes = read(&path)?.unwrap_or_default();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let torn = bytes.split_off(whole);
        let lines = parse(&path, &bytes, fingerprint)?;
        if whole == 0 {
            let head = Head { format: FORMAT, fingerprint: fingerprint.to_string() };
            bytes = line_of(&path, &head)?;
            write_file(&path, &bytes)?;
        }
        let journal = Self { path, confirmed: bytes, failed: vec![] };
        if torn.is_empty() {
            // Shows that decisions can be written.
            journal.open_to_write()?;
        } else {
            journal.cut()?;
        }
        let torn =
            (!torn.is_empty()).then(|| String::from_utf8_lossy(&torn).chars().take(80).collect());
        Ok(OpenedJournal { journal, lines, torn })
    }

    /// Appends a line and syncs it to disk. When this returns, it is in the file of this name, after
    /// all lines before it; on failure it is not confirmed, and all before it stay so.
    pub fn append(&mut self, value: &impl Serialize) -> Result<(), RunError> {
        self.keep()?;
        let before = self.confirmed.len();
        self.confirmed.extend(line_of(&self.path, value)?);
        let written = self.write_from(before).and_then(|()| match read(&self.path)? {
            Some(found) if found == self.confirmed => Ok(()),
            _ => {
                let message = "another program changed this file at the same moment; decide again";
                Err(RunError::damaged(&self.path, message))
            }
        });
        if written.is_err() {
            self.failed = self.confirmed.split_off(before);
            // If this fails too, it is done before the next decision or at the end.
            let _ = self.keep();
        }
        written
    }

    /// Makes sure that what was confirmed is in a file: if it was removed it is written again.
    ///
    /// # Errors
    /// When there is something else in its place. That is left as it is, and what was confirmed is
    /// written beside it.
    pub fn keep(&self) -> Result<(), RunError> {
        let reason = match read(&self.path) {
            Ok(None) => return write_file(&self.path, &self.confirmed),
            Ok(Some(found)) if found == self.confirmed => return Ok(()),
            Ok(Some(found)) if self.ends_in_failed(&found) => return self.cut(),
            Ok(Some(_)) => "another program changed or replaced this file".to_string(),
            Err(error) => format!("it can no longer be read ({error})"),
        };
        let saved = self.save_aside().map_err(|error| {
            let message = format!(
                "{reason} while the review was open, and the decisions could not be written beside \
                 it: {error}; leave the program running until you have solved this, then try again"
            );
            RunError::damaged(&self.path, message)
        })?;
        let message = format!(
            "{reason} while the review was open, so nothing more is decided; all decisions that \
             were confirmed are in {}: end the review with Ctrl-C, keep one of the two files as \
             {NAME}, and start again",
            saved.display()
        );
        Err(RunError::damaged(&self.path, message))
    }

    /// Writes what was confirmed under the first name that is free, unless it is there already.
    fn save_aside(&self) -> Result<PathBuf, RunError> {
        let mut number = 1;
        loop {
            let path = self.path.with_file_name(format!("decisions-saved-{number}.jsonl"));
            match read(&path) {
                Ok(None) => return write_file(&path, &self.confirmed).map(|()| path),
                Ok(Some(found)) if found == self.confirmed => return Ok(path),
                Ok(Some(_)) | Err(RunError::Damaged { .. }) => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the end of what is confirmed into the file, which has all before it.
    fn write_from(&self, at: usize) -> Result<(), RunError> {
        let mut file = self.open_to_write()?;
        let written = file
            .seek(SeekFrom::Start(at as u64))
            .and_then(|_| file.write_all(&self.confirmed[at..]))
            .and_then(|()| file.sync_data());
        written.map_err(RunError::io("write", &self.path))
    }

    /// Whether a file has all that was confirmed, and after it the line that failed or its start.
    fn ends_in_failed(&self, found: &[u8]) -> bool {
        let rest = found.strip_prefix(self.confirmed.as_slice());
        rest.is_some_and(|rest| self.failed.starts_with(rest))
    }

    /// Cuts off what stands in the file after all that was confirmed.
    fn cut(&self) -> Result<(), RunError> {
        let file = self.open_to_write()?;
        let cut = file.set_len(self.confirmed.len() as u64).and_then(|()| file.sync_data());
        cut.map_err(RunError::io("write", &self.path))
    }

    fn open_to_write(&self) -> Result<File, RunError> {
        let file = open_own(&self.path, File::options().write(true));
        file.map_err(RunError::io("write", &self.path))
    }
}

fn line_of(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, RunError> {
    let text = serde_json::to_string(value).map_err(|error| RunError::damaged(path, error))?;
    Ok((text + "\n").into_bytes())
}

/// The content of a file; `None` if there is nothing of its name.
fn read(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    let mut bytes = vec![];
    let file = open_own(path, File::options().read(true));
    match file.and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err(RunError::damaged(path, error))
        }
        Err(error) => Err(RunError::io("read", path)(error)),
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
