//! A part of the data held out, chosen by id.

use aleator_run::recipe::HeldOut;

use crate::draws::{self, Purpose};
use crate::error::DataError;
use crate::ids::Ids;

/// Which examples are held out, and which remain, both ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The examples to measure on.
    pub held_out: Vec<usize>,
    /// The examples to train on.
    pub rest: Vec<usize>,
}

/// Holds out round(`fraction` · N) of `candidates`, N being all of `ids`: those whose
/// hash(`seed`, id) is smallest. So the choice does not depend on the order of rows, and a larger
/// fraction holds out the same examples and more.
///
/// ```
/// use aleator_data::{Ids, split};
///
/// let ids = Ids::Rows(100);
/// let all: Vec<usize> = (0..100).collect();
/// let parts = split::hold_out(&all, 0.1, 0, &ids, "data.validation")?;
/// assert_eq!((parts.held_out.len(), parts.rest.len()), (10, 90));
/// # Ok::<(), aleator_data::DataError>(())
/// ```
///
/// # Errors
/// When nothing would be held out, or nothing would remain; `name` is the split's in the message.
pub fn hold_out(
    candidates: &[usize],
    fraction: f64,
    seed: u64,
    ids: &Ids,
    name: &str,
) -> Result<Parts, DataError> {
    hold_out_of(ids.len(), candidates, fraction, seed, ids, name)
}

/// Holds out this fraction of `all` examples.
fn hold_out_of(
    all: usize,
    candidates: &[usize],
    fraction: f64,
    seed: u64,
    ids: &Ids,
    name: &str,
) -> Result<Parts, DataError> {
    let refuse = |message: String| Err(DataError::invalid(name, message));
    if !(fraction > 0.0 && fraction < 1.0) {
        return refuse(format!("fraction must be above 0 and below 1, is {fraction}"));
    }
    let left = candidates.len();
    let count = (fraction * all as f64).round() as usize;
    if count == 0 {
        return refuse(format!("{fraction} of {all} examples is none; raise the fraction"));
    }
    if count >= left {
        return refuse(format!(
            "{fraction} of {all} examples is {count}, which leaves none of {left} to train on; \
             lower the fraction"
        ));
    }
    Ok(first(count, candidates, seed, Purpose::HoldOut, ids))
}

/// The `count` of `candidates` whose hash(`seed`, id) is smallest, and the others.
fn first(count: usize, candidates: &[usize], seed: u64, purpose: Purpose, ids: &Ids) -> Parts {
    let mut ranked: Vec<(u64, u64, usize)> = candidates
        .iter()
        .map(|index| {
            let key = ids.key(*index);
            (draws::word(seed, purpose, &[key]), key, *index)
        })
        .collect();
    ranked.sort_unstable();
    let ascending = |part: &[(u64, u64, usize)]| {
        let mut examples: Vec<usize> = part.iter().map(|(_, _, index)| *index).collect();
        examples.sort_unstable();
        examples
    };
    Parts { held_out: ascending(&ranked[..count]), rest: ascending(&ranked[count..]) }
}

fn check_fold(parts: &Parts, folds: usize, name: &str) -> Result<(), DataError> {
    if !parts.held_out.is_empty() && !parts.rest.is_empty() {
        return Ok(());
    }
    let examples = parts.held_out.len() + parts.rest.len();
    let message = format!("{examples} examples cannot be divided into {folds} folds; use fewer");
    Err(DataError::invalid(name, message))
}

/// One of `folds` parts, each with about as many examples of every stratum.
fn fold_of(ids: &Ids, strata: &[u32], (fold, folds): (usize, usize), seed: u64) -> Parts {
    let mut ranked: Vec<(u32, u64, u64, usize)> = (0..ids.len())
        .map(|index| {
            let key = ids.key(index);
            (strata[index], draws::word(seed, Purpose::HoldOut, &[key]), key, index)
        })
        .collect();
    ranked.sort_unstable();
    let (mut held_out, mut rest) = (vec![], vec![]);
    for (place, (_, _, _, index)) in ranked.into_iter().enumerate() {
        if place % folds == fold { &mut held_out } else { &mut rest }.push(index);
    }
    held_out.sort_unstable();
    rest.sort_unstable();
    Parts { held_out, rest }
}

/// The examples of each split of one source, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// The examples to train on.
    pub train: Vec<usize>,
    /// Empty when validation has its own source.
    pub validation: Vec<usize>,
    /// Empty when there is no test split, or it has its own source.
    pub test: Vec<usize>,
}

/// Divides a source: the test part first, so that it stays the same when the validation part
/// changes, then `limit` of the others, then validation from those. A fold has
/// about as many examples of each of the `strata`, `[N]`.
///
/// # Errors
/// As [`hold_out`].
pub fn divide(
    ids: &Ids,
    strata: &[u32],
    validation: &HeldOut,
    test: Option<&HeldOut>,
    limit: Option<usize>,
) -> Result<Division, DataError> {
    let part = |all, candidates: Vec<usize>, held_out: Option<&HeldOut>, name| match held_out {
        Some(HeldOut::Fraction { fraction, seed }) => {
            hold_out_of(all, &candidates, *fraction, *seed, ids, name)
        }
        Some(HeldOut::Fold { fold, folds, seed }) => {
            let parts = fold_of(ids, strata, (*fold, *folds), *seed);
            check_fold(&parts, *folds, name).map(|()| parts)
        }
        Some(HeldOut::Source(_)) | None => Ok(Parts { held_out: vec![], rest: candidates }),
    };
    let test = part(ids.len(), (0..ids.len()).collect(), test, "data.test")?;
    let (all, rest) = match limit {
        // The same examples for every seed of training, so that runs can be compared.
        Some(limit) if limit < test.rest.len() => {
            (limit, first(limit, &test.rest, 0, Purpose::Limit, ids).held_out)
        }
        _ => (ids.len(), test.rest),
    };
    let validation = part(all, rest, Some(validation), "data.validation")?;
    Ok(Division { train: validation.rest, validation: validation.held_out, test: test.held_out })
}
