//! The notes below a table.

use super::measure::Measure;
use super::rows::Row;
use super::score::{SIGNIFICANT, Score};
use super::view::View;

/// Collects notes while the columns are computed.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub lines: Vec<String>,
    paired: bool,
    unpaired: bool,
    /// Whether any row is significantly worse than the best.
    daggers: bool,
    /// Rows with one run, which have no spread.
    single: Vec<String>,
    /// Rows with several runs that were not tested.
    constant: Vec<String>,
    /// Measures whose values have different meanings in one column.
    not_compared: Vec<String>,
    /// Whether rows were trained on different files.
    pub other_files: bool,
}

impl Notes {
    /// Which numbers are shown.
    pub fn of_view(view: &View, rows: &[Row]) -> Self {
        let examples = rows.first().and_then(|row| row.runs.first());
        let examples = examples.map_or(0, |run| view.examples(run));
        let calibrated = if view.calibrated { ", calibrated" } else { "" };
        let line = format!(
            "{} split ({examples} examples), {}{calibrated}; {}.",
            capital(view.split.name()),
            view.labels.name(),
            spread(rows)
        );
        Self { lines: vec![line], ..Self::default() }
    }

    /// What ± means.
    pub fn of_spread(rows: &[Row]) -> Self {
        Self { lines: vec![format!("{}.", capital(&spread(rows)))], ..Self::default() }
    }

    /// Notes what was tested in a column and what could not be tested.
    pub fn scores(&mut self, rows: &[Row], scores: &[Option<Score>]) {
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

    /// Notes that the values of a column have different meanings.
    pub fn not_compared(&mut self, measure: Measure) {
        add(&mut self.not_compared, measure.heading());
    }

    /// All lines, in reading order.
    pub fn finish(mut self) -> Vec<String> {
        if let Some(test) = self.test() {
            let who = if self.daggers { "† Worse" } else { "No row is worse" };
            self.lines.push(format!("{who} than the best with p < {SIGNIFICANT}, by {test}."));
        }
        let listed = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
        if let Some(names) = listed(&self.single) {
            self.lines.push(format!("One run, so no standard deviation and no test: {names}."));
        }
        if let Some(names) = listed(&self.constant) {
            self.lines.push(format!(
                "Not tested in every column, since values are infinite or do not vary: {names}."
            ));
        }
        if let Some(names) = listed(&self.not_compared) {
            self.lines.push(format!(
                "{names} of the softmax and of the sigmoid link are not the same quantity, so none \
                 is called the best."
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
fn spread(rows: &[Row]) -> String {
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
