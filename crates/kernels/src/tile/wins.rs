//! Which class has the largest utility, in both layouts.

use pulp::Simd;

use crate::simd::{LANES, Wide};

/// One for the lanes that are the largest of their sample, zero for the others.
#[inline(always)]
fn is_largest<S: Simd, const N: usize>(
    simd: S,
    utility: Wide<S, N>,
    largest: Wide<S, N>,
) -> Wide<S, N> {
    utility.sub(largest).negative_or(Wide::splat(simd, 0.0), Wide::splat(simd, 1.0))
}

/// With samples in lanes: `tile` is [classes, stride], `largest` and `valid` are [stride].
#[inline(always)]
pub(super) fn of_sample_lanes<S: Simd, const N: usize>(
    simd: S,
    (tile, stride): (&[f32], usize),
    (largest, valid): (&[f32], &[f32]),
    share: &mut [f32],
    wins: &mut [f32],
) {
    for lane in (0..stride).step_by(LANES) {
        let largest = Wide::<S, N>::load(simd, &largest[lane..]);
        let mut ties = Wide::splat(simd, 0.0);
        for class in tile.chunks_exact(stride).take(wins.len()) {
            ties = ties.add(is_largest(simd, Wide::load(simd, &class[lane..]), largest));
        }
        Wide::load(simd, &valid[lane..]).div(ties).store(&mut share[lane..]);
    }
    for (class, wins) in tile.chunks_exact(stride).zip(wins) {
        let mut sum = Wide::<S, N>::splat(simd, 0.0);
        for lane in (0..stride).step_by(LANES) {
            let utility = Wide::load(simd, &class[lane..]);
            let won = is_largest(simd, utility, Wide::load(simd, &largest[lane..]));
            sum = won.mul_add(Wide::load(simd, &share[lane..]), sum);
        }
        *wins += sum.sum();
    }
}

/// With classes in lanes: `tile` is [groups, rows, 16], `largest` is [samples].
#[inline(always)]
pub(super) fn of_class_lanes<S: Simd, const N: usize>(
    simd: S,
    (tile, rows): (&[f32], usize),
    largest: &[f32],
    share: &mut [f32],
    wins: &mut [f32],
) {
    let share = &mut share[..largest.len()];
    for (row, (largest, share)) in largest.iter().zip(&mut *share).enumerate() {
        let largest = Wide::<S, N>::splat(simd, *largest);
        let mut ties = Wide::splat(simd, 0.0);
        for group in tile.chunks_exact(rows * LANES).take(wins.len() / LANES) {
            ties = ties.add(is_largest(simd, Wide::load(simd, &group[row * LANES..]), largest));
        }
        *share = 1.0 / ties.sum();
    }
    let groups = tile.chunks_exact(rows * LANES);
    for (group, wins) in groups.zip(wins.chunks_exact_mut(LANES)) {
        let mut sum = Wide::<S, N>::load(simd, wins);
        for (entry, (largest, share)) in group.chunks_exact(LANES).zip(largest.iter().zip(&*share))
        {
            let won = is_largest(simd, Wide::load(simd, entry), Wide::splat(simd, *largest));
            sum = won.mul_add(Wide::splat(simd, *share), sum);
        }
        sum.store(wins);
    }
}
