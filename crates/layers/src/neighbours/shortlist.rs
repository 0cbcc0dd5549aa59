//! The best candidates of a point, kept while scores come in.

use pulp::{Simd, WithSimd};

/// The candidates with the largest scores so far, and some that are not sorted out yet.
pub(super) struct Shortlist {
    kept: usize,
    /// What a candidate must exceed.
    threshold: f32,
    pub best: Vec<(f32, u32)>,
}

impl Shortlist {
    pub fn new(kept: usize) -> Self {
        Self { kept, threshold: f32::NEG_INFINITY, best: Vec::with_capacity(2 * kept) }
    }

    /// Offers some members but the point itself.
    #[inline(always)]
    fn offer(&mut self, query: u32, members: &[u32], scores: &[f32]) {
        for (member, score) in members.iter().zip(scores) {
            if *score > self.threshold && *member != query {
                self.best.push((*score, *member));
                if self.best.len() == 2 * self.kept {
                    self.sort_out();
                }
            }
        }
    }

    /// Leaves the best ones; of equally good ones the first.
    fn sort_out(&mut self) {
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        self.best.select_nth_unstable_by(self.kept - 1, order);
        self.best.truncate(self.kept);
        self.threshold = self.best[self.kept - 1].0;
    }
}

/// Offers a chunk to the lists of some points, each with its scores.
pub(super) struct Offers<'a, I> {
    pub members: &'a [u32],
    pub rows: I,
}

impl<'a, I: Iterator<Item = (u32, &'a mut Shortlist, &'a [f32])>> WithSimd for Offers<'_, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { members, rows } = self;
        for (query, list, scores) in rows {
            let (vectors, _) = S::as_simd_f32s(scores);
            let (fours, _) = vectors.as_chunks::<4>();
            let mut at = 0;
            for four in fours {
                // Few candidates are good enough, so most are dismissed many at a time.
                let threshold = simd.splat_f32s(list.threshold);
                let above = four.map(|scores| simd.greater_than_f32s(scores, threshold));
                let any = simd
                    .or_m32s(simd.or_m32s(above[0], above[1]), simd.or_m32s(above[2], above[3]));
                if simd.first_true_m32s(any) < S::F32_LANES {
                    for (vector, above) in above.into_iter().enumerate() {
                        if simd.first_true_m32s(above) < S::F32_LANES {
                            let own = at + vector * S::F32_LANES..at + (vector + 1) * S::F32_LANES;
                            list.offer(query, &members[own.clone()], &scores[own]);
                        }
                    }
                }
                at += 4 * S::F32_LANES;
            }
            list.offer(query, &members[at..], &scores[at..]);
        }
    }
}
