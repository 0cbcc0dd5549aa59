//! What an audit found, for a terminal.

use std::io::{self, Write};
use std::path::Path;

use aleator::report::audit::{Answer, Audit, Issue};
use aleator::report::table::columns;
use anyhow::Result;

/// Rows of each list.
const SHOWN: usize = 10;
/// Characters of a name that are shown.
const NAME: usize = 60;

/// The most important of it, and where the rest is.
pub fn print(out: &Path, audit: &Audit) -> Result<()> {
    let mut to = io::stdout().lock();
    let summary = &audit.summary;
    let share = |count: f64| 100.0 * count / summary.labels as f64;
    let source = match summary.folds {
        0 => "the given probabilities".to_string(),
        folds => format!("a model that never saw it ({folds} folds)"),
    };
    writeln!(
        to,
        "{} labels of {} examples, each judged by {source}.",
        summary.labels, summary.examples
    )?;
    let wrong = &summary.wrong;
    writeln!(
        to,
        "About {:.0} of them ({:.1} %) are wrong; between {:.0} and {:.0} if the model is right.",
        wrong.count,
        share(wrong.count),
        wrong.low,
        wrong.high
    )?;
    if let Some(known) = &summary.known {
        writeln!(
            to,
            "By the true labels {} ({:.1} %) are: AUROC of the score {:.4}, average precision {:.4}; \
             the suggestion is right for {:.1} % of them.",
            known.wrong,
            share(known.wrong as f64),
            known.auroc,
            known.average_precision,
            100.0 * known.suggestions_right
        )?;
    }
    issues(&mut to, audit)?;
    pairs(&mut to, audit)?;
    annotators(&mut to, audit)?;
    let place = out.display();
    writeln!(to, "\nAll labels: {}", out.join("issues.csv").display())?;
    writeln!(
        to,
        "Next: `aleator report {place}` for a page with the images, `aleator review {place}` to correct them."
    )?;
    Ok(())
}

fn issues(to: &mut impl Write, audit: &Audit) -> Result<()> {
    let names = &audit.summary.class_names;
    let answer = |answer: Answer| match answer {
        Answer::Class(class) => names[class as usize].clone(),
        Answer::On(class) => format!("{} on", names[class as usize]),
        Answer::Off(class) => format!("{} off", names[class as usize]),
    };
    writeln!(to, "\nMost surely wrong:")?;
    let row = |issue: &Issue| {
        [
            issue.id.clone(),
            answer(issue.given),
            answer(issue.suggested),
            format!("{:.1} %", 100.0 * issue.score),
        ]
    };
    let rows: Vec<[String; 4]> = audit.issues.iter().take(SHOWN).map(row).collect();
    table(to, ["example", "given", "suggested", "wrong with"], 3, &rows)
}

fn pairs(to: &mut impl Write, audit: &Audit) -> Result<()> {
    let names = &audit.summary.class_names;
    let wrong = audit.pairs.iter().filter(|pair| pair.given != pair.truth && pair.count >= 0.5);
    let rows: Vec<[String; 4]> = wrong
        .take(SHOWN)
        .map(|pair| {
            [
                names[pair.truth as usize].clone(),
                names[pair.given as usize].clone(),
                format!("{:.0}", pair.count),
                pair.correlation.map_or("–".to_string(), |value| format!("{value:+.2}")),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(to, "\nConfused most:")?;
    table(to, ["true class", "given label", "labels", "correlation"], 2, &rows)
}

fn annotators(to: &mut impl Write, audit: &Audit) -> Result<()> {
    if audit.annotators.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 4]> = audit
        .annotators
        .iter()
        .take(SHOWN)
        .map(|annotator| {
            [
                annotator.name.clone(),
                annotator.annotations.to_string(),
                format!("{:.1} %", 100.0 * annotator.error_rate),
                annotator
                    .known_error_rate
                    .map_or("–".to_string(), |rate| format!("{:.1} %", 100.0 * rate)),
            ]
        })
        .collect();
    writeln!(to, "\nAnnotators who err most, of {}:", audit.annotators.len())?;
    table(to, ["annotator", "labels", "wrong", "known wrong"], 1, &rows)
}

/// The first columns are words.
fn table(to: &mut impl Write, header: [&str; 4], words: usize, rows: &[[String; 4]]) -> Result<()> {
    let shown = |cell: &String| columns::on_one_line(cell, Some(NAME));
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let words: Vec<usize> = (0..words).collect();
    for line in columns::lines(&header, &rows, &words) {
        writeln!(to, "  {line}")?;
    }
    Ok(())
}
