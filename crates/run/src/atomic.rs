//! Files and folders that appear complete or not at all.
//!
//! Everything is written under a temporary name beside its place, brought to the disk, and
//! renamed. Whatever kills the program leaves the old content or the new one, and perhaps
//! leftovers under temporary names, which [`remove_leftovers`] takes away.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::RunError;
use crate::regular::{open_own, read_text};

/// The prefix of unfinished files and directories, which can be removed.
const UNFINISHED: &str = ".tmp";

/// A folder that is being replaced; it comes back if its successor never arrived.
const REPLACED: &str = ".old-";

/// Writes a file so that its name never stands for half of it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("evaluation.json");
/// aleator_run::write_file(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"{}");
/// # Ok::<(), aleator_run::RunError>(())
/// ```
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_file_by(path, |temporary| {
        let file = open_own(temporary, File::options().write(true));
        file.and_then(|mut file| file.write_all(bytes)).map_err(RunError::io("write", path))
    })
}

/// As [`write_file`], for content that `write` puts into the empty temporary file that it is told.
pub fn write_file_by<E: From<RunError>>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = Temporary(temporary_sibling(path)?);
    write_by_default(&temporary.0, path, write)?;
    sync(&temporary.0)?;
    fs::rename(&temporary.0, path).map_err(RunError::io("write", path))?;
    sync_parent(path)?;
    Ok(())
}

/// Gives a new file the permissions that this process gives to every file, whatever those are that
/// `write` leaves it with. Libraries that write through temporary files of their own make them
/// readable to their owner alone.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use std::fs;
///
/// let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions();
/// fs::write(folder.path().join("any"), b"").unwrap();
/// let path = folder.path().join("weights.safetensors");
/// aleator_run::with_default_permissions(&path, |path| {
///     tempfile::NamedTempFile::new_in(folder.path()).unwrap().persist(path).unwrap();
///     Ok::<(), aleator_run::RunError>(())
/// })?;
/// assert_eq!(mode("weights.safetensors"), mode("any"));
/// # Ok::<(), aleator_run::RunError>(())
/// ```
pub fn with_default_permissions<E: From<RunError>>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    write_by_default(path, path, write)
}

/// As [`with_default_permissions`]; errors name `place`, where the file goes.
fn write_by_default<E: From<RunError>>(
    path: &Path,
    place: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let created = open_own(path, File::options().write(true).create_new(true));
    let created = created.and_then(|file| file.metadata());
    let default = created.map_err(RunError::io("write", place))?.permissions();
    write(path)?;
    let give = || {
        let file = open_own(path, File::options().read(true))?;
        if file.metadata()?.permissions() == default {
            Ok(())
        } else {
            file.set_permissions(default)
        }
    };
    Ok(give().map_err(RunError::io("write", place))?)
}

/// Writes a JSON file, with a line break at its end.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| RunError::damaged(path, error))?;
    write_file(path, (text + "\n").as_bytes())
}

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    let text = read_text(path).map_err(RunError::io("read", path))?;
    serde_json::from_str(&text).map_err(|error| RunError::damaged(path, error))
}

/// A folder that is filled under a temporary name and takes its place when it is complete.
///
/// Dropped before [`commit`](Self::commit), it leaves nothing.
///
/// ```
/// # let runs = tempfile::tempdir().unwrap();
/// use aleator_run::AtomicFolder;
///
/// let place = runs.path().join("step-100");
/// let folder = AtomicFolder::create(&place)?;
/// std::fs::write(folder.path().join("weights.safetensors"), b"...").unwrap();
/// assert!(!place.exists());
/// folder.commit()?;
/// assert!(place.join("weights.safetensors").exists());
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: Temporary,
    place: PathBuf,
}

impl AtomicFolder {
    /// An empty folder beside `place`, whose parent must exist.
    pub fn create(place: &Path) -> Result<Self, RunError> {
        let temporary = temporary_sibling(place)?;
        fs::create_dir(&temporary).map_err(RunError::io("create", place))?;
        Ok(Self { temporary: Temporary(temporary), place: place.to_path_buf() })
    }

    /// As [`create`](Self::create), with the parents of `place`, where nothing but an empty folder
    /// may be.
    pub fn create_new(place: &Path) -> Result<Self, RunError> {
        check_vacant(place)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(RunError::io("create", parent))?;
        }
        Self::create(place)
    }

    /// Where to write the content.
    pub fn path(&self) -> &Path {
        &self.temporary.0
    }

    /// Brings the content to the disk and the folder to its place; a folder that stood there is
    /// gone afterwards.
    pub fn commit(self) -> Result<(), RunError> {
        sync_tree(&self.temporary.0)?;
        let old = sibling(&self.place, REPLACED)?;
        let replaces = exists(&self.place)?;
        if replaces {
            remove(&old)?;
            fs::rename(&self.place, &old).map_err(RunError::io("replace", &self.place))?;
        }
        if let Err(source) = fs::rename(&self.temporary.0, &self.place) {
            if replaces {
                fs::rename(&old, &self.place).map_err(RunError::io("restore", &self.place))?;
            }
            return Err(RunError::io("write", &self.place)(source));
        }
        sync_parent(&self.place)?;
        if replaces { remove(&old) } else { Ok(()) }
    }

    /// As [`commit`](Self::commit), but refuses to replace anything except an empty folder.
    pub fn commit_new(self) -> Result<(), RunError> {
        sync_tree(&self.temporary.0)?;
        let place = &self.place;
        if_there(fs::remove_dir(place)).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty => RunError::Exists { path: place.clone() },
            _ => RunError::NotReplaceable { path: place.clone(), source },
        })?;
        fs::rename(&self.temporary.0, place).map_err(RunError::io("create", place))?;
        sync_parent(place)
    }
}

/// A file that is written under a temporary name and takes its place when it is complete.
///
/// Dropped before [`commit`](Self::commit), it leaves nothing.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    /// Where to write the content.
    pub file: File,
    temporary: Temporary,
    place: PathBuf,
}

impl AtomicFile {
    /// An empty file beside `place`, whose parent must exist.
    pub fn create(place: &Path) -> Result<Self, RunError> {
        let temporary = Temporary(temporary_sibling(place)?);
        let file = open_own(&temporary.0, File::options().write(true).create_new(true))
            .map_err(RunError::io("write", place))?;
        Ok(Self { file, temporary, place: place.to_path_buf() })
    }

    /// Where the file goes.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Brings the content to the disk and the file to its place.
    pub fn commit(self) -> Result<(), RunError> {
        let Self { file, temporary, place } = self;
        file.sync_all().map_err(RunError::io("write", &place))?;
        drop(file);
        fs::rename(&temporary.0, &place).map_err(RunError::io("write", &place))?;
        sync_parent(&place)
    }
}

/// Removes a folder and all that is in it, so that its name never stands for a part of it; one
/// that is not there is removed already.
pub fn remove_folder(path: &Path) -> Result<(), RunError> {
    let temporary = temporary_sibling(path)?;
    let moved = if_there(fs::rename(path, &temporary)).map_err(RunError::io("remove", path))?;
    if moved.is_some() {
        sync_parent(path)?;
        remove(&temporary)?;
    }
    Ok(())
}

/// Takes away what killed writers left in a folder, and brings back what they were replacing.
///
/// Only the one process that may write to the folder may call this: [`lock_folder`] does. A folder
/// that does not exist has no leftovers.
///
/// [`lock_folder`]: crate::lock_folder
pub fn remove_leftovers(folder: &Path) -> Result<(), RunError> {
    let entries = if_there(fs::read_dir(folder)).map_err(RunError::io("read", folder))?;
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(RunError::io("read", folder))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(UNFINISHED) {
            remove(&entry.path())?;
        } else if let Some(original) = name.strip_prefix(REPLACED) {
            let place = folder.join(original);
            let kind = entry.file_type().map_err(RunError::io("look at", folder))?;
            // No link of this name is from here: what is replaced was a folder.
            if !kind.is_dir() || exists(&place)? {
                remove(&entry.path())?;
            } else {
                fs::rename(entry.path(), &place).map_err(RunError::io("restore", &place))?;
            }
        }
    }
    Ok(())
}

/// Takes away what killed writers of one file left beside it, which only its one writer may do.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let left = folder.path().join(".tmp-4711-0-x.progress");
/// std::fs::write(&left, b"{").unwrap();
/// aleator_run::remove_leftovers_of(&folder.path().join("x.progress"))?;
/// assert!(!left.exists());
/// # Ok::<(), aleator_run::RunError>(())
/// ```
pub fn remove_leftovers_of(path: &Path) -> Result<(), RunError> {
    let folder = parent(path);
    let suffix = sibling(path, "-")?;
    let suffix = suffix.file_name().unwrap_or_default().as_encoded_bytes();
    // The file that it is for says more than its folder, which may be ".".
    let failed = || RunError::io("look for leftovers of", path);
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(UNFINISHED.as_bytes());
        let numbers = rest.and_then(|rest| rest.strip_suffix(suffix));
        let counted = |numbers: &[u8]| numbers.iter().all(|it| it.is_ascii_digit() || *it == b'-');
        if numbers.is_some_and(counted) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removed when dropped; after the rename there is nothing to remove.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // An error here hides no other: what stays has a temporary name and is cleaned up later.
        let _ = remove(&self.0);
    }
}

/// A name beside `path` that no other writer uses.
fn temporary_sibling(path: &Path) -> Result<PathBuf, RunError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = sibling(path, &format!("{UNFINISHED}-{}-{count}-", std::process::id()))?;
    // A process of the same number may have died here.
    remove(&temporary)?;
    Ok(temporary)
}

fn sibling(path: &Path, prefix: &str) -> Result<PathBuf, RunError> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path ends in no file name");
    let name: &OsStr = path.file_name().ok_or_else(|| RunError::io("write", path)(no_name()))?;
    let mut temporary = OsString::from(prefix);
    temporary.push(name);
    Ok(path.with_file_name(temporary))
}

/// Refuses a path where something other than an empty folder is.
pub fn check_vacant(path: &Path) -> Result<(), RunError> {
    let is_empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if exists(path)? && !is_empty {
        return Err(RunError::Exists { path: path.to_path_buf() });
    }
    Ok(())
}

/// Whether there is anything of this name, be it a link that leads nowhere.
pub(crate) fn exists(path: &Path) -> Result<bool, RunError> {
    let found = if_there(fs::symlink_metadata(path)).map_err(RunError::io("look at", path))?;
    Ok(found.is_some())
}

/// What the operating system says of a file or folder; `None` if there is none.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes a file, a link or a whole folder, if it is there.
fn remove(path: &Path) -> Result<(), RunError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    if_there(removed).map(drop).map_err(RunError::io("remove", path))
}

fn sync(path: &Path) -> Result<(), RunError> {
    // Windows flushes only what is open for writing; elsewhere a file may be read-only.
    let file = File::options().read(true).write(cfg!(windows)).open(path);
    file.and_then(|file| file.sync_all()).map_err(RunError::io("write", path))
}

/// Files first, then the folder that names them.
fn sync_tree(folder: &Path) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        if path.is_dir() { sync_tree(&path)? } else { sync(&path)? }
    }
    sync_folder(folder)
}

/// Brings the name of a file or folder to the disk. An error names it, not the folder that it is
/// in, which may be "." and tells nobody anything.
fn sync_parent(path: &Path) -> Result<(), RunError> {
    sync_folder(parent(path)).map_err(|error| match error {
        RunError::Io { action, source, .. } => RunError::io(action, path)(source),
        other => other,
    })
}

/// The folder that a path is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Brings the names in a folder to the disk, where the system has a way to ask for it.
fn sync_folder(folder: &Path) -> Result<(), RunError> {
    if cfg!(unix) { sync(folder) } else { Ok(()) }
}
