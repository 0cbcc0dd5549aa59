//! A review: an audit and what was decided about it so far.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_report::audit::{Acceptance, Answer, Audit, Issue, ReviewRecord, SampledCount};
use aleator_run::{Link, RunError, RunLock, lock_folder};
use serde::Serialize;

use crate::corrected::{Decisions, Outcome};
use crate::decision::{Decision, Line, MadeDecision, Word, in_words};
use crate::error::ReviewError;
use crate::journal::{self, Journal, OpenedJournal, wrong_line};
use crate::queue::{Filter, Queue};

/// A review that nobody else can change while it is open.
///
/// ```no_run
/// use aleator_review::{Decision, Session};
///
/// let mut review = Session::open("audit".as_ref())?;
/// review.decide(0, Decision::Accept)?;
/// review.write_corrected()?;
/// # Ok::<(), aleator_review::ReviewError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    pub(crate) subject: Arc<Subject>,
    pub(crate) decisions: Decisions,
    history: Vec<Step>,
    /// The least probability of suggestions that are accepted unless a person decides.
    threshold: Option<f64>,
    journal: Journal,
    notes: Vec<String>,
    _lock: RunLock,
}

/// What is undone at once: the issues that were decided, and their decisions before. Not empty.
type Step = Vec<(u32, Option<MadeDecision>)>;

/// The audit under review; it does not change.
#[derive(Debug)]
pub(crate) struct Subject {
    pub dir: PathBuf,
    pub audit: Audit,
    pub queue: Queue,
    /// The example of each issue.
    pub example_of: Vec<u32>,
}

/// The progress of a review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Labels that the audit suspects.
    pub suspects: usize,
    /// Of these, how many are decided.
    pub suspects_decided: usize,
    /// All labels that are decided, suspects or not.
    pub decided: usize,
    /// Of these, how many are changed.
    pub corrected: usize,
    /// How many are kept.
    pub kept: usize,
    /// How many are ambiguous.
    pub ambiguous: usize,
}

impl Session {
    /// Opens the audit in a directory with its earlier decisions, and locks it.
    ///
    /// # Errors
    /// When there is no finished audit, one of its files is damaged, the directory is not writable,
    /// or another process reviews or resumes it.
    pub fn open(dir: &Path) -> Result<Self, ReviewError> {
        if !dir.join("audit.json").is_file() {
            // Says what is missing; a directory without an audit is left as it is.
            Audit::load(dir)?;
        }
        let not_writable = |error| not_writable(dir, error);
        let lock = lock_folder(dir).map_err(not_writable)?;
        // Under the lock: an audit that is resumed writes its files again.
        let subject = Subject::load(dir)?;
        aleator_run::remove_leftovers(dir)?;
        let fingerprint = &subject.audit.summary.fingerprint;
        let OpenedJournal { journal, lines, torn } =
            Journal::open(dir, fingerprint).map_err(not_writable)?;
        let torn = torn.map(|torn| {
            format!(
                "the last line of {} was cut off ({torn:?}): that decision was not confirmed; \
                 make it again",
                journal::NAME
            )
        });
        let threshold = ReviewRecord::load(dir)?.and_then(|it| it.accept).map(|it| it.threshold);
        let rule = threshold.map(|threshold| {
            format!(
                "suggestions with a probability of at least {threshold} are accepted in \
                 corrected.csv unless you decide otherwise ({})",
                ReviewRecord::FILE
            )
        });
        let mut session = Self {
            subject: Arc::new(subject),
            decisions: Decisions::new(),
            history: vec![],
            threshold,
            journal,
            notes: torn.into_iter().chain(rule).collect(),
            _lock: lock,
        };
        session.replay(&lines)?;
        Ok(session)
    }

    /// Messages for the start of the review.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The audit.
    pub fn audit(&self) -> &Audit {
        &self.subject.audit
    }

    /// The decision about an issue, by its row in `issues.csv` from 0.
    pub fn decision(&self, issue: usize) -> Option<Decision> {
        Some(self.decisions.get(&u32::try_from(issue).ok()?)?.decision)
    }

    /// Decides about an issue. When this returns, the decision is on disk.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is decided.
    ///
    /// # Panics
    /// When there is no such issue, or the decision does not suit it.
    pub fn decide(&mut self, issue: usize, decision: Decision) -> Result<(), ReviewError> {
        let names = self.subject.names();
        let found = &self.subject.audit.issues[issue];
        assert!(decision.suits(found, names.len()), "{decision:?} about {found:?}");
        let word = match decision {
            Decision::Accept => Word::Accept,
            Decision::Keep => Word::Keep,
            Decision::Class(_) => Word::Class,
            Decision::Ambiguous => Word::Ambiguous,
        };
        let label = in_words(decision.label(found), names).to_string();
        self.journal.append(&self.subject.line(issue, word, Some(label)))?;
        self.apply(&[(issue as u32, MadeDecision { decision, is_seen: true })]);
        Ok(())
    }

    /// Accepts the suggestions of all undecided issues that a filter of one pair includes, and
    /// returns how many. They are one line of `decisions.jsonl`, on disk when this returns, and
    /// undone together.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is decided.
    ///
    /// # Panics
    /// When the filter names no pair.
    pub fn accept_all(&mut self, filter: Filter) -> Result<usize, ReviewError> {
        assert!(filter.pair.is_some(), "only suggestions of one pair are accepted together");
        let numbers = self.subject.queue.numbers(filter);
        let open: Vec<usize> =
            numbers.into_iter().filter(|issue| self.decision(*issue).is_none()).collect();
        let Some(first) = open.first().copied() else { return Ok(0) };
        let issues = &self.subject.audit.issues;
        let label = in_words(issues[first].suggested, self.subject.names()).to_string();
        let ids = open.iter().map(|issue| issues[*issue].id.clone()).collect();
        let line = self.subject.line(first, Word::AcceptAll, Some(label));
        self.journal.append(&Line { id: String::new(), ids, ..line })?;
        let accepted = MadeDecision { decision: Decision::Accept, is_seen: false };
        let made: Vec<(u32, MadeDecision)> =
            open.iter().map(|issue| (*issue as u32, accepted)).collect();
        self.apply(&made);
        Ok(made.len())
    }

    /// Undoes the last decision, or all of them that were made at once, and returns the first
    /// issue; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is undone.
    pub fn undo(&mut self) -> Result<Option<usize>, ReviewError> {
        let Some((issue, _)) = self.history.last().map(|step| step[0]) else { return Ok(None) };
        self.journal.append(&self.subject.line(issue as usize, Word::Undo, None))?;
        self.revert();
        Ok(Some(issue as usize))
    }

    /// Makes sure at the end of a review that all decisions are in a file, and writes those of a file
    /// that was removed again.
    ///
    /// # Errors
    /// When another program replaced the file; the message says where the decisions are.
    pub fn keep_decisions(&self) -> Result<(), ReviewError> {
        Ok(self.journal.keep()?)
    }

    /// How many decisions the next undo takes back.
    pub fn undoes(&self) -> usize {
        self.history.last().map_or(0, Vec::len)
    }

    /// The progress of the review.
    pub fn progress(&self) -> Progress {
        let subject = &self.subject;
        let mut progress = Progress { suspects: subject.queue.suspects, ..Progress::default() };
        for (issue, MadeDecision { decision, .. }) in &self.decisions {
            let found = &subject.audit.issues[*issue as usize];
            progress.decided += 1;
            progress.suspects_decided += usize::from(found.wrong);
            match decision {
                Decision::Ambiguous => progress.ambiguous += 1,
                _ if decision.label(found) == found.given => progress.kept += 1,
                _ => progress.corrected += 1,
            }
        }
        progress
    }

    /// How many labels are wrong, by those that were decided in the order of
    /// [`Scope::Sample`](crate::Scope::Sample); `None` while they are too few. A label counts as
    /// wrong if it was changed, not if it was found ambiguous.
    pub fn count(&self) -> Option<SampledCount> {
        self.subject.queue.sampling.count(|issue| self.found_wrong(issue))
    }

    /// The issues in the order of [`Scope::Sample`](crate::Scope::Sample).
    pub fn sampling_order(&self) -> Vec<usize> {
        self.subject.queue.sampling.ranks().collect()
    }

    /// Of the labels that a count needs at least, how many are decided, and how many there are.
    pub(crate) fn sampled(&self) -> (usize, usize) {
        let sampling = &self.subject.queue.sampling;
        let needed = sampling.ranks().take(sampling.least());
        (needed.filter(|issue| self.found_wrong(*issue).is_some()).count(), sampling.least())
    }

    /// Whether a person looked at a label and changed it.
    fn found_wrong(&self, issue: usize) -> Option<bool> {
        let made = self.decisions.get(&u32::try_from(issue).ok()?).filter(|made| made.is_seen)?;
        let found = &self.subject.audit.issues[issue];
        Some(made.decision.label(found) != found.given)
    }

    /// From now on, suggestions with at least this probability are accepted in `corrected.csv`
    /// unless a person decides otherwise, and `pruned.csv` and `weights.csv` are written too.
    ///
    /// # Panics
    /// When it is not a threshold: see [`Acceptance::is_threshold`].
    pub fn accept_above(&mut self, threshold: f64) {
        assert!(Acceptance::is_threshold(threshold), "{threshold} must be {}", Acceptance::RANGE);
        self.threshold = Some(threshold);
    }

    /// Writes `corrected.csv` and all other files that follow from the decisions.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_corrected(&self) -> Result<ReviewRecord, ReviewError> {
        Ok(self.outcome().write()?)
    }

    /// What the files are written from, apart from the session.
    pub(crate) fn outcome(&self) -> Outcome {
        let Progress { decided, corrected, kept, ambiguous, .. } = self.progress();
        let accept =
            self.threshold.map(|threshold| Acceptance { threshold, accepted: 0, pruned: 0 });
        Outcome {
            subject: Arc::clone(&self.subject),
            decisions: self.decisions.clone(),
            record: ReviewRecord {
                decided,
                corrected,
                kept,
                ambiguous,
                count: self.count(),
                accept,
            },
        }
    }

    /// Replays the decisions of a file.
    fn replay(&mut self, lines: &[(usize, Line)]) -> Result<(), RunError> {
        let subject = Arc::clone(&self.subject);
        let path = subject.dir.join(journal::NAME);
        let known = NameIndex::new(&subject.audit);
        for (number, line) in lines {
            let wrong = |message: String| wrong_line(&path, *number, message);
            if line.decision == Word::Undo {
                let issue = known.issue(line, &line.id).map_err(wrong)?;
                if self.history.last().map(|step| step[0].0) != Some(issue) {
                    return Err(wrong("undoes a decision that was not the last one".to_string()));
                }
                self.revert();
                continue;
            }
            let is_seen = line.decision != Word::AcceptAll;
            let ids = if is_seen { std::slice::from_ref(&line.id) } else { &line.ids };
            let made = |id: &String| -> Result<(u32, MadeDecision), String> {
                let issue = known.issue(line, id)?;
                let decision = known.decision(line, &subject.audit.issues[issue as usize])?;
                Ok((issue, MadeDecision { decision, is_seen }))
            };
            let made: Vec<_> = ids.iter().map(made).collect::<Result<_, _>>().map_err(wrong)?;
            if made.is_empty() {
                return Err(wrong("decides about no example: ids is missing".to_string()));
            }
            self.apply(&made);
        }
        Ok(())
    }

    fn apply(&mut self, made: &[(u32, MadeDecision)]) {
        let one =
            |(issue, made): &(u32, MadeDecision)| (*issue, self.decisions.insert(*issue, *made));
        self.history.push(made.iter().map(one).collect());
    }

    fn revert(&mut self) {
        for (issue, before) in self.history.pop().into_iter().flatten().rev() {
            match before {
                Some(before) => drop(self.decisions.insert(issue, before)),
                None => drop(self.decisions.remove(&issue)),
            }
        }
    }
}

impl Subject {
    fn load(dir: &Path) -> Result<Self, ReviewError> {
        let audit = Audit::load(dir)?;
        let path = dir.join("examples.csv");
        let classes = audit.summary.class_names.len();
        let mut examples: BTreeMap<&str, u32> = BTreeMap::new();
        for (row, at) in audit.examples.iter().zip(0..) {
            let (id, label) = (&row.id, row.label.as_deref().unwrap_or_default());
            let message = if examples.insert(id, at).is_some() {
                format!("the id {id:?} occurs twice")
            } else if audit.summary.link == Link::Softmax && label.len() != 1 {
                format!("{id:?} has {} labels, expected one", label.len())
            } else if let Some(class) = label.iter().find(|class| **class as usize >= classes) {
                format!("{id:?} has class {class} of {classes}")
            } else {
                continue;
            };
            return Err(RunError::damaged(&path, message).into());
        }
        let example_of = audit.issues.iter().zip(2..).map(|(issue, line)| {
            examples.get(issue.id.as_str()).copied().ok_or_else(|| {
                let message = format!("line {line}: {:?} is not in examples.csv", issue.id);
                RunError::damaged(&dir.join("issues.csv"), message)
            })
        });
        let example_of = example_of.collect::<Result<Vec<u32>, RunError>>()?;
        let queue = Queue::new(&audit.issues);
        Ok(Self { dir: dir.to_path_buf(), queue, example_of, audit })
    }

    /// The names of the classes.
    pub fn names(&self) -> &[String] {
        &self.audit.summary.class_names
    }

    fn line(&self, issue: usize, decision: Word, label: Option<String>) -> Line {
        let found = &self.audit.issues[issue];
        let class = class_name(found, self.names()).map(String::from);
        Line { id: found.id.clone(), ids: vec![], class, decision, label }
    }
}

/// The class that is on or off; `None` for single labels.
fn class_name<'a>(issue: &Issue, names: &'a [String]) -> Option<&'a str> {
    match issue.given {
        Answer::Class(_) => None,
        Answer::On(class) | Answer::Off(class) => Some(&names[class as usize]),
    }
}

/// Issues and classes by their names.
struct NameIndex<'a> {
    issues: BTreeMap<(&'a str, Option<&'a str>), u32>,
    classes: BTreeMap<&'a str, u32>,
    names: &'a [String],
}

impl<'a> NameIndex<'a> {
    fn new(audit: &'a Audit) -> Self {
        let names = &audit.summary.class_names[..];
        let key = |issue: &'a Issue| (issue.id.as_str(), class_name(issue, names));
        Self {
            issues: audit.issues.iter().map(key).zip(0..).collect(),
            classes: names.iter().map(String::as_str).zip(0..).collect(),
            names,
        }
    }

    /// The issue of an example that a line is about.
    fn issue(&self, line: &Line, id: &str) -> Result<u32, String> {
        let found = self.issues.get(&(id, line.class.as_deref())).copied();
        found.ok_or_else(|| {
            let class = line.class.as_ref().map(|class| format!(", class {class:?}"));
            format!("issues.csv has no issue of {id:?}{}", class.unwrap_or_default())
        })
    }

    /// Another audit of the same labels may suggest another class than the accepted one, so compare
    /// the label, not how it was chosen.
    fn decision(&self, line: &Line, issue: &Issue) -> Result<Decision, String> {
        let label = line.label.as_deref();
        let says = |answer: Answer| label == Some(in_words(answer, self.names));
        let decision = match line.decision {
            Word::Ambiguous => Some(Decision::Ambiguous),
            _ if says(issue.given) => Some(Decision::Keep),
            Word::Accept | Word::AcceptAll if says(issue.suggested) => Some(Decision::Accept),
            Word::Accept | Word::AcceptAll | Word::Class => {
                label.and_then(|label| self.classes.get(label).copied()).map(Decision::Class)
            }
            Word::Keep | Word::Undo => None,
        };
        decision.filter(|decision| decision.suits(issue, self.names.len())).ok_or_else(|| {
            format!("the label {:?} does not suit the issue", label.unwrap_or_default())
        })
    }
}

fn not_writable(dir: &Path, error: RunError) -> ReviewError {
    match &error {
        RunError::Io { action: "open" | "write" | "lock", .. } => {
            ReviewError::NotWritable { dir: dir.to_path_buf(), source: error }
        }
        _ => ReviewError::File(error),
    }
}
