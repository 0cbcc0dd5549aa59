//! Cards of examples: suspect labels and ambiguous examples.

use std::fmt::Write;
use std::path::Path;

use aleator_run::Split;

use super::held_out::Judged;
use super::material::AuditAt;
use super::pictures::{EncodedPicture, Picture, PictureKey, PictureSource};
use super::{Details, Section};
use crate::audit::{Answer, Issue};
use crate::escape;
use crate::number;

/// Images with at most this many pixels on a side are enlarged with hard edges.
const TINY: usize = 48;

/// One example.
struct Card<'a> {
    key: PictureKey<'a>,
    /// "3 → 8".
    heading: String,
    /// Answers and their probabilities.
    bars: Vec<(String, f64)>,
    /// Lines below the bars.
    notes: Vec<String>,
}

/// The suspect labels of an audit.
pub(super) fn suspects(
    at: &AuditAt,
    limit: usize,
    pictures: &mut PictureSource<'_>,
) -> Option<Section> {
    let names = &at.audit.summary.class_names;
    let issues: Vec<&Issue> = at.audit.issues.iter().filter(|issue| issue.wrong).collect();
    let shown = &issues[..limit.min(issues.len())];
    if shown.is_empty() {
        return None;
    }
    let cards = shown.iter().map(|issue| {
        let mut notes = vec![format!("score {}", number::fixed(issue.score, 3))];
        if let Some(truth) = issue.truth {
            notes.push(format!("true label {}", answer(truth, names)));
        }
        Card {
            key: PictureKey {
                dir: &at.dir,
                split: None,
                id: &issue.id,
                path: issue.path.as_deref(),
            },
            heading: change(issue.given, issue.suggested, names),
            bars: vec![
                (answer(issue.suggested, names), issue.suggested_probability),
                (answer(issue.given, names), issue.given_probability),
            ],
            notes,
        }
    });
    let words = format!(
        "{} of {} labels that are estimated to be wrong, the surest first: given → suggested, with \
         the probability of each. All are in <code>issues.csv</code>.",
        number::count(shown.len()),
        number::count(issues.len())
    );
    let body = gallery(&words, cards, pictures);
    Some(Section { id: "suspects".to_string(), title: "Suspect labels".to_string(), body })
}

/// The held-out labels that a run contradicts.
pub(super) fn doubted(details: &Details<'_>, pictures: &mut PictureSource<'_>) -> Option<Section> {
    let validation = details.validation.as_ref()?;
    if validation.suspects.is_empty() {
        return None;
    }
    let names = details.names();
    let dir = details.run.dir.path();
    let cards = validation.suspects.iter().map(|judged| {
        let suggested = judged.answers.first().map(|(answer, _)| *answer);
        let heading = match (judged.given, suggested) {
            (Some(given), Some(suggested)) => change(given, suggested, names),
            _ => String::new(),
        };
        card(dir, Split::Validation, judged, heading, names, truth_notes(judged, names))
    });
    let words = "The labels of the validation split that the model contradicts most surely: \
                 given → suggested, with the probability of each. The model learned from labels \
                 like these; <code>aleator audit</code> judges all labels, those of training \
                 included.";
    let body = gallery(words, cards, pictures);
    Some(Section { id: "suspects".to_string(), title: "Suspect labels".to_string(), body })
}

/// The examples about which a run is least certain.
pub(super) fn ambiguous(
    details: &Details<'_>,
    pictures: &mut PictureSource<'_>,
) -> Option<Section> {
    let unseen = details.unseen()?;
    if unseen.ambiguous.is_empty() {
        return None;
    }
    let names = details.names();
    let dir = details.run.dir.path();
    let cards = unseen.ambiguous.iter().map(|judged| {
        let tops = judged.answers.iter().take(2).map(|(answer, _)| class_name(*answer, names));
        let heading = tops.collect::<Vec<_>>().join(" or ");
        let mut notes = vec![];
        if let Some(given) = judged.given {
            notes.push(format!("given {}", answer(given, names)));
        }
        notes.extend(truth_notes(judged, names));
        card(dir, unseen.split, judged, heading, names, notes)
    });
    let words = format!(
        "The examples of the {} split whose probabilities are spread most widely (highest \
         entropy): people may disagree on them too.",
        unseen.split.name()
    );
    let body = gallery(&words, cards, pictures);
    Some(Section { id: "ambiguous".to_string(), title: "Ambiguous examples".to_string(), body })
}

fn card<'a>(
    dir: &'a Path,
    split: Split,
    judged: &'a Judged,
    heading: String,
    names: &[String],
    notes: Vec<String>,
) -> Card<'a> {
    let bar = |(what, probability): &(Answer, f64)| (answer(*what, names), *probability);
    Card {
        key: PictureKey { dir, split: Some(split), id: &judged.row.id, path: None },
        heading,
        bars: judged.answers.iter().map(bar).collect(),
        notes,
    }
}

/// The true label, if it is known and names one class.
fn truth_notes(judged: &Judged, names: &[String]) -> Vec<String> {
    match judged.row.clean_label.as_deref() {
        Some([class]) if judged.row.clean_label != judged.row.label => {
            vec![format!("true label {}", answer(Answer::Class(*class), names))]
        }
        _ => vec![],
    }
}

fn class_name(answer: Answer, names: &[String]) -> String {
    names.get(answer.class() as usize).map_or(String::new(), |name| escape::name(name))
}

fn answer(answer: Answer, names: &[String]) -> String {
    let name = class_name(answer, names);
    match answer {
        Answer::Class(_) => name,
        Answer::On(_) => format!("{name} on"),
        Answer::Off(_) => format!("{name} off"),
    }
}

fn change(given: Answer, suggested: Answer, names: &[String]) -> String {
    let state = |answer: Answer| if matches!(answer, Answer::On(_)) { "on" } else { "off" };
    match given {
        Answer::Class(_) => {
            let (given, suggested) = (class_name(given, names), class_name(suggested, names));
            format!("<s>{given}</s> → {suggested}")
        }
        _ => {
            let name = class_name(given, names);
            format!("{name}: <s>{}</s> → {}", state(given), state(suggested))
        }
    }
}

// Writing to a string does not fail.
fn gallery<'a>(
    words: &str,
    cards: impl Iterator<Item = Card<'a>>,
    pictures: &mut PictureSource<'_>,
) -> String {
    let mut out = format!("<p>{words}</p>\n<ul class=\"gallery\">\n");
    for card in cards {
        let picture = pictures(&card.key);
        let _ = writeln!(
            out,
            "<li>{}<p class=\"change\">{}</p>",
            image(&picture, card.key.id),
            card.heading
        );
        for (name, probability) in &card.bars {
            let share = (100.0 * probability).clamp(0.0, 100.0);
            let _ = writeln!(
                out,
                "<p class=\"bar\"><span>{name}</span> <span>{}</span><svg viewBox=\"0 0 100 3\" \
                 preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"100\" height=\"3\" \
                 class=\"f-grid\"/><rect width=\"{share:.1}\" height=\"3\" class=\"f-s0\"/></svg></p>",
                number::percent(*probability, 1)
            );
        }
        let notes: String = card.notes.iter().map(|note| format!("{note}<br>")).collect();
        let _ = writeln!(out, "<p class=\"id\">{notes}id {}</p></li>", escape::name(card.key.id));
    }
    out + "</ul>\n"
}

fn image(picture: &Picture, id: &str) -> String {
    match picture {
        Picture::None => String::new(),
        Picture::Vanished => {
            "<div class=\"picture gone\"><span>image not found</span></div>".to_string()
        }
        Picture::Encoded(EncodedPicture { media_type, bytes, width, height }) => {
            let tiny = if *width.max(height) <= TINY { " class=\"tiny\"" } else { "" };
            let uri = escape::data_uri(media_type, bytes);
            let id = escape::text(&escape::label(id, 60));
            format!(
                "<div class=\"picture\"><img{tiny} alt=\"example {id}\" loading=\"lazy\" decoding=\"async\" \
                 width=\"{width}\" height=\"{height}\" src=\"{uri}\"></div>"
            )
        }
    }
}
