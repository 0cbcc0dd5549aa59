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
            absolute("data.noise.matrix", file, folder)?;
        }
        if let Some(names) = &mut data.class_names {
            absolute("data.class_names", names, folder)?;
        }
        if let Some(weights) = &mut self.network.pretrained {
            absolute("network.pretrained", weights, folder)?;
        }
        Ok(())
    }
}

fn source(section: &str, source: &mut Source, folder: &Path) -> Result<(), RecipeError> {
    match &mut source.inputs {
        InputSource::Features(file) => absolute(&format!("{section}.features"), file, folder)?,
        InputSource::Table(table) => {
            absolute(&format!("{section}.table"), &mut table.file, folder)?;
        }
        InputSource::Images(images) => {
            for image in images {
                absolute(&format!("{section}.images"), image, folder)?;
            }
        }
        InputSource::Digits | InputSource::Memory(_) => {}
    }
    let Source { labels, clean_labels, ids, .. } = source;
    for (name, file) in [("labels", labels), ("clean_labels", clean_labels), ("ids", ids)] {
        if let Some(file) = file {
            absolute(&format!("{section}.{name}"), file, folder)?;
        }
    }
    Ok(())
}

fn absolute<P>(key: &str, path: &mut P, folder: &Path) -> Result<(), RecipeError>
where
    P: AsRef<Path> + From<String>,
{
    let absolute: PathBuf =
        folder.join(&*path).components().filter(|part| *part != Component::CurDir).collect();
    let text = absolute.to_str().ok_or_else(|| {
        Origin::Argument(key.into()).refuse(format!(
            "the absolute path {} cannot be written to a recipe, which is Unicode; rename the \
             folder",
            absolute.display()
        ))
    })?;
    *path = text.to_string().into();
    Ok(())
}
