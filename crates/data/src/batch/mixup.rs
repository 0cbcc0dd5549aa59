//! Mixup (Zhang et al. 2018): each example becomes mostly itself and partly the next one.

use aleator_run::recipe::Annotations;

use super::Targets;
use crate::dataset::Split;
use crate::labels::Labels;

/// Mixes the inputs, in place, and the targets of a batch with those of the next example, the last
/// with the first; targets become weights of all classes. Nothing happens where the recipe does
/// not ask for it, or to a single example.
pub(super) fn mix(
    split: &Split,
    keys: &[u64],
    seed: u64,
    epoch: usize,
    inputs: &mut [f32],
    targets: Targets,
) -> Targets {
    let own_share = |key: &u64| split.augment.as_ref()?.own_share(seed, epoch, *key);
    let shares: Option<Vec<f64>> = keys.iter().map(own_share).collect();
    let Some(shares) = shares.filter(|shares| shares.len() > 1) else { return targets };
    mix_rows(inputs, &shares);
    let mut dense = match targets {
        Targets::Dense(dense) => dense,
        Targets::Classes(classes) => {
            let mut dense = vec![0.0; classes.len() * split.classes];
            for (row, class) in dense.chunks_exact_mut(split.classes).zip(classes) {
                row[class as usize] = 1.0;
            }
            dense
        }
    };
    mix_rows(&mut dense, &shares);
    let counts_annotations = matches!(split.labels, Labels::Annotations(_));
    if counts_annotations && split.annotations == Annotations::Each {
        // Examples have as much weight as annotations; that of the batch stays as it was.
        let sum: f64 = dense.iter().map(|weight| f64::from(*weight)).sum();
        let scale = keys.len() as f64 / sum;
        dense.iter_mut().for_each(|weight| *weight = (f64::from(*weight) * scale) as f32);
    }
    Targets::Dense(dense)
}

/// Row i becomes `shares[i]` of itself and the rest of the next row, the last of the first.
fn mix_rows(rows: &mut [f32], shares: &[f64]) {
    let width = rows.len() / shares.len();
    let first = rows[..width].to_vec();
    for (index, share) in shares.iter().enumerate() {
        let (row, after) = rows[index * width..].split_at_mut(width);
        let next = if after.is_empty() { &first } else { &after[..width] };
        let (share, rest) = (*share as f32, (1.0 - share) as f32);
        for (own, other) in row.iter_mut().zip(next) {
            *own = share * *own + rest * other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_mixed_with_the_next_as_it_was() {
        let mut rows = [1.0, 10.0, 2.0, 20.0, 4.0, 40.0];
        mix_rows(&mut rows, &[1.0, 0.5, 0.75]);
        assert_eq!(rows, [1.0, 10.0, 3.0, 30.0, 3.25, 32.5]);
    }
}
