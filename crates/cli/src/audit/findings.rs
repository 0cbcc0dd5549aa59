//! What an audit found, for a terminal.

use std::path::Path;

use aleator::report::audit::{Answer, Audit};
use aleator::report::table::columns;
use anyhow::Result;

use crate::output::line;

/// Rows of each list.
const SHOWN: usize = 10;
/// The least score that is shown.
const LEAST_SCORE: f64 = 0.005;
/// Characters of a name that are shown.
const NAME: usize = 60;

/// The most important of it, and where the rest is.
pub fn print(out: &Path, audit: &Audit) -> Result<()> {
    let summary = &audit.summary;
    let share = |count: f64| format!("{:.1} %", 100.0 * count / summary.labels as f64);
    let source = summary.judged_by();
    line(format_args!(
        "{} labels of {} examples, each judged by {source}.",
        summary.labels, summary.examples
    ))?;
    if let Some(step) = summary.checkpoint {
        line(format_args!("The images were embedded by the checkpoint of step {step}."))?;
    }
    line(summary.wrong_in_words())?;
    if let Some(known) = &summary.known {
        line(format_args!(
            "By the true labels {} ({}) are: AUROC of the score {:.4}, average precision {:.4}; \
             the suggestion is right for {} of them.",
            known.wrong,
            share(known.wrong as f64),
            known.auroc,
            known.average_precision,
            percent(known.suggestions_right)
        ))?;
    }
    issues(audit)?;
    pairs(audit)?;
    annotators(audit)?;
    lists(out, audit)?;
    let place = out.display();
    line(format_args!("\nAll labels: {}", out.join("issues.csv").display()))?;
    if !audit.consensus.is_empty() {
        let differ = audit.consensus.iter().filter(|it| it.label != it.majority).count();
        line(format_args!(
            "One label for each example, by all annotators and the model: {} ({differ} are not the \
             majority's).",
            out.join("consensus.csv").display()
        ))?;
    }
    line(format_args!(
        "Next: `aleator report {place}` for a page of it, `aleator review {place}` to correct them."
    ))
}

fn issues(audit: &Audit) -> Result<()> {
    let names = &audit.summary.class_names;
    let answer = |answer: Answer| match answer {
        Answer::Class(class) => names[class as usize].clone(),
        Answer::On(class) => format!("{} on", names[class as usize]),
        Answer::Off(class) => format!("{} off", names[class as usize]),
    };
    // Labels that are surely right are none of the list.
    let suspects = audit.issues.iter().filter(|issue| issue.score >= LEAST_SCORE);
    let rows = suspects.map(|issue| {
        let (given, suggested) = (answer(issue.given), answer(issue.suggested));
        [issue.id.clone(), given, suggested, percent(issue.score)]
    });
    table("Most surely wrong:", ["example", "given", "suggested", "wrong with"], 3, rows)
}

fn pairs(audit: &Audit) -> Result<()> {
    let name = |class: u32| audit.summary.class_names[class as usize].clone();
    let wrong = audit.pairs.iter().filter(|pair| pair.given != pair.truth && pair.count >= 0.5);
    let rows = wrong.map(|pair| {
        let correlation =
            pair.correlation.map_or("–".to_string(), |value| format!("{value:+.2}"));
        [name(pair.truth), name(pair.given), format!("{:.0}", pair.count), correlation]
    });
    table("Confused most:", ["true class", "given label", "labels", "correlation"], 2, rows)
}

fn annotators(audit: &Audit) -> Result<()> {
    let rows = audit.annotators.iter().map(|annotator| {
        let known = annotator.known_error_rate.map_or("–".to_string(), percent);
        let labels = annotator.annotations.to_string();
        [annotator.name.clone(), labels, percent(annotator.error_rate), known]
    });
    let title = format!("Annotators who err most, of {}:", audit.annotators.len());
    table(&title, ["annotator", "labels", "wrong", "known wrong"], 1, rows)
}

/// Examples that need a look for another reason than a wrong label: one line for each list.
fn lists(out: &Path, audit: &Audit) -> Result<()> {
    let (groups, differing) = audit.lists.duplicate_groups();
    let (outliers, ambiguous) = (audit.lists.outliers.len(), audit.ambiguous().len());
    let groups_of = if groups == 1 { "group" } else { "groups" };
    let found = [
        (
            groups,
            format!(
                "{groups_of} of (nearly) identical examples, {differing} with different labels"
            ),
            "near_duplicates.csv",
        ),
        (outliers, "far from all others, perhaps of no class".to_string(), "outliers.csv"),
        (ambiguous, "as likely right as wrong".to_string(), "ambiguous_examples.csv"),
    ];
    let mut found = found.iter().filter(|(count, ..)| *count > 0).peekable();
    if found.peek().is_some() {
        line(format_args!("\nAlso worth a look:"))?;
    }
    found.try_for_each(|(count, what, file)| {
        line(format_args!("  {count} {what}: {}", out.join(file).display()))
    })
}

/// The first rows under a title, where there are any; the first columns are words.
fn table(
    title: &str,
    header: [&str; 4],
    words: usize,
    rows: impl Iterator<Item = [String; 4]>,
) -> Result<()> {
    let shown = |cell: String| columns::on_one_line(&cell, Some(NAME));
    let rows: Vec<Vec<String>> = rows.take(SHOWN).map(|row| row.map(shown).to_vec()).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let words: Vec<usize> = (0..words).collect();
    line(format_args!("\n{title}"))?;
    let lines = columns::lines(&header, &rows, &words);
    lines.iter().try_for_each(|row| line(format_args!("  {row}")))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
