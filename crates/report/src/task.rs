//! Whether two runs have the same classes.

use aleator_run::{Link, RunDir};

use crate::error::ReportError;

/// How the names of two runs' classes differ, if they do.
pub(crate) fn class_difference(ours: &[String], theirs: &[String]) -> Option<String> {
    let detail = if ours.len() != theirs.len() {
        format!("they have {} and {} classes", ours.len(), theirs.len())
    } else {
        let at = ours.iter().zip(theirs).position(|(a, b)| a != b)?;
        format!("class {at} is {:?} and {:?}", ours[at], theirs[at])
    };
    Some(format!("their classes are not the same ({detail})"))
}

/// Refuses runs whose predictions cannot be put together: of other classes, or another link.
pub(crate) fn same_task(first: &RunDir, other: &RunDir) -> Result<(), ReportError> {
    let (a, b) = (first.info(), other.info());
    let name = |link: Link| match link {
        Link::Softmax => "softmax",
        Link::Sigmoid => "sigmoid",
    };
    let reason = match class_difference(&a.class_names, &b.class_names) {
        Some(reason) => reason,
        None if a.link != b.link => {
            format!("one has the {} link, the other the {} link", name(a.link), name(b.link))
        }
        None => return Ok(()),
    };
    Err(ReportError::different(first, other, reason))
}
