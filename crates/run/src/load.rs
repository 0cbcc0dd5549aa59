//! From a name or a path, and what the command line sets over it, to a recipe.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::{Document, Node, Origin, Value};
use crate::presets::{not_found, preset_text};
use crate::recipe::{Data, NetworkOverlay, Overlay, Recipe};
use crate::recipe_error::RecipeError;
use crate::record::RunDir;
use crate::regular::open_file;
use crate::schema::Shape;
use crate::to_toml::table;

/// A recipe that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The name of the preset, with `-` for `/`, or of the file without its directory and
    /// extension, or what tells it from the other runs of its sweep: fit for a directory.
    pub name: String,
    /// Everything that decides the run.
    pub recipe: Recipe,
}

/// Loads the preset or the file of this name, lays its bases under it and `sets` (each as
/// [`Document::set`] takes it) over it, and checks the whole. `seed` replaces the recipe's seeds.
///
/// A name is a preset first; a file of the same name is reached as `./NAME`. Paths of data are
/// relative to the current directory, wherever the recipe stands.
///
/// ```
/// use aleator_run::{Noise, load};
///
/// let sets = ["head.rank=4", "data.train.features=x.npy", "data.train.labels=y.npy"];
/// let resolved = load("features-full", &sets.map(String::from), Some(7))?;
/// assert_eq!(resolved.recipe.head.noise, Noise::LowRank { rank: 4 });
/// assert_eq!(resolved.recipe.seeds, [7]);
/// # Ok::<(), aleator_run::RecipeError>(())
/// ```
pub fn load(
    name_or_path: &str,
    sets: &[String],
    seed: Option<u64>,
) -> Result<Resolved, RecipeError> {
    load_over(name_or_path, &Overlay::default(), sets, seed)
}

/// [`load`] with an [`Overlay`] between the recipe and what the command line sets.
pub fn load_over(
    name_or_path: &str,
    overlay: &Overlay,
    sets: &[String],
    seed: Option<u64>,
) -> Result<Resolved, RecipeError> {
    load_source(find(name_or_path, None)?, overlay, sets, seed)
}

fn load_source(
    source: RecipeSource,
    overlay: &Overlay,
    sets: &[String],
    seed: Option<u64>,
) -> Result<Resolved, RecipeError> {
    if source.document.root.contains_key("axes") {
        let message = "this is a sweep, since it has [axes]: run it by `aleator sweep`";
        return Err(source.document.refuse("", message));
    }
    if source.document.root.contains_key("tasks") {
        let message = "this is a list of tasks: run it by `aleator transfer RUN TASKS`";
        return Err(source.document.refuse("", message));
    }
    let name = source.name.clone();
    let mut document = resolve(source)?;
    document.lay(overlay);
    Ok(Resolved { name, recipe: finish(document, sets, seed)? })
}

/// In an audit of a run on images: the recipe of that run, which knows the images behind the
/// embeddings.
pub const PICTURES: &str = "pictures.toml";

/// The data whose pictures stand for the examples of a run or an audit; `None` if its directory has
/// no recipe.
pub fn pictured_data(dir: &Path) -> Result<Option<Data>, RecipeError> {
    let recipes = [PICTURES, "recipe.toml"].map(|name| dir.join(name));
    let Some(path) = recipes.iter().find(|path| path.is_file()) else { return Ok(None) };
    let resolved = load_source(find_file(path)?, &Overlay::default(), &[], None)?;
    Ok(Some(resolved.recipe.data))
}

impl RunDir {
    /// The recipe that the run was made from.
    pub fn recipe(&self) -> Result<Resolved, RecipeError> {
        load_source(find_file(&self.recipe_path())?, &Overlay::default(), &[], None)
    }
}

impl Recipe {
    /// This recipe with what the command line sets over it, as [`load`] does it.
    pub fn with_sets(&self, sets: &[String], seed: Option<u64>) -> Result<Self, RecipeError> {
        finish(Document::of(self), sets, seed)
    }
}

impl Document {
    /// Lays an overlay over this document: what it has replaces a key, or the whole network.
    pub(crate) fn lay(&mut self, overlay: &Overlay) {
        if overlay.data.image_size == Some(None) {
            self.remove("data.image_size");
        }
        let replaces_network = matches!(overlay.network, Some(NetworkOverlay::Whole(_)));
        for (section, node) in table(overlay, Shape::recipe(), &overlay.origin) {
            match (self.root.get_mut(&section).map(|below| &mut below.value), node.value) {
                (Some(Value::Table(below)), Value::Table(above))
                    if !(section == "network" && replaces_network) =>
                {
                    below.extend(above);
                }
                (_, value) => {
                    self.root.insert(section, Node { value, origin: node.origin });
                }
            }
        }
    }
}

/// The last steps to a recipe: what the command line sets, and the checks.
pub(crate) fn finish(
    mut document: Document,
    sets: &[String],
    seed: Option<u64>,
) -> Result<Recipe, RecipeError> {
    for set in sets {
        document.set(set)?;
    }
    if let Some(seed) = seed {
        let origin = Origin::Argument(format!("--seed {seed}").into());
        let item = Node { value: Value::Integer(seed.into()), origin: origin.clone() };
        document.insert("seeds", Node { value: Value::Array(vec![item]), origin })?;
    }
    document.recipe()
}

/// Lays a recipe over its base, that over its own, and so on.
pub(crate) fn resolve(source: RecipeSource) -> Result<Document, RecipeError> {
    resolve_below(source, &mut vec![])
}

/// As [`resolve`]; `above` are the recipes that are based on this one, the first of them first.
fn resolve_below(
    source: RecipeSource,
    above: &mut Vec<(PathBuf, Arc<str>)>,
) -> Result<Document, RecipeError> {
    fn text<'a>(key: &str, node: &'a Node) -> Result<&'a str, RecipeError> {
        match &node.value {
            Value::String(text) => Ok(text),
            _ => Err(node.wrong_type(key, "a text")),
        }
    }
    let RecipeSource { mut document, folder, identity, .. } = source;
    let (base, without) = (document.root.remove("base"), document.root.remove("without"));
    let Some(base) = base else {
        return match without {
            None => Ok(document),
            Some(node) => {
                Err(node.origin.refuse("without removes keys of the base, and there is no base"))
            }
        };
    };
    let base_name = text("base", &base)?;
    let removed = match without {
        None => vec![],
        Some(Node { value: Value::Array(keys), .. }) => keys,
        Some(node) => {
            return Err(node.wrong_type("without", "a list of keys, as in [\"head.rank\"]"));
        }
    };
    removed.iter().try_for_each(|key| text("without", key).map(drop))?;
    let below = find(base_name, folder.as_deref()).map_err(|error| match error {
        RecipeError::NotFound { .. } => base.origin.refuse(format!("base {error}")),
        other => other,
    })?;
    above.push((identity, document.name.clone()));
    if above.iter().any(|(identity, _)| *identity == below.identity) {
        let names = above.iter().map(|(_, name)| &**name);
        let chain: Vec<&str> = names.chain([below.document.name()]).collect();
        let message = format!("the recipe is based on itself: {}", chain.join(" → "));
        return Err(base.origin.refuse(message));
    }
    let mut below = resolve_below(below, above)?;
    for key in &removed {
        let name = text("without", key)?;
        if below.remove(name).is_none() {
            let message = format!("without: the base, {}, has no key {name}", below.name());
            return Err(key.origin.refuse(message));
        }
    }
    Ok(document.over(below))
}

/// A recipe without its bases, and where it was read.
#[derive(Clone)]
pub(crate) struct RecipeSource {
    pub document: Document,
    /// The folder that it stands in; presets stand in none.
    pub folder: Option<PathBuf>,
    pub name: String,
    /// The canonical path of a file, or what messages call a preset: the same for one recipe.
    identity: PathBuf,
}

/// The preset of this name; `None` if there is none.
pub(crate) fn find_preset(name: &str) -> Option<Result<RecipeSource, RecipeError>> {
    let shown = format!("preset {name}");
    let source = |document| RecipeSource {
        document,
        folder: None,
        name: name.replace('/', "-"),
        identity: (&shown).into(),
    };
    Some(Document::parse(preset_text(name)?, &shown).map(source))
}

/// Finds a preset, or a file relative to `folder`.
pub(crate) fn find(name_or_path: &str, folder: Option<&Path>) -> Result<RecipeSource, RecipeError> {
    if let Some(preset) = find_preset(name_or_path) {
        return preset;
    }
    let path = folder.unwrap_or(Path::new("")).join(name_or_path);
    find_file(&path).map_err(|error| match error {
        RecipeError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            not_found(name_or_path)
        }
        other => other,
    })
}

/// The recipe in a file.
pub(crate) fn find_file(path: &Path) -> Result<RecipeSource, RecipeError> {
    let stem = path.file_stem().unwrap_or_default();
    Ok(RecipeSource {
        document: Document::load(path)?,
        folder: path.parent().map(Path::to_path_buf),
        name: stem.to_string_lossy().into_owned(),
        identity: path.canonicalize().unwrap_or(path.to_path_buf()),
    })
}

impl Document {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, RecipeError> {
        const MAX_BYTES: u64 = 1 << 20;
        let read = || {
            let mut text = String::new();
            open_file(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
            if text.len() as u64 > MAX_BYTES {
                return Err(io::Error::other("longer than 1 MiB, which no recipe or table is"));
            }
            Ok(text)
        };
        let shown = path.display().to_string();
        let text = read().map_err(|source| RecipeError::Read { path: shown.clone(), source })?;
        Self::parse(&text, &shown)
    }
}
