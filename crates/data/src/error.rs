//! Errors of data sets, which always name the file.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A file of a data set cannot be read, or its content is wrong.
///
/// The message names the file, the row or field, what was expected and found, and what to do.
///
/// ```
/// use aleator_data::DataError;
///
/// let error = DataError::invalid("labels.csv", "row 7: class 12 of 10 classes");
/// assert_eq!(error.to_string(), "labels.csv: row 7: class 12 of 10 classes");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The content is not what it should be.
    #[error("{}: {message}", .path.display())]
    Invalid {
        /// The file, or the recipe's key or array that is wrong.
        path: PathBuf,
        /// What was expected, what was found, what to do.
        message: String,
    },
    /// The operating system returned an error.
    #[error("{}: {}", .path.display(), reason(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl DataError {
    /// The content of `path` is wrong; `message` says how, and what to do.
    pub fn invalid(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::Invalid { path: path.as_ref().to_path_buf(), message: message.into() }
    }

    /// An operation on `path` failed.
    pub fn io(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// What is wrong, without the file's name.
    pub fn reason(&self) -> String {
        match self {
            Self::Invalid { message, .. } => message.clone(),
            Self::Io { source, .. } => reason(source),
        }
    }

    /// The file or folder concerned.
    pub fn path(&self) -> &Path {
        match self {
            Self::Invalid { path, .. } | Self::Io { path, .. } => path,
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no such file or folder; paths are relative to where the program runs".into()
        }
        io::ErrorKind::PermissionDenied => "no permission to read it".into(),
        _ => error.to_string(),
    }
}

/// Runs a decoder of another library. If a damaged file makes it panic, that is an error here:
/// no file that a user gives may crash the program.
pub(crate) fn guarded<T>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(DataError::invalid(path, "is damaged: its decoder gave up; write the file again"))
    })
}
