//! The notes below a table.

use super::folders::Row;
use super::measure::Measure;
use super::same::Remarks;
use super::score::{SIGNIFICANT, Score};
use super::view::View;

/// Collects notes while the columns are computed.
#[derive(Debug, Default)]
pub(super) struct Notes {
    lines: Vec<String>,
    paired: bool,
    unpaired: bool,
    /// Whether any row is significantly worse than the best.
    daggers: bool,
    /// Rows with one run, which have no spread.
    single: Vec<String>,
    /// Rows with several runs that were not tested.
    constant: Vec<String>,
    not_compared: Vec<Measure>,
    other_files: bool,
}

impl Notes {
    /// Notes which numbers are shown.
    pub fn view(&mut self, view: &View, rows: &[&Row]) {
        let examples = rows.first().and_then(|row| row.runs.first());
        let examples = examples.map_or(0, |run| view.examples(run));
        let calibrated = if view.calibrated { ", calibrated" } else { "" };
        self.lines.push(format!(
            "{} split ({examples} examples), {}{calibrated}; {}.",
            capital(view.split.name()),
            view.labels.name(),
            spread(rows)
        ));
    }

    /// Notes what ± means.
    pub fn spread(&mut self, rows: &[&Row]) {
        self.lines.push(format!("{}.", capital(&spread(rows))));
    }

    /// Any other line.
    pub fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Notes what was tested in a column and what could not be tested.
    pub fn scores(&mut self, rows: &[&Row], scores: &[Option<Score>]) {
        // Nothing is tested against a best row with one run, which has a note of its own.
        let testable = scores.iter().flatten().any(|score| score.best && score.std.is_some());
        for (row, score) in rows.iter().zip(scores) {
            let Some(score) = score else { continue };
            self.daggers |= score.is_significant();
            match score.against_best {
                Some(against) if against.paired => self.paired = true,
                Some(_) => self.unpaired = true,
                None if score.runs == 1 => add(&mut self.single, &row.name),
                None if testable && !score.best => add(&mut self.constant, &row.name),
                None => (),
            }
        }
    }

    /// Notes differences between the rows of a column.
    pub fn remarks(&mut self, remarks: &Remarks) {
        self.other_files |= remarks.other_files;
    }

    /// Notes that the values of a column have different meanings.
    pub fn not_compared(&mut self, measure: Measure) {
        if !self.not_compared.contains(&measure) {
            self.not_compared.push(measure);
        }
    }

    /// All lines, in reading order.
    pub fn finish(mut self) -> Vec<String> {
        if let Some(test) = self.test() {
            let who = if self.daggers { "† Worse" } else { "No row is worse" };
            self.lines.push(format!("{who} than the best with p < {SIGNIFICANT}, by {test}."));
        }
        if !self.single.is_empty() {
            let names = self.single.join(", ");
            self.lines.push(format!("One run, so no standard deviation and no test: {names}."));
        }
        if !self.constant.is_empty() {
            let names = self.constant.join(", ");
            self.lines.push(format!(
                "Not tested in every column, since values are infinite or do not vary: {names}."
            ));
        }
        if !self.not_compared.is_empty() {
            let names: Vec<&str> = self.not_compared.iter().map(|it| it.heading()).collect();
            self.lines.push(format!(
                "{} of the softmax and of the sigmoid link are not the same quantity, so none is \
                 called the best.",
                names.join(", ")
            ));
        }
        if self.other_files {
            self.lines.push(
                "The runs did not learn from the same files; the measured examples are the same."
                    .to_string(),
            );
        }
        self.lines
    }

    fn test(&self) -> Option<&'static str> {
        match (self.paired, self.unpaired) {
            (true, false) => Some("a two-tailed t-test, paired by seed"),
            (false, true) => Some("an unpaired two-tailed t-test (pooled variance)"),
            (true, true) => Some(
                "a two-tailed t-test, paired where the seeds are the same, else unpaired (pooled \
                 variance)",
            ),
            (false, false) => None,
        }
    }
}

/// "mean ± standard deviation over 3 runs", where all rows have as many.
fn spread(rows: &[&Row]) -> String {
    let counts: Vec<usize> = rows.iter().map(|row| row.runs.len()).collect();
    match counts.first() {
        Some(1) if counts.iter().all(|count| *count == 1) => "one run each".to_string(),
        Some(first) if counts.iter().all(|count| count == first) => {
            format!("mean ± standard deviation over {first} runs")
        }
        _ => "mean ± standard deviation over the runs".to_string(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_string());
    }
}
