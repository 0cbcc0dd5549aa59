//! The lists of an audit: near duplicates, outliers, ambiguous examples.

use super::{Card, answer, class_name, gallery};
use crate::audit::{Answer, Issue, NearDuplicate, Outlier};
use crate::escape;
use crate::number;
use crate::page::material::AuditAt;
use crate::page::pictures::{PictureKey, PictureSource};
use crate::page::{PageSettings, Section};

/// One section for each list that is not empty.
pub(in crate::page) fn sections(
    at: &AuditAt,
    settings: &PageSettings,
    pictures: &mut PictureSource<'_>,
) -> Vec<Section> {
    [
        near_duplicates(at, settings.suspects, pictures),
        outliers(at, settings.suspects, pictures),
        ambiguous(at, settings.ambiguous, pictures),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn near_duplicates(
    at: &AuditAt,
    limit: usize,
    pictures: &mut PictureSource<'_>,
) -> Option<Section> {
    let lists = &at.audit.lists;
    let (groups, differing) = lists.duplicate_groups();
    // Whole groups, unless the first one is too large: half of one says little.
    let all = &lists.near_duplicates;
    let cut = all.get(limit).map_or(usize::MAX, |first| first.group);
    let whole = all.iter().filter(|it| it.group < cut).count();
    let shown = all.iter().take(if whole == 0 { limit } else { whole });
    let cards = shown.map(|it: &NearDuplicate| {
        let distance = match it.distance {
            0.0 => "identical features".to_string(),
            distance => format!("distance {}", number::fixed(distance, 2)),
        };
        let differ = if it.labels_differ { ", different labels" } else { "" };
        let group = format!("group {}{differ}", number::count(it.group));
        card(at, &it.id, label(&it.label), vec![group, distance])
    });
    let words = format!(
        "{} groups of examples whose features are identical or far nearer to each other than \
         usual; the labels of {} of them differ, and these come first. The distance is that to the \
         nearest of the group, where 1 is that to the tenth nearest of all examples. All are in \
         <code>near_duplicates.csv</code>.",
        number::count(groups),
        number::count(differing)
    );
    let body = gallery(&words, cards, pictures)?;
    Some(Section {
        id: "near-duplicates",
        title: "Near duplicates in the audited data".to_string(),
        body,
    })
}

fn outliers(at: &AuditAt, limit: usize, pictures: &mut PictureSource<'_>) -> Option<Section> {
    let all = &at.audit.lists.outliers;
    let cards = all.iter().take(limit).map(|it: &Outlier| {
        let ratio = format!("{} times as far as usual", number::fixed(it.distance_ratio, 1));
        card(at, &it.id, label(&it.label), vec![ratio])
    });
    let words = format!(
        "{} examples that are much farther from their nearest neighbours than these are from \
         theirs, the farthest first: they may belong to no class. All are in \
         <code>outliers.csv</code>.",
        number::count(all.len())
    );
    let body = gallery(&words, cards, pictures)?;
    Some(Section { id: "outliers", title: "Outliers in the audited data".to_string(), body })
}

fn ambiguous(at: &AuditAt, limit: usize, pictures: &mut PictureSource<'_>) -> Option<Section> {
    let names = &at.audit.summary.class_names;
    let all = at.audit.ambiguous();
    let cards = all.iter().take(limit).map(|issue: &&Issue| {
        let heading = match issue.given {
            Answer::Class(_) => [issue.given, issue.suggested].map(|it| class_name(it, names)),
            _ => [answer(issue.given, names), "not".to_string()],
        };
        let bars = vec![
            (answer(issue.given, names), issue.given_probability),
            (answer(issue.suggested, names), issue.suggested_probability),
        ];
        let given = vec![format!("given {}", answer(issue.given, names))];
        Card { bars, ..card(at, &issue.id, heading.join(" or "), given) }
    });
    let words = format!(
        "{} labels that are not among the suspects, but where another answer is about as probable \
         (at least half as probable as the other), the closest first. All are in \
         <code>ambiguous_examples.csv</code>.",
        number::count(all.len())
    );
    let body = gallery(&words, cards, pictures)?;
    Some(Section {
        id: "ambiguous-labels",
        title: "Ambiguous labels of the audit".to_string(),
        body,
    })
}

fn card<'a>(at: &'a AuditAt, id: &'a str, heading: String, notes: Vec<String>) -> Card<'a> {
    let key = PictureKey { dir: &at.dir, split: None, id };
    Card { key, heading, bars: vec![], notes }
}

/// The classes of a label, or that it names none.
fn label(classes: &str) -> String {
    if classes.is_empty() { "no class".to_string() } else { escape::name(classes) }
}
