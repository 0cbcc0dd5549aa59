//! What can go wrong in a review.

use std::io;
use std::path::PathBuf;

use aleator_report::ReportError;
use aleator_run::RunError;

/// Why a review cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The audit cannot be read.
    #[error(transparent)]
    Audit(#[from] ReportError),
    /// A file of the review cannot be read or written.
    #[error(transparent)]
    File(#[from] RunError),
    /// The directory is not writable.
    #[error(
        "the decisions of a review are stored in the audit's directory, but {source}; copy {} to a \
         directory that you can write to and review it there", dir.display()
    )]
    NotWritable {
        /// The audit.
        dir: PathBuf,
        /// What went wrong.
        source: RunError,
    },
    /// The server cannot be started.
    #[error("cannot listen on 127.0.0.1:{port}: {source}; choose another --port, or leave it out")]
    Port {
        /// The port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The page for the browser cannot be written.
    #[error("cannot write a page for the browser in {}: {source}", dir.display())]
    OpeningPage {
        /// The audit.
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system returned no random numbers.
    #[error("the operating system returned no random numbers for the address: {0}")]
    NoRandomness(getrandom::Error),
}
