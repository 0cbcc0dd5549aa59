//! Where the bytes of each image are.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::file_bytes::open_file;
use super::super::file_bytes::read_exact_at;
use super::super::names::Names;
use super::LARGEST_IMAGE;
use crate::error::DataError;

/// The bytes of example i. Files are opened when they are read, so that neither their number nor
/// their length is bounded by what a process may hold.
#[derive(Debug)]
pub(crate) enum Places {
    /// A file each: `root` and the name, or the name alone if it is absolute.
    Files { root: PathBuf, names: Names },
    /// A range each of a container.
    Pieces(Pieces),
}

/// Ranges of files that hold many images.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub containers: Vec<Container>,
    /// What was unpacked or copied from containers, in a file without a name.
    pub spool: Option<File>,
    /// Of every example, in order.
    pub pieces: Vec<Piece>,
    /// What the container calls each; rows that have no names are numbered.
    pub names: Option<Names>,
}

/// A file that holds many images.
#[derive(Debug)]
pub(crate) struct Container {
    pub path: PathBuf,
    /// Its images lie in the spool.
    pub spooled: bool,
    /// The first example that is from here.
    pub first_row: usize,
}

/// Some bytes of a container, at most [`LARGEST_IMAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: u64,
    pub len: u32,
}

impl Places {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Files { names, .. } => names.len(),
            Self::Pieces(all) => all.pieces.len(),
        }
    }

    /// The name of an image, which is the same wherever the data is stored.
    pub(crate) fn name(&self, row: usize) -> Cow<'_, str> {
        match self {
            Self::Files { names, .. } | Self::Pieces(Pieces { names: Some(names), .. }) => {
                names.get(row).into()
            }
            Self::Pieces(_) => row.to_string().into(),
        }
    }

    /// The path of an image in messages: its file, or its container and its place there.
    pub(crate) fn path(&self, row: usize) -> PathBuf {
        match self {
            Self::Files { root, names } => root.join(names.get(row)),
            Self::Pieces(all) => {
                let container = all.container(row);
                container.path.join(match &all.names {
                    Some(names) => names.get(row).into(),
                    None => format!("row {}", row - container.first_row),
                })
            }
        }
    }

    /// Bytes of an image.
    pub(crate) fn size(&self, row: usize) -> Result<u64, DataError> {
        match self {
            Self::Files { .. } => {
                let path = self.path(row);
                let found = std::fs::metadata(&path);
                Ok(found.map_err(|error| DataError::io(&path, error))?.len())
            }
            Self::Pieces(all) => Ok(all.pieces[row].len.into()),
        }
    }

    /// The whole of an image.
    pub(crate) fn bytes(&self, row: usize) -> Result<Vec<u8>, DataError> {
        match self {
            Self::Files { .. } => read_file(&self.path(row)),
            Self::Pieces(all) => all.head(row, usize::MAX),
        }
    }

    /// The first bytes of an image, at most `most`.
    pub(crate) fn head(&self, row: usize, most: usize) -> Result<Vec<u8>, DataError> {
        match self {
            Self::Files { .. } => {
                let path = self.path(row);
                let mut head = vec![];
                let read = open_file(&path)?.take(most as u64).read_to_end(&mut head);
                read.map_err(|error| DataError::io(&path, error))?;
                Ok(head)
            }
            Self::Pieces(all) => all.head(row, most),
        }
    }
}

impl Pieces {
    /// The position in `containers` of the one that holds this example.
    pub(crate) fn container_at(&self, row: usize) -> usize {
        self.containers.partition_point(|container| container.first_row <= row) - 1
    }

    fn container(&self, row: usize) -> &Container {
        &self.containers[self.container_at(row)]
    }

    /// The first bytes of a piece, at most `most`.
    fn head(&self, row: usize, most: usize) -> Result<Vec<u8>, DataError> {
        let container = self.container(row);
        let Piece { start, len } = self.pieces[row];
        let mut bytes = vec![0; most.min(len as usize)];
        match self.spool.as_ref().filter(|_| container.spooled) {
            Some(spool) => read_exact_at(&container.path, spool, &mut bytes, start)?,
            None => {
                read_exact_at(&container.path, &open_file(&container.path)?, &mut bytes, start)?;
            }
        }
        Ok(bytes)
    }
}

/// A file with one image.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    let failed = |error| DataError::io(path, error);
    let file = open_file(path)?;
    let len = file.metadata().map_err(failed)?.len();
    if len > LARGEST_IMAGE {
        return Err(DataError::invalid(path, too_large(len)));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    // The file may have grown meanwhile.
    file.take(LARGEST_IMAGE).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The message about an image that is too large.
pub(crate) fn too_large(len: u64) -> String {
    format!(
        "has {len} bytes; an encoded image has at most {LARGEST_IMAGE} (256 MiB): shrink or \
         remove it"
    )
}
