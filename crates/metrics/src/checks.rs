//! What every function asks of its arguments. A violation is a mistake of the calling program.

/// Rounding may lift the logarithm of a probability near 1 above 0, but never by this much.
/// A logit that passes for a log-probability does.
const ROUNDING: f32 = 1e-3;

/// `N` of a matrix of `len` values in rows of `classes`.
pub(crate) fn examples(name: &str, len: usize, classes: usize) -> usize {
    assert!(classes > 0, "classes is 0, expected at least one");
    assert!(len > 0, "{name} holds no examples");
    assert!(
        len.is_multiple_of(classes),
        "{name} must be [N, K]: {len} values do not make rows of {classes} classes"
    );
    len / classes
}

pub(crate) fn same_shape(name: &str, len: usize, expected: usize) {
    assert_eq!(len, expected, "{name} has {len} values, expected {expected}, one for each");
}

/// Logarithms of probabilities; `−∞` is one of them.
pub(crate) fn logarithms(name: &str, values: &[f32]) {
    let wrong = |value: &f32| value.is_nan() || *value > ROUNDING;
    if let Some(at) = values.iter().position(wrong) {
        panic!("{name}[{at}] is {}, expected the logarithm of a probability", values[at]);
    }
}

/// Rows of log-probabilities, each with a class that is possible. Returns `N`.
pub(crate) fn log_probs(values: &[f32], classes: usize) -> usize {
    let examples = examples("log_probs", values.len(), classes);
    logarithms("log_probs", values);
    let possible = |row: &[f32]| row.iter().any(|value| *value > f32::NEG_INFINITY);
    if let Some(row) = values.chunks(classes).position(|row| !possible(row)) {
        panic!("log_probs of example {row} are all −∞, expected a class that is possible");
    }
    examples
}

pub(crate) fn labels(labels: &[u32], examples: usize, classes: usize) {
    same_shape("labels", labels.len(), examples);
    if let Some(at) = labels.iter().position(|label| *label as usize >= classes) {
        panic!("labels[{at}] is {}, expected a class below {classes}", labels[at]);
    }
}

/// Soft targets: probabilities, `[N, K]`. Their rows may sum to 1 as loosely as their file does.
pub(crate) fn targets(targets: &[f32], expected: usize) {
    same_shape("targets", targets.len(), expected);
    let probability = |value: &f32| (0.0..=1.0 + ROUNDING).contains(value);
    if let Some(at) = targets.iter().position(|value| !probability(value)) {
        panic!("targets[{at}] is {}, expected a probability", targets[at]);
    }
}

/// `log p` and `log(1 − p)` of classes that are each on or off.
pub(crate) fn on_off(log_on: &[f32], log_off: &[f32]) {
    same_shape("log_off", log_off.len(), log_on.len());
    logarithms("log_on", log_on);
    logarithms("log_off", log_off);
    let impossible = |(on, off): (&f32, &f32)| on.max(*off) == f32::NEG_INFINITY;
    if let Some(at) = log_on.iter().zip(log_off).position(impossible) {
        panic!("log_on[{at}] and log_off[{at}] are both −∞, expected one that is possible");
    }
}
