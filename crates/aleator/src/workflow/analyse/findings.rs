//! What an analysis found, and how `analysis.json` shows it.

use std::path::PathBuf;

use aleator_report::covariance::{Case, ClassPair, Comparison, Measure, Relation, Tie, TopPairs};
use aleator_run::{ExampleRow, Noise, RunInfo, Split};
use serde_json::{Value, json};

/// The version of `analysis.json`.
pub(super) const FORMAT: u32 = 1;

/// What [`analyse`](crate::analyse()) found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The run.
    pub dir: PathBuf,
    /// The run that it is compared with, and its noise model.
    pub other: Option<(PathBuf, Noise)>,
    /// The run's `run.json`.
    pub info: RunInfo,
    /// The analysed split.
    pub split: Split,
    /// τ.
    pub temperature: f64,
    /// How the classes of an example are ranked.
    pub measure: Measure,
    /// Rows of each table.
    pub top: usize,
    /// The pairs of classes that are tied most.
    pub pairs: TopPairs,
    /// The examples whose predictions are tied most to another class, by their rows.
    pub strongest: Vec<(usize, Strongest)>,
    /// The comparison with the other run.
    pub comparison: Option<Comparison>,
    /// The examples of the split.
    pub examples: Vec<ExampleRow>,
    /// Whether single examples were looked at: the run keeps complete predictions.
    pub has_examples: bool,
}

/// The class that is tied most to the prediction of an example.
#[derive(Clone, Debug)]
pub struct Strongest {
    /// The predicted class.
    pub predicted: usize,
    /// The other class, and how the two are tied.
    pub tie: Tie,
}

impl Findings {
    /// The cases that the paper shows: no class is tied more to the right one.
    pub fn shown_cases(&self) -> impl Iterator<Item = &Case> {
        self.comparison.iter().flat_map(|it| &it.cases).filter(|case| case.rank == 1)
    }

    /// `analysis.json`.
    pub fn json(&self) -> Value {
        let pairs = |pairs: &[ClassPair]| pairs.iter().map(|it| self.pair(it)).collect::<Value>();
        json!({
            "format": FORMAT,
            "version": env!("CARGO_PKG_VERSION"),
            "run": self.dir.display().to_string(),
            "split": self.split.name(),
            "link": self.info.link,
            "noise": self.info.noise,
            "temperature": self.temperature,
            "examples": self.examples.len(),
            "classes": self.info.class_names.len(),
            "pairs": {
                "by_covariance": pairs(&self.pairs.by_covariance),
                "by_centred_covariance": pairs(&self.pairs.by_centred),
                "by_correlation": pairs(&self.pairs.by_correlation),
            },
            "compared_by": self.measure,
            "examples_most_tied": self.has_examples.then(|| {
                self.strongest.iter().map(|it| self.example(it)).collect::<Value>()
            }),
            "against": self.comparison.as_ref().map(|it| self.against(it)),
        })
    }

    fn name(&self, class: usize) -> &str {
        &self.info.class_names[class]
    }

    fn pair(&self, pair: &ClassPair) -> Value {
        pair_json(pair, &self.info.class_names)
    }

    fn example(&self, (row, strongest): &(usize, Strongest)) -> Value {
        let Strongest { predicted, tie } = strongest;
        json!({
            "id": self.examples[*row].id,
            "predicted": self.name(*predicted),
            "class": self.name(tie.class),
            "covariance": tie.covariance,
            "centred_covariance": tie.centred,
            "correlation": tie.correlation,
        })
    }

    fn against(&self, comparison: &Comparison) -> Value {
        let case = |case: &Case| {
            json!({
                "id": self.examples[case.row].id,
                "predicted": self.name(case.predicted),
                "other_predicted": self.name(case.other.class),
                "covariance": case.other.covariance,
                "centred_covariance": case.other.centred,
                "correlation": case.other.correlation,
                "relation": Relation::of(case.other.centred),
            })
        };
        let ranks = &comparison.ranks;
        json!({
            "run": self.other.as_ref().map(|(dir, _)| dir.display().to_string()),
            "noise": self.other.as_ref().map(|(_, noise)| noise),
            "examples": comparison.examples,
            "both_right": comparison.both_right,
            "only_this_right": comparison.first_right,
            "only_other_right": comparison.other_right,
            "both_wrong": comparison.both_wrong,
            "largest_covariance": self.shown_cases().take(self.top).map(case).collect::<Value>(),
            "ranks": {
                "counts": ranks.counts,
                "median": ranks.median(),
                "share_of_rank_1": ranks.share_within(1),
                "share_within_5": ranks.share_within(5),
                "share_within_10": ranks.share_within(10),
            },
        })
    }
}

/// The numbers of two classes, by name.
pub(super) fn pair_json(pair: &ClassPair, names: &[String]) -> Value {
    json!({
        "class_a": names[pair.first],
        "class_b": names[pair.second],
        "covariance": pair.covariance,
        "centred_covariance": pair.centred,
        "correlation": pair.correlation,
        "flip_a_to_b": pair.flip,
        "flip_b_to_a": pair.flip_back,
        "relation": pair.relation,
    })
}
