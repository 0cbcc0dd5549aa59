//! The paths of a recipe.

use std::path::{Component, Path, PathBuf};

use super::{HeldOut, InputSource, NoiseKind, Recipe, Source};
use crate::document::Origin;
use crate::recipe_error::RecipeError;

impl Recipe {
    /// Makes every path relative to `folder` absolute, so that the recipe means the same wherever
    /// it is read. The name after `#`, as in `x.safetensors#embedding`, stays.
    ///
    /// # Errors
    /// When an absolute path is not Unicode, as TOML must be.
    pub fn make_paths_absolute(&mut self, folder: &Path) -> Result<(), RecipeError> {
        let data = &mut self.data;
        source("data.train", &mut data.train, folder)?;
        if let HeldOut::Source(validation) = &mut data.validation {
            source("data.validation", validation, folder)?;
        }
        if let Some(HeldOut::Source(test)) = &mut data.test {
            source("data.test", test, folder)?;
        }
        if let Some(NoiseKind::Matrix { file }) = data.noise.as_mut().map(|noise| &mut noise.kind) {
            text("data.noise.matrix", file, folder)?;
        }
        if let Some(names) = &mut data.class_names {
            path("data.class_names", names, folder)?;
        }
        if let Some(weights) = &mut self.network.pretrained {
            path("network.pretrained", weights, folder)?;
        }
        Ok(())
    }
}

fn source(section: &str, source: &mut Source, folder: &Path) -> Result<(), RecipeError> {
    match &mut source.inputs {
        InputSource::Features(file) => text(&format!("{section}.features"), file, folder)?,
        InputSource::Images(images) => {
            for image in images {
                path(&format!("{section}.images"), image, folder)?;
            }
        }
        InputSource::Digits | InputSource::Memory(_) => {}
    }
    let Source { labels, clean_labels, ids, .. } = source;
    for (name, file) in [("labels", labels), ("clean_labels", clean_labels), ("ids", ids)] {
        if let Some(file) = file {
            text(&format!("{section}.{name}"), file, folder)?;
        }
    }
    Ok(())
}

fn path(key: &str, path: &mut PathBuf, folder: &Path) -> Result<(), RecipeError> {
    *path = absolute(key, path, folder)?.into();
    Ok(())
}

fn text(key: &str, path: &mut String, folder: &Path) -> Result<(), RecipeError> {
    *path = absolute(key, path.as_ref(), folder)?;
    Ok(())
}

fn absolute(key: &str, path: &Path, folder: &Path) -> Result<String, RecipeError> {
    let absolute: PathBuf =
        folder.join(path).components().filter(|part| *part != Component::CurDir).collect();
    absolute.to_str().map(String::from).ok_or_else(|| RecipeError::Impossible {
        origin: Origin::Argument(key.into()),
        message: format!(
            "the absolute path {} cannot be written to a recipe, which is Unicode; rename the \
             folder",
            absolute.display()
        ),
    })
}
