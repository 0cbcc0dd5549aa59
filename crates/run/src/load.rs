//! From a name or a path, and what the command line sets over it, to a recipe.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::document::{Document, Node, Origin, Value};
use crate::presets::{not_found, parse_preset};
use crate::recipe::{Overlay, Recipe};
use crate::recipe_error::RecipeError;
use crate::record::RunDir;
use crate::schema::Shape;
use crate::to_toml::table;

/// A recipe that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The name of the preset, with `-` for `/`, or of the file without its folder and ending: fit
    /// for the name of a folder.
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
    load_found(find(name_or_path, None)?, overlay, sets, seed)
}

fn load_found(
    found: Found,
    overlay: &Overlay,
    sets: &[String],
    seed: Option<u64>,
) -> Result<Resolved, RecipeError> {
    if found.document.root.contains_key("axes") {
        return Err(RecipeError::Recipe {
            recipe: found.document.name().to_string(),
            message: "this is a sweep, since it has [axes]: run it by `aleator sweep`".to_string(),
        });
    }
    let name = found.name.clone();
    let mut document = resolve(found)?;
    document.lay(overlay);
    Ok(Resolved { name, recipe: finish(document, sets, seed)? })
}

impl RunDir {
    /// The recipe that the run was made from.
    pub fn recipe(&self) -> Result<Resolved, RecipeError> {
        load_found(find_file(&self.recipe_path())?, &Overlay::default(), &[], None)
    }
}

impl Recipe {
    /// This recipe with what the command line sets over it, as [`load`] does it.
    pub fn with_sets(&self, sets: &[String], seed: Option<u64>) -> Result<Self, RecipeError> {
        finish(Document::of(self), sets, seed)
    }
}

impl Document {
    /// Lays an overlay over this document: what it has replaces a key, or a whole section.
    fn lay(&mut self, overlay: &Overlay) {
        if overlay.data.image_size == Some(None) {
            self.remove("data.image_size");
        }
        for (section, node) in table(overlay, Shape::recipe(), &overlay.origin) {
            match (self.root.get_mut(&section).map(|below| &mut below.value), node.value) {
                (Some(Value::Table(below)), Value::Table(above)) if section == "data" => {
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
        document.root.remove("seed");
        document.root.insert("seeds".to_string(), Node { value: Value::Array(vec![item]), origin });
    }
    document.recipe()
}

/// Lays a document over its base, that over its own, and so on.
pub(crate) fn resolve(found: Found) -> Result<Document, RecipeError> {
    let Found { document, mut folder, identity, .. } = found;
    let mut seen = vec![identity];
    let mut layer = Layer::new(document)?;
    let mut above = vec![];
    while let Some((base, origin)) = layer.base.take() {
        let found = find(&base, folder.as_deref()).map_err(|error| at(error, &origin))?;
        above.push(layer);
        if seen.contains(&found.identity) {
            let names = above.iter().map(|layer| layer.document.name());
            let chain: Vec<&str> = names.chain([found.document.name()]).collect();
            return Err(RecipeError::Cycle { origin, chain: chain.join(" → ") });
        }
        seen.push(found.identity);
        folder = found.folder;
        layer = Layer::new(found.document)?;
    }
    above.into_iter().rev().try_fold(layer.document, |base, layer| layer.over(base))
}

/// A document apart from what it says of its base.
struct Layer {
    document: Document,
    base: Option<(String, Origin)>,
    /// Keys of the base that go away.
    without: Vec<(String, Origin)>,
}

impl Layer {
    fn new(mut document: Document) -> Result<Self, RecipeError> {
        let text = |key: &str, node: Node| match node.value {
            Value::String(text) => Ok((text, node.origin)),
            other => Err(wrong_type(key, "a text", &other, node.origin)),
        };
        let base = document.root.remove("base").map(|node| text("base", node)).transpose()?;
        let without = match document.root.remove("without") {
            None => vec![],
            Some(Node { origin, .. }) if base.is_none() => {
                return Err(RecipeError::Impossible {
                    origin,
                    message: "without removes keys of the base, and there is no base".to_string(),
                });
            }
            Some(Node { value: Value::Array(keys), .. }) => {
                keys.into_iter().map(|key| text("without", key)).collect::<Result<_, _>>()?
            }
            Some(Node { value, origin }) => {
                let expected = "a list of keys, as in [\"head.rank\"]";
                return Err(wrong_type("without", expected, &value, origin));
            }
        };
        Ok(Self { document, base, without })
    }

    fn over(self, mut base: Document) -> Result<Document, RecipeError> {
        for (key, origin) in self.without {
            if base.remove(&key).is_none() {
                let message = format!("without: the base, {}, has no key {key}", base.name());
                return Err(RecipeError::Impossible { origin, message });
            }
        }
        Ok(self.document.over(base))
    }
}

fn wrong_type(key: &str, expected: &str, found: &Value, origin: Origin) -> RecipeError {
    RecipeError::Type {
        origin,
        key: key.to_string(),
        expected: expected.to_string(),
        found: found.describe(),
    }
}

/// The same error, with where the recipe was named.
fn at(error: RecipeError, place: &Origin) -> RecipeError {
    match error {
        RecipeError::NotFound { name, nearest, presets, .. } => {
            RecipeError::NotFound { origin: Some(place.clone()), name, nearest, presets }
        }
        other => other,
    }
}

/// What makes two names the same recipe.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    Preset(String),
    File(PathBuf),
}

/// A recipe before its bases.
#[derive(Clone)]
pub(crate) struct Found {
    pub document: Document,
    /// The folder that it stands in; presets stand in none.
    pub folder: Option<PathBuf>,
    pub name: String,
    identity: Identity,
}

/// Finds a preset, or a file relative to `folder`.
pub(crate) fn find(name_or_path: &str, folder: Option<&Path>) -> Result<Found, RecipeError> {
    if let Some(document) = parse_preset(name_or_path) {
        let identity = Identity::Preset(name_or_path.to_string());
        let name = name_or_path.replace('/', "-");
        return Ok(Found { document: document?, folder: None, name, identity });
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
pub(crate) fn find_file(path: &Path) -> Result<Found, RecipeError> {
    let stem = path.file_stem().unwrap_or_default();
    Ok(Found {
        document: Document::load(path)?,
        folder: path.parent().map(Path::to_path_buf),
        name: stem.to_string_lossy().into_owned(),
        identity: Identity::File(path.canonicalize().unwrap_or(path.to_path_buf())),
    })
}

impl Document {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, RecipeError> {
        const MAX_BYTES: u64 = 1 << 20;
        let read = || {
            let mut text = String::new();
            File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
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
