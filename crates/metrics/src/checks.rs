//! Checks of arguments, shared by all functions. A violation is a bug of the caller.

/// Rounding can lift the logarithm of a probability near 1 above 0, but never by this much.
/// Logits that are passed by mistake exceed it.
const ROUNDING: f32 = 1e-3;

/// The number of rows, `N`, of a matrix with `len` values and `classes` columns.
pub(crate) fn examples(name: &str, len: usize, classes: usize) -> usize {
    assert!(classes > 0, "classes is 0, expected at least 1");
    assert!(len > 0, "{name} contains no examples");
    assert!(
        len.is_multiple_of(classes),
        "{name} must be [N, K]: {len} values cannot be divided into rows of {classes} classes"
    );
    len / classes
}

pub(crate) fn same_shape(name: &str, len: usize, expected: usize) {
    assert_eq!(len, expected, "{name} has {len} values, expected {expected}");
}

/// Logarithms of probabilities; `−∞` is allowed.
pub(crate) fn logarithms(name: &str, values: &[f32]) {
    let wrong = |value: &f32| value.is_nan() || *value > ROUNDING;
    if let Some(at) = values.iter().position(wrong) {
        panic!("{name}[{at}] is {}, expected the logarithm of a probability", values[at]);
    }
}

/// Rows of log-probabilities, each with at least one finite value. Returns `N`.
pub(crate) fn log_probs(values: &[f32], classes: usize) -> usize {
    let examples = examples("log_probs", values.len(), classes);
    logarithms("log_probs", values);
    let possible = |row: &[f32]| row.iter().any(|value| *value > f32::NEG_INFINITY);
    if let Some(row) = values.chunks(classes).position(|row| !possible(row)) {
        panic!("log_probs of example {row} are all −∞, expected at least one finite value");
    }
    examples
}

pub(crate) fn labels(labels: &[u32], examples: usize, classes: usize) {
    same_shape("labels", labels.len(), examples);
    self::classes("labels", labels, classes);
}

/// Indices of classes.
pub(crate) fn classes(name: &str, values: &[u32], classes: usize) {
    if let Some(at) = values.iter().position(|class| *class as usize >= classes) {
        panic!("{name}[{at}] is {}, expected a class below {classes}", values[at]);
    }
}

/// Soft targets: probabilities, `[N, K]`. The sums of the rows are not checked.
pub(crate) fn targets(targets: &[f32], expected: usize) {
    same_shape("targets", targets.len(), expected);
    let probability = |value: &f32| (0.0..=1.0 + ROUNDING).contains(value);
    if let Some(at) = targets.iter().position(|value| !probability(value)) {
        panic!("targets[{at}] is {}, expected a probability", targets[at]);
    }
}

/// `log p` and `log(1 − p)` of multilabel classes.
pub(crate) fn on_off(log_on: &[f32], log_off: &[f32]) {
    same_shape("log_off", log_off.len(), log_on.len());
    logarithms("log_on", log_on);
    logarithms("log_off", log_off);
    let impossible = |(on, off): (&f32, &f32)| on.max(*off) == f32::NEG_INFINITY;
    if let Some(at) = log_on.iter().zip(log_off).position(impossible) {
        panic!("log_on[{at}] and log_off[{at}] are both −∞, expected at least one finite value");
    }
}
