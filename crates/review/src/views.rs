//! The data that the page shows, as JSON.

use aleator_report::audit::Answer;
use serde_json::{Value, json};

use crate::decision::Decision;
use crate::pictures::Pictures;
use crate::queue::{Filter, Pair, Scope};
use crate::session::Session;

/// Issues before and after the one that is shown.
const BEFORE: usize = 6;
const AFTER: usize = 10;

/// Examples beside each of the two labels.
const REFERENCES: usize = 4;

/// Most pairs in the menu.
const PAIRS: usize = 400;

/// Which issue to show.
pub(crate) enum At {
    /// The first undecided issue.
    Undecided,
    /// This one.
    Issue(usize),
    /// The first undecided issue after this one, or else the first undecided of all.
    After(usize),
}

/// Data that does not change while the page is open.
pub(crate) fn overview(session: &Session, pictures: &Pictures) -> Value {
    let (subject, summary) = (&session.subject, &session.subject.audit.summary);
    let name = subject.dir.file_name().unwrap_or(subject.dir.as_os_str());
    let pair = |pair: &Pair| {
        json!({
            "given": answer(pair.given),
            "suggested": answer(pair.suggested),
            "count": pair.count,
        })
    };
    let pairs = &subject.queue.pairs;
    json!({
        "name": name.to_string_lossy(),
        "classes": summary.class_names,
        "single": summary.link == aleator_run::Link::Softmax,
        "labels": subject.audit.issues.len(),
        "suspects": subject.queue.suspects,
        // How many labels look wrong, as the terminal and the report say it.
        "estimate": summary.wrong_in_words(),
        "pairs": pairs.iter().take(PAIRS).map(pair).collect::<Value>(),
        "pairs_left_out": pairs.len().saturating_sub(PAIRS),
        "notes": session.notes(),
        "no_pictures": pictures.absence(),
    })
}

/// One issue and those around it, and the error of the last write if there was one.
///
/// An issue that the filter excludes is shown with a wider filter.
pub(crate) fn window(session: &Session, filter: Filter, at: At, trouble: Option<&str>) -> Value {
    let subject = &session.subject;
    let filter = match at {
        At::Issue(issue) if !subject.queue.holds(filter, issue) => {
            let suspect = subject.audit.issues[issue].wrong;
            Filter { scope: if suspect { filter.scope } else { Scope::All }, pair: None }
        }
        _ => filter,
    };
    let numbers = subject.queue.numbers(filter);
    let open = |number: &&usize| session.decision(**number).is_none();
    let place = |issue: usize| numbers.iter().position(|number| *number == issue);
    let shown = match at {
        At::Issue(issue) => Some(issue),
        At::Undecided => numbers.iter().find(open).copied(),
        At::After(issue) => {
            let later = &numbers[place(issue).map_or(0, |at| at + 1)..];
            later.iter().find(open).or_else(|| numbers.iter().find(open)).copied()
        }
    };
    let position = shown.and_then(place).unwrap_or(0);
    let around = position.saturating_sub(BEFORE)..numbers.len().min(position + AFTER + 1);
    let decided = session.decisions.keys();
    let (sampled, sample_needed) = session.sampled();
    json!({
        "filter": filter,
        // The current issue; null when all are decided.
        "at": shown,
        // Its position in the filtered list, from 0.
        "position": position,
        "total": numbers.len(),
        "decided": decided.filter(|issue| subject.queue.holds(filter, **issue as usize)).count(),
        "issues": numbers[around].iter().map(|number| issue(session, *number)).collect::<Value>(),
        "references": shown.map(|shown| references(session, shown)),
        "progress": session.progress(),
        // How many decisions an undo takes back.
        "undoes": session.undoes(),
        // How many labels are wrong by a random sample; null while `sampled` are too few.
        "count": session.count(),
        "sampled": sampled,
        "sample_needed": sample_needed,
        "trouble": trouble,
    })
}

fn issue(session: &Session, number: usize) -> Value {
    let issue = &session.subject.audit.issues[number];
    json!({
        "number": number,
        "id": issue.id,
        "given": answer(issue.given),
        "suggested": answer(issue.suggested),
        "given_probability": issue.given_probability,
        "suggested_probability": issue.suggested_probability,
        "score": issue.score,
        "decision": session.decision(number),
    })
}

/// Issues to compare an issue with: for the given and the suggested label, those that have it and
/// are surely right.
fn references(session: &Session, number: usize) -> Value {
    let subject = &session.subject;
    let undisputed = |other: &&usize| {
        **other != number && session.decision(**other).is_none_or(|it| it == Decision::Keep)
    };
    let of = |label: Answer| -> Vec<usize> {
        let sure = subject.queue.sure(label).iter().filter(undisputed);
        sure.take(REFERENCES).copied().collect()
    };
    let issue = &subject.audit.issues[number];
    json!({ "given": of(issue.given), "suggested": of(issue.suggested) })
}

/// An answer: its class, and for multilabel audits whether it is on.
fn answer(answer: Answer) -> Value {
    let on = match answer {
        Answer::Class(_) => None,
        Answer::On(_) => Some(true),
        Answer::Off(_) => Some(false),
    };
    json!({ "class": answer.class(), "on": on })
}
