//! Labels compared with errors that were planted on purpose, where the truth is known.

use aleator_report::audit::{
    Audit, AuditInput, AuditLabels, AuditSettings, ModelOutput, PlantedErrors, TrainingDynamics,
    judge,
};

use crate::audit_support::{CLASSES, EXAMPLES, given, predictions, truth, uniform};

/// Simulated examples whose model knows the law of their classes.
struct Simulated {
    /// `[N, K]`.
    probs: Vec<f64>,
    truth: Vec<u32>,
    given: Vec<u32>,
}

impl Simulated {
    /// Some examples, most of them clear; a share of the labels is replaced at random.
    fn new(examples: usize, replaced: f64) -> Self {
        let mut all = Self { probs: vec![], truth: vec![], given: vec![] };
        for example in 0..examples {
            let logit = |class: usize| {
                let own = if class == example % CLASSES { 8.0 } else { 0.0 };
                own * uniform(11, example, 0).sqrt() + uniform(12, example, class)
            };
            let weights: Vec<f64> = (0..CLASSES).map(|class| logit(class).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let probs: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            let mut rest = uniform(13, example, 0);
            let drawn = probs.iter().position(|prob| {
                rest -= prob;
                rest < 0.0
            });
            let truth = drawn.unwrap_or(0) as u32;
            let any = (uniform(15, example, 0) * CLASSES as f64) as u32;
            let is_replaced = uniform(14, example, 0) < replaced;
            all.probs.extend(probs);
            all.truth.push(truth);
            all.given.push(if is_replaced { any } else { truth });
        }
        all
    }

    fn wrong(&self) -> usize {
        self.given.iter().zip(&self.truth).filter(|(given, truth)| given != truth).count()
    }

    fn input(&self) -> AuditInput {
        input(&self.given, &self.truth, self.probs.iter().map(|p| p.ln() as f32).collect())
    }

    /// The standard error of a number of wrong labels that is estimated from the share of replaced
    /// ones, whose likelihood is that of (1 − ε) p + ε/K.
    fn standard_error(&self, replaced: f64) -> f64 {
        let any = 1.0 / CLASSES as f64;
        let rows = self.probs.chunks_exact(CLASSES).zip(&self.given);
        let information: f64 = rows
            .map(|(row, given)| {
                let own = row[*given as usize];
                ((any - own) / ((1.0 - replaced) * own + replaced * any)).powi(2)
            })
            .sum();
        self.given.len() as f64 * (1.0 - any) / information.sqrt()
    }
}

fn input(given: &[u32], truth: &[u32], log_probs: Vec<f32>) -> AuditInput {
    let names = (0..CLASSES).map(|class| format!("class {class}")).collect();
    let labels = AuditLabels::Single(given.to_vec());
    AuditInput {
        clean_labels: Some(truth.to_vec()),
        ..AuditInput::new(names, labels, ModelOutput::LogProbs(log_probs))
    }
}

fn judged(input: AuditInput) -> Audit {
    judge(input, &AuditSettings::STANDARD, &mut |_| {}).unwrap().audit
}

fn planted(input: AuditInput) -> PlantedErrors {
    PlantedErrors::new(input, &AuditSettings::STANDARD, &mut |_| {}).unwrap()
}

#[test]
fn labels_that_were_replaced_at_random_are_counted() {
    let simulated = Simulated::new(4000, 0.1);
    let audit = judged(simulated.input());
    let (found, wrong) = (audit.summary.wrong, simulated.wrong() as f64);
    assert!((200.0..400.0).contains(&wrong), "three in four of a tenth: {wrong}");
    assert!(found.low <= wrong && wrong <= found.high, "{found:?} for {wrong}");
    let replaced = audit.summary.comparison.unwrap().replaced;
    let tolerance = 5.0 * simulated.standard_error(0.1);
    assert!((replaced - wrong).abs() < tolerance, "{replaced} for {wrong}, within {tolerance}");
    assert!(tolerance < 0.5 * wrong, "the test must be able to fail: {tolerance}");
}

#[test]
fn nothing_looks_wrong_where_classes_are_far_apart_and_labels_are_clean() {
    let classes: Vec<u32> = (0..1000).map(truth).collect();
    let log_probs = (0..1000).flat_map(|example| {
        let other = (-8.0 - 4.0 * uniform(21, example, 0)).exp();
        let own = 1.0 - (CLASSES - 1) as f64 * other;
        (0..CLASSES).map(move |class| {
            (if class as u32 == truth(example) { own } else { other }).ln() as f32
        })
    });
    let audit = judged(input(&classes, &classes, log_probs.collect()));
    assert!(audit.summary.wrong.count < 1.0, "{:?}", audit.summary.wrong);
    assert!(audit.issues.iter().all(|issue| !issue.wrong && issue.score < 0.5));
    let comparison = audit.summary.comparison.unwrap();
    assert!(comparison.replaced < 1.0 && comparison.anywhere < 1.0, "{comparison:?}");
}

#[test]
fn a_twentieth_of_the_labels_is_planted_and_the_same_every_time() {
    let simulated = Simulated::new(4000, 0.1);
    let all = planted(simulated.input());
    let rounds = all.labels();
    assert_eq!(rounds.len(), 2, "400 errors in rounds of 200");
    for labels in rounds {
        let changed = labels.iter().zip(&simulated.given).filter(|(a, b)| a != b).count();
        // Systematic sampling is off by rounding alone.
        assert!(changed.abs_diff(200) <= 1, "{changed}");
        assert!(labels.iter().all(|label| (*label as usize) < CLASSES));
    }
    assert!(rounds[0] != rounds[1], "each round has errors of its own");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(
            pool.install(|| planted(simulated.input())).labels() == rounds,
            "{threads} threads"
        );
    }
}

/// Six hundred examples with known errors, and what a network says of labels while it learns them:
/// much for the truth, something for the label.
fn with_dynamics() -> (AuditInput, TrainingDynamics) {
    let of = |class: fn(usize) -> u32| -> Vec<u32> { (0..EXAMPLES).map(class).collect() };
    let members: Vec<usize> = (0..EXAMPLES).collect();
    let input = input(&of(given), &of(truth), predictions(&members).log_probs);
    let trained = |run: usize, labels: &[u32]| -> Vec<f32> {
        let row = |example: usize| {
            let logit = |class: usize| {
                let is = |label: u32| f64::from(u8::from(label as usize == class));
                let noise = uniform(31 + run as u64, example, class);
                2.0 * is(truth(example)) + is(labels[example]) + noise
            };
            let logits: Vec<f64> = (0..CLASSES).map(logit).collect();
            let log_sum = logits.iter().map(|value| value.exp()).sum::<f64>().ln();
            logits.into_iter().map(move |value| (value - log_sum) as f32)
        };
        (0..EXAMPLES).flat_map(row).collect()
    };
    let planted = planted(input.clone());
    let labels = (1..).zip(planted.labels());
    let dynamics = TrainingDynamics {
        given: trained(0, &of(given)),
        planted: labels.map(|(run, labels)| trained(run, labels)).collect(),
    };
    (input, dynamics)
}

#[test]
fn training_dynamics_are_evidence_beside_the_predictions() {
    let (input, dynamics) = with_dynamics();
    let without = judged(input.clone());
    let with = planted(input).judge(dynamics, &mut |_| {}).unwrap().audit;
    let comparison = with.summary.comparison.unwrap();
    let dynamics = comparison.dynamics_weight.unwrap();
    assert!(dynamics > 0.0 && (comparison.out_of_sample_weight + dynamics - 1.0).abs() < 1e-9);
    assert_eq!(without.summary.comparison.unwrap().dynamics_weight, None);
    let known = |audit: &Audit| audit.summary.known.unwrap().average_precision;
    let (with_them, without_them) = (known(&with), known(&without));
    // A tie of two labels may turn; a sign in the wrong direction would cost far more.
    assert!(with_them > 0.95 && with_them > without_them - 0.01, "{with_them} {without_them}");
    let (found, wrong) = (with.summary.wrong, with.summary.known.unwrap().wrong as f64);
    assert!(found.low <= wrong && wrong <= found.high, "{found:?} for {wrong}");
}

#[test]
fn dynamics_that_do_not_fit_are_refused_with_the_field_named() {
    let refusal = |change: &dyn Fn(&mut TrainingDynamics)| {
        let (input, mut dynamics) = with_dynamics();
        change(&mut dynamics);
        planted(input).judge(dynamics, &mut |_| {}).unwrap_err().to_string()
    };
    let shape = ["dynamics", "[600, 4]"];
    let check = |message: String, words: &[&str]| {
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    check(refusal(&|it| it.given.truncate(2399)), &shape);
    check(refusal(&|it| it.planted[1].truncate(4)), &shape);
    check(refusal(&|it| it.planted[1][7] = f32::NAN), &["dynamics", "finite"]);
    check(refusal(&|it| drop(it.planted.pop())), &["dynamics", "12 trainings", "found 11"]);
}
