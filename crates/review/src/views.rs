//! The data that the page shows.

use aleator_report::audit::{Answer, Estimate};
use serde::Serialize;

use crate::decision::Decision;
use crate::pictures::Pictures;
use crate::queue::{Filter, Scope};
use crate::session::{Progress, Session};

/// Issues before and after the one that is shown.
const BEFORE: usize = 6;
const AFTER: usize = 10;

/// Most pairs in the menu.
const PAIRS: usize = 400;

/// Data that does not change while the page is open.
#[derive(Serialize)]
pub(crate) struct Overview<'a> {
    name: String,
    classes: &'a [String],
    single: bool,
    labels: usize,
    suspects: usize,
    estimate: Estimate,
    pairs: Vec<PairView>,
    pairs_left_out: usize,
    notes: &'a [String],
    no_pictures: Option<&'a str>,
}

#[derive(Serialize)]
struct PairView {
    given: AnswerView,
    suggested: AnswerView,
    count: usize,
}

/// An answer: its class, and for multilabel audits whether it is on.
#[derive(Serialize)]
struct AnswerView {
    class: u32,
    on: Option<bool>,
}

/// One issue and those around it.
#[derive(Serialize)]
pub(crate) struct Window {
    filter: Filter,
    /// The current issue; `None` when all are decided.
    at: Option<usize>,
    /// Its position in the filtered list, from 0.
    position: usize,
    total: usize,
    decided: usize,
    issues: Vec<IssueView>,
    progress: Progress,
    can_undo: bool,
}

#[derive(Serialize)]
struct IssueView {
    number: usize,
    id: String,
    given: AnswerView,
    suggested: AnswerView,
    given_probability: f64,
    suggested_probability: f64,
    score: f64,
    decision: Option<Decision>,
}

/// Which issue to show.
pub(crate) enum At {
    /// The first undecided issue.
    Undecided,
    /// This one.
    Issue(usize),
    /// The first undecided issue after this one, or else the first undecided of all.
    After(usize),
}

impl From<Answer> for AnswerView {
    fn from(answer: Answer) -> Self {
        let on = match answer {
            Answer::Class(_) => None,
            Answer::On(_) => Some(true),
            Answer::Off(_) => Some(false),
        };
        Self { class: answer.class(), on }
    }
}

impl<'a> Overview<'a> {
    pub fn new(session: &'a Session, pictures: &'a Pictures) -> Self {
        let (subject, summary) = (&session.subject, &session.subject.audit.summary);
        let name = subject.dir.file_name().unwrap_or(subject.dir.as_os_str());
        let pairs = subject.queue.pairs.iter().take(PAIRS).map(|pair| PairView {
            given: pair.given.into(),
            suggested: pair.suggested.into(),
            count: pair.count,
        });
        Self {
            name: name.to_string_lossy().into_owned(),
            classes: &summary.class_names,
            single: summary.link == aleator_run::Link::Softmax,
            labels: subject.audit.issues.len(),
            suspects: subject.queue.suspects,
            estimate: summary.wrong,
            pairs: pairs.collect(),
            pairs_left_out: subject.queue.pairs.len().saturating_sub(PAIRS),
            notes: session.notes(),
            no_pictures: pictures.absence(),
        }
    }
}

impl Window {
    /// An issue that the filter excludes is shown with a wider filter.
    pub fn new(session: &Session, filter: Filter, at: At) -> Self {
        let subject = &session.subject;
        let filter = match at {
            At::Issue(issue) if !subject.queue.holds(filter, issue) => {
                let scope = match filter.scope {
                    Scope::All => Scope::All,
                    Scope::Suspects => subject.scope_of(issue),
                };
                Filter { scope, pair: None }
            }
            _ => filter,
        };
        let numbers = subject.queue.numbers(filter);
        let open = |number: &&usize| session.decision(**number).is_none();
        let shown = match at {
            At::Issue(issue) => Some(issue),
            At::Undecided => numbers.iter().find(open).copied(),
            At::After(issue) => {
                let later = &numbers[numbers.partition_point(|number| *number <= issue)..];
                later.iter().find(open).or_else(|| numbers.iter().find(open)).copied()
            }
        };
        let position = shown.map_or(0, |shown| numbers.partition_point(|number| *number < shown));
        let around = position.saturating_sub(BEFORE)..numbers.len().min(position + AFTER + 1);
        let decided = session.decisions.keys();
        Self {
            filter,
            at: shown,
            position,
            total: numbers.len(),
            decided: decided.filter(|issue| subject.queue.holds(filter, **issue as usize)).count(),
            issues: numbers[around].iter().map(|number| view(session, *number)).collect(),
            progress: session.progress(),
            can_undo: session.can_undo(),
        }
    }
}

fn view(session: &Session, number: usize) -> IssueView {
    let issue = &session.subject.audit.issues[number];
    IssueView {
        number,
        id: issue.id.clone(),
        given: issue.given.into(),
        suggested: issue.suggested.into(),
        given_probability: issue.given_probability,
        suggested_probability: issue.suggested_probability,
        score: issue.score,
        decision: session.decision(number),
    }
}
