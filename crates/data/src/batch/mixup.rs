//! Mixup (Zhang et al. 2018): each example becomes mostly itself and partly the next one of its
//! step, the last one partly the first.

use super::SparseTargets;
use crate::dataset::Split;

/// How much of each example stays its own, where the recipe asks for mixup.
pub(super) fn shares(split: &Split, keys: &[u64], seed: u64, epoch: usize) -> Option<Vec<f64>> {
    let own_share = |key: &u64| split.augment.as_ref()?.own_share(seed, epoch, *key);
    keys.iter().map(own_share).collect()
}

/// Row i becomes `shares[i]` of itself and the rest of the next row. The row after the last one
/// follows it in `rows` and is removed; where none does, it is the first.
pub(super) fn mix_rows(rows: &mut Vec<f32>, shares: &[f64], width: usize) {
    if rows.len() == shares.len() * width {
        rows.extend_from_within(..width);
    }
    for (index, share) in shares.iter().enumerate() {
        let (row, after) = rows[index * width..].split_at_mut(width);
        let (share, rest) = (*share as f32, (1.0 - share) as f32);
        for (own, other) in row.iter_mut().zip(after) {
            *own = share * *own + rest * *other;
        }
    }
    rows.truncate(shares.len() * width);
}

/// [`mix_rows`] of targets.
pub(super) fn mix_targets(rows: &SparseTargets, shares: &[f64]) -> SparseTargets {
    let mix_row = |(index, share): (usize, &f64)| {
        let (share, rest) = (*share as f32, (1.0 - share) as f32);
        let mut own = rows.row(index).peekable();
        let mut other = rows.row((index + 1) % rows.len()).peekable();
        std::iter::from_fn(move || {
            let class = match (own.peek(), other.peek()) {
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((class, _)), None) | (None, Some((class, _))) => *class,
                (None, None) => return None,
            };
            let own = own.next_if(|(at, _)| *at == class).map_or(0.0, |(_, weight)| weight);
            let other = other.next_if(|(at, _)| *at == class).map_or(0.0, |(_, weight)| weight);
            Some((class, share * own + rest * other))
        })
    };
    shares.iter().enumerate().map(mix_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_mixed_with_the_next_as_it_was() {
        let rows = vec![1.0, 10.0, 2.0, 20.0, 4.0, 40.0];
        let shares = [1.0, 0.5, 0.75];
        let mixed = [1.0, 10.0, 3.0, 30.0, 3.25, 32.5];
        let mut whole = rows.clone();
        mix_rows(&mut whole, &shares, 2);
        assert_eq!(whole, mixed);
        // The first two rows as a part that knows the row after it.
        let mut part = rows;
        mix_rows(&mut part, &shares[..2], 2);
        assert_eq!(part, mixed[..4]);
    }

    #[test]
    fn targets_are_mixed_as_dense_rows_are_and_keep_no_zeros() {
        let dense = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.25, 0.0, 0.0, 0.75]];
        let mut sparse = SparseTargets::default();
        dense.iter().for_each(|row| sparse.push((0..4).zip(row.iter().copied())));
        let shares = [0.8, 1.0, 0.3];
        let mut rows = dense.concat();
        mix_rows(&mut rows, &shares, 4);
        let mixed = mix_targets(&sparse, &shares);
        for (index, expected) in rows.chunks_exact(4).enumerate() {
            let mut found = [0.0f32; 4];
            mixed.row(index).for_each(|(class, weight)| found[class as usize] = weight);
            assert_eq!(found, *expected);
        }
        assert_eq!(mixed.row(1).count(), 1);
    }
}
