//! Images in a folder for each class, decoded when they are read.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::mapped::open_file;
use super::{InputShape, Inputs, Opened};
use crate::error::{DataError, guarded};
use crate::picture::{self, Frame, Limits, Picture};

/// Endings of files that are images.
const ENDINGS: [&str; 11] =
    ["png", "jpg", "jpeg", "webp", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pnm"];

/// Pixels of a side that images can be brought to, at most.
const LARGEST_SIDE: usize = 1 << 14;

/// Folders in folders at most; deeper ones are a loop of links.
const DEEPEST: usize = 16;

/// Images of one size, or brought to it.
#[derive(Debug)]
pub(crate) struct ImageFolder {
    root: PathBuf,
    /// Paths below `root`, with `/` between folders.
    files: Vec<String>,
    frame: Frame,
    resize: bool,
}

/// Opens `folder/class/…/image.png`; the names of the folders are the classes, in their order.
pub(crate) fn open(root: &Path, framing: &Framing) -> Result<Opened, DataError> {
    let Listing { class_names, files, labels } = list(root)?;
    let inputs = images(root, &files, framing)?;
    Ok(Opened { inputs, labels: Some(labels), class_names: Some(class_names), ids: Some(files) })
}

/// Opens one image, or all images of a folder and the folders in it, whatever their classes.
pub(crate) fn open_unlabelled(path: &Path, framing: &Framing) -> Result<Opened, DataError> {
    let (root, files): (&Path, Vec<String>) = if path.is_dir() {
        let mut files = vec![];
        images_below(path, "", 0, &mut files)?;
        (path, files.iter().map(|file| file.trim_start_matches('/').to_string()).collect())
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().to_string());
        (path.parent().unwrap_or(path), name.into_iter().collect())
    };
    if files.is_empty() {
        let message = "holds no images; give an image, a folder of images, or CIFAR or IDX files";
        return Err(DataError::invalid(path, message));
    }
    let inputs = images(root, &files, framing)?;
    Ok(Opened { inputs, labels: None, class_names: None, ids: Some(files) })
}

/// These files below `root`, all of one size or brought to it.
fn images(root: &Path, files: &[String], framing: &Framing) -> Result<Inputs, DataError> {
    let (width, height) = match framing.size {
        Some(side) if (1..=LARGEST_SIDE).contains(&side) => (side, side),
        Some(side) => {
            let message = format!("image_size is {side}; it must be 1 to {LARGEST_SIDE} pixels");
            return Err(DataError::invalid(root, message));
        }
        None => common_size(root, files)?,
    };
    let frame = Frame::new(framing, width, height);
    let (root_path, files) = (root.to_path_buf(), files.to_vec());
    let folder = ImageFolder { root: root_path, files, frame, resize: framing.size.is_some() };
    Ok(Inputs::of_folder(root, folder))
}

impl ImageFolder {
    pub(crate) fn rows(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn shape(&self) -> InputShape {
        let Frame { height, width, .. } = self.frame;
        InputShape::Image { channels: 3, height, width }
    }

    /// One image as it is stored.
    pub(crate) fn picture(&self, row: usize) -> Result<Picture, DataError> {
        self.decoded_as(row, |bytes| picture::decode(bytes, Limits::DEFAULT))
    }

    /// One image as evaluation sees it.
    pub(crate) fn read(&self, row: usize, out: &mut [f32]) -> Result<(), DataError> {
        if self.resize {
            let cut = |bytes: &[u8]| self.frame.cut_encoded(bytes, Limits::DEFAULT);
            self.frame.numbers(&self.decoded_as(row, cut)?, out);
            return Ok(());
        }
        let picture = self.picture(row)?;
        let (found, expected) =
            ((picture.width, picture.height), (self.frame.width, self.frame.height));
        if found != expected {
            let path = self.root.join(&self.files[row]);
            return Err(other_size(&path, found, expected, "the others"));
        }
        self.frame.numbers(&self.frame.cut(&picture), out);
        Ok(())
    }

    /// What `decode` makes of the content of one file.
    pub(crate) fn decoded_as(
        &self,
        row: usize,
        decode: impl FnOnce(&[u8]) -> Result<Picture, String>,
    ) -> Result<Picture, DataError> {
        let path = self.root.join(&self.files[row]);
        let bytes = content(&path)?;
        guarded(&path, || decode(&bytes).map_err(|what| DataError::invalid(&path, what)))
    }

    /// Names and contents of all files.
    pub(crate) fn fingerprint_into(&self, hasher: &mut blake3::Hasher) -> Result<(), DataError> {
        for file in &self.files {
            let path = self.root.join(file);
            let mut content = blake3::Hasher::new();
            content
                .update_reader(open_file(&path)?)
                .map_err(|error| DataError::io(&path, error))?;
            hasher.update(&(file.len() as u64).to_le_bytes());
            hasher.update(file.as_bytes());
            hasher.update(content.finalize().as_bytes());
        }
        Ok(())
    }
}

struct Listing {
    class_names: Vec<String>,
    files: Vec<String>,
    labels: Vec<u32>,
}

fn list(root: &Path) -> Result<Listing, DataError> {
    let classes = folders_in(root)?;
    let invalid = |path: &Path, message: String| Err(DataError::invalid(path, message));
    if classes.is_empty() {
        let advice = "put the images of each class into a folder with the class's name";
        return invalid(root, format!("has no folders of classes; {advice}"));
    }
    let is = |name: &str, names: &[&str]| names.contains(&name.to_lowercase().as_str());
    if let Some((train, _)) = classes.iter().find(|(name, _)| is(name, &["train", "training"]))
        && classes.iter().any(|(name, _)| is(name, &["test", "val", "valid", "validation"]))
    {
        let one = root.join(train);
        let message = format!("holds splits, not classes; name one of them: {}", one.display());
        return invalid(root, message);
    }
    let (mut files, mut labels) = (vec![], vec![]);
    for ((name, path), class) in classes.iter().zip(0..) {
        images_below(path, name, 1, &mut files)?;
        if files.len() == labels.len() {
            let endings = ENDINGS.join(", ");
            return invalid(path, format!("has no images ({endings}); add some or remove it"));
        }
        labels.resize(files.len(), class);
    }
    let class_names = classes.into_iter().map(|(name, _)| name).collect();
    Ok(Listing { class_names, files, labels })
}

/// Appends all images at any depth, as paths that begin with `prefix`.
fn images_below(
    folder: &Path,
    prefix: &str,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<(), DataError> {
    check_depth(folder, depth)?;
    for (name, path) in entries(folder)? {
        let below = format!("{prefix}/{name}");
        if path.is_dir() {
            images_below(&path, &below, depth + 1, out)?;
        } else if is_image(&path) {
            out.push(below);
        }
    }
    Ok(())
}

/// Any image at any depth.
pub(crate) fn any_image(folder: &Path) -> Result<Option<PathBuf>, DataError> {
    fn search(folder: &Path, depth: usize) -> Result<Option<PathBuf>, DataError> {
        check_depth(folder, depth)?;
        let (folders, files): (Vec<_>, Vec<_>) =
            entries(folder)?.into_iter().map(|(_, path)| path).partition(|path| path.is_dir());
        if let Some(image) = files.into_iter().find(|path| is_image(path)) {
            return Ok(Some(image));
        }
        for folder in folders {
            if let Some(image) = search(&folder, depth + 1)? {
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
pub(crate) fn folders_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, DataError> {
    let mut entries = entries(folder)?;
    entries.retain(|(_, path)| path.is_dir());
    Ok(entries)
}

/// Everything visible in a folder, sorted by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, DataError> {
    let failed = |error| DataError::io(folder, error);
    let mut entries = vec![];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(DataError::invalid(&path, "has a name that is not UTF-8; rename it"));
        };
        if !name.starts_with('.') {
            entries.push((name.to_string(), path));
        }
    }
    entries.sort();
    Ok(entries)
}

/// Whether the name says that a file is an image.
pub(crate) fn is_image(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// Width and height of all images, by their headers.
fn common_size(root: &Path, files: &[String]) -> Result<(usize, usize), DataError> {
    let mut first = None;
    for file in files {
        let path = root.join(file);
        let size = size_of(&path)?;
        let expected = *first.get_or_insert(size);
        if size != expected {
            return Err(other_size(&path, size, expected, &files[0]));
        }
    }
    Ok(first.unwrap_or_default())
}

/// Width and height of one image as it is seen.
pub(crate) fn size_of(path: &Path) -> Result<(usize, usize), DataError> {
    let bytes = content(path)?;
    guarded(path, || {
        picture::size_of(&bytes, Limits::DEFAULT).map_err(|what| DataError::invalid(path, what))
    })
}

fn content(path: &Path) -> Result<Vec<u8>, DataError> {
    fs::read(path).map_err(|error| DataError::io(path, error))
}

fn other_size(
    path: &Path,
    found: (usize, usize),
    expected: (usize, usize),
    like: &str,
) -> DataError {
    let message = format!(
        "is {} × {} pixels, not {} × {} as {like}; set data.image_size to bring all images to \
         one size",
        found.0, found.1, expected.0, expected.1
    );
    DataError::invalid(path, message)
}
