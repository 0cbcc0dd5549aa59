//! Several runs that belong together: seeds of an ensemble, points of a sweep, trials of a tuning.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use aleator_data::DataSet;
use aleator_metrics::Evaluation;
pub use aleator_run::GroupKind as Kind;
use aleator_run::recipe::{Data, Link};
use aleator_run::{
    AtomicFolder, GroupFile, GroupMember, Recipe, Resolved, RunDir, RunError, SetAside,
};

use crate::error::TrainError;
use crate::runs::{Finished, create_run, finish_run, load_run};
use crate::set_aside::{checked, without};
use crate::{Event, Job, Observer};

/// One run of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its folder in the group's; empty for a run by itself.
    pub name: String,
    /// Its recipe.
    pub resolved: Resolved,
    /// Its seed.
    pub seed: u64,
}

/// Runs that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Why.
    pub kind: Kind,
    /// The runs.
    pub members: Vec<Member>,
}

/// What became of the members, in their order.
#[derive(Debug)]
pub enum GroupEnded {
    /// All are trained and evaluated.
    Evaluated(Vec<Evaluation>),
    /// One was interrupted; those after it are not begun.
    Interrupted {
        /// Its name.
        name: String,
        /// Its steps.
        step: usize,
    },
}

/// One member for each seed of a recipe: `seed-0`, `seed-1`, …, or a run by itself.
pub fn members(name: &str, resolved: &Resolved) -> Vec<Member> {
    let seeds = &resolved.recipe.seeds;
    let member = |seed: &u64| {
        let own = if seeds.len() > 1 { format!("seed-{seed}") } else { String::new() };
        let parts: Vec<&str> = [name, &own].into_iter().filter(|part| !part.is_empty()).collect();
        Member { name: parts.join("/"), resolved: resolved.clone(), seed: *seed }
    };
    seeds.iter().map(member).collect()
}

/// Trains and evaluates new runs in `out`: one there itself, or each in its own folder.
pub fn start(
    out: &Path,
    group: &Group,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Member, Event<'_>),
) -> Result<GroupEnded, TrainError> {
    let alone = matches!(group.members.as_slice(), [member] if member.name.is_empty());
    if !alone {
        create(out, group)?;
    }
    finish(out, &group.members, Entry::New, stop, observer)
}

/// Goes on with a run or a group that was begun, which [`open`] gives.
pub fn resume(
    path: &Path,
    group: &Group,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Member, Event<'_>),
) -> Result<GroupEnded, TrainError> {
    finish(path, &group.members, Entry::Resumed, stop, observer)
}

/// Whether a run that stands in a member's place is the member, begun before, or in the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    New,
    Resumed,
}

/// The runs of a folder that [`start`] made.
pub fn open(path: &Path) -> Result<Group, TrainError> {
    if path.join(GroupFile::NAME).exists() {
        return read_group(path);
    }
    Ok(Group { kind: Kind::Seeds, members: vec![single(path)?] })
}

/// The run of a folder, as a group of one.
fn single(path: &Path) -> Result<Member, TrainError> {
    let (run, resolved) = load_run(path)?;
    Ok(Member { name: String::new(), seed: run.info().seed, resolved })
}

/// Makes the folder of a group whose runs are yet to come, by [`resume`].
pub fn create(out: &Path, group: &Group) -> Result<(), TrainError> {
    let members = &group.members;
    let is_empty_folder = out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if out.symlink_metadata().is_ok() && !is_empty_folder {
        return Err(RunError::Exists { path: out.to_path_buf() }.into());
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = members.iter().find(|member| !names.insert(&member.name)) {
        let name = &twice.name;
        return Err(TrainError::Recipe(format!("two runs would be written to {name}: keep one")));
    }
    let io = |source| RunError::Io { action: "create", path: out.to_path_buf(), source };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    let member = |member: &Member| GroupMember {
        name: member.name.clone(),
        seed: member.seed,
        recipe: member.resolved.recipe.to_toml(),
    };
    let file = GroupFile::new(group.kind, members.iter().map(member).collect());
    let folder = AtomicFolder::create(out)?;
    file.save(folder.path())?;
    Ok(folder.commit()?)
}

fn read_group(path: &Path) -> Result<Group, TrainError> {
    let group = GroupFile::load(path)?;
    let file = path.join(GroupFile::NAME);
    let member = |member: GroupMember| {
        let name = format!("{}: {}", file.display(), member.name);
        let recipe = Recipe::from_toml(&member.recipe, &name)?;
        let resolved = Resolved { name, recipe };
        Ok(Member { name: member.name, seed: member.seed, resolved })
    };
    let members = group.members.into_iter().map(member).collect::<Result<_, TrainError>>()?;
    Ok(Group { kind: group.kind, members })
}

fn finish(
    out: &Path,
    members: &[Member],
    entry: Entry,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Member, Event<'_>),
) -> Result<GroupEnded, TrainError> {
    let mut opened = Opened::default();
    let mut evaluations = vec![];
    for member in members {
        let path = if member.name.is_empty() { out.to_path_buf() } else { out.join(&member.name) };
        let recipe = &member.resolved.recipe;
        let mut tell = |event: Event<'_>| observer(member, event);
        opened.open(&recipe.data, recipe.head.link, &mut tell)?;
        let run = if entry == Entry::Resumed && path.join("run.json").exists() {
            RunDir::open(&path)?
        } else {
            let Some(set_aside) = opened.check(stop, &mut tell)? else {
                return Ok(GroupEnded::Interrupted { name: member.name.clone(), step: 0 });
            };
            let data = opened.without(&set_aside)?;
            create_run(&path, &member.resolved, member.seed, &data, &set_aside)?
        };
        let set_aside = &run.info().set_aside;
        if !set_aside.is_empty() {
            tell(Event::SetAside(set_aside));
        }
        let data = &opened.without(set_aside)?;
        let _lock = run.lock()?;
        let job = Job { run: &run, recipe, seed: member.seed, data, stop };
        match finish_run(&job, &mut |event| observer(member, event))? {
            Finished::Evaluated(evaluation) => evaluations.push(*evaluation),
            Finished::Interrupted { step } => {
                return Ok(GroupEnded::Interrupted { name: member.name.clone(), step });
            }
        }
    }
    Ok(GroupEnded::Evaluated(evaluations))
}

/// The data that were opened last; seeds and most sweeps share them.
#[derive(Default)]
struct Opened {
    last: Option<LastData>,
}

struct LastData {
    of: (Data, Link),
    data: DataSet,
    /// What cannot be decoded, once that is known.
    checked: Option<Vec<SetAside>>,
}

impl Opened {
    fn open(
        &mut self,
        data: &Data,
        link: Link,
        observer: &mut Observer<'_>,
    ) -> Result<(), TrainError> {
        if !self.last.as_ref().is_some_and(|last| last.of == (data.clone(), link)) {
            let opened = DataSet::open(data, link)?;
            opened.warnings.iter().for_each(|warning| observer(Event::Warning(warning)));
            self.last = Some(LastData { of: (data.clone(), link), data: opened, checked: None });
        }
        Ok(())
    }

    fn last(&mut self) -> &mut LastData {
        self.last.as_mut().expect("data are opened first")
    }

    /// What cannot be decoded; `None` when `stop` was raised meanwhile.
    fn check(
        &mut self,
        stop: &AtomicBool,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Vec<SetAside>>, TrainError> {
        let last = self.last();
        if last.checked.is_none() {
            last.checked = checked(&last.data, stop, observer)?;
        }
        Ok(last.checked.clone())
    }

    /// The data without some of their examples.
    fn without(&mut self, set_aside: &[SetAside]) -> Result<DataSet, TrainError> {
        without(self.last().data.clone(), set_aside)
    }
}
