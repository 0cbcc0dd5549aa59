//! The images at a path, split by split.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aleator_data::inputs::recognise::{Family, recognise};
use aleator_data::inputs::{CarriedLabels, InputShape, Opened};
use aleator_data::{DataError, Inputs};
use aleator_run::recipe::{Framing, HeldOut, InputSource};

use crate::error::EmbedError;

/// The images of one output file.
#[derive(Debug)]
pub struct Source {
    /// `"validation"` or `"test"`; `None` for the training split, or if there are no splits.
    pub split: Option<&'static str>,
    /// Their path.
    pub path: PathBuf,
    /// The images, with labels and ids if they are known.
    pub opened: Opened,
}

impl Source {
    /// The file of this split: `F-test.safetensors` next to `F.safetensors`.
    ///
    /// ```
    /// # use aleator_embed::Source;
    /// # let opened = aleator_data::digits::open()?;
    /// let source = Source { split: Some("test"), path: "digits".into(), opened };
    /// let file = source.file("out/digits.safetensors".as_ref());
    /// assert_eq!(file, std::path::Path::new("out/digits-test.safetensors"));
    /// # Ok::<(), aleator_data::DataError>(())
    /// ```
    pub fn file(&self, out: &Path) -> PathBuf {
        let Some(split) = self.split else { return out.to_path_buf() };
        let mut name: OsString = out.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("-{split}"));
        if let Some(ending) = out.extension() {
            name.push(".");
            name.push(ending);
        }
        out.with_file_name(name)
    }
}

/// Opens the images at `paths`, in any format of [`Inputs`]. A directory with several splits gives
/// one source for each, training first; their labels have the same classes.
///
/// # Errors
/// When there are none, or they cannot be opened.
pub fn open_sources(paths: &[PathBuf], framing: &Framing) -> Result<Vec<Source>, EmbedError> {
    let [path] = paths else { return Ok(vec![open(None, paths.to_vec(), framing)?]) };
    let sources = match path.is_dir().then(|| recognise(path)) {
        Some(Ok(found)) if found.preset_family == Family::Images => {
            let inputs = |held_out| match held_out {
                Some(HeldOut::Source(source)) => Some(source.inputs),
                _ => None,
            };
            let splits = [
                (None, Some(found.train.inputs)),
                (Some("validation"), inputs(found.data.validation)),
                (Some("test"), inputs(found.data.test)),
            ];
            let mut sources = vec![];
            for (split, inputs) in splits {
                if let Some(InputSource::Images(paths)) = inputs {
                    sources.push(open(split, paths, framing)?);
                }
            }
            sources
        }
        Some(Ok(_)) => {
            let message = "holds embeddings, not images: train on it with --data";
            return Err(DataError::invalid(path, message).into());
        }
        Some(Err(error @ DataError::Io { .. })) => return Err(error.into()),
        // Splits must not be mixed in one file.
        Some(Err(error)) if path.join("train").is_dir() => return Err(error.into()),
        Some(Err(_)) | None => vec![open(None, paths.to_vec(), framing)?],
    };
    with_same_classes(sources)
}

/// With labels if the files have them; a directory of one class has none.
fn open(
    split: Option<&'static str>,
    paths: Vec<PathBuf>,
    framing: &Framing,
) -> Result<Source, EmbedError> {
    let path = paths[0].clone();
    let source = InputSource::Images(paths);
    let opened = match Inputs::open(&source, framing) {
        Ok(opened) if opened.class_names.as_ref().is_none_or(|names| names.len() > 1) => opened,
        // Without its classes, embeddings of a folder that cannot be read would have no labels.
        Err(error @ DataError::Io { .. }) => return Err(error.into()),
        Ok(_) | Err(_) => Inputs::open_unlabelled(&source, framing).map_err(in_words)?,
    };
    match opened.inputs.shape() {
        InputShape::Image { .. } => Ok(Source { split, path, opened: opened.in_classes() }),
        InputShape::Features(_) => Err(DataError::invalid(path, "holds no images").into()),
    }
}

/// A directory without images is not a request for directories of classes.
fn in_words(error: DataError) -> DataError {
    match error {
        DataError::Invalid { path, message } if path.is_dir() => {
            let known = "a folder of images, one for each class, CIFAR or IDX files";
            DataError::invalid(path, format!("holds no images; give {known} ({message})"))
        }
        other => other,
    }
}

/// Gives the classes of all sources the numbers of the first source.
fn with_same_classes(mut sources: Vec<Source>) -> Result<Vec<Source>, EmbedError> {
    let [first, others @ ..] = &mut sources[..] else { return Ok(sources) };
    let Some(names) = &first.opened.class_names else { return Ok(sources) };
    for other in others {
        let Some(own) = &other.opened.class_names else { continue };
        let class = |name: &String| match names.iter().position(|known| known == name) {
            Some(class) => Ok(class as u32),
            None => Err(DataError::invalid(
                &other.path,
                format!(
                    "has the class {name:?}, which {} has not; correct the name of the folder, \
                     or embed the two separately",
                    first.path.display()
                ),
            )),
        };
        let classes = own.iter().map(class).collect::<Result<Vec<u32>, _>>()?;
        if let Some(CarriedLabels::Classes(labels)) = &mut other.opened.labels {
            labels.iter_mut().for_each(|label| *label = classes[*label as usize]);
        }
        other.opened.class_names = Some(names.clone());
    }
    Ok(sources)
}
