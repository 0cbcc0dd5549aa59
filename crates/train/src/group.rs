//! Several runs that belong together: seeds of an ensemble, points of a sweep, trials of a tuning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use aleator_data::{DataSet, Sources};
use aleator_metrics::Evaluation;
pub use aleator_run::GroupKind as Kind;
use aleator_run::recipe::{Recipe, Tune};
use aleator_run::{AtomicFolder, GroupFile, GroupMember, RunDir, RunError, check_vacant};

use crate::runs::{divide, same_data};
use crate::set_aside::undecodable;
use crate::tuning::{self, Tuning, tune};
use crate::{Event, Job, Observer, Outcome, TrainError, create_run, finish_run, load_run};

/// One run of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its directory in the group's; empty for a single run.
    pub name: String,
    /// Its recipe.
    pub recipe: Recipe,
    /// Its seed.
    pub seed: u64,
}

impl Member {
    /// Its directory, where that of the group is `out`.
    pub fn dir(&self, out: &Path) -> PathBuf {
        if self.name.is_empty() { out.to_path_buf() } else { out.join(&self.name) }
    }
}

/// Runs that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What to do when all members have finished.
    pub kind: Kind,
    /// The runs.
    pub members: Vec<Member>,
}

impl Group {
    /// Runs with sensible recipes and a directory each.
    ///
    /// # Errors
    /// When there is no run, a recipe says something impossible, or two runs have one name.
    pub fn new(kind: Kind, members: Vec<Member>) -> Result<Self, TrainError> {
        if members.is_empty() {
            let message = "there is nothing to train: give at least one seed or recipe";
            return Err(TrainError::Recipe(message.to_string()));
        }
        let mut names = BTreeSet::new();
        for Member { name, recipe, .. } in &members {
            recipe.check()?;
            if !names.insert(name) {
                let message = format!("two runs would be written to {name}: keep one");
                return Err(TrainError::Recipe(message));
            }
        }
        Ok(Self { kind, members })
    }
}

/// How the runs of a group ended.
#[derive(Debug)]
pub enum GroupOutcome {
    /// All are trained and evaluated; in the order of the members.
    Evaluated(Vec<Evaluation>),
    /// One was interrupted; those after it have not started.
    Interrupted {
        /// Its name.
        name: String,
        /// Its steps.
        step: usize,
    },
}

/// One member for each seed of a recipe: `seed-0`, `seed-1`, …, or a run by itself.
pub fn members(name: &str, recipe: &Recipe) -> Vec<Member> {
    let seeds = &recipe.seeds;
    let member = |seed: &u64| {
        let own = if seeds.len() > 1 { format!("seed-{seed}") } else { String::new() };
        let parts: Vec<&str> = [name, &own].into_iter().filter(|part| !part.is_empty()).collect();
        Member { name: parts.join("/"), recipe: recipe.clone(), seed: *seed }
    };
    seeds.iter().map(member).collect()
}

/// The runs of a directory, whether it is a single run or a group that [`create`] made.
pub fn open(path: &Path) -> Result<Group, TrainError> {
    if path.join(GroupFile::NAME).exists() {
        return read_group(path);
    }
    let (run, recipe) = load_run(path)?;
    let member = Member { name: String::new(), seed: run.info().seed, recipe };
    Ok(Group { kind: Kind::Seeds, members: vec![member] })
}

/// Makes the directory of a group whose runs [`finish`] will start; a single run makes its own.
///
/// # Errors
/// When there is something in its place already.
pub fn create(out: &Path, group: &Group) -> Result<(), TrainError> {
    check_vacant(out)?;
    let members = &group.members;
    if matches!(&members[..], [member] if member.name.is_empty()) {
        return Ok(());
    }
    let member = |member: &Member| GroupMember {
        name: member.name.clone(),
        seed: member.seed,
        recipe: member.recipe.to_toml(),
    };
    let file = GroupFile::new(group.kind, members.iter().map(member).collect());
    let dir = AtomicFolder::create_new(out)?;
    file.save(dir.path())?;
    Ok(dir.commit()?)
}

fn read_group(path: &Path) -> Result<Group, TrainError> {
    let group = GroupFile::load(path)?;
    let file = path.join(GroupFile::NAME);
    let member = |member: GroupMember| {
        let name = format!("{}: {}", file.display(), member.name);
        let recipe = Recipe::from_toml(&member.recipe, &name)?;
        Ok(Member { name: member.name, seed: member.seed, recipe })
    };
    let members = group.members.into_iter().map(member).collect::<Result<_, TrainError>>()?;
    Ok(Group { kind: group.kind, members })
}

/// Trains and evaluates what is missing of the runs in `out`: one there itself, or each in its own
/// directory.
///
/// `sources` are the data of all members where the caller has them open, or has them in memory;
/// without them each member's data are opened, once for members that read the same files.
pub fn finish(
    out: &Path,
    group: &Group,
    sources: Option<&Sources>,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Member, Event<'_>),
) -> Result<GroupOutcome, TrainError> {
    let mut open = OpenData { given: sources, opened: None, divided: None };
    let mut tunings = Tunings::default();
    let mut evaluations = vec![];
    for member in &group.members {
        let path = member.dir(out);
        let recipe = &member.recipe;
        let mut tell = |event: Event<'_>| observer(member, event);
        let data = open.of(recipe, &mut tell)?;
        let mut run = if path.join(RunDir::INFO).exists() {
            RunDir::open(&path)?
        } else {
            let Some(set_aside) = undecodable(data, stop, &mut tell)? else {
                return Ok(GroupOutcome::Interrupted { name: member.name.clone(), step: 0 });
            };
            let kept = &data.clone().leave_out(&set_aside)?;
            create_run(&path, recipe, member.seed, kept, &set_aside)?
        };
        let set_aside = &run.info().set_aside;
        if !set_aside.is_empty() {
            tell(Event::SetAside(set_aside));
        }
        let data = &data.clone().leave_out(set_aside)?;
        let _lock = run.lock()?;
        let Some(recipe) = tunings.recipe(&mut run, recipe, data, stop, &mut tell)? else {
            return Ok(GroupOutcome::Interrupted { name: member.name.clone(), step: 0 });
        };
        let job = Job { run: &run, recipe: &recipe, data, stop };
        match finish_run(&job, &mut |event| observer(member, event))? {
            Outcome::Finished(evaluation) => evaluations.push(evaluation),
            Outcome::Interrupted { step } => {
                return Ok(GroupOutcome::Interrupted { name: member.name.clone(), step });
            }
        }
    }
    Ok(GroupOutcome::Evaluated(evaluations))
}

/// Settings that were chosen for members so far. Runs that differ in their seed or in the fold that
/// they hold out share them.
#[derive(Default)]
struct Tunings {
    known: Vec<(Recipe, Tuning)>,
}

impl Tunings {
    /// The recipe that a run trains by; `None` when it was stopped before there was one.
    fn recipe(
        &mut self,
        run: &mut RunDir,
        given: &Recipe,
        data: &DataSet,
        stop: &AtomicBool,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Recipe>, TrainError> {
        let own = run.recipe()?.recipe;
        let mut key = given.clone();
        (key.seeds, key.data.test) = (vec![], None);
        if own.tune == Tune::Off {
            if given.tune == Tune::Auto {
                let missing = || RunError::damaged(&run.path().join(Tuning::NAME), "is missing");
                self.known.push((key, Tuning::load(run.path())?.ok_or_else(missing)?));
            }
            return Ok(Some(own));
        }
        same_data(run, data)?;
        let known = self.known.iter().find(|(known, _)| *known == key);
        let tuning = match known {
            Some((_, known)) => known.clone(),
            None => match tune(&Job { run, recipe: &own, data, stop }, observer)? {
                Outcome::Finished(tuning) => tuning,
                Outcome::Interrupted { .. } => return Ok(None),
            },
        };
        let refits = own.optimizer.rule.refits() && data.is_validation_a_part();
        let more = if refits { data.validation.len() } else { 0 };
        let examples = data.train.len() + more;
        let recipe = tuning::write(&tuning, run, &own, examples)?;
        observer(Event::Tuned(&tuning));
        self.known.push((key, tuning));
        Ok(Some(recipe))
    }
}

/// The data of the member before; seeds, folds and most sweeps share their sources.
struct OpenData<'a> {
    /// Sources that the caller opened, for all members.
    given: Option<&'a Sources>,
    /// Those that were opened here last.
    opened: Option<Sources>,
    /// The recipe that they were divided for last, and the result.
    divided: Option<(&'a Recipe, DataSet)>,
}

impl<'a> OpenData<'a> {
    fn of(
        &mut self,
        recipe: &'a Recipe,
        observer: &mut Observer<'_>,
    ) -> Result<&DataSet, TrainError> {
        let (data, link) = (&recipe.data, recipe.head.link);
        let same = |(last, _): &(&Recipe, _)| last.data == *data && last.head.link == link;
        if !self.divided.as_ref().is_some_and(same) {
            let is_open = |sources: &Sources| sources.are_of(data, link);
            if self.given.is_none() && !self.opened.as_ref().is_some_and(is_open) {
                let sources = Sources::open(data, link)?;
                observer(Event::Opened { examples: sources.len() });
                sources.notes().iter().for_each(|note| observer(Event::Note(note)));
                self.opened = Some(sources);
            }
            let sources = self.given.or(self.opened.as_ref()).expect("just opened");
            let divided = divide(sources, recipe)?;
            divided.warnings.iter().for_each(|warning| observer(Event::Warning(warning)));
            self.divided = Some((recipe, divided));
        }
        Ok(self.divided.as_ref().map(|(_, data)| data).expect("just divided"))
    }
}
