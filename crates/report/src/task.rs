//! Whether two runs have the same task.

use aleator_run::{Link, RunInfo};

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

/// How the tasks of two runs differ, if they do: in their classes or their links.
pub(crate) fn task_difference(ours: &RunInfo, theirs: &RunInfo) -> Option<String> {
    let name = |link: Link| match link {
        Link::Softmax => "softmax",
        Link::Sigmoid => "sigmoid",
    };
    let (a, b) = (name(ours.link), name(theirs.link));
    let links = || (a != b).then(|| format!("one has the {a} link, the other the {b} link"));
    class_difference(&ours.class_names, &theirs.class_names).or_else(links)
}
