//! The findings as tables.

use std::path::PathBuf;

use aleator::Findings;
use aleator::report::covariance::{ClassPair, Comparison, Measure, Relation, Tie};
use aleator::report::table::columns;
use aleator::run::{Link, Noise};

/// The findings as text; on a terminal, names are cut to fit a line.
pub fn tables(findings: &Findings, terminal: bool) -> String {
    let mut printer = Printer { findings, terminal, out: String::new() };
    printer.all();
    printer.out
}

struct Printer<'a> {
    findings: &'a Findings,
    terminal: bool,
    out: String,
}

/// Characters of a name that fit a terminal's line.
pub const NAME: usize = 26;

/// Most ranges of ranks, and characters of the longest bar.
const BINS: usize = 20;
const BAR: f64 = 40.0;

impl Printer<'_> {
    fn all(&mut self) {
        self.heading();
        for (measure, title) in [
            (Measure::Raw, "Pairs by average covariance, as in the paper"),
            (Measure::Centred, "Pairs by centred covariance, in units of τ²"),
            (Measure::Correlation, "Pairs by correlation of the centred utilities"),
        ] {
            let pairs = self.findings.pairs.by(measure);
            // Labels that are on or off by themselves have nothing to centre.
            let several = self.findings.info.link == Link::Sigmoid;
            let title = match measure {
                Measure::Centred if several => continue,
                Measure::Correlation if several => "Pairs by correlation",
                Measure::Raw if several => "Pairs by average covariance",
                _ => title,
            };
            if !pairs.is_empty() {
                self.line(&format!("\n{title}"));
                self.pairs(pairs);
            }
        }
        self.strongest();
        if let (Some(comparison), Some(other)) = (&self.findings.comparison, &self.findings.other) {
            self.against(comparison, other);
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self) {
        let findings = self.findings;
        let noise = noise_name(findings.info.noise);
        let (examples, classes) = (findings.examples.len(), findings.info.class_names.len());
        self.line(&format!(
            "{}: {} split, {examples} examples, {classes} classes; noise {noise}; τ = {}",
            findings.dir.display(),
            findings.split.name(),
            findings.temperature as f32
        ));
        let others = classes.saturating_sub(1).max(1) as f64;
        let several = findings.info.link == Link::Sigmoid;
        self.line(&match findings.info.noise {
            _ if several => "Labels are on or off together (+) or in place of each other (−), \
                             beyond what the example\ntells; a set of labels depends on the \
                             covariances as they are, so nothing is centred."
                .to_string(),
            Noise::Diagonal => "The noise is diagonal: no two classes share any, and their \
                                covariance is zero.\nThe centred numbers below follow from the \
                                variances alone and name no confusions; flips do."
                .to_string(),
            _ => format!(
                "The likelihood depends on the covariance through the centred numbers. Independent \
                 noise of\nequal size would have centred correlations of {:.3}.",
                -1.0 / others
            ),
        });
    }

    fn pairs(&mut self, pairs: &[ClassPair]) {
        let header =
            ["class A", "class B", "covariance", "centred", "corr.", "flip A→B", "B→A", "relation"];
        let row = |pair: &ClassPair| {
            [vec![self.name(pair.first), self.name(pair.second)], numbers(pair).into()].concat()
        };
        let rows: Vec<Vec<String>> = pairs.iter().map(row).collect();
        self.table(&header, &rows, &[0, 1, 7]);
    }

    fn strongest(&mut self) {
        let Findings { strongest, measure, has_examples, .. } = self.findings;
        if !has_examples {
            self.line(
                "\nThe run keeps no complete predictions (evaluation.predictions), so single examples \
                 are not shown.",
            );
        }
        if strongest.is_empty() {
            return;
        }
        let by = measure_name(*measure);
        self.line(&format!("\nExamples whose prediction is tied most to another class, by {by}"));
        self.ties("class", strongest.iter().map(|(row, it)| (*row, it.predicted, it.tie)));
    }

    fn against(&mut self, comparison: &Comparison, (other, noise): &(PathBuf, Noise)) {
        let findings = self.findings;
        let Comparison { examples, both_right, first_right, other_right, both_wrong, .. } =
            comparison;
        self.line(&format!("\nAgainst {}", other.display()));
        if *noise != Noise::None {
            self.line(
                "It has a noise model of its own; the paper compares with a run without one.",
            );
        }
        self.line(&format!(
            "{examples} examples: both runs are right in {both_right}, only the first in \
             {first_right}, only the other in {other_right},\nneither in {both_wrong}."
        ));
        let count = findings.shown_cases().count();
        self.line(&format!(
            "Where only the first is right, no class is tied more to the right one (by {}) than\n\
             the prediction of the other run in {count} of {first_right}.",
            measure_name(findings.measure)
        ));
        if count > 0 {
            let cases = findings.shown_cases().take(findings.top);
            self.ties("other run", cases.map(|it| (it.row, it.predicted, it.other)));
        }
        self.ranks(comparison);
    }

    fn ranks(&mut self, comparison: &Comparison) {
        let ranks = &comparison.ranks;
        let total = ranks.total();
        let (Some(first), Some(five), Some(median)) =
            (ranks.share_within(1), ranks.share_within(5), ranks.median())
        else {
            return;
        };
        self.line("\nRank of the other run's prediction, by its tie to the right class");
        let bins = ranks.histogram(BINS);
        let most = bins.iter().map(|(_, _, count)| *count).max().unwrap_or(0).max(1);
        let row = |(low, high, count): (usize, usize, usize)| {
            let range = if low == high { low.to_string() } else { format!("{low}–{high}") };
            let bar = "█".repeat((BAR * count as f64 / most as f64).round() as usize);
            let share = format!("{:.1} %", 100.0 * count as f64 / total as f64);
            vec![range, count.to_string(), share, bar]
        };
        let rows: Vec<Vec<String>> = bins.into_iter().map(row).collect();
        self.table(&["rank", "examples", "share", ""], &rows, &[3]);
        let random = |within: f64| 100.0 * (within / ranks.counts.len() as f64).min(1.0);
        self.line(&format!(
            "rank 1: {:.1} % (at random {:.1} %); within 5: {:.1} % ({:.1} %); median {median} of {}",
            100.0 * first,
            random(1.0),
            100.0 * five,
            random(5.0),
            ranks.counts.len()
        ));
    }

    /// A table of examples: their place in the split, the prediction, and its tie to a class, which
    /// the heading says.
    fn ties(&mut self, class: &str, ties: impl Iterator<Item = (usize, usize, Tie)>) {
        let header = ["example", "predicted", class, "covariance", "centred", "corr.", "relation"];
        let row = |(row, predicted, tie): (usize, usize, Tie)| {
            vec![
                self.cut(&self.findings.examples[row].id),
                self.name(predicted),
                self.name(tie.class),
                signed(tie.covariance),
                signed(tie.centred),
                maybe(tie.correlation),
                Relation::of(tie.centred).name().to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = ties.map(row).collect();
        self.table(&header, &rows, &[0, 1, 2, 6]);
    }

    /// Adds a table; the columns listed in `words` are aligned to the left.
    fn table(&mut self, header: &[&str], rows: &[Vec<String>], words: &[usize]) {
        columns::lines(header, rows, words).iter().for_each(|line| self.line(line));
    }

    fn name(&self, class: usize) -> String {
        self.cut(&self.findings.info.class_names[class])
    }

    /// A name on one line.
    fn cut(&self, text: &str) -> String {
        columns::on_one_line(text, self.terminal.then_some(NAME))
    }
}

pub fn noise_name(noise: Noise) -> String {
    match noise {
        Noise::None => "none".to_string(),
        Noise::Diagonal => "diagonal".to_string(),
        Noise::LowRank { rank } => format!("full, rank {rank}"),
        Noise::OnFeatures { rank } => format!("on the features, rank {rank}"),
        Noise::SharedLowRank { rank } => format!("shared, rank {rank}"),
    }
}

pub fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Raw => "covariance",
        Measure::Centred => "centred covariance",
        Measure::Correlation => "correlation",
    }
}

pub fn signed(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e4).contains(&size) {
        format!("{value:+.3}")
    } else {
        format!("{value:+.1e}")
    }
}

pub fn maybe(value: Option<f64>) -> String {
    value.map_or("–".to_string(), signed)
}

/// Covariance, centred, correlation, both flips and the relation of two classes.
pub fn numbers(pair: &ClassPair) -> [String; 6] {
    let percent = |share: Option<f64>| {
        share.map_or("–".to_string(), |share| format!("{:.1} %", 100.0 * share))
    };
    [
        signed(pair.covariance),
        signed(pair.centred),
        maybe(pair.correlation),
        percent(pair.flip),
        percent(pair.flip_back),
        pair.relation.name().to_string(),
    ]
}
