//! Training methods on digits of which many labels are wrong: what they keep, remember and learn.

use crate::methods::{VERIFIED_BY_CLEANNET, VERIFIED_BY_MENTORNET, Verified};
use crate::support::{DIGITS, Tensors, Trial, adam, tensors};

/// A run on digits of which two in five labels are wrong, long enough to memorise them.
fn on_wrong_digits(settings: &[&str]) -> Trial {
    let mut sets = vec![DIGITS, "network.normalize=global", "network.kind=mlp"];
    sets.extend(["network.hidden=[128]", "optimizer.learning_rate=0.003", "training.batch=64"]);
    sets.extend(["data.noise.kind=symmetric", "data.noise.rate=0.4", "data.noise.seed=0"]);
    sets.extend(["schedule.epochs=40", "evaluation.weights=last", "checkpoint.keep=1"]);
    sets.extend(settings);
    Trial::new(&adam(), &sets)
}

/// Which training labels of a run are right.
fn right_labels(trial: &Trial) -> Vec<bool> {
    let train = &trial.data.train;
    let labels = train.labels.hard(0, &train.ids).unwrap();
    let clean = train.clean_labels.as_ref().unwrap();
    labels.iter().zip(clean).map(|(label, clean)| label == clean).collect()
}

/// The same, and what the method remembers after the last step.
fn remembered(settings: &[&str]) -> (Vec<bool>, Tensors) {
    let trial = on_wrong_digits(settings);
    let steps = trial.train().steps.len();
    (right_labels(&trial), tensors(&trial.bytes(steps, "method.safetensors")))
}

/// Every tenth of the wrong digits with its true class.
fn every_tenth_digit() -> Verified {
    let digits = on_wrong_digits(&[]);
    let train = &digits.data.train;
    let clean = train.clean_labels.as_ref().unwrap();
    let rows = (0..train.len()).step_by(10);
    Verified::of(rows.map(|at| (train.ids.name(at).to_string(), clean[at].to_string())))
}

/// Among pairs of a right and a wrong label, how often the right one has the larger number.
fn auroc(right: &[bool], numbers: &[f32]) -> f64 {
    let of = |kind: bool| {
        let pairs = right.iter().zip(numbers);
        pairs.filter(|(right, _)| **right == kind).map(|(_, number)| *number).collect::<Vec<_>>()
    };
    let (high, low) = (of(true), of(false));
    let wins = |a: &f32| {
        let one = |b: &f32| if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
        low.iter().map(one).sum::<f64>()
    };
    high.iter().map(wins).sum::<f64>() / (high.len() * low.len()) as f64
}

const CO_TEACHING: [&str; 4] = [
    "method=co-teaching",
    "co_teaching.noise_rate=0.4",
    "co_teaching.ramp=5",
    "co_teaching.exponent=1.0",
];
const MENTORNET: [&str; 6] = [
    "method=mentornet",
    "mentornet.curriculum=self-paced",
    "mentornet.quantile=0.6",
    "mentornet.decay=0.5",
    "mentornet.burn_in=3",
    "head.noise=none",
];
const ELR: [&str; 3] = ["method=elr", "elr.momentum=0.7", "elr.strength=3.0"];
const SOP: [&str; 3] = ["method=sop", "sop.rate_u=0.1", "sop.rate_v=0.1"];
const GCE: [&str; 3] = ["method=gce", "gce.exponent=0.7", "gce.burn_in=0"];
const CORES: [&str; 5] = [
    "method=cores",
    "cores.strength=2.0",
    "cores.burn_in=3",
    "cores.ramp=5",
    "cores.sieve_after=8",
];
const LEARNED: [&str; 8] = [
    "method=mentornet",
    "mentornet.curriculum=learned",
    VERIFIED_BY_MENTORNET,
    "mentornet.steps=300",
    "mentornet.rate=0.1",
    "mentornet.quantile=0.6",
    "mentornet.decay=0.5",
    "mentornet.burn_in=3",
];
const CLEANNET: [&str; 14] = [
    "method=cleannet",
    VERIFIED_BY_CLEANNET,
    "cleannet.after=3",
    "cleannet.refresh=20",
    "cleannet.references=8",
    "cleannet.hidden=32",
    "cleannet.embedding=16",
    "cleannet.margin=0.1",
    "cleannet.wrong_weight=5.0",
    "cleannet.unverified_weight=0.1",
    "cleannet.reconstruction_weight=0.1",
    "cleannet.batch=16",
    "cleannet.steps=300",
    "cleannet.rate=0.003",
];
const DIVIDEMIX: [&str; 8] = [
    "method=dividemix",
    "dividemix.warm_up=3",
    "dividemix.threshold=0.5",
    "dividemix.sharpness=0.5",
    "dividemix.alpha=4.0",
    "dividemix.unlabelled_weight=1.0",
    "dividemix.ramp=5",
    "dividemix.balance=1.0",
];

#[test]
fn what_methods_keep_is_purer_than_the_labels() {
    // Three in five labels are right. The sieve leaves out only what is quite improbable.
    for (settings, name, every, least) in [
        (&CO_TEACHING[..], "co_teaching.kept", 2, 0.85),
        (&MENTORNET, "mentornet.weights", 1, 0.85),
        (&CORES, "cores.kept", 1, 0.65),
    ] {
        let (right, memory) = remembered(settings);
        let weights: Vec<f32> = memory[name].1.iter().step_by(every).copied().collect();
        let kept = right.iter().zip(&weights).filter(|(_, weight)| **weight > 0.5);
        let kept: Vec<bool> = kept.map(|(right, _)| *right).collect();
        let share = kept.len() as f64 / right.len() as f64;
        let purity = kept.iter().filter(|right| **right).count() as f64 / kept.len() as f64;
        assert!(share > 0.4 && purity > least, "{name}: {purity} of {share}");
    }
}

/// Of the examples that nobody has verified: what was learned from the others.
#[test]
fn weights_that_verified_examples_teach_tell_right_labels_from_wrong_ones() {
    let verified = every_tenth_digit();
    for (settings, name) in [(&LEARNED[..], "mentornet.weights"), (&CLEANNET, "cleannet.weights")] {
        let settings = verified.name_in(settings);
        let (right, memory) = remembered(&settings.iter().map(String::as_str).collect::<Vec<_>>());
        let others: Vec<usize> = (0..right.len()).filter(|at| !at.is_multiple_of(10)).collect();
        let weights = &memory[name].1;
        let of = |at: &usize| (right[*at], weights[*at]);
        let (right, weights): (Vec<bool>, Vec<f32>) = others.iter().map(of).unzip();
        // By chance it is within 0.5 ± 0.05, three standard errors of an AUROC of 1,200 labels. A
        // network that has seen digits for three epochs predicts nine in ten of them, and so tells
        // as many wrong labels.
        let found = auroc(&right, &weights);
        assert!(found > 0.8, "{name}: {found}");
    }
}

/// Networks whose labels are divided keep right and wrong ones apart, whose losses plain training
/// makes the same.
#[test]
fn the_division_of_dividemix_is_better_than_the_losses_of_plain_training() {
    let (right, memory) = remembered(&DIVIDEMIX);
    let clean: Vec<f32> = memory["dividemix.clean"].1.iter().step_by(2).copied().collect();
    let verified = every_tenth_digit();
    // A curriculum that never begins: plain training that keeps the loss of each example.
    let plain = verified.name_in(&[&LEARNED[..7], &["mentornet.burn_in=40"][..]].concat());
    let (_, memory) = remembered(&plain.iter().map(String::as_str).collect::<Vec<_>>());
    let losses: Vec<f32> = memory["mentornet.seen"].1.iter().step_by(2).map(|it| -it).collect();
    let (divided, plain) = (auroc(&right, &clean), auroc(&right, &losses));
    assert!(divided >= plain, "w {divided}, losses of plain training {plain}");
}

#[test]
fn what_methods_remember_tells_right_labels_from_wrong_ones() {
    let found = |settings: &[&str], name: &str, numbers: fn(&[f32]) -> Vec<f32>| {
        let (right, memory) = remembered(settings);
        auroc(&right, &numbers(&memory[name].1))
    };
    let first_of_two = |all: &[f32]| all.iter().step_by(2).copied().collect::<Vec<_>>();
    let clean = found(&DIVIDEMIX, "dividemix.clean", first_of_two);
    assert!(clean > 0.9, "w of DivideMix: {clean}");
    let error = |all: &[f32]| all.iter().step_by(11).map(|u| -u * u).collect::<Vec<_>>();
    let error = found(&SOP, "sop.errors", error);
    assert!(error > 0.9, "u of SOP: {error}");
    let settings = [
        "method=data-parameters",
        "data_parameters.momentum=0.9",
        "data_parameters.bound=20.0",
        "data_parameters.instances.start=1.0",
        "data_parameters.instances.rate=0.05",
        "data_parameters.instances.decay=0.0",
    ];
    let negative = |all: &[f32]| all.iter().map(|s| -s).collect::<Vec<_>>();
    let temperature = found(&settings, "data_parameters.instances", negative);
    assert!(temperature > 0.9, "s of Data Parameters: {temperature}");
}

/// The clean validation accuracy at the last epoch, which memorised labels spoil.
#[test]
fn robust_methods_memorise_less_than_plain_training() {
    let accuracy =
        |settings: &[&str]| on_wrong_digits(settings).finish().validation.clean.unwrap().top1;
    let plain = accuracy(&[]);
    for settings in [&CO_TEACHING[..], &MENTORNET, &ELR, &SOP, &GCE, &CORES, &DIVIDEMIX] {
        let robust = accuracy(settings);
        assert!(robust > plain + 0.05, "{settings:?}: {robust}, plain {plain}");
    }
}
