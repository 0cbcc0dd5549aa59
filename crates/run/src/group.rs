//! `group.json`: which runs of a directory belong together, and why.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::RunError;
use crate::record::{FORMAT, read_current};
use crate::regular::check_own_folder;

/// Why runs belong together, which decides what to do when all members have finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// One run, or one for each seed, which make an ensemble.
    Seeds,
    /// The points of a sweep.
    Sweep,
    /// The trials of a tuning.
    Tune,
    /// The noise models of the demo, and its runs on corrected labels.
    Demo,
    /// The tasks of a transfer.
    Transfer,
    /// The folds of an audit.
    Audit,
}

/// `group.json`: everything that is needed to resume a group.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// use aleator_run::{GroupFile, GroupKind, GroupMember};
///
/// let seed = |seed| GroupMember { name: format!("seed-{seed}"), seed, recipe: String::new() };
/// GroupFile::new(GroupKind::Seeds, vec![seed(0), seed(1)]).save(folder)?;
/// assert_eq!(GroupFile::load(folder)?.members[1].name, "seed-1");
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFile {
    format: u32,
    version: String,
    /// Why they belong together.
    pub kind: GroupKind,
    /// The runs, in their order.
    pub members: Vec<GroupMember>,
}

/// One run of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    /// Its directory, inside the group's.
    pub name: String,
    /// Its seed.
    pub seed: u64,
    /// The resolved recipe.
    pub recipe: String,
}

impl GroupFile {
    /// The name of the file.
    pub const NAME: &str = "group.json";

    /// A file in the current format.
    pub fn new(kind: GroupKind, members: Vec<GroupMember>) -> Self {
        Self { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_string(), kind, members }
    }

    /// Writes the file to a directory.
    pub fn save(&self, folder: &Path) -> Result<(), RunError> {
        atomic::write_json(&folder.join(Self::NAME), self)
    }

    /// Reads the file of a directory.
    ///
    /// # Errors
    /// When a member is not inside the directory: by its name, or because a link leads elsewhere.
    pub fn load(folder: &Path) -> Result<Self, RunError> {
        let path = folder.join(Self::NAME);
        let group: Self = read_current(&path)?;
        if group.members.is_empty() {
            return Err(RunError::damaged(&path, "members is empty, expected at least one run"));
        }
        let mut names = BTreeSet::new();
        for (at, GroupMember { name, .. }) in group.members.iter().enumerate() {
            let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
            if name.is_empty() || !Path::new(name).components().all(inside) {
                let message = format!(
                    "members[{at}].name must be a directory inside this one, found {name:?}"
                );
                return Err(RunError::damaged(&path, message));
            }
            check_own_folder(folder, name)?;
            if !names.insert(name) {
                let message =
                    format!("members[{at}].name is {name:?}, which another member has too");
                return Err(RunError::damaged(&path, message));
            }
        }
        Ok(group)
    }
}
