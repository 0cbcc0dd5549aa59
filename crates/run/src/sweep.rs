//! A sweep: a recipe and the keys that vary, one run for each combination.

use std::collections::BTreeSet;
use std::path::Path;

use crate::document::{Document, Node, Origin, Table, Value};
use crate::load::{RecipeSource, Resolved, find_file, find_preset, finish, resolve};
use crate::recipe::Overlay;
use crate::recipe_error::RecipeError;
use crate::schema::join;
use crate::to_toml::value_text;

/// Loads a sweep, by its path or by the name that it has inside the program: a recipe file with a
/// section `[axes]`, in which each key is a key of a recipe and each value the list of what it
/// takes. Every combination is a run.
///
/// ```toml
/// base = "features-full"
///
/// [axes]
/// "head.rank" = [2, 6, 15]
/// "head.temperature" = [0.5, 1.0]
/// ```
///
/// `base` may be an axis too. A value that is a table sets its keys together: the axis
/// `head = [{ noise = "diagonal" }, { noise = "full", rank = 6 }]` makes two runs.
///
/// `sets` are as in [`load`](crate::load) and hold for every run; they must not set what an axis
/// varies. The last axis varies fastest. The name of a run, as `head.rank=6,head.temperature=0.9`,
/// is fit for the name of a folder, and no other run of the sweep has it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("ranks.toml");
/// std::fs::write(&path, "base = \"digits-full\"\n[axes]\nhead.rank = [2, 6]\n").unwrap();
/// let points = aleator_run::load_sweep(&path, &[])?;
/// assert_eq!(points[1].name, "head.rank=6");
/// # Ok::<(), aleator_run::RecipeError>(())
/// ```
pub fn load_sweep(path: &Path, sets: &[String]) -> Result<Vec<Resolved>, RecipeError> {
    load_sweep_over(path, &Overlay::default(), sets)
}

/// [`load_sweep`] with an [`Overlay`] over the recipe and under the axes, as
/// [`load_over`](crate::load_over) has it.
pub fn load_sweep_over(
    path: &Path,
    overlay: &Overlay,
    sets: &[String],
) -> Result<Vec<Resolved>, RecipeError> {
    let preset = path.to_str().and_then(find_preset);
    let mut source = preset.unwrap_or_else(|| find_file(path))?;
    let axes = match source.document.root.remove("axes") {
        Some(Node { value: Value::Table(table), .. }) => axes(table)?,
        Some(node) => return Err(node.wrong_type("axes", "a section [axes]")),
        None => vec![],
    };
    let refuse = |message: String| source.document.refuse("", message);
    if axes.is_empty() {
        let message = "a sweep needs a section [axes] with at least one key, as in \
                       \"head.rank\" = [2, 6, 15]";
        return Err(refuse(message.to_string()));
    }
    check_apart(&axes)?;
    check_sets(&axes, sets)?;
    let count = axes.iter().try_fold(1, |n: usize, axis| n.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MAX_RUNS).ok_or_else(|| {
        let sizes: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
        refuse(format!(
            "the axes make {} runs, and at most {MAX_RUNS} are allowed: take fewer values",
            sizes.join(" × ")
        ))
    })?;
    let mut names = BTreeSet::new();
    let mut points = Vec::with_capacity(count);
    for index in 0..count {
        let point = point(&source, &axes, index, overlay, sets)?;
        // Some file systems do not tell upper from lower case.
        if !names.insert(point.name.to_lowercase()) {
            return Err(refuse(format!("two runs have the name {}: change a value", point.name)));
        }
        points.push(point);
    }
    Ok(points)
}

const MAX_RUNS: usize = 10_000;

/// A key that varies.
struct Axis {
    key: String,
    values: Vec<Node>,
    origin: Origin,
}

/// The axes in the order of the file. `"head.rank"` and `head.rank` are the same key.
fn axes(table: Table) -> Result<Vec<Axis>, RecipeError> {
    fn collect(prefix: &str, table: Table, out: &mut Vec<Axis>) -> Result<(), RecipeError> {
        for (key, node) in table {
            let key = join(prefix, &key);
            match node {
                Node { value: Value::Table(inner), .. } => collect(&key, inner, out)?,
                Node { value: Value::Array(values), origin } if !values.is_empty() => {
                    out.push(Axis { key, values, origin });
                }
                node => {
                    let expected = "a list of the values that it takes, as in [2, 6, 15]";
                    return Err(node.wrong_type(&format!("axes.{key}"), expected));
                }
            }
        }
        Ok(())
    }
    let mut out = vec![];
    collect("", table, &mut out)?;
    // Stable: axes on the same line stay in the order of their names.
    out.sort_by_key(|axis| axis.origin.line());
    Ok(out)
}

/// Refuses axes that set each other's keys.
fn check_apart(axes: &[Axis]) -> Result<(), RecipeError> {
    for (at, axis) in axes.iter().enumerate() {
        if let Some(other) = axes[..at].iter().find(|other| overlap(&other.key, &axis.key)) {
            return Err(axis.origin.refuse(format!(
                "the axes {} ({}) and {} set the same key",
                other.key, other.origin, axis.key
            )));
        }
    }
    Ok(())
}

/// Refuses what would make all values of an axis the same.
fn check_sets(axes: &[Axis], sets: &[String]) -> Result<(), RecipeError> {
    for set in sets {
        let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key).trim();
        if let Some(axis) = axes.iter().find(|axis| overlap(&axis.key, key)) {
            let message = format!("the sweep varies {} ({})", axis.key, axis.origin);
            return Err(Origin::Argument(format!("--set {set}").into()).refuse(message));
        }
    }
    Ok(())
}

/// Whether one key is the other, or a section around it.
fn overlap(a: &str, b: &str) -> bool {
    let same = |key: &str| if key == "seed" { "seeds.".to_string() } else { format!("{key}.") };
    let (a, b) = (same(a), same(b));
    a.starts_with(&b) || b.starts_with(&a)
}

/// One combination, by its number.
fn point(
    source: &RecipeSource,
    axes: &[Axis],
    mut index: usize,
    overlay: &Overlay,
    sets: &[String],
) -> Result<Resolved, RecipeError> {
    let mut chosen: Vec<(&Axis, &Node)> = vec![];
    for axis in axes.iter().rev() {
        chosen.push((axis, &axis.values[index % axis.values.len()]));
        index /= axis.values.len();
    }
    chosen.reverse();
    let mut source = source.clone();
    source.document = lay_axes(&chosen, source.document)?;
    let mut document = resolve(source)?;
    document.lay(overlay);
    // Again, over the overlay; the base has been taken.
    let others: Vec<_> = chosen.iter().copied().filter(|(axis, _)| axis.key != "base").collect();
    let recipe = finish(lay_axes(&others, document)?, sets, None)?;
    Ok(Resolved { name: folder_name(&chosen), recipe })
}

/// Lays the values of axes over a document.
fn lay_axes(chosen: &[(&Axis, &Node)], mut document: Document) -> Result<Document, RecipeError> {
    for (axis, node) in chosen {
        let mut value_alone = Document { name: document.name.clone(), root: Table::new() };
        value_alone.insert(&axis.key, (*node).clone())?;
        document = value_alone.over(document);
    }
    Ok(document)
}

/// What tells a run from the others, in characters that every file system takes.
fn folder_name(chosen: &[(&Axis, &Node)]) -> String {
    /// Most file systems take 255 bytes, and some programs add an ending.
    const MAX_BYTES: usize = 160;
    let parts: Vec<String> = chosen
        .iter()
        .map(|(axis, node)| format!("{}={}", axis.key, plain_text(&node.value)))
        .collect();
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._=,+-".contains(c) { c } else { '-' };
    let name: String = parts.join(",").chars().map(safe).collect();
    if name.len() <= MAX_BYTES {
        return name;
    }
    // Only ASCII is left, so any byte is a boundary.
    let hash = blake3::hash(parts.join(",").as_bytes()).to_hex();
    format!("{}-{}", &name[..MAX_BYTES], &hash[..12])
}

/// A value without the marks of TOML: `sobol`, `64+64`, `noise=full+rank=6`.
fn plain_text(value: &Value) -> String {
    let parts: Vec<String> = match value {
        Value::String(text) => return text.clone(),
        Value::Array(items) => items.iter().map(|item| plain_text(&item.value)).collect(),
        Value::Table(table) => {
            table.iter().map(|(key, node)| format!("{key}={}", plain_text(&node.value))).collect()
        }
        other => return value_text(other),
    };
    parts.join("+")
}
