//! Errors planted on purpose: labels that are known to be wrong, to compare the given ones with.
//!
//! Which labels of an example would be errors, and how probable each is, follows from the posterior
//! of its true class and the confusion of the classes ([`posterior`](super::posterior)): where class
//! c is true, a wrong label is y ≠ c with probability ∝ C_cy p_y^b. Two laws say where errors fall:
//! *anywhere*, each example alike, or where examples are *ambiguous*, in proportion to how probable
//! an error is there. Errors of people lie between the two, so both are used.

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

/// How probable it is that a label of an example is an error, under both laws.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorLaw {
    pub anywhere: f64,
    pub ambiguous: f64,
}

impl ErrorLaw {
    fn add(&mut self, other: Self) {
        self.anywhere += other.anywhere;
        self.ambiguous += other.ambiguous;
    }

    /// Half of the one law and half of the other, where `all` are the sums over all examples.
    fn mixed(self, all: Self) -> f64 {
        let share = |own: f64, all: f64| if all > 0.0 { 0.5 * own / all } else { 0.0 };
        share(self.anywhere, all.anywhere) + share(self.ambiguous, all.ambiguous)
    }
}

/// What is known of one example.
pub(super) struct Judged {
    /// Of its true class.
    pub posterior: Posterior,
    /// Of the given label.
    pub signs: Signs,
    /// Whether another class than the given one is the most probable without the label.
    pub is_contradicted: bool,
    /// The sum over all labels other than the given one.
    pub law: ErrorLaw,
}

/// Judges one example; `log_probs` are those of its labels, `[K]`.
pub(super) fn judge(
    evidence: &Evidence,
    log_probs: &[f32],
    confusion: &Confusion,
    given: u32,
) -> Judged {
    let (posterior, _) = confusion.posterior(evidence);
    let mut law = ErrorLaw::default();
    each_error(evidence, confusion, &posterior, given, |_, own| law.add(own));
    let posterior = with_classes(evidence, posterior);
    let top = evidence.candidates.iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let is_contradicted = top.is_some_and(|(class, _)| *class != given);
    Judged { signs: Signs::of(&posterior, log_probs, given), is_contradicted, law, posterior }
}

/// Gives `take` every label other than the given one with its probability to be an error.
fn each_error(
    evidence: &Evidence,
    confusion: &Confusion,
    posterior: &[f64],
    given: u32,
    mut take: impl FnMut(u32, ErrorLaw),
) {
    let classes = evidence.tempered.len();
    let mut laws = vec![ErrorLaw::default(); classes];
    for ((class, _), probability) in evidence.candidates.iter().zip(posterior) {
        let truth = *class as usize;
        let total = confusion.total(truth, evidence);
        let right = confusion.weight(truth, truth) * evidence.tempered[truth];
        // Rounding can leave nothing, or less, where no error is possible.
        let wrong = total - right;
        if !(wrong > 0.0 && *probability > 0.0) {
            continue;
        }
        for (label, law) in laws.iter_mut().enumerate().filter(|(label, _)| *label != truth) {
            let weight = probability * confusion.weight(truth, label) * evidence.tempered[label];
            law.add(ErrorLaw { anywhere: weight / wrong, ambiguous: weight / total });
        }
    }
    let others = (0..).zip(laws).filter(|(label, _)| *label != given);
    others.for_each(|(label, law)| take(label, law));
}

/// The signs that a label is wrong, by one model. Which of them tells errors from hard examples
/// depends on the data: the first where errors are many, the second where they are few.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// log P(wrong)/P(right) by the posterior.
    pub log_odds: f64,
    /// −log p of the label.
    pub surprise: f64,
}

impl Signs {
    /// How many numbers it has.
    pub const COUNT: usize = 2;

    /// Of a label. Probabilities below 10⁻¹² say no more than 10⁻¹².
    pub fn of(posterior: &[(u32, f64)], log_probs: &[f32], label: u32) -> Self {
        let (mut right, mut wrong) = (LEAST, LEAST);
        for (class, probability) in posterior {
            *(if *class == label { &mut right } else { &mut wrong }) += probability;
        }
        Self {
            log_odds: wrong.ln() - right.ln(),
            surprise: -f64::from(log_probs[label as usize]).max(LEAST.ln()),
        }
    }

    /// The probability that the label is wrong by the posterior.
    pub fn doubt(self) -> f64 {
        1.0 / (1.0 + (-self.log_odds).exp())
    }

    pub fn numbers(self) -> [f64; Self::COUNT] {
        [self.log_odds, self.surprise]
    }
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
    confusion: &Confusion,
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
            let (posterior, _) = confusion.posterior(evidence);
            let mut errors = vec![];
            each_error(evidence, confusion, &posterior, given[at], |label, law| {
                errors.push((label, law, law.mixed(all)));
            });
            let one = |round: usize| {
                let error = pick(&errors, uniform(round, at + 1))?;
                let label = error.0;
                let labels = [label];
                let as_label = row_evidence(row, &labels, settings);
                let (posterior, _) = confusion.posterior(&as_label);
                let posterior = with_classes(&as_label, posterior);
                let [_, log_probs] = row.fields;
                let signs = Signs::of(&posterior, log_probs, label);
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
    let share = |own: f64, all: f64| if all > 0.0 { own / all / mixed } else { 0.0 };
    ErrorLaw {
        anywhere: share(law.anywhere, all.anywhere),
        ambiguous: share(law.ambiguous, all.ambiguous),
    }
}

/// The examples of a round, by systematic sampling: each with a probability in proportion to the
/// mixture of both laws.
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
    use super::super::single::out_of_sample;
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
    fn errors_are_other_labels_whose_weights_average_to_one_under_both_laws() {
        let settings = &AuditSettings::STANDARD;
        let mut parts = input().parts(settings).unwrap();
        let given: Vec<u32> = (0..EXAMPLES).map(|example| (example % CLASSES) as u32).collect();
        let (confusion, judged) = out_of_sample(&mut parts, &given, settings, &mut |_| {}).unwrap();
        let laws: Vec<ErrorLaw> = judged.iter().map(|one| one.law).collect();
        let rounds = draw(&mut parts, &confusion, settings, &given, &laws).unwrap();
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
        for (mean, five_errors) in [of(|law| law.anywhere), of(|law| law.ambiguous)] {
            assert!((mean - 1.0).abs() < five_errors, "{mean} within {five_errors}");
            assert!(five_errors < 0.3, "the laws differ, and not by much: {five_errors}");
        }
        // Half of the mixture is each law, so the two weights of an error sum to two.
        for error in errors {
            let sum = error.weight.anywhere + error.weight.ambiguous;
            assert!((sum - 2.0).abs() < 1e-9, "{error:?}");
        }
    }

    #[test]
    fn examples_are_chosen_in_proportion_to_the_mixture() {
        let laws: Vec<ErrorLaw> = (0..1000)
            .map(|at| ErrorLaw { anywhere: 1.0, ambiguous: f64::from(u8::from(at < 100)) })
            .collect();
        let all = ErrorLaw { anywhere: 1000.0, ambiguous: 100.0 };
        for round in 0..20 {
            let chosen = choose(&laws, all, 50, round);
            let among = |some: &[bool]| some.iter().filter(|it| **it).count();
            // 50 · (½ · 0.1 + ½) of the first hundred; systematic sampling is off by rounding alone.
            assert!(among(&chosen).abs_diff(50) <= 1);
            assert!(among(&chosen[..100]).abs_diff(27) <= 1, "{}", among(&chosen[..100]));
        }
    }
}
