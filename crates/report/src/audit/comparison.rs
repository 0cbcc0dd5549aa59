//! The given labels compared with planted errors, by all evidence there is.

use super::dynamics::Readout;
use super::odds::{Labels, Odds, Prior};
use super::planted::{PlantedError, Signs};
use super::record::{ErrorComparison, Estimate};
use super::single::Posterior;

/// What one kind of evidence says of the labels.
pub(super) struct Source {
    /// Of every given label.
    pub given: Vec<Signs>,
    /// The same in each round of planted errors, where they differ from round to round.
    pub kept: Vec<Vec<Signs>>,
    /// Of the planted errors of all rounds.
    pub errors: Vec<Signs>,
    /// Of the true class of every example.
    pub posteriors: Vec<Posterior>,
}

impl From<Readout> for Source {
    fn from(Readout { posteriors, given, kept, errors }: Readout) -> Self {
        Self { given, kept, errors: errors.into_iter().flatten().collect(), posteriors }
    }
}

/// The laws of the odds of being wrong, if errors fall anywhere and if they fall where examples
/// are ambiguous.
pub(super) struct Comparison {
    /// How the sources are weighed.
    direction: Odds,
    anywhere: Odds,
    ambiguous: Odds,
}

/// The number of wrong labels under each law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LawCounts {
    pub anywhere: f64,
    pub ambiguous: f64,
}

/// What the number of wrong labels can hardly be below or above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// If all doubt that labels replaced at random do not need is the model's.
    pub replaced: f64,
    /// If all doubt about the truth is wrong labels: the least and the largest sum of posteriors.
    pub least_doubted: f64,
    pub most_doubted: f64,
}

impl Comparison {
    /// Learns from the errors of all rounds; `share` is that of wrong labels where labels are too
    /// few to say it.
    pub fn new(sources: &[Source], rounds: &[Vec<PlantedError>], share: f64) -> Self {
        let errors: Vec<&PlantedError> = rounds.iter().flatten().collect();
        let numbers = Signs::COUNT * sources.len();
        let given = kept_labels(sources, rounds);
        let planted = |weight: &dyn Fn(&PlantedError) -> f64| Labels {
            evidence: (0..errors.len())
                .flat_map(|at| sources.iter().flat_map(move |it| it.errors[at].numbers()))
                .collect(),
            weights: errors.iter().map(|error| weight(error)).collect(),
        };
        let (anywhere, ambiguous) =
            (planted(&|error| error.weight.anywhere), planted(&|error| error.weight.ambiguous));
        // Errors among ambiguous examples are the ones that are hard to tell from right labels, so
        // they decide which evidence counts.
        let direction = Odds::learn(&given, &ambiguous, numbers, Prior { share, constant: 0.0 });
        let project = |labels: &Labels| Labels {
            evidence: labels
                .evidence
                .chunks_exact(numbers)
                .map(|evidence| direction.combined(evidence))
                .collect(),
            weights: labels.weights.clone(),
        };
        let given = project(&given);
        let prior = Prior { share, constant: direction.constant() };
        let along = |planted: &Labels| Odds::learn(&given, &project(planted), 1, prior);
        Self { anywhere: along(&anywhere), ambiguous: along(&ambiguous), direction }
    }

    /// How probable every given label is to be wrong, on average over both laws, and how many are
    /// under each.
    pub fn scores(&self, sources: &[Source]) -> (Vec<f64>, LawCounts) {
        let mut counts = LawCounts { anywhere: 0.0, ambiguous: 0.0 };
        let score = |at: usize| {
            let signs = sources.iter().flat_map(|source| source.given[at].numbers());
            let evidence: Vec<f64> = signs.collect();
            let combined = [self.direction.combined(&evidence)];
            let (anywhere, ambiguous) =
                (self.anywhere.wrong(&combined), self.ambiguous.wrong(&combined));
            counts.anywhere += anywhere;
            counts.ambiguous += ambiguous;
            0.5 * (anywhere + ambiguous)
        };
        let scores = (0..sources[0].given.len()).map(score).collect();
        (scores, counts)
    }

    /// How much each source counts; they sum to one.
    pub fn weights(&self) -> Vec<f64> {
        let slopes = self.direction.slopes.chunks_exact(Signs::COUNT);
        let weights: Vec<f64> = slopes.map(|slopes| slopes.iter().sum()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    /// What `audit.json` says of it.
    pub fn record(&self, counts: LawCounts, bounds: Bounds) -> ErrorComparison {
        let weights = self.weights();
        ErrorComparison {
            out_of_sample_weight: weights[0],
            dynamics_weight: weights.get(1).copied(),
            anywhere: counts.anywhere,
            ambiguous: counts.ambiguous,
            replaced: bounds.replaced,
            least_doubted: bounds.least_doubted,
            most_doubted: bounds.most_doubted,
        }
    }
}

/// The labels that were not replaced, of all rounds where evidence differs between them.
fn kept_labels(sources: &[Source], rounds: &[Vec<PlantedError>]) -> Labels {
    let examples = sources[0].given.len();
    let differ = sources.iter().any(|source| !source.kept.is_empty());
    let used = if differ { rounds } else { &rounds[..1] };
    let mut labels = Labels::default();
    for (round, errors) in used.iter().enumerate() {
        let mut replaced = vec![false; examples];
        if differ {
            errors.iter().for_each(|error| replaced[error.example] = true);
        }
        for at in (0..examples).filter(|at| !replaced[*at]) {
            let own =
                |source: &Source| source.kept.get(round).map_or(source.given[at], |it| it[at]);
            labels.evidence.extend(sources.iter().flat_map(|source| own(source).numbers()));
            labels.weights.push(1.0);
        }
    }
    labels
}

/// The number of wrong labels. Its interval reaches over both laws and both bounds, and beyond by
/// two standard deviations of a count.
pub(super) fn estimate(scores: &[f64], counts: &LawCounts, bounds: Bounds) -> Estimate {
    let Bounds { replaced, least_doubted, most_doubted } = bounds;
    let all = [counts.anywhere, counts.ambiguous, replaced, least_doubted, most_doubted];
    let fewest = all.into_iter().fold(f64::INFINITY, f64::min);
    let most = all.into_iter().fold(0.0, f64::max);
    Estimate {
        count: scores.iter().sum(),
        low: (fewest - 2.0 * (fewest + 1.0).sqrt()).max(0.0),
        high: (most + 2.0 * (most + 1.0).sqrt()).min(scores.len() as f64),
    }
}
