//! The given labels compared with planted errors, by all evidence there is.

use super::dynamics::Readout;
use super::law_weights::{self, Place};
use super::odds::{Labels, Odds, Prior};
use super::planted::{ErrorLaw, PlantedError, Signs};
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

/// The laws of the odds of being wrong under each law of errors.
pub(super) struct Comparison {
    /// How the sources are weighed where errors depend on the example.
    direction: Odds,
    anywhere: Odds,
    ambiguous: Odds,
    /// Where errors depend on the class alone, the sources are weighed by themselves.
    class: Odds,
    /// How much each law counts.
    laws: ErrorLaw,
}

/// What the comparison starts from.
pub(super) struct Compared<'a> {
    pub sources: &'a [Source],
    pub rounds: &'a [Vec<PlantedError>],
    /// Of every example, [`Judged::ambiguity`](super::planted::Judged).
    pub ambiguities: &'a [f64],
    /// The share of wrong labels where labels are too few to say it.
    pub share: f64,
    /// The same if errors depend on the class alone.
    pub class_share: f64,
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

/// Labels are surely wrong above this mean score of errors anywhere and on ambiguous examples.
const SURE: f64 = 0.8;

impl Comparison {
    /// Learns from the errors of all rounds.
    pub fn new(compared: &Compared) -> Self {
        let Compared { sources, rounds, share, class_share, .. } = *compared;
        let numbers = Signs::COUNT * sources.len();
        let (all_given, all_planted) = (compared.kept(), compared.planted());
        // Errors among ambiguous examples are the ones that are hard to tell from right labels, so
        // they decide which evidence counts.
        let errors = weighted(&all_planted, rounds, |law| law.ambiguous);
        let direction = Odds::learn(&all_given, &errors, numbers, Prior { share, constant: 0.0 });
        let project = |evidence: &[f64]| -> Vec<f64> {
            evidence.chunks_exact(numbers).map(|evidence| direction.combined(evidence)).collect()
        };
        let given =
            Labels { evidence: project(&all_given.evidence), weights: all_given.weights.clone() };
        let planted = project(&all_planted);
        let prior = Prior { share, constant: direction.constant() };
        let along = |law: fn(&ErrorLaw) -> f64| {
            Odds::learn(&given, &weighted(&planted, rounds, law), 1, prior)
        };
        let (anywhere, ambiguous) = (along(|law| law.anywhere), along(|law| law.ambiguous));
        let errors = weighted(&all_planted, rounds, |law| law.class);
        let prior = Prior { share: class_share, constant: 0.0 };
        let class = Odds::learn(&all_given, &errors, numbers, prior);
        let laws = ErrorLaw::default();
        let mut all = Self { direction, anywhere, ambiguous, class, laws };
        all.laws = all.weigh_laws(compared, &planted);
        all
    }

    /// How much each law counts; `planted` are the errors along the direction.
    fn weigh_laws(&self, compared: &Compared, planted: &[f64]) -> ErrorLaw {
        let Compared { sources, rounds, ambiguities, .. } = *compared;
        let own = &sources[0];
        let is_sure = |combined: f64| {
            self.anywhere.wrong(&[combined]) + self.ambiguous.wrong(&[combined]) > 2.0 * SURE
        };
        let place = |example: usize, signs: &Signs| Place {
            ambiguity: ambiguities[example],
            surprise: signs.surprise,
        };
        let sure: Vec<Place> = (0..own.given.len())
            .filter(|at| is_sure(self.direction.combined(&signs(sources, *at))))
            .map(|at| place(at, &own.given[at]))
            .collect();
        let errors = rounds.iter().flatten().zip(&own.errors).zip(planted);
        let as_sure: Vec<(Place, ErrorLaw)> = errors
            .filter(|(_, combined)| is_sure(**combined))
            .map(|((error, signs), _)| (place(error.example, signs), error.weight))
            .collect();
        law_weights::weigh(&sure, &as_sure)
    }

    /// How probable every given label is to be wrong, on average over the laws, and how many are
    /// under each.
    pub fn scores(&self, sources: &[Source]) -> (Vec<f64>, ErrorLaw) {
        let mut counts = ErrorLaw::default();
        let score = |at: usize| {
            let signs = signs(sources, at);
            let combined = [self.direction.combined(&signs)];
            let own = ErrorLaw {
                anywhere: self.anywhere.wrong(&combined),
                ambiguous: self.ambiguous.wrong(&combined),
                class: self.class.wrong(&signs),
            };
            counts.add(own);
            let ErrorLaw { anywhere, ambiguous, class } = self.laws;
            anywhere * own.anywhere + ambiguous * own.ambiguous + class * own.class
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
    pub fn record(&self, counts: ErrorLaw, bounds: Bounds) -> ErrorComparison {
        let weights = self.weights();
        ErrorComparison {
            out_of_sample_weight: weights[0],
            dynamics_weight: weights.get(1).copied(),
            anywhere: counts.anywhere,
            ambiguous: counts.ambiguous,
            class: counts.class,
            anywhere_weight: self.laws.anywhere,
            ambiguous_weight: self.laws.ambiguous,
            class_weight: self.laws.class,
            replaced: bounds.replaced,
            least_doubted: bounds.least_doubted,
            most_doubted: bounds.most_doubted,
        }
    }
}

/// What all sources say of a given label.
fn signs(sources: &[Source], at: usize) -> Vec<f64> {
    sources.iter().flat_map(|source| source.given[at].numbers()).collect()
}

/// Planted errors that count as they would under a law.
fn weighted(evidence: &[f64], rounds: &[Vec<PlantedError>], law: fn(&ErrorLaw) -> f64) -> Labels {
    let weights = rounds.iter().flatten().map(|error| law(&error.weight)).collect();
    Labels { evidence: evidence.to_vec(), weights }
}

impl Compared<'_> {
    /// What all sources say of the planted errors.
    fn planted(&self) -> Vec<f64> {
        let errors = self.rounds.iter().map(Vec::len).sum();
        let one = |at: usize| self.sources.iter().flat_map(move |it| it.errors[at].numbers());
        (0..errors).flat_map(one).collect()
    }

    /// The labels that were not replaced, of all rounds where evidence differs between them.
    fn kept(&self) -> Labels {
        let Self { sources, rounds, .. } = self;
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
}

/// The number of wrong labels. Its interval reaches over all laws and bounds, and beyond by two
/// standard deviations of a count.
pub(super) fn estimate(scores: &[f64], counts: ErrorLaw, bounds: Bounds) -> Estimate {
    let Bounds { replaced, least_doubted, most_doubted } = bounds;
    let ErrorLaw { anywhere, ambiguous, class } = counts;
    let all = [anywhere, ambiguous, class, replaced, least_doubted, most_doubted];
    let fewest = all.into_iter().fold(f64::INFINITY, f64::min);
    let most = all.into_iter().fold(0.0, f64::max);
    Estimate {
        count: scores.iter().sum(),
        low: (fewest - 2.0 * (fewest + 1.0).sqrt()).max(0.0),
        high: (most + 2.0 * (most + 1.0).sqrt()).min(scores.len() as f64),
    }
}
