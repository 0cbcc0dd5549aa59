//! Audits that were never made, as their files hold them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::path::Path;

use aleator_report::audit::{Answer, Audit, AuditSummary, Estimate, Issue};
use aleator_run::{ExampleRow, Link, Noise, Split};

/// Of one label: id, given class, suggested class, whether it is suspected.
pub type Label<'a> = (&'a str, u32, u32, bool);

/// An audit of labels of one class, in the order of the ranking.
pub fn single(classes: &[&str], labels: &[Label]) -> Audit {
    let issue = |(rank, (id, given, suggested, wrong)): (usize, &Label)| {
        issue(rank, labels.len(), id, Answer::Class(*given), Answer::Class(*suggested), *wrong)
    };
    let mut examples: Vec<ExampleRow> =
        labels.iter().map(|(id, given, ..)| example(id, &[*given])).collect();
    examples.sort_by(|a, b| a.id.cmp(&b.id));
    audit(Link::Softmax, classes, labels.iter().enumerate().map(issue).collect(), examples)
}

/// An audit of classes that are on or off: of each example its id and those that are on. All
/// labels of the classes in `suspected` are suspects.
pub fn multi(classes: &[&str], examples: &[(&str, &[u32])], suspected: &[u32]) -> Audit {
    let mut issues = vec![];
    let count = examples.len() * classes.len();
    for class in 0..classes.len() as u32 {
        for (id, on) in examples {
            let (given, suggested) = match on.contains(&class) {
                true => (Answer::On(class), Answer::Off(class)),
                false => (Answer::Off(class), Answer::On(class)),
            };
            let wrong = suspected.contains(&class);
            issues.push(issue(issues.len(), count, id, given, suggested, wrong));
        }
    }
    issues.sort_by_key(|issue| !issue.wrong);
    let examples = examples.iter().map(|(id, on)| example(id, on)).collect();
    audit(Link::Sigmoid, classes, issues, examples)
}

/// The built-in digits, of which every seventh is labelled as the next digit and suspected.
pub fn digits() -> Audit {
    let opened = aleator_data::digits::open().expect("digits");
    let truth = opened.labels.as_ref().and_then(|labels| labels.classes()).expect("labels");
    let is_wrong = |row: usize| row.is_multiple_of(7);
    let given = |row: usize| (truth[row] + u32::from(is_wrong(row))) % 10;
    let examples = (0..truth.len()).map(|row| example(&row.to_string(), &[given(row)])).collect();
    let mut rows: Vec<usize> = (0..truth.len()).collect();
    rows.sort_by_key(|row| !is_wrong(*row));
    let issues = rows.iter().enumerate().map(|(rank, row)| {
        let other = if is_wrong(*row) { truth[*row] } else { (truth[*row] + 3) % 10 };
        let answers = (Answer::Class(given(*row)), Answer::Class(other));
        issue(rank, truth.len(), &row.to_string(), answers.0, answers.1, is_wrong(*row))
    });
    let names: Vec<String> = (0..10).map(|digit| digit.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    audit(Link::Softmax, &names, issues.collect(), examples)
}

/// Writes the recipe that an audit of the digits was made from.
pub fn write_digits_recipe(dir: &Path) {
    let resolved = aleator_run::load("digits-none", &[], None).expect("a preset");
    fs::write(dir.join("recipe.toml"), resolved.recipe.to_toml()).expect("a recipe");
}

fn audit(link: Link, classes: &[&str], issues: Vec<Issue>, examples: Vec<ExampleRow>) -> Audit {
    let wrong = issues.iter().filter(|issue| issue.wrong).count() as f64;
    Audit {
        summary: AuditSummary {
            format: AuditSummary::FORMAT,
            version: "0.1.0".into(),
            link,
            noise: Noise::None,
            fingerprint: "0123456789abcdef".into(),
            class_names: classes.iter().map(|name| name.to_string()).collect(),
            folds: 5,
            checkpoint: None,
            score: "margin".into(),
            examples: examples.len(),
            labels: issues.len(),
            wrong: Estimate { count: wrong, low: 0.8 * wrong, high: 1.2 * wrong },
            comparison: None,
            known: None,
            settings: None,
            self_confidence: None,
            annotator_concentration: None,
            files: None,
        },
        issues,
        classes: vec![],
        pairs: vec![],
        annotators: vec![],
        consensus: vec![],
        examples,
        lists: Default::default(),
    }
}

fn issue(
    rank: usize,
    labels: usize,
    id: &str,
    given: Answer,
    suggested: Answer,
    wrong: bool,
) -> Issue {
    let score = 1.0 - rank as f64 / labels as f64;
    Issue {
        id: id.to_string(),
        path: None,
        given,
        suggested,
        given_probability: 0.2 * (1.0 - score),
        suggested_probability: 0.5 + 0.4 * score,
        score,
        wrong,
        covariance: None,
        correlation: None,
        truth: None,
    }
}

fn example(id: &str, classes: &[u32]) -> ExampleRow {
    let label = Some(classes.to_vec());
    ExampleRow { id: id.to_string(), split: Split::Train, label, clean_label: None }
}
