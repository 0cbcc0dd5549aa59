//! Opening files in directories that somebody else may have made: a run from the network, a folder
//! of data, an audit in a repository.
//!
//! Two promises. What is read is a regular file, or a link to one: a named pipe, a socket or a
//! device is refused without waiting for it. What is written lies where its name says: a symbolic
//! link inside a run, a group or an audit is never followed to write, cut, lock or remove
//! something. The directory that a user names may itself be a link.
//!
//! Both hold for whatever a directory contains when a command meets it. The last part of a path is
//! also safe from a program that exchanges it at the same moment, since the system is asked not to
//! follow it and the open file is looked at again. Folders above it are looked at once: who may
//! exchange them during the work may write there anyway.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// Opens a regular file to read it, or the one that a link leads to.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let error = aleator_run::open_file(folder.path()).unwrap_err();
/// assert_eq!(error.to_string(), "it is a directory; a file was expected");
/// ```
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] when it is anything else, or as [`File::open`].
pub fn open_file(path: &Path) -> io::Result<File> {
    // Before opening, because that alone can have effects on a device or on who writes to a pipe.
    check_file(fs::metadata(path)?.file_type())?;
    let file = without_waiting(File::options().read(true), 0).open(path)?;
    check_file(file.metadata()?.file_type())?;
    Ok(file)
}

/// Refuses, before another library opens a path, what is there and is not a regular file. Whether
/// there is a file is for the library to say.
pub fn check_kind(path: &Path) -> io::Result<()> {
    fs::metadata(path).map_or(Ok(()), |found| check_file(found.file_type()))
}

/// The content of a regular file: as [`fs::read`], but see [`open_file`].
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text in a regular file: as [`fs::read_to_string`], but see [`open_file`].
pub fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open_file(path)?)
}

/// Opens a file that this program writes, by options that say how.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use std::fs::File;
///
/// let options = File::options().create(true).append(true).clone();
/// let journal = folder.path().join("decisions.jsonl");
/// aleator_run::open_own(&journal, &options)?;
/// # #[cfg(unix)] {
/// let link = folder.path().join("link");
/// std::os::unix::fs::symlink(&journal, &link)?;
/// assert!(aleator_run::open_own(&link, &options).is_err());
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When there is a link of this name or anything else but a regular file, or as
/// [`OpenOptions::open`].
pub fn open_own(path: &Path, options: &OpenOptions) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) => check_file(found.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = without_waiting(&mut options.clone(), NO_LINK).open(path)?;
    check_file(file.metadata()?.file_type())?;
    Ok(file)
}

/// Refuses a folder that this program writes to, `inside` the directory `root`, when it or a folder
/// on the way is a link or no folder. It need not exist.
pub fn check_own_folder(root: &Path, inside: impl AsRef<Path>) -> Result<(), RunError> {
    let mut path = root.to_path_buf();
    for part in inside.as_ref() {
        path.push(part);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RunError::io("look at", &path)(error)),
        };
        if !found.is_dir() {
            return Err(RunError::io("use", &path)(unexpected(found, "directory")));
        }
    }
    Ok(())
}

/// The folder `inside` the directory `root`, made where it does not exist.
///
/// ```
/// # let run = tempfile::tempdir().unwrap();
/// let figures = aleator_run::create_own_folder(run.path(), "figures")?;
/// assert!(figures.is_dir());
/// # Ok::<(), aleator_run::RunError>(())
/// ```
///
/// # Errors
/// As [`check_own_folder`], or when it cannot be made.
pub fn create_own_folder(root: &Path, inside: impl AsRef<Path>) -> Result<PathBuf, RunError> {
    check_own_folder(root, &inside)?;
    let path = root.join(inside);
    fs::create_dir_all(&path).map_err(RunError::io("create", &path))?;
    Ok(path)
}

fn check_file(found: FileType) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(unexpected(found, "file")) }
}

fn unexpected(found: FileType, expected: &str) -> io::Error {
    let message = if found.is_symlink() {
        format!(
            "it is a symbolic link, which may lead out of this directory; put the {expected} \
             itself in its place"
        )
    } else {
        format!("it is {}; a {expected} was expected", in_words(found))
    };
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(unix)]
fn in_words(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match found {
        it if it.is_file() => "a file",
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a named pipe",
        it if it.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn in_words(found: FileType) -> &'static str {
    match found {
        it if it.is_file() => "a file",
        it if it.is_dir() => "a directory",
        _ => "not a regular file",
    }
}

/// Does not follow a link in the last part of a path; where there is one, opening fails.
#[cfg(unix)]
const NO_LINK: i32 = libc::O_NOFOLLOW;

/// A regular file is opened as ever; nothing else makes the program wait or becomes its terminal.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions, flags: i32) -> &OpenOptions {
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        libc::O_NONBLOCK | libc::O_NOCTTY | flags,
    )
}

/// `FILE_FLAG_OPEN_REPARSE_POINT`: opens a link itself, which is then refused.
#[cfg(windows)]
const NO_LINK: u32 = 0x0020_0000;

#[cfg(windows)]
fn without_waiting(options: &mut OpenOptions, flags: u32) -> &OpenOptions {
    std::os::windows::fs::OpenOptionsExt::custom_flags(options, flags)
}
