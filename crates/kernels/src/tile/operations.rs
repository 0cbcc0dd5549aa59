//! Each step of a tile as an operation that is compiled for every kind of vector.
//!
//! The steps are long enough for the cost of a call not to matter. If they were inlined instead, they
//! would be compiled again for each caller.

use pulp::Simd;

use super::{Deviations, LogMean, Moments, Tile};
use crate::simd::Vectorised;

macro_rules! operation {
    ($name:ident, $method:ident, $tile:ty $(, $field:ident: $type:ty)*) => {
        #[doc = concat!("[`Tile::", stringify!($method), "`].")]
        pub(crate) struct $name<'a, T> {
            pub tile: $tile,
            $(pub $field: $type,)*
        }

        impl<T: Tile> Vectorised for $name<'_, T> {
            type Output = ();

            #[inline(always)]
            fn run<S: Simd, const N: usize>(self, simd: S) {
                self.tile.$method::<S, N>(simd $(, self.$field)*);
            }
        }
    };
}

operation!(Utilities, utilities, &'a mut T);
operation!(Exponentiate, exponentiate, &'a mut T, maximum: &'a mut [f32], sum: &'a mut [f32]);
operation!(LogSumExp, log_sum_exp, &'a T, rows: &'a mut [f32]);
operation!(Accumulate, accumulate, &'a mut T, weights: &'a [f32], moments: &'a mut Moments);
operation!(LabelSlopes, label_slopes, &'a mut T, labels: &'a [f32], rows: &'a mut [f32]);
operation!(AddLogMean, log_mean, &'a T, lse: &'a [f32], mean: &'a mut LogMean);
operation!(AddDeviations, deviations, &'a T, lse: &'a [f32], out: &'a mut Deviations);
operation!(AddWins, wins, &'a T, rows: (&'a mut [f32], &'a mut [f32]), wins: &'a mut [f32]);
operation!(
    Backpropagate,
    backpropagate,
    &'a mut T,
    lse: &'a [f32],
    log2_probs: &'a [f32],
    upstream: &'a [f32]
);
