//! The probability of the true class: does it find a truth that it never sees?

use aleator_metrics::{MOST_CONFUSED, Summary, TrueClass, Truth};

/// A small generator, good enough for draws of classes.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn class(&mut self, probs: impl IntoIterator<Item = f64>) -> usize {
        let mut left = self.uniform();
        let mut last = 0;
        for (class, prob) in probs.into_iter().enumerate() {
            last = class;
            if left < prob {
                break;
            }
            left -= prob;
        }
        last
    }
}

struct World {
    utilities: Vec<f32>,
    truth: Vec<u32>,
    given: Vec<u32>,
}

/// Examples whose true class has the law softmax(α u), with labels drawn from rows of C.
fn world(examples: usize, classes: usize, sharpness: f64, confusion: &[Vec<f64>]) -> World {
    let mut draws = Draws(7);
    let mut world = World { utilities: vec![], truth: vec![], given: vec![] };
    for _ in 0..examples {
        let row: Vec<f64> = (0..classes).map(|_| 3.0 * draws.uniform()).collect();
        let weights: Vec<f64> = row.iter().map(|u| (sharpness * u).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let truth = draws.class(weights.iter().map(|weight| weight / sum));
        world.given.push(draws.class(confusion[truth].iter().copied()) as u32);
        world.truth.push(truth as u32);
        world.utilities.extend(row.iter().map(|u| *u as f32));
    }
    world
}

/// Class 0 is often called 1; the others are called anything now and then.
fn confusion(classes: usize) -> Vec<Vec<f64>> {
    let other = 0.1 / (classes - 1) as f64;
    let cell = |truth: usize, label: usize| match (truth, label) {
        (0, 0) => 0.6,
        (0, 1) => 0.4,
        (0, _) => 0.0,
        (truth, label) if truth == label => 0.9,
        _ => other,
    };
    (0..classes).map(|truth| (0..classes).map(|label| cell(truth, label)).collect()).collect()
}

#[test]
fn sharpness_and_confusion_are_recovered_from_labels_alone() {
    let expected = confusion(4);
    let World { utilities, truth, given } = world(20_000, 4, 3.0, &expected);
    let wrong = truth.iter().zip(&given).filter(|(a, b)| a != b).count() as f64 / 20_000.0;
    let fitted = TrueClass::fit(&utilities, 4, &Truth::Classes(given.clone())).unwrap();
    // The posterior of log α has a standard deviation of about 0.02 at this size.
    assert!((fitted.sharpness / 3.0).ln().abs() < 0.08, "{fitted:?}");
    assert!((fitted.noise_rate - wrong).abs() < 0.02, "{fitted:?}, {wrong}");
    for (found, expected) in fitted.confusion.as_ref().unwrap().iter().zip(&expected) {
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.04, "{fitted:?}");
        }
    }
    // Against the truth it is better than any law that was fitted to the labels.
    let of_truth = Summary::single_label(&fitted.log_probs(&utilities, 4), 4, &truth, 15);
    let labels_only = aleator_metrics::calibration::fit_temperature(&unit(&utilities), 4, &given);
    let of_label = TrueClass { sharpness: 1.0 / labels_only, ..fitted };
    let of_label = Summary::single_label(&of_label.log_probs(&utilities, 4), 4, &truth, 15);
    assert!(of_truth.ece < 0.02 && of_label.ece > 0.08, "{} {}", of_truth.ece, of_label.ece);
    assert!(of_truth.nll < of_label.nll - 0.02, "{} {}", of_truth.nll, of_label.nll);
}

/// log softmax(u).
fn unit(utilities: &[f32]) -> Vec<f32> {
    let unit = TrueClass { sharpness: 1.0, noise_rate: 0.0, confusion: None };
    unit.log_probs(utilities, 4)
}

#[test]
fn clean_labels_have_no_noise_and_keep_their_probabilities() {
    let identity = |classes: usize| -> Vec<Vec<f64>> {
        let row = |truth| (0..classes).map(|label| f64::from(u8::from(truth == label))).collect();
        (0..classes).map(row).collect()
    };
    for examples in [20, 200, 20_000] {
        let World { utilities, given, .. } = world(examples, 4, 1.0, &identity(4));
        let fitted = TrueClass::fit(&utilities, 4, &Truth::Classes(given)).unwrap();
        // Twenty undecided examples cannot tell noise from chance; α must stay all the same.
        assert!(examples < 20_000 || fitted.noise_rate < 0.05, "{examples}: {fitted:?}");
        assert!(fitted.sharpness.ln().abs() < 0.5, "{examples}: {fitted:?}");
    }
}

#[test]
fn few_examples_say_little() {
    // A right label beyond doubt, once: by itself it would make α infinite.
    let fitted = TrueClass::fit(&[3.0, 0.0], 2, &Truth::Classes(vec![0])).unwrap();
    assert!((1.0..1.2).contains(&fitted.sharpness), "{fitted:?}");
    assert!(fitted.noise_rate < 0.01, "{fitted:?}");
    // And a wrong one does not make all labels wrong.
    let fitted = TrueClass::fit(&[3.0, 0.0], 2, &Truth::Classes(vec![1])).unwrap();
    assert!((0.3..1.0).contains(&fitted.sharpness), "{fitted:?}");
    assert!(fitted.noise_rate < 0.5, "{fitted:?}");
}

#[test]
fn a_mistake_is_never_likelier_than_the_truth() {
    let exchanged = vec![vec![0.2, 0.8], vec![0.8, 0.2]];
    let World { utilities, given, .. } = world(2_000, 2, 3.0, &exchanged);
    let fitted = TrueClass::fit(&utilities, 2, &Truth::Classes(given)).unwrap();
    for (class, row) in fitted.confusion.unwrap().iter().enumerate() {
        assert!(row.iter().all(|cell| *cell <= row[class] + 1e-12), "{row:?}");
    }
}

#[test]
fn soft_labels_that_are_certain_are_labels() {
    let World { utilities, given, .. } = world(500, 3, 2.0, &confusion(3));
    let hot = |label: u32| (0..3).map(move |class| f32::from(u8::from(class == label)));
    let soft = Truth::Soft(given.iter().copied().flat_map(hot).collect());
    let hard = Truth::Classes(given.clone());
    assert_eq!(TrueClass::fit(&utilities, 3, &soft), TrueClass::fit(&utilities, 3, &hard));
}

#[test]
fn what_cannot_be_fitted_has_no_true_class() {
    let on = Truth::MultiHot(vec![true, false]);
    assert_eq!(TrueClass::fit(&[1.0, 0.0], 2, &on), None);
    assert_eq!(TrueClass::fit(&[f32::INFINITY, 0.0], 2, &Truth::Classes(vec![0])), None);
}

#[test]
fn very_many_classes_have_a_rate_but_no_matrix() {
    let classes = MOST_CONFUSED + 1;
    let utilities: Vec<f32> = (0..2 * classes * classes)
        .map(|at| if at % (classes + 1) == 0 { 6.0 } else { 0.0 })
        .collect();
    let labels = utilities
        .chunks_exact(classes)
        .map(|row| row.iter().position(|value| *value > 0.0).unwrap_or_default() as u32);
    let fitted = TrueClass::fit(&utilities, classes, &Truth::Classes(labels.collect())).unwrap();
    assert_eq!(fitted.confusion, None);
    assert!(fitted.noise_rate < 0.01 && fitted.sharpness > 1.0, "{fitted:?}");
}
