//! Everything that can go wrong in a workflow.

use std::path::{Path, PathBuf};

use aleator_data::DataError;
use aleator_train::TrainError;
use thiserror::Error;

/// Why a workflow failed or stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A recipe that cannot be read, or that says something impossible.
    #[error(transparent)]
    Recipe(#[from] aleator_run::RecipeError),
    /// Data that cannot be read, or that are not what they should be.
    #[error(transparent)]
    Data(#[from] aleator_data::DataError),
    /// Training, evaluation or prediction failed.
    #[error(transparent)]
    Train(#[from] aleator_train::TrainError),
    /// A run directory that cannot be read or written.
    #[error(transparent)]
    Run(#[from] aleator_run::RunError),
    /// Finished runs that cannot be combined, audited or reported.
    #[error(transparent)]
    Report(#[from] aleator_report::ReportError),
    /// Embeddings could not be computed.
    #[error(transparent)]
    Embed(#[from] aleator_embed::EmbedError),
    /// Arguments that do not fit each other or the data.
    #[error("{0}")]
    Invalid(String),
    /// The same error, with the place that it belongs to.
    #[error("{place}: {source}")]
    At {
        /// A task, a file or a member.
        place: String,
        /// What went wrong there.
        source: Box<Error>,
    },
    /// A file outside of a run directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: std::io::Error,
    },
    /// The caller asked the work to stop; what was done is saved.
    #[error("{0}")]
    Interrupted(String),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }

    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self::At { place: place.into(), source: Box::new(self) }
    }

    /// The same; where a file of the data is missing, with what to do if the data moved. `dir` is
    /// what `aleator resume` takes.
    pub(crate) fn if_moved(self, dir: &Path) -> Self {
        let missing = |error: &DataError| {
            let DataError::Io { source, .. } = error else { return false };
            source.kind() == std::io::ErrorKind::NotFound
        };
        match &self {
            Self::Data(error) | Self::Train(TrainError::Data(error)) if missing(error) => {
                Self::invalid(format!(
                    "{self}\nIf the data moved, say where they are now: `aleator resume {} --data \
                     PATH` accepts them if their content is the same.",
                    dir.display()
                ))
            }
            _ => self,
        }
    }

    /// Whether the work stopped because the caller asked for it.
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Interrupted(_) | Self::Embed(aleator_embed::EmbedError::Interrupted) => true,
            Self::At { source, .. } => source.is_interruption(),
            _ => false,
        }
    }
}
