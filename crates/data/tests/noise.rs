//! Corruption of labels: its rates, where labels go, and what it does not depend on.

use crate::support::Folder;
use aleator_data::{DataError, Ids, InputShape, Inputs, digits, noise};
use aleator_run::recipe::{LabelNoise, NoiseKind, NoiseLaw};

const CLASSES: usize = 10;
const EXAMPLES: usize = 20_000;

fn labels() -> Vec<u32> {
    (0..EXAMPLES).map(|row| (row % CLASSES) as u32).collect()
}

fn corrupted(kind: NoiseKind, seed: u64) -> Result<Vec<u32>, DataError> {
    let inputs = Inputs::in_memory(vec![0.0; EXAMPLES], InputShape::Features(1));
    let noise = LabelNoise { seed, kind };
    noise::corrupt(&labels(), CLASSES, &Ids::Rows(EXAMPLES), &inputs, &noise)
}

/// The share of labels that changed.
fn changed(before: &[u32], after: &[u32]) -> f64 {
    let wrong = before.iter().zip(after).filter(|(before, after)| before != after).count();
    wrong as f64 / before.len() as f64
}

/// Five standard errors of a share `rate` of `count` examples.
fn five_errors(rate: f64, count: usize) -> f64 {
    5.0 * (rate * (1.0 - rate) / count as f64).sqrt()
}

fn assert_share(found: f64, rate: f64, count: usize) {
    let allowed = five_errors(rate, count);
    assert!((found - rate).abs() <= allowed, "{found} is not {rate} ± {allowed}");
}

#[test]
fn symmetric_noise_flips_at_its_rate_to_every_other_class_alike() {
    let noisy = corrupted(NoiseKind::Symmetric { rate: 0.4 }, 1).unwrap();
    assert_share(changed(&labels(), &noisy), 0.4, EXAMPLES);
    for class in 1..CLASSES as u32 {
        let pairs = labels().into_iter().zip(&noisy);
        let found = pairs.filter(|(y, given)| *y == 0 && **given == class).count();
        assert_share(found as f64 / 2_000.0, 0.4 / 9.0, 2_000);
    }
}

#[test]
fn inclusive_symmetric_noise_draws_its_share_anew_and_leaves_one_in_all_classes() {
    let noisy = corrupted(NoiseKind::SymmetricInclusive { rate: 0.4 }, 1).unwrap();
    assert_share(changed(&labels(), &noisy), 0.4 * 0.9, EXAMPLES);
    for class in 1..CLASSES as u32 {
        let pairs = labels().into_iter().zip(&noisy);
        let found = pairs.filter(|(y, given)| *y == 0 && **given == class).count();
        assert_share(found as f64 / 2_000.0, 0.04, 2_000);
    }
    let none = corrupted(NoiseKind::SymmetricInclusive { rate: 0.0 }, 1).unwrap();
    assert_eq!(none, labels());
    // A higher rate draws the same examples and more.
    let more = corrupted(NoiseKind::SymmetricInclusive { rate: 0.6 }, 1).unwrap();
    let (before, mut pairs) = (labels(), noisy.iter().zip(&more).enumerate());
    assert!(pairs.all(|(at, (some, more))| *some == before[at] || some == more));
}

#[test]
fn a_rate_of_zero_changes_nothing_and_of_one_everything() {
    let inputs = digits::open().unwrap();
    let before = inputs.labels.as_ref().unwrap().classes().unwrap().to_vec();
    let ids = Ids::Rows(before.len());
    for rate in [0.0, 1.0] {
        for kind in [
            NoiseKind::Symmetric { rate },
            NoiseKind::Pairwise { rate, pairs: vec![] },
            NoiseKind::Instance { rate },
        ] {
            let noise = LabelNoise { seed: 0, kind };
            let after = noise::corrupt(&before, CLASSES, &ids, &inputs.inputs, &noise).unwrap();
            assert_eq!(changed(&before, &after), rate, "{noise:?}");
        }
    }
}

#[test]
fn a_higher_rate_flips_the_same_examples_and_more() {
    let low = corrupted(NoiseKind::Symmetric { rate: 0.1 }, 3).unwrap();
    let high = corrupted(NoiseKind::Symmetric { rate: 0.3 }, 3).unwrap();
    let before = labels();
    assert!((0..EXAMPLES).all(|at| low[at] == before[at] || low[at] == high[at]));
}

#[test]
fn pairwise_noise_goes_to_the_next_class() {
    let noisy = corrupted(NoiseKind::Pairwise { rate: 0.3, pairs: vec![] }, 1).unwrap();
    assert_share(changed(&labels(), &noisy), 0.3, EXAMPLES);
    let next = |y: u32| (y + 1) % CLASSES as u32;
    assert!(labels().iter().zip(&noisy).all(|(y, given)| y == given || *given == next(*y)));
}

#[test]
fn pairwise_noise_touches_only_the_classes_of_its_pairs() {
    let pairs = vec![(3, 8), (8, 3), (4, 9), (4, 7)];
    let noisy = corrupted(NoiseKind::Pairwise { rate: 0.5, pairs: pairs.clone() }, 1).unwrap();
    let before = labels();
    let allowed = |y: u32, given: u32| y == given || pairs.contains(&(y as usize, given as usize));
    assert!(before.iter().zip(&noisy).all(|(y, given)| allowed(*y, *given)));
    for (from, to, rate) in [(3, 8, 0.5), (4, 9, 0.25), (4, 7, 0.25)] {
        let pairs = before.iter().zip(&noisy).filter(|(y, given)| **y == from && **given == to);
        assert_share(pairs.count() as f64 / 2_000.0, rate, 2_000);
    }
}

#[test]
fn a_matrix_gives_the_law_of_the_given_label() {
    let folder = Folder::new();
    // Class 0 stays with 0.7, becomes 9 with 0.3; class 1 always becomes 0; the others stay.
    let mut rows = vec!["0.7,0,0,0,0,0,0,0,0,0.3".to_string(), "1,0,0,0,0,0,0,0,0,0".to_string()];
    rows.extend((2..CLASSES).map(|class| {
        let row: Vec<&str> = (0..CLASSES).map(|k| if k == class { "1" } else { "0" }).collect();
        row.join(",")
    }));
    let file = folder.write("matrix.csv", rows.join("\n"));
    let noisy = corrupted(NoiseKind::Matrix { file }, 1).unwrap();
    let of = |class: u32| -> Vec<u32> {
        let pairs = labels().into_iter().zip(&noisy);
        pairs.filter(|(y, _)| *y == class).map(|(_, given)| *given).collect()
    };
    let nines = of(0).iter().filter(|given| **given == 9).count();
    assert_share(nines as f64 / 2_000.0, 0.3, 2_000);
    assert!(of(0).iter().all(|given| [0, 9].contains(given)));
    assert!(of(1).iter().all(|given| *given == 0));
    assert!((2..CLASSES as u32).all(|class| of(class).iter().all(|given| *given == class)));
}

fn matrix_refused(content: &str) -> String {
    let folder = Folder::new();
    let file = folder.write("matrix.csv", content);
    let inputs = Inputs::in_memory(vec![0.0; 2], InputShape::Features(1));
    let noise = LabelNoise { seed: 0, kind: NoiseKind::Matrix { file } };
    noise::corrupt(&[0, 1], 2, &Ids::Rows(2), &inputs, &noise).unwrap_err().to_string()
}

#[test]
fn a_matrix_of_another_size_is_refused() {
    let message = matrix_refused("1,0,0\n0,1,0\n0,0,1\n");
    assert!(message.contains("[2, 2]") && message.contains("[3, 3]"), "{message}");
}

#[test]
fn a_matrix_whose_rows_do_not_sum_to_one_is_refused_with_the_row() {
    let message = matrix_refused("0.9,0.1\n0.2,0.7\n");
    assert!(message.contains("row 1 sums to 0.9"), "{message}");
}

#[test]
fn a_matrix_with_a_negative_or_missing_entry_is_refused_with_its_place() {
    for row in ["-0.5,1.5", ",1.0"] {
        let message = matrix_refused(&format!("0.9,0.1\n{row}\n"));
        assert!(message.contains("row 1, column 0"), "{message}");
    }
}

#[test]
fn a_matrix_of_words_is_refused() {
    assert!(matrix_refused("a,b\nc,d\n").contains("numbers"));
}

#[test]
fn a_rate_beyond_one_is_refused() {
    for rate in [-0.1, 1.5, f64::NAN] {
        let message = corrupted(NoiseKind::Symmetric { rate }, 0).unwrap_err().to_string();
        assert!(message.contains("data.noise.rate") && message.contains("0 to 1"), "{message}");
    }
}

#[test]
fn pairs_that_name_no_class_or_one_class_twice_are_refused() {
    for (pairs, words) in [
        (vec![(0, 10)], "classes are 0 to 9"),
        (vec![(4, 4)], "itself"),
        (vec![(1, 2), (1, 2)], "twice"),
    ] {
        let kind = NoiseKind::Pairwise { rate: 0.1, pairs };
        let message = corrupted(kind, 0).unwrap_err().to_string();
        assert!(message.contains("data.noise.pairs") && message.contains(words), "{message}");
    }
}

#[test]
fn the_seed_decides() {
    let kind = NoiseKind::Symmetric { rate: 0.2 };
    assert_eq!(corrupted(kind.clone(), 1).unwrap(), corrupted(kind.clone(), 1).unwrap());
    let other = corrupted(kind.clone(), 2).unwrap();
    let both = corrupted(kind, 1)
        .unwrap()
        .iter()
        .zip(&labels())
        .zip(&other)
        .filter(|((first, before), second)| first != before && second != before)
        .count();
    assert_share(both as f64 / EXAMPLES as f64, 0.04, EXAMPLES);
}

/// Digits with ids of their own, in the order of `rows`.
fn digits_in_order(rows: &[usize], kind: NoiseKind) -> Vec<u32> {
    let opened = digits::open().unwrap();
    let labels = opened.labels.as_ref().unwrap().classes().unwrap().to_vec();
    let mut values = vec![0.0; rows.len() * 64];
    for (out, row) in values.chunks_exact_mut(64).zip(rows) {
        opened.inputs.read(*row, out).unwrap();
    }
    let shape = opened.inputs.shape();
    let ids = Ids::named(rows.iter().map(|row| format!("digit {row}")).collect(), "ids").unwrap();
    let labels: Vec<u32> = rows.iter().map(|row| labels[*row]).collect();
    let noise = LabelNoise { seed: 5, kind };
    noise::corrupt(&labels, 10, &ids, &Inputs::in_memory(values, shape), &noise).unwrap()
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let forward: Vec<usize> = (0..digits::EXAMPLES).collect();
    let backward: Vec<usize> = forward.iter().rev().copied().collect();
    for kind in [
        NoiseKind::Symmetric { rate: 0.3 },
        NoiseKind::SymmetricInclusive { rate: 0.3 },
        NoiseKind::Pairwise { rate: 0.3, pairs: vec![] },
        NoiseKind::Instance { rate: 0.3 },
        latent(),
    ] {
        let mut reversed = digits_in_order(&backward, kind.clone());
        reversed.reverse();
        assert_eq!(digits_in_order(&forward, kind.clone()), reversed, "{kind:?}");
    }
}

#[test]
fn other_examples_change_nothing_where_no_model_of_classes_is_fitted() {
    let all: Vec<usize> = (0..digits::EXAMPLES).collect();
    for kind in [NoiseKind::Symmetric { rate: 0.3 }, latent()] {
        let half = digits_in_order(&all[900..], kind.clone());
        assert_eq!(digits_in_order(&all, kind)[900..], half);
    }
}

fn latent() -> NoiseKind {
    let covariances = vec![(3, 8, -2.0), (8, 5, 1.0)];
    NoiseKind::Latent { margin: 2.0, scale: 0.5, law: NoiseLaw::Normal, covariances }
}

#[test]
fn impossible_latent_models_are_refused() {
    for (margin, scale, pair, word) in [
        (f64::NAN, 1.0, (0, 1, 1.0), "data.noise.margin"),
        (1.0, -1.0, (0, 1, 1.0), "data.noise.scale"),
        (1.0, 1.0, (0, 10, 1.0), "(0, 10, 1)"),
        (1.0, 1.0, (3, 3, 1.0), "(3, 3, 1)"),
        (1.0, 1.0, (3, 4, f64::INFINITY), "finite covariance"),
    ] {
        let (law, covariances) = (NoiseLaw::Gumbel, vec![pair]);
        let kind = NoiseKind::Latent { margin, scale, law, covariances };
        let message = corrupted(kind, 0).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
}

/// Two classes that touch (0 and 1) and one far away (2), on a line.
fn three_on_a_line() -> (Vec<u32>, Inputs) {
    let labels: Vec<u32> = (0..9_000).map(|row| row % 3).collect();
    let centre = [0.0, 2.0, 8.0];
    // Evenly spread ±1.5 around the centre of the class.
    let spread = |row: usize| ((row * 7_919) % 9_000) as f32 / 3_000.0 - 1.5;
    let place = |(row, label): (usize, &u32)| centre[*label as usize] + spread(row);
    let values = labels.iter().enumerate().map(place).collect();
    (labels, Inputs::in_memory(values, InputShape::Features(1)))
}

fn instance_noise(labels: &[u32], inputs: &Inputs, classes: usize, rate: f64) -> Vec<u32> {
    let noise = LabelNoise { seed: 2, kind: NoiseKind::Instance { rate } };
    noise::corrupt(labels, classes, &Ids::Rows(labels.len()), inputs, &noise).unwrap()
}

#[test]
fn instance_noise_flips_at_its_rate() {
    let opened = digits::open().unwrap();
    let labels = opened.labels.as_ref().unwrap().classes().unwrap().to_vec();
    for rate in [0.1, 0.3, 0.6] {
        let noisy = instance_noise(&labels, &opened.inputs, 10, rate);
        // Unequal probabilities vary less than equal ones, so the bound holds.
        assert_share(changed(&labels, &noisy), rate, labels.len());
    }
}

#[test]
fn instance_noise_flips_the_hard_examples_and_toward_the_class_beside_them() {
    let (labels, inputs) = three_on_a_line();
    let noisy = instance_noise(&labels, &inputs, 3, 0.2);
    let flipped = |belongs: &dyn Fn(u32, f32) -> bool| {
        let mut place = [0.0];
        let (mut flipped, mut all) = (0.0, 0.0);
        for (row, label) in labels.iter().enumerate() {
            inputs.read(row, &mut place).unwrap();
            if belongs(*label, place[0]) {
                flipped += f64::from(u8::from(noisy[row] != *label));
                all += 1.0;
            }
        }
        flipped / all
    };
    // Between the classes that touch; on their outer sides; and of the class far away.
    let between = flipped(&|label, place| label < 2 && (place - 1.0).abs() < 0.5);
    let outside = flipped(&|label, place| label < 2 && (place - 1.0).abs() > 1.5);
    let away = flipped(&|label, _| label == 2);
    assert!(between > 1.5 * outside, "{between} between, {outside} outside");
    assert!(outside > 2.0 * away, "{outside} outside, {away} away");
    let count = |from: u32, to: u32| {
        labels.iter().zip(&noisy).filter(|(y, given)| **y == from && **given == to).count()
    };
    assert!(count(0, 1) > 5 * count(0, 2), "{} and {}", count(0, 1), count(0, 2));
    assert!(count(1, 0) > 2 * count(1, 2), "{} and {}", count(1, 0), count(1, 2));
}

/// The pairs that people confuse too: 1–8, 3–9, 5–9, 8–9.
#[test]
fn instance_noise_confuses_the_digits_that_look_alike() {
    let opened = digits::open().unwrap();
    let labels = opened.labels.as_ref().unwrap().classes().unwrap().to_vec();
    let noisy = instance_noise(&labels, &opened.inputs, 10, 0.4);
    let most = |class: u32| {
        let count = |to: u32| {
            labels.iter().zip(&noisy).filter(|(y, given)| **y == class && **given == to).count()
        };
        (0..10).filter(|to| *to != class).max_by_key(|to| count(*to)).unwrap()
    };
    assert_eq!((most(1), most(8), most(3), most(5)), (8, 1, 9, 9));
}

#[test]
fn instance_noise_without_any_difference_between_inputs_is_symmetric() {
    let noisy = corrupted(NoiseKind::Instance { rate: 0.3 }, 0).unwrap();
    assert_share(changed(&labels(), &noisy), 0.3, EXAMPLES);
}

#[test]
fn instance_noise_never_gives_a_class_without_examples() {
    let (labels, inputs) = three_on_a_line();
    let noisy = instance_noise(&labels, &inputs, 5, 0.5);
    assert!(noisy.iter().all(|given| *given < 3));
}

#[test]
fn instance_noise_of_one_class_is_refused() {
    let inputs = Inputs::in_memory(vec![0.0, 1.0], InputShape::Features(1));
    let noise = LabelNoise { seed: 0, kind: NoiseKind::Instance { rate: 0.5 } };
    let message = noise::corrupt(&[1, 1], 2, &Ids::Rows(2), &inputs, &noise).unwrap_err();
    assert!(message.to_string().contains("two classes"), "{message}");
}
