//! Images in a folder for each class.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::encoded::{self, Places};
use super::{CarriedLabels, Opened};
use crate::ending::{self, Ending};
use crate::error::DataError;

/// The deepest nesting of folders; deeper ones are a loop of links.
const DEEPEST: usize = 16;

/// Opens `folder/class/…/image.png`; the names of the folders are the classes, in their order.
pub(crate) fn open(root: &Path, framing: &Framing) -> Result<Opened, DataError> {
    let mut classes = folders_in(root)?;
    let invalid = |path: &Path, message: String| Err(DataError::invalid(path, message));
    if classes.is_empty() {
        let advice = "put the images of each class into a folder with the class's name";
        return invalid(root, format!("has no folders of classes; {advice}"));
    }
    let names: Vec<String> = classes.iter().map(|path| short(path)).collect();
    let is = |name: &str, names: &[&str]| names.contains(&name.to_lowercase().as_str());
    if let Some(train) = names.iter().find(|name| is(name, &["train", "training"]))
        && names.iter().any(|name| is(name, &["test", "val", "valid", "validation"]))
    {
        let one = root.join(train);
        let message = format!("holds splits, not classes; name one of them: {}", one.display());
        return invalid(root, message);
    }
    let empty = empty_classes(root)?;
    classes.retain(|path| !empty.contains(path));
    if classes.is_empty() {
        let endings = ending::IMAGES.join(", ");
        return invalid(root, format!("has no images in its folders ({endings})"));
    }
    let class_names: Vec<String> = classes.iter().map(|path| short(path)).collect();
    let (mut files, mut labels) = (vec![], vec![]);
    for ((path, name), class) in classes.iter().zip(&class_names).zip(0..) {
        images_below(path, name, 1, &mut files)?;
        labels.resize(files.len(), class);
    }
    let labels = Some(CarriedLabels::Classes(labels));
    Ok(Opened { labels, class_names: Some(class_names), ..open_files(root, files, framing)? })
}

/// The folders in a folder of classes that hold no image: they are left out.
///
/// # Errors
/// When a folder cannot be read.
pub fn empty_classes(root: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut empty = vec![];
    for path in folders_in(root)? {
        if any_image(&path)?.is_none() {
            empty.push(path);
        }
    }
    Ok(empty)
}

/// Opens one image, or all images of a folder and the folders in it, whatever their classes.
pub(crate) fn open_unlabelled(path: &Path, framing: &Framing) -> Result<Opened, DataError> {
    let (root, files): (&Path, Vec<String>) = if path.is_dir() {
        let mut files = vec![];
        images_below(path, "", 0, &mut files)?;
        (path, files.iter().map(|file| file.trim_start_matches('/').to_string()).collect())
    } else {
        (path.parent().unwrap_or(path), vec![short(path)])
    };
    if files.is_empty() {
        let message = "holds no images; give an image, a folder of images, or CIFAR or IDX files";
        return Err(DataError::invalid(path, message));
    }
    open_files(root, files, framing)
}

fn open_files(root: &Path, files: Vec<String>, framing: &Framing) -> Result<Opened, DataError> {
    let places = Places::Files { root: root.to_path_buf(), names: files.iter().collect() };
    Ok(Opened { ids: Some(files), ..Opened::new(encoded::open(root, places, framing)?) })
}

/// Appends all images at any depth, as paths that begin with `prefix`.
fn images_below(
    folder: &Path,
    prefix: &str,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<(), DataError> {
    check_depth(folder, depth)?;
    for Entry { name, is_folder } in entries(folder)? {
        let below = format!("{prefix}/{name}");
        if is_folder {
            images_below(&folder.join(name), &below, depth + 1, out)?;
        } else if is_image(Path::new(&name)) {
            out.push(below);
        }
    }
    Ok(())
}

/// Any image at any depth.
pub(crate) fn any_image(folder: &Path) -> Result<Option<PathBuf>, DataError> {
    fn search(folder: &Path, depth: usize) -> Result<Option<PathBuf>, DataError> {
        check_depth(folder, depth)?;
        let (folders, files): (Vec<Entry>, Vec<Entry>) =
            entries(folder)?.into_iter().partition(|entry| entry.is_folder);
        if let Some(image) = files.iter().find(|entry| is_image(Path::new(&entry.name))) {
            return Ok(Some(folder.join(&image.name)));
        }
        for entry in folders {
            if let Some(image) = search(&folder.join(entry.name), depth + 1)? {
                return Ok(Some(image));
            }
        }
        Ok(None)
    }
    search(folder, 1)
}

fn check_depth(folder: &Path, depth: usize) -> Result<(), DataError> {
    if depth <= DEEPEST {
        return Ok(());
    }
    let message = format!("lies {DEEPEST} folders deep; is there a link to a folder above it?");
    Err(DataError::invalid(folder, message))
}

/// Visible folders in a folder, sorted by name.
pub(crate) fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    paths_in(folder, true)
}

/// Visible files in a folder, sorted by name.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    paths_in(folder, false)
}

fn paths_in(folder: &Path, folders: bool) -> Result<Vec<PathBuf>, DataError> {
    let wanted = entries(folder)?.into_iter().filter(|entry| entry.is_folder == folders);
    Ok(wanted.map(|entry| folder.join(entry.name)).collect())
}

/// The last part of a path.
pub(crate) fn short(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

/// A file or folder in a folder.
pub(crate) struct Entry {
    pub name: String,
    pub is_folder: bool,
}

/// Everything visible in a folder, sorted by name. Only links are followed one by one, so that
/// a folder of many files is listed quickly.
pub(crate) fn entries(folder: &Path) -> Result<Vec<Entry>, DataError> {
    let failed = |error| DataError::io(folder, error);
    let mut entries = vec![];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            let message = "has a name that is not UTF-8; rename it";
            return Err(DataError::invalid(entry.path(), message));
        };
        if !name.starts_with('.') {
            entries.push(Entry { is_folder: is_folder(&entry), name });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn is_folder(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        _ => entry.path().is_dir(),
    }
}

/// Whether the name says that a file is an image.
pub(crate) fn is_image(path: &Path) -> bool {
    Ending::of(path) == Some(Ending::Image)
}

/// Width and height of one image as it is seen.
pub(crate) fn size_of(path: &Path) -> Result<(usize, usize), DataError> {
    encoded::size_of(path, &encoded::read_file(path)?)
}
