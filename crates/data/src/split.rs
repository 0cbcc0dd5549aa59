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

/// Holds out round(`fraction` · `all`) of `candidates`: those whose hash(`seed`, id) is smallest.
/// So the choice does not depend on the order of rows, and a larger fraction holds out the same
/// examples and more.
///
/// ```
/// use aleator_data::{Ids, split};
///
/// let ids = Ids::Rows(100);
/// let rows: Vec<usize> = (0..100).collect();
/// let parts = split::hold_out(100, &rows, 0.1, 0, &ids, "data.validation")?;
/// assert_eq!((parts.held_out.len(), parts.rest.len()), (10, 90));
/// # Ok::<(), aleator_data::DataError>(())
/// ```
///
/// # Errors
/// When nothing would be held out, or nothing would remain; `name` is the split's in the message.
pub fn hold_out(
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
    Ok(Parts::first_held_out(candidates, count, seed, ids))
}

/// Holds out `count` of `candidates`, by the rule of [`hold_out`].
fn hold_out_count(
    candidates: &[usize],
    count: usize,
    seed: u64,
    ids: &Ids,
    name: &str,
) -> Result<Parts, DataError> {
    let left = candidates.len();
    if count >= left {
        return Err(DataError::invalid(
            name,
            format!(
                "count = {count} leaves none of {left} examples to train on; lower {name}.count"
            ),
        ));
    }
    Ok(Parts::first_held_out(candidates, count, seed, ids))
}

impl Parts {
    /// Holds out the `count` examples whose hash(`seed`, id) is smallest.
    fn first_held_out(candidates: &[usize], count: usize, seed: u64, ids: &Ids) -> Self {
        Self::ranked(candidates, (seed, Purpose::HoldOut), ids, |_| 0, |rank| rank < count)
    }

    /// Ranks examples by stratum, then by hash(`seed`, purpose, id), and holds out some ranks.
    fn ranked(
        candidates: &[usize],
        (seed, purpose): (u64, Purpose),
        ids: &Ids,
        stratum: impl Fn(usize) -> u32,
        is_held_out: impl Fn(usize) -> bool,
    ) -> Self {
        let key = |example: &usize| {
            let key = ids.key(*example);
            (stratum(*example), draws::word(seed, purpose, &[key]), key, *example)
        };
        let mut ranked: Vec<(u32, u64, u64, usize)> = candidates.iter().map(key).collect();
        ranked.sort_unstable();
        let (mut held_out, mut rest) = (vec![], vec![]);
        for (rank, (.., example)) in ranked.into_iter().enumerate() {
            if is_held_out(rank) { &mut held_out } else { &mut rest }.push(example);
        }
        held_out.sort_unstable();
        rest.sort_unstable();
        Self { held_out, rest }
    }
}

/// One of some equal parts, with about as many examples of each stratum as every other.
pub(crate) fn fold(ids: &Ids, strata: &[u32], (fold, folds): (usize, usize), seed: u64) -> Parts {
    let all: Vec<usize> = (0..ids.len()).collect();
    let in_fold = |rank| rank % folds == fold;
    Parts::ranked(&all, (seed, Purpose::HoldOut), ids, |row| strata[row], in_fold)
}

/// Some of all examples, the same for every seed of training, so that runs can be compared.
pub(crate) fn sample(ids: &Ids, most: usize) -> Vec<usize> {
    first(&(0..ids.len()).collect::<Vec<_>>(), most, ids)
}

fn first(candidates: &[usize], most: usize, ids: &Ids) -> Vec<usize> {
    Parts::ranked(candidates, (0, Purpose::Limit), ids, |_| 0, |rank| rank < most).held_out
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
    let rows: Vec<usize> = (0..ids.len()).collect();
    let part = |all, candidates: Vec<usize>, held_out: Option<&HeldOut>, name| match held_out {
        Some(HeldOut::Fraction { fraction, seed }) => {
            hold_out(all, &candidates, *fraction, *seed, ids, name)
        }
        Some(HeldOut::Count { count, seed }) => {
            hold_out_count(&candidates, *count, *seed, ids, name)
        }
        Some(HeldOut::Fold { fold, folds, seed }) => {
            let parts = self::fold(ids, strata, (*fold, *folds), *seed);
            if parts.held_out.is_empty() || parts.rest.is_empty() {
                let count = rows.len();
                let message =
                    format!("{count} examples cannot be divided into {folds} folds; use fewer");
                return Err(DataError::invalid(name, message));
            }
            Ok(parts)
        }
        Some(HeldOut::Source(_)) | None => Ok(Parts { held_out: vec![], rest: candidates }),
    };
    let test = part(ids.len(), rows.clone(), test, "data.test")?;
    let (all, rest) = match limit {
        Some(limit) if limit < test.rest.len() => (limit, first(&test.rest, limit, ids)),
        _ => (ids.len(), test.rest),
    };
    let validation = part(all, rest, Some(validation), "data.validation")?;
    Ok(Division { train: validation.rest, validation: validation.held_out, test: test.held_out })
}
