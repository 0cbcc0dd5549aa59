//! Errors planted on purpose: labels that are known to be wrong, to compare the given ones with.
//!
//! Which labels of an example would be errors, and how probable each is, follows from the posterior
//! of its true class and the confusion of the classes ([`posterior`](super::posterior)): where class
//! c is true, a wrong label is y ≠ c with probability ∝ C_cy p_y^b. Three laws say where errors
//! fall: *anywhere*, each example alike; where examples are *ambiguous*, in proportion to how
//! probable an error is there; or by the *class* alone, b = 0, whatever the example looks like.
//! Which of them holds is read from the data ([`law_weights`](super::law_weights)).

use rayon::prelude::*;

use super::parts::{Parts, Row};
use super::posterior::{Confusion, Evidence};
use super::settings::AuditSettings;
use super::single::{Posterior, each_piece, row_evidence, with_classes};
use crate::error::ReportError;

/// The share of the labels that is replaced in one round.
const SHARE: f64 = 0.05;
/// Rounds go on until this many errors are planted, or to the most rounds.
const ENOUGH: usize = 400;
const MOST_ROUNDS: usize = 12;
/// Names the random numbers.
const SEED: u64 = 0x706c_616e;

/// The confusion of the classes, by two readings of the errors.
#[derive(Clone, Debug)]
pub(super) struct Confusions {
    /// Errors depend on the example, through p^b.
    pub by_example: Confusion,
    /// Errors depend on the class alone: b = 0.
    pub by_class: Confusion,
}

/// How probable it is that a label of an example is an error, under each law.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorLaw {
    pub anywhere: f64,
    pub ambiguous: f64,
    pub class: f64,
}

impl ErrorLaw {
    pub fn add(&mut self, other: Self) {
        self.anywhere += other.anywhere;
        self.ambiguous += other.ambiguous;
        self.class += other.class;
    }

    /// Each law over its sum `all`, nothing where that is nothing.
    pub fn shares(self, all: Self) -> Self {
        let share = |own: f64, all: f64| if all > 0.0 { own / all } else { 0.0 };
        Self {
            anywhere: share(self.anywhere, all.anywhere),
            ambiguous: share(self.ambiguous, all.ambiguous),
            class: share(self.class, all.class),
        }
    }

    /// A third of each law, where `all` are the sums over all examples.
    fn mixed(self, all: Self) -> f64 {
        let Self { anywhere, ambiguous, class } = self.shares(all);
        (anywhere + ambiguous + class) / 3.0
    }
}

/// What is known of one example.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// Of its true class.
    pub posterior: Posterior,
    /// Of the given label.
    pub signs: Signs,
    /// Whether another class than the given one is the most probable without the label.
    pub is_contradicted: bool,
    /// The logarithm of how probable an error is there, whatever the label is.
    pub ambiguity: f64,
    /// The sum over all labels other than the given one.
    pub law: ErrorLaw,
}

/// Judges one example; `log_probs` are those of its labels, `[K]`.
pub(super) fn judge(
    evidence: &Evidence,
    log_probs: &[f32],
    confusions: &Confusions,
    given: u32,
) -> Judged {
    let readings = Readings::new(evidence, confusions);
    let mut law = ErrorLaw::default();
    readings.each_error(given, |_, own| law.add(own));
    let (signs, posterior) = readings.judge(log_probs, given);
    let top = evidence.candidates.iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let is_contradicted = top.is_some_and(|(class, _)| *class != given);
    let ambiguity = ambiguity(evidence, &confusions.by_example);
    Judged { posterior, signs, is_contradicted, ambiguity, law }
}

/// The logarithm of how probable an error is, whatever the label is.
fn ambiguity(evidence: &Evidence, confusion: &Confusion) -> f64 {
    let error = |(class, prior): &(u32, f64)| {
        let truth = *class as usize;
        let right = confusion.weight(truth, truth) * evidence.tempered[truth];
        prior * (1.0 - right / confusion.total(truth, evidence)).max(0.0)
    };
    // Where errors are this rare, how rare does not matter.
    (1e-6 + evidence.candidates.iter().map(error).sum::<f64>()).ln()
}

/// What is known of an example, read in both ways.
struct Readings<'a> {
    by_example: Reading<'a>,
    by_class: Reading<'a>,
}

/// The posterior of an example by one confusion.
struct Reading<'a> {
    evidence: Evidence<'a>,
    confusion: &'a Confusion,
    posterior: Vec<f64>,
}

impl<'a> Readings<'a> {
    fn new(evidence: &Evidence<'a>, confusions: &'a Confusions) -> Self {
        let reading = |evidence: Evidence<'a>, confusion: &'a Confusion| {
            let (posterior, _) = confusion.posterior(&evidence);
            Reading { evidence, confusion, posterior }
        };
        Self {
            by_example: reading(evidence.clone(), &confusions.by_example),
            by_class: reading(evidence.of_class_alone(), &confusions.by_class),
        }
    }

    /// Gives `take` every label other than the given one with its probability to be an error.
    fn each_error(&self, given: u32, mut take: impl FnMut(u32, ErrorLaw)) {
        let mut laws = vec![ErrorLaw::default(); self.by_example.evidence.tempered.len()];
        self.by_example.each_error(|label, weight, wrong, total| {
            let (anywhere, ambiguous) = (weight / wrong, weight / total);
            laws[label].add(ErrorLaw { anywhere, ambiguous, class: 0.0 });
        });
        self.by_class.each_error(|label, weight, _, total| laws[label].class += weight / total);
        let others = (0..).zip(laws).filter(|(label, _)| *label != given);
        others.for_each(|(label, law)| take(label, law));
    }

    /// The signs that a label is wrong, and the posterior of the true class.
    fn judge(self, log_probs: &[f32], label: u32) -> (Signs, Posterior) {
        let posterior = with_classes(&self.by_example.evidence, self.by_example.posterior);
        let by_class = with_classes(&self.by_class.evidence, self.by_class.posterior);
        let signs = Signs::of(&posterior, log_probs, label);
        (Signs { class_log_odds: log_odds(&by_class, label), ..signs }, posterior)
    }
}

impl Reading<'_> {
    /// Gives `take` every wrong label of every class that may be true: how probable it is, in
    /// proportion to the sum over the wrong labels of that class and to that over all.
    fn each_error(&self, mut take: impl FnMut(usize, f64, f64, f64)) {
        let Self { evidence, confusion, posterior } = self;
        for ((class, _), probability) in evidence.candidates.iter().zip(posterior) {
            let truth = *class as usize;
            let total = confusion.total(truth, evidence);
            let right = confusion.weight(truth, truth) * evidence.tempered[truth];
            // Rounding can leave nothing, or less, where no error is possible.
            let wrong = total - right;
            if !(wrong > 0.0 && *probability > 0.0) {
                continue;
            }
            for label in (0..evidence.tempered.len()).filter(|label| *label != truth) {
                let weight = confusion.weight(truth, label) * evidence.tempered[label];
                take(label, probability * weight, wrong, total);
            }
        }
    }
}

/// The signs that a label is wrong, by one model. Which of them tells errors from hard examples
/// depends on the data: the posterior where errors are many, the surprise where they are few.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// log P(wrong)/P(right) by the posterior.
    pub log_odds: f64,
    /// The same if errors depend on the class alone.
    pub class_log_odds: f64,
    /// −log p of the label.
    pub surprise: f64,
}

impl Signs {
    /// How many numbers labels are compared by.
    pub const COUNT: usize = 2;

    /// Of a label, with one reading for both. Probabilities below 10⁻¹² say no more than 10⁻¹².
    pub fn of(posterior: &[(u32, f64)], log_probs: &[f32], label: u32) -> Self {
        let log_odds = log_odds(posterior, label);
        let surprise = -f64::from(log_probs[label as usize]).max(LEAST.ln());
        Self { log_odds, class_log_odds: log_odds, surprise }
    }

    /// The probability that the label is wrong by the posterior.
    pub fn doubt(self) -> f64 {
        1.0 / (1.0 + (-self.log_odds).exp())
    }

    /// The same if errors depend on the class alone.
    pub fn class_doubt(self) -> f64 {
        1.0 / (1.0 + (-self.class_log_odds).exp())
    }

    /// What labels are compared by. The posterior of errors by the class alone ranks better than
    /// that of errors that depend on the example, also where they do.
    pub fn numbers(self) -> [f64; Self::COUNT] {
        [self.class_log_odds, self.surprise]
    }
}

fn log_odds(posterior: &[(u32, f64)], label: u32) -> f64 {
    let (mut right, mut wrong) = (LEAST, LEAST);
    for (class, probability) in posterior {
        *(if *class == label { &mut right } else { &mut wrong }) += probability;
    }
    wrong.ln() - right.ln()
}

/// The least probability.
const LEAST: f64 = 1e-12;

/// One label of an example replaced by an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlantedError {
    /// The position of the example.
    pub example: usize,
    pub label: u32,
    /// How often it would occur under each law, over how often it is drawn.
    pub weight: ErrorLaw,
    /// Of the error, if the example had it as its label.
    pub signs: Signs,
}

/// Draws errors in rounds: of each round, some examples with one error each.
///
/// `laws` are the sums of every example, [`Judged::law`].
pub(super) fn draw(
    parts: &mut Parts,
    confusions: &Confusions,
    settings: &AuditSettings,
    given: &[u32],
    laws: &[ErrorLaw],
) -> Result<Vec<Vec<PlantedError>>, ReportError> {
    let mut all = ErrorLaw::default();
    laws.iter().for_each(|law| all.add(*law));
    let a_round = ((SHARE * laws.len() as f64).round() as usize).max(1);
    let rounds = ENOUGH.div_ceil(a_round).min(MOST_ROUNDS);
    let chosen: Vec<Vec<bool>> =
        (0..rounds).map(|round| choose(laws, all, a_round, round)).collect();
    let mut planted = vec![vec![]; rounds];
    each_piece(parts, settings, |rows, evidence| {
        let draw = |(row, evidence): (&Row<2>, &Evidence)| -> Vec<(usize, PlantedError)> {
            let at = row.position;
            let in_rounds: Vec<usize> = (0..rounds).filter(|round| chosen[*round][at]).collect();
            if in_rounds.is_empty() {
                return vec![];
            }
            let mut errors = vec![];
            Readings::new(evidence, confusions).each_error(given[at], |label, law| {
                errors.push((label, law, law.mixed(all)));
            });
            let one = |round: usize| {
                let error = pick(&errors, uniform(round, at + 1))?;
                let label = error.0;
                let labels = [label];
                let as_label = row_evidence(row, &labels, settings);
                let [_, log_probs] = row.fields;
                let (signs, _) = Readings::new(&as_label, confusions).judge(log_probs, label);
                let weight = weight(error, all);
                Some((round, PlantedError { example: at, label, weight, signs }))
            };
            in_rounds.into_iter().filter_map(one).collect()
        };
        let found: Vec<Vec<(usize, PlantedError)>> =
            rows.par_iter().zip(evidence).map(draw).collect();
        found.into_iter().flatten().for_each(|(round, error)| planted[round].push(error));
    })?;
    planted.iter_mut().for_each(|round| round.sort_unstable_by_key(|error| error.example));
    Ok(planted)
}

fn weight((_, law, mixed): &(u32, ErrorLaw, f64), all: ErrorLaw) -> ErrorLaw {
    law.shares(all).shares(ErrorLaw { anywhere: *mixed, ambiguous: *mixed, class: *mixed })
}

/// The examples of a round, by systematic sampling: each with a probability in proportion to the
/// mixture of the laws.
fn choose(laws: &[ErrorLaw], all: ErrorLaw, count: usize, round: usize) -> Vec<bool> {
    let mut next = uniform(round, 0);
    let mut sum = 0.0;
    laws.iter()
        .map(|law| {
            sum += count as f64 * law.mixed(all);
            let chosen = sum > next;
            while sum > next {
                next += 1.0;
            }
            chosen
        })
        .collect()
}

fn pick(errors: &[(u32, ErrorLaw, f64)], at: f64) -> Option<&(u32, ErrorLaw, f64)> {
    let total: f64 = errors.iter().map(|(_, _, mixed)| mixed).sum();
    let mut rest = at * total;
    let found = errors.iter().find(|(_, _, mixed)| {
        rest -= mixed;
        rest < 0.0
    });
    found.or(errors.last()).filter(|(_, _, mixed)| *mixed > 0.0)
}

/// A number from 0 to 1 that depends on nothing but its name.
fn uniform(round: usize, index: usize) -> f64 {
    let mut word = SEED ^ ((round as u64) << 48) ^ index as u64;
    // SplitMix64, whose output is as good as random for consecutive arguments.
    word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::super::arrays::{AuditInput, AuditLabels, ModelOutput};
    use super::super::single::plant;
    use super::*;

    const EXAMPLES: usize = 8000;
    const CLASSES: usize = 4;

    /// Labels in turn; the model is sure of some examples and hesitates between two classes for
    /// others.
    fn input() -> AuditInput {
        let given: Vec<u32> = (0..EXAMPLES).map(|example| (example % CLASSES) as u32).collect();
        let row = |example: usize| {
            let clear = uniform(30, example);
            let weight = move |class: usize| match (class + CLASSES - example % CLASSES) % CLASSES {
                0 => (6.0 * clear).exp(),
                1 => 1.0,
                _ => 0.1,
            };
            let sum: f64 = (0..CLASSES).map(weight).sum();
            (0..CLASSES).map(move |class| (weight(class) / sum).ln() as f32)
        };
        let log_probs = (0..EXAMPLES).flat_map(row).collect();
        let names = (0..CLASSES).map(|class| class.to_string()).collect();
        let labels = AuditLabels::Single(given);
        AuditInput::new(names, labels, ModelOutput::LogProbs(log_probs))
    }

    #[test]
    fn errors_are_other_labels_whose_weights_average_to_one_under_every_law() {
        let settings = &AuditSettings::STANDARD;
        let mut parts = input().parts(settings).unwrap();
        let given: Vec<u32> = (0..EXAMPLES).map(|example| (example % CLASSES) as u32).collect();
        let rounds = plant(&mut parts, settings, &mut |_| {}).unwrap().rounds;
        let errors: Vec<&PlantedError> = rounds.iter().flatten().collect();
        assert_eq!((rounds.len(), errors.len()), (1, EXAMPLES / 20));
        assert!(errors.iter().all(|error| error.label != given[error.example]));
        assert!(errors.iter().all(|error| error.signs.log_odds.is_finite()));
        // Drawn from the mixture, the weights are ratios of a law to it: their mean is one.
        let of = |weight: fn(&ErrorLaw) -> f64| {
            let weights: Vec<f64> = errors.iter().map(|error| weight(&error.weight)).collect();
            let count = weights.len() as f64;
            let mean = weights.iter().sum::<f64>() / count;
            let variance = weights.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
            (mean, 5.0 * (variance / count).sqrt())
        };
        let laws: [fn(&ErrorLaw) -> f64; 3] =
            [|law| law.anywhere, |law| law.ambiguous, |law| law.class];
        for law in laws {
            let (mean, five_errors) = of(law);
            assert!((mean - 1.0).abs() < five_errors, "{mean} within {five_errors}");
            assert!(five_errors < 0.3, "the laws differ, and not by much: {five_errors}");
        }
        // A third of the mixture is each law, so the three weights of an error sum to three.
        for error in errors {
            let sum = error.weight.anywhere + error.weight.ambiguous + error.weight.class;
            assert!((sum - 3.0).abs() < 1e-9, "{error:?}");
        }
    }

    #[test]
    fn examples_are_chosen_in_proportion_to_the_mixture() {
        let laws: Vec<ErrorLaw> = (0..1000)
            .map(|at| ErrorLaw {
                anywhere: 1.0,
                ambiguous: f64::from(u8::from(at < 100)),
                class: f64::from(u8::from(at >= 900)),
            })
            .collect();
        let all = ErrorLaw { anywhere: 1000.0, ambiguous: 100.0, class: 100.0 };
        for round in 0..20 {
            let chosen = choose(&laws, all, 50, round);
            let among = |some: &[bool]| some.iter().filter(|it| **it).count();
            // 50 · (0.1 + 1)/3 of the first hundred; systematic sampling is off by rounding alone.
            assert!(among(&chosen).abs_diff(50) <= 1);
            assert!(among(&chosen[..100]).abs_diff(18) <= 1, "{}", among(&chosen[..100]));
            assert!(among(&chosen[100..900]).abs_diff(13) <= 1, "{}", among(&chosen[100..900]));
        }
    }
}
