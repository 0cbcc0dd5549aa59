//! What can keep a review from starting or going on.

use std::io;
use std::path::PathBuf;

use aleator_report::ReportError;
use aleator_run::RunError;

/// Why a review cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The audit cannot be read, or a file not be written.
    #[error(transparent)]
    Audit(#[from] ReportError),
    /// A file of the review cannot be read or written.
    #[error(transparent)]
    File(#[from] RunError),
    /// The folder cannot be written to.
    #[error(
        "the decisions of a review are kept in the folder of the audit, but {source}; copy {} to a \
         folder of yours and review it there", dir.display()
    )]
    NotWritable {
        /// The audit.
        dir: PathBuf,
        /// What went wrong.
        source: RunError,
    },
    /// The server cannot be started.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; give another --port, or none")]
    Port {
        /// The port.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system has no random numbers.
    #[error("the operating system gives no random numbers for the address: {0}")]
    NoRandomness(getrandom::Error),
}

impl ReviewError {
    /// A file is not what it should be.
    pub(crate) fn damaged(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::File(RunError::Damaged { path: path.into(), message: message.into() })
    }

    /// For `map_err` on an operation of the file system.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File(RunError::Io { action, path, source })
    }
}
