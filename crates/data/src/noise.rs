//! Labels made wrong on purpose, to measure what is learned from wrong labels.
//!
//! Whether and how a label changes is a hash of (seed, example id): it does not depend on the
//! order of rows nor on other examples, except that instance-dependent noise fits a simple model
//! of the classes to all of them. A higher rate flips the same examples and more.

mod instance;
mod latent;

use std::collections::BTreeSet;

use aleator_run::recipe::{LabelNoise, NoiseKind};

use crate::array::{Array, Values};
use crate::draws::{self, Purpose};
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::Inputs;

/// The labels after the corruption.
///
/// `labels`, `ids` and the rows of `inputs` are of the same examples, and labels are below
/// `classes`. Inputs matter for instance-dependent noise only.
///
/// ```
/// use aleator_data::{Ids, InputShape, Inputs, noise};
/// use aleator_run::recipe::{LabelNoise, NoiseKind};
///
/// let labels = vec![0; 1000];
/// let inputs = Inputs::in_memory(vec![0.0; 1000], InputShape::Features(1));
/// let quarter = LabelNoise { seed: 7, kind: NoiseKind::Symmetric { rate: 0.25 } };
/// let noisy = noise::corrupt(&labels, 10, &Ids::Rows(1000), &inputs, &quarter)?;
/// let wrong = noisy.iter().filter(|label| **label != 0).count();
/// assert!((200..300).contains(&wrong));
/// # Ok::<(), aleator_data::DataError>(())
/// ```
///
/// # Errors
/// When a rate is not from 0 to 1, a pair names a class that does not exist, a transition matrix
/// is not one, or inputs cannot be read.
///
/// # Panics
/// When the lengths differ or a label is not below `classes`.
pub fn corrupt(
    labels: &[u32],
    classes: usize,
    ids: &Ids,
    inputs: &Inputs,
    noise: &LabelNoise,
) -> Result<Vec<u32>, DataError> {
    assert_eq!(labels.len(), ids.len(), "one id for each label");
    assert_eq!(labels.len(), inputs.len(), "one input for each label");
    assert!(labels.iter().all(|label| (*label as usize) < classes), "labels below {classes}");
    if classes < 2 {
        return Err(DataError::invalid("data.noise", "needs at least two classes"));
    }
    let seed = noise.seed;
    let flips = |rate: f64, key: u64| draws::unit(seed, Purpose::Flip, &[key]) < rate;
    let one_of = |count: usize, key: u64| draws::below(count, seed, Purpose::Wrong, &[key]);
    let each = |given: &dyn Fn(u32, u64) -> u32| {
        let keyed = labels.iter().enumerate().map(|(index, label)| (*label, ids.key(index)));
        Ok(keyed.map(|(label, key)| given(label, key)).collect())
    };
    match &noise.kind {
        // Another class, all equally likely.
        NoiseKind::Symmetric { rate } => {
            let rate = check_rate(*rate)?;
            each(&|label, key| match flips(rate, key).then(|| one_of(classes - 1, key) as u32) {
                Some(other) if other < label => other,
                Some(other) => other + 1,
                None => label,
            })
        }
        // Any class, for exactly this share of the examples.
        NoiseKind::SymmetricInclusive { rate } => {
            let drawn = first_by_hash(ids, (check_rate(*rate)? * ids.len() as f64) as usize, seed);
            let given = |at: usize| match drawn[at] {
                true => one_of(classes, ids.key(at)) as u32,
                false => labels[at],
            };
            Ok((0..labels.len()).map(given).collect())
        }
        // One of the classes that the label is confused with, all equally likely.
        NoiseKind::Pairwise { rate, pairs } => {
            let (rate, confused) = (check_rate(*rate)?, confusions(classes, pairs)?);
            each(&|label, key| match &confused[label as usize] {
                others if !others.is_empty() && flips(rate, key) => {
                    others[one_of(others.len(), key)]
                }
                _ => label,
            })
        }
        NoiseKind::Matrix { file } => {
            let matrix = transition_matrix(file, classes)?;
            let cumulative: Vec<Vec<f64>> = matrix.into_iter().map(summed_up).collect();
            each(&|label, key| {
                let unit = draws::unit(seed, Purpose::Flip, &[key]);
                cumulative[label as usize].partition_point(|sum| *sum <= unit) as u32
            })
        }
        NoiseKind::Latent { margin, scale, law, covariances } => {
            let (margin, scale, law) = (*margin, *scale, *law);
            let model = latent::Model::new(margin, scale, law, covariances, classes)?;
            each(&|label, key| model.label(label as usize, seed, key) as u32)
        }
        NoiseKind::Instance { rate } => {
            instance::corrupt(labels, classes, ids, inputs, seed, check_rate(*rate)?)
        }
    }
}

/// Whether each example is among the `count` that a hash of seed and id puts first.
fn first_by_hash(ids: &Ids, count: usize, seed: u64) -> Vec<bool> {
    let word = |index: &usize| draws::word(seed, Purpose::Flip, &[ids.key(*index)]);
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|index| (word(index), ids.key(*index)));
    let mut first = vec![false; ids.len()];
    order[..count].iter().for_each(|index| first[*index] = true);
    first
}

fn check_rate(rate: f64) -> Result<f64, DataError> {
    if (0.0..=1.0).contains(&rate) {
        Ok(rate)
    } else {
        Err(DataError::invalid("data.noise.rate", format!("must be 0 to 1, is {rate}")))
    }
}

/// The classes that each class is confused with: the next one, or those of `pairs`.
fn confusions(classes: usize, pairs: &[(usize, usize)]) -> Result<Vec<Vec<u32>>, DataError> {
    if pairs.is_empty() {
        return Ok((0..classes).map(|class| vec![((class + 1) % classes) as u32]).collect());
    }
    let refuse = |message: String| Err(DataError::invalid("data.noise.pairs", message));
    let mut seen = BTreeSet::new();
    let mut confused = vec![vec![]; classes];
    for (from, to) in pairs {
        if from.max(to) >= &classes {
            return refuse(format!("({from}, {to}): classes are 0 to {}", classes - 1));
        }
        if from == to {
            return refuse(format!("({from}, {to}): a class cannot be taken for itself"));
        }
        if !seen.insert((from, to)) {
            return refuse(format!("({from}, {to}) stands there twice"));
        }
        confused[*from].push(*to as u32);
    }
    Ok(confused)
}

/// How far from 1 a row may sum: three decimals, as in files with rounded numbers.
const SUM_TOLERANCE: f64 = 1e-3;

/// The transition matrix in a `.npy` or CSV file: row k is the law of the given label when the true
/// one is k. Rows that sum to 1 within rounding are made to.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("matrix.csv");
/// # let file = file.to_str().unwrap();
/// std::fs::write(file, "0.75,0.25\n0.0,1.0\n")?;
/// let matrix = aleator_data::noise::transition_matrix(file, 2)?;
/// assert_eq!(matrix, [[0.75, 0.25], [0.0, 1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the file cannot be read, has another shape than [K, K], or has rows that are no laws.
pub fn transition_matrix(file: &str, classes: usize) -> Result<Vec<Vec<f64>>, DataError> {
    let array = Array::load(file)?;
    let refuse = |message: String| DataError::invalid(file, message);
    if array.shape != [classes, classes] {
        return Err(refuse(format!(
            "a transition matrix of {classes} classes has the shape [{classes}, {classes}], found \
             {:?}",
            array.shape
        )));
    }
    if matches!(array.values, Values::Text(_)) {
        return Err(refuse("a transition matrix holds numbers".into()));
    }
    let values: Vec<f64> = (0..array.values.len()).map(|at| array.values.float(at)).collect();
    let rows = values.chunks_exact(classes).enumerate();
    rows.map(|(row, probs)| law(row, probs).map_err(refuse)).collect()
}

fn law(row: usize, probs: &[f64]) -> Result<Vec<f64>, String> {
    if let Some(column) = probs.iter().position(|prob| !prob.is_finite() || *prob < 0.0) {
        let found = probs[column];
        return Err(format!("row {row}, column {column}: a probability cannot be {found}"));
    }
    let sum: f64 = probs.iter().sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(format!(
            "row {row} sums to {sum:.6}, not to 1; it is the law of the given label when \
             the true one is {row}"
        ));
    }
    Ok(probs.iter().map(|prob| prob / sum).collect())
}

/// The distribution function of a law.
fn summed_up(law: Vec<f64>) -> Vec<f64> {
    let last = law.iter().rposition(|prob| *prob > 0.0).unwrap_or(0);
    let mut running = 0.0;
    let sums = law.into_iter().enumerate().map(|(column, prob)| {
        running += prob;
        // Rounding must not leave a gap below 1 for a class of probability 0.
        if column < last { running } else { 1.0 }
    });
    sums.collect()
}
