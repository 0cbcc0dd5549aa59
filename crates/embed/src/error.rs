//! What can go wrong between images and embeddings.

use std::io;
use std::path::{Path, PathBuf};

use aleator_data::DataError;
use aleator_run::RunError;

/// Why there are no embeddings.
///
/// ```
/// use aleator_embed::EmbedError;
///
/// let error = EmbedError::model("net.onnx", "has two inputs");
/// assert_eq!(error.to_string(), "net.onnx: has two inputs");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The network cannot be read, or does not turn an image into an embedding.
    #[error("{}: {message}", .path.display())]
    Model {
        /// The network's file.
        path: PathBuf,
        /// What was expected, what was found, what to do.
        message: String,
    },
    /// A runtime cannot be used.
    #[error("{0}")]
    Runtime(String),
    /// Something is wrong with the images or their labels.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The output exists and holds something else.
    #[error(
        "{} exists and holds {holds}: choose another --out, or remove it",
        .path.display()
    )]
    Exists {
        /// The output.
        path: PathBuf,
        /// What it holds.
        holds: String,
    },
    /// The operating system refused to write the output.
    #[error("cannot write {}: {}", .path.display(), in_words(source))]
    Write {
        /// The output.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The record of progress could not be written.
    #[error(transparent)]
    Record(#[from] RunError),
    /// The work was stopped before there was anything to save.
    #[error("stopped before the first image")]
    Interrupted,
    /// Too many images cannot be decoded.
    #[error("{0}")]
    TooManyDamaged(String),
}

impl EmbedError {
    /// The network at `path` is wrong; `message` says how, and what to do.
    pub fn model(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::Model { path: path.as_ref().to_path_buf(), message: message.into() }
    }

    /// For `map_err` on an operation on the output.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }
}

/// The error of the operating system, explained where that helps the user.
fn in_words(error: &io::Error) -> String {
    let words = match error.kind() {
        io::ErrorKind::NotFound => "there is no such directory; create it first",
        io::ErrorKind::PermissionDenied => "no permission to write there",
        io::ErrorKind::StorageFull => "the disk is full; make room and run the same command again",
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        _ => return error.to_string(),
    };
    format!("{words} ({error})")
}
