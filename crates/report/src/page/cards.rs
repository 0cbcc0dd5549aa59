//! Cards of examples: suspect labels and ambiguous examples.

pub(super) mod lists;

use aleator_run::{ExampleRow, Split};

use super::held_out::JudgedExample;
use super::material::AuditAt;
use super::pictures::{EncodedPicture, Picture, PictureKey, PictureSource};
use super::{Details, Section};
use crate::audit::{Answer, Issue};
use crate::escape;
use crate::number;

/// Images with at most this many pixels on a side are enlarged with hard edges.
const TINY: usize = 48;

/// Cards before the fold. With a script they are paged, `script.js` says by how many.
const UNFOLDED: usize = 12;

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
    let cards = shown.iter().map(|issue| {
        let truth = issue.truth.map(|truth| format!("true label {}", answer(truth, names)));
        Card {
            key: PictureKey { dir: &at.dir, split: None, id: &issue.id },
            heading: change(issue.given, issue.suggested, names),
            bars: vec![
                (answer(issue.suggested, names), issue.suggested_probability),
                (answer(issue.given, names), issue.given_probability),
            ],
            notes: truth.into_iter().collect(),
        }
    });
    let all = number::count(issues.len());
    let which = match shown.len() {
        some if some < issues.len() => format!("The first {} of {all} labels", number::count(some)),
        1 => "The only label".to_string(),
        _ => format!("All {all} labels"),
    };
    let look = if issues.len() == 1 { "looks" } else { "look" };
    let words = format!(
        "{which} that {look} wrong, the surest first: given → suggested, with the probability of \
         each. All labels are in <code>issues.csv</code>."
    );
    let body = gallery(&words, cards, pictures)?;
    Some(Section::new("suspects", "Suspect labels of the audit", body))
}

/// The held-out labels that a run contradicts.
pub(super) fn doubted(details: &Details<'_>, pictures: &mut PictureSource<'_>) -> Option<Section> {
    let names = details.names();
    let cards = details.validation.as_ref()?.suspects.iter().map(|judged| {
        let heading = match (judged.given, judged.answers.first()) {
            (Some(given), Some((suggested, _))) => change(given, *suggested, names),
            _ => String::new(),
        };
        card(details, Split::Validation, judged, heading)
    });
    let words = "The labels that the model contradicts most surely: \
                 given → suggested, with the probability of each. The model learned from labels \
                 like these; <code>aleator audit</code> judges all labels, those of training \
                 included.";
    let body = gallery(words, cards, pictures)?;
    Some(Section::new("suspects", "Suspect labels of the validation split", body))
}

/// The examples about which a run is least certain.
pub(super) fn ambiguous(
    details: &Details<'_>,
    pictures: &mut PictureSource<'_>,
) -> Option<Section> {
    let unseen = details.unseen()?;
    let names = details.names();
    let cards = unseen.ambiguous.iter().map(|judged| {
        let tops = judged.answers.iter().take(2).map(|(answer, _)| class_name(*answer, names));
        let heading = tops.collect::<Vec<_>>().join(" or ");
        let mut card = card(details, unseen.split, judged, heading);
        if let Some(given) = judged.given {
            card.notes.insert(0, format!("given {}", answer(given, names)));
        }
        card
    });
    let words = "The examples whose probabilities are spread most widely (highest entropy): \
                 people may disagree on them too.";
    let body = gallery(words, cards, pictures)?;
    let title = format!("Ambiguous examples of the {} split", unseen.split.name());
    Some(Section::new("ambiguous", title, body))
}

/// The card of a held-out example; notes its true label, if that is known and names one class.
fn card<'a>(
    details: &Details<'a>,
    split: Split,
    judged: &'a JudgedExample,
    heading: String,
) -> Card<'a> {
    let (dir, names) = (details.run.dir.path(), details.names());
    let ExampleRow { id, label, clean_label, .. } = &judged.row;
    let truth = match clean_label.as_deref() {
        Some([class]) if clean_label != label => Some(Answer::Class(*class)),
        _ => None,
    };
    let bar = |(what, probability): &(Answer, f64)| (answer(*what, names), *probability);
    Card {
        key: PictureKey { dir, split: Some(split), id },
        heading,
        bars: judged.answers.iter().map(bar).collect(),
        notes: truth.iter().map(|it| format!("true label {}", answer(*it, names))).collect(),
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
    let name = class_name(given, names);
    if let Answer::Class(_) = given {
        return format!("<s>{name}</s> → {}", class_name(suggested, names));
    }
    let state = |answer| if matches!(answer, Answer::On(_)) { "on" } else { "off" };
    format!("{name}: <s>{}</s> → {}", state(given), state(suggested))
}

/// `None` without cards.
fn gallery<'a>(
    words: &str,
    cards: impl Iterator<Item = Card<'a>>,
    pictures: &mut PictureSource<'_>,
) -> Option<String> {
    let cards: Vec<Card<'_>> = cards.collect();
    if cards.is_empty() {
        return None;
    }
    let mut out = format!("<p>{words}</p>\n<ul class=\"gallery\">\n");
    for (at, card) in cards.iter().enumerate() {
        if at == UNFOLDED {
            let more = number::count(cards.len() - UNFOLDED);
            out += &format!(
                "</ul>\n<details class=\"rest\"><summary>{more} more</summary>\n<ul class=\"gallery\">\n"
            );
        }
        let picture = image(&pictures(&card.key), card.key.id);
        out += &format!("<li>{picture}<p class=\"change\">{}</p>\n", card.heading);
        for (name, probability) in &card.bars {
            let share = (100.0 * probability).clamp(0.0, 100.0);
            let shown = number::percent(*probability, 1);
            out += &format!(
                "<p class=\"bar\"><span>{name}</span> <span>{shown}</span><svg viewBox=\"0 0 100 3\" \
                 preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"100\" height=\"3\" \
                 class=\"f-grid\"/><rect width=\"{share:.1}\" height=\"3\" class=\"f-s0\"/></svg></p>\n"
            );
        }
        let notes: String = card.notes.iter().map(|note| format!("{note}<br>")).collect();
        out += &format!("<p class=\"id\">{notes}id {}</p></li>\n", escape::name(card.key.id));
    }
    let end = if cards.len() > UNFOLDED { "</ul></details>\n" } else { "</ul>\n" };
    Some(out + end)
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
