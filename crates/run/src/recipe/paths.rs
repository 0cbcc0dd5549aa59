//! The paths of a recipe.

use std::path::{Component, Path, PathBuf};

use super::{
    ClassErrors, Curriculum, Data, HeldOut, InputSource, Method, NoiseKind, Recipe, Source,
    Transitions,
};
use crate::document::Origin;
use crate::recipe_error::RecipeError;

impl Recipe {
    /// Makes every path relative to `folder` absolute, so that the recipe means the same wherever
    /// it is read. The name after `#`, as in `x.safetensors#embedding`, stays.
    ///
    /// # Errors
    /// When an absolute path is not Unicode, as TOML must be.
    pub fn make_paths_absolute(&mut self, folder: &Path) -> Result<(), RecipeError> {
        let absolute = |key: &str, path: &Path| {
            let parts = folder.join(path);
            let parts = parts.components().filter(|part| *part != Component::CurDir);
            text(key, &parts.collect::<PathBuf>())
        };
        self.data.map_paths(&absolute)?;
        if let Some((key, file)) = self.method.file() {
            replace(key, file, &absolute)?;
        }
        if let Some(weights) = &mut self.network.pretrained {
            *weights = absolute("network.pretrained", weights)?.into();
        }
        Ok(())
    }
}

impl Method {
    /// The file of the method's settings, and its key; no method has several.
    fn file(&mut self) -> Option<(&'static str, &mut String)> {
        match self {
            Self::ForwardCorrection { forward_correction } => {
                match &mut forward_correction.transitions {
                    Transitions::File { matrix } => Some(("forward_correction.matrix", matrix)),
                    Transitions::Estimated { .. } => None,
                }
            }
            Self::Har { har } => match &mut har.errors {
                ClassErrors::File { class_errors } => Some(("har.class_errors", class_errors)),
                ClassErrors::Validation { .. } | ClassErrors::Folds { .. } => None,
            },
            Self::MentorNet { mentornet } => match &mut mentornet.curriculum {
                Curriculum::Learned { verified, .. } => Some(("mentornet.verified", verified)),
                _ => None,
            },
            Self::CleanNet { cleannet } => Some(("cleannet.verified", &mut cleannet.verified)),
            _ => None,
        }
    }
}

impl Data {
    /// The same data after they were moved: `place` is where the training inputs are now, or the
    /// folder that holds all files. `None` where some file is neither there nor in its old place.
    ///
    /// ```
    /// use aleator_run::recipe::{Data, HeldOut, InputSource, Source};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let new = folder.path();
    /// # std::fs::write(new.join("x.npy"), "")?;
    /// # std::fs::write(new.join("y.npy"), "")?;
    /// let inputs = InputSource::Features("/old/x.npy".to_string());
    /// let train = Source { labels: Some("/old/y.npy".to_string()), ..Source::of(inputs) };
    /// let data = Data::of(train, HeldOut::Fraction { fraction: 0.1, seed: 0 });
    /// let moved = data.moved_to(new)?.expect("both files are there");
    /// assert_eq!(moved.train.labels, Some(new.join("y.npy").display().to_string()));
    /// assert!(data.moved_to(&new.join("elsewhere"))?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a new path is not Unicode, as TOML must be.
    pub fn moved_to(&self, place: &Path) -> Result<Option<Self>, RecipeError> {
        let Some(inputs) = self.train.inputs.path() else { return Ok(None) };
        let (old, _) = named(inputs);
        // Which old folder may be which new one, in the order in which they are tried.
        let mut folders: Vec<(&Path, &Path)> = vec![];
        if place.is_dir() {
            folders.extend(old.ancestors().skip(1).map(|folder| (folder, place)));
            if matches!(self.train.inputs, InputSource::Images(_)) {
                folders.push((&old, place));
            }
        } else {
            let parents = old.ancestors().zip(place.ancestors()).skip(1);
            for (from, to) in parents {
                folders.push((from, to));
                if from.file_name() != to.file_name() {
                    break;
                }
            }
        }
        for (from, to) in folders {
            let moved = |path: &Path| {
                if !place.is_dir() && path == old {
                    return place.to_path_buf();
                }
                match path.strip_prefix(from) {
                    Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
                    Ok(rest) => to.join(rest),
                    Err(_) => path.to_path_buf(),
                }
            };
            if !is_there(&moved(&old)) {
                continue;
            }
            let mut data = self.clone();
            let complete = std::cell::Cell::new(true);
            data.map_paths(&|key, path| {
                let (file, name) = named(path);
                // Files that were not moved stay where they are.
                let new = Some(moved(&file)).filter(|new| is_there(new)).unwrap_or(file);
                complete.set(complete.get() && is_there(&new));
                Ok(text(key, &new)? + &name)
            })?;
            if complete.get() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Replaces every path; `new` gets its key too.
    fn map_paths(&mut self, new: &Mapping<'_>) -> Result<(), RecipeError> {
        source("data.train", &mut self.train, new)?;
        if let HeldOut::Source(validation) = &mut self.validation {
            source("data.validation", validation, new)?;
        }
        if let Some(HeldOut::Source(test)) = &mut self.test {
            source("data.test", test, new)?;
        }
        if let Some(NoiseKind::Matrix { file }) = self.noise.as_mut().map(|noise| &mut noise.kind) {
            replace("data.noise.matrix", file, new)?;
        }
        if let Some(names) = &mut self.class_names {
            replace("data.class_names", names, new)?;
        }
        Ok(())
    }
}

impl InputSource {
    /// The file or folder, or the first of several; none for what is in memory.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Features(file) => Some(Path::new(file)),
            Self::Table(table) => Some(Path::new(&table.file)),
            Self::Images(paths) => paths.first().map(PathBuf::as_path),
            Self::Digits | Self::Memory(_) => None,
        }
    }
}

/// From a key and a path to the path that replaces it.
type Mapping<'a> = dyn Fn(&str, &Path) -> Result<String, RecipeError> + 'a;

fn source(section: &str, source: &mut Source, new: &Mapping<'_>) -> Result<(), RecipeError> {
    match &mut source.inputs {
        InputSource::Features(file) => replace(&format!("{section}.features"), file, new)?,
        InputSource::Table(table) => {
            replace(&format!("{section}.table"), &mut table.file, new)?;
        }
        InputSource::Images(images) => {
            for image in images {
                replace(&format!("{section}.images"), image, new)?;
            }
        }
        InputSource::Digits | InputSource::Memory(_) => {}
    }
    let Source { labels, clean_labels, ids, .. } = source;
    for (name, file) in [("labels", labels), ("clean_labels", clean_labels), ("ids", ids)] {
        if let Some(file) = file {
            replace(&format!("{section}.{name}"), file, new)?;
        }
    }
    Ok(())
}

fn replace<P>(key: &str, path: &mut P, new: &Mapping<'_>) -> Result<(), RecipeError>
where
    P: AsRef<Path> + From<String>,
{
    *path = new(key, path.as_ref())?.into();
    Ok(())
}

fn text(key: &str, path: &Path) -> Result<String, RecipeError> {
    let text = path.to_str().ok_or_else(|| {
        Origin::Argument(key.into()).refuse(format!(
            "the absolute path {} cannot be written to a recipe, which is Unicode; rename the \
             folder",
            path.display()
        ))
    })?;
    Ok(text.to_string())
}

/// A path without the name of a tensor or column, and that name with its `#`.
fn named(path: &Path) -> (PathBuf, String) {
    let whole = path.to_string_lossy();
    match whole.rsplit_once('#') {
        Some((file, name)) if !path.exists() => (file.into(), format!("#{name}")),
        _ => (path.to_path_buf(), String::new()),
    }
}

/// Whether a path is there; of a pattern, its folder.
fn is_there(path: &Path) -> bool {
    let is_pattern = path.to_string_lossy().contains(['{', '*']);
    path.exists() || (is_pattern && path.parent().is_some_and(Path::exists))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the training inputs, their labels and the test inputs are after a move to `place`,
    /// relative to the folder in which `files` are.
    fn moved(inputs: InputSource, labels: &str, test: &str, files: &[&str], place: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        for file in files {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        let train = Source { labels: Some(at(labels)), ..Source::of(inputs) };
        let held_out = HeldOut::Fraction { fraction: 0.1, seed: 0 };
        let mut data = Data::of(train, held_out);
        data.test = Some(HeldOut::Source(Source::of(InputSource::Features(at(test)))));
        data.map_paths(&|key, path| text(key, &folder.path().join(path))).expect("paths");
        let place = folder.path().join(place);
        let Some(moved) = data.moved_to(&place).expect("Unicode") else { return "none".into() };
        let HeldOut::Source(test) = moved.test.expect("a test split") else { panic!("a source") };
        let labels = moved.train.labels.expect("labels");
        let paths = [moved.train.inputs.path(), Some(labels.as_ref()), test.inputs.path()];
        let shown = paths.into_iter().flatten().map(|path| path.display().to_string());
        shown.collect::<Vec<_>>().join(" ").replace(&at(""), "")
    }

    #[test]
    fn data_are_found_wherever_they_were_moved() {
        let x = || InputSource::Features("old/a/x.st#x".to_string());
        let of = |files: &[&str], place| moved(x(), "old/a/y.npy", "old/b/x.npy", files, place);
        let all = ["new/a/x.st", "new/a/y.npy", "new/b/x.npy"];
        let expected = "new/a/x.st#x new/a/y.npy new/b/x.npy";
        assert_eq!(of(&all, "new"), expected);
        assert_eq!(of(&all, "new/a/x.st"), expected);
        assert_eq!(of(&all, "new/b"), "none");
        // Renamed; and some files stayed, or are still there too.
        let renamed = ["new/z.st", "new/y.npy", "old/b/x.npy"];
        assert_eq!(of(&renamed, "new/z.st"), "new/z.st#x new/y.npy old/b/x.npy");
        let copied = ["old/a/x.st", "old/a/y.npy", "old/b/x.npy", "new/x.st"];
        assert_eq!(of(&copied, "new"), "new/x.st#x old/a/y.npy old/b/x.npy");
        assert_eq!(of(&["new/a/x.st", "new/a/y.npy"], "new"), "none");

        let images = || InputSource::Images(vec!["old/photos".into()]);
        let of = |files: &[&str], place| moved(images(), "old/y.npy", "old/t.npy", files, place);
        let files = ["new/pictures/a/1.png", "old/y.npy", "old/t.npy"];
        assert_eq!(of(&files, "new/pictures"), "new/pictures old/y.npy old/t.npy");
        let files = ["new/photos/a/1.png", "new/y.npy", "new/t.npy"];
        assert_eq!(of(&files, "new"), "new/photos new/y.npy new/t.npy");
    }
}
