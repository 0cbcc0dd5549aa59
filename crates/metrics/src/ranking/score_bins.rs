//! Average precision in bounded memory: counts of scores in bins.

use std::ops::AddAssign;

/// A number that is known to lie within `error` of `value`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounded {
    pub value: f64,
    /// 0 where the value is exact.
    pub error: f64,
}

/// Relevant and irrelevant items by their scores, which are logarithms of probabilities.
///
/// A bin is the exponent and the first bits of the mantissa of a score: `bits` of them, so that its
/// scores differ by less than one part in 2^`bits`, and [`FEWER`] of a score above −1, where an
/// exponent stands for fewer probabilities. Only exponents that occur take memory, a count for each
/// of their bins. The order of items in one bin is forgotten, which bounds the error of
/// [`average_precision`](Self::average_precision).
#[derive(Clone, Debug)]
pub(super) struct ScoreBins<C> {
    bits: u32,
    /// One more than the place of the bins of each exponent in `counts`, in units of the smallest
    /// number of bins; 0 where no score has it.
    places: [u16; EXPONENTS],
    /// Relevant and irrelevant items of each bin.
    counts: Vec<[C; 2]>,
}

const EXPONENTS: usize = 1 << 8;
const MANTISSA: u32 = 23;

/// The exponent of 1, which scores of −1 to −2 have.
const ONE: usize = 127;

/// Bits that bins of scores above −1 have less.
const FEWER: u32 = 3;

impl<C: Copy + Default + AddAssign + From<u8> + Into<u64>> ScoreBins<C> {
    pub fn new(bits: u32) -> Self {
        assert!((FEWER..=MANTISSA).contains(&bits), "{bits} bits of {MANTISSA}");
        Self { bits, places: [0; EXPONENTS], counts: vec![] }
    }

    pub fn add(&mut self, score: f32, relevant: bool) {
        // Rounding may have lifted a certain item above 0. Larger bits are lower scores.
        let key = if score >= 0.0 { 0 } else { (-score).to_bits() };
        let exponent = (key >> MANTISSA) as usize;
        if self.places[exponent] == 0 {
            self.open(exponent);
        }
        let bits = self.bits_of(exponent);
        let within = (key >> (MANTISSA - bits)) as usize & ((1 << bits) - 1);
        let bin = self.start(self.places[exponent]) + within;
        self.counts[bin][usize::from(!relevant)] += C::from(1);
    }

    fn bits_of(&self, exponent: usize) -> u32 {
        if exponent < ONE { self.bits - FEWER } else { self.bits }
    }

    /// Where the bins of a place begin.
    fn start(&self, place: u16) -> usize {
        usize::from(place - 1) << (self.bits - FEWER)
    }

    fn open(&mut self, exponent: usize) {
        let (used, size) = (self.counts.len(), 1 << self.bits_of(exponent));
        self.counts.reserve_exact(size);
        self.counts.resize(used + size, [C::default(); 2]);
        self.places[exponent] = (used >> (self.bits - FEWER)) as u16 + 1;
    }

    /// Relevant and irrelevant items of each bin that has any, the highest scores first.
    fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let used = self.places.iter().enumerate().filter(|(_, place)| **place > 0);
        let bins = used.flat_map(|(exponent, place)| {
            let start = self.start(*place);
            &self.counts[start..start + (1 << self.bits_of(exponent))]
        });
        bins.map(|[relevant, irrelevant]| ((*relevant).into(), (*irrelevant).into()))
            .filter(|(relevant, irrelevant)| relevant + irrelevant > 0)
    }

    /// [`average_precision`](super::average_precision) of the items; `None` if none is relevant.
    ///
    /// In a bin of p relevant and n irrelevant items, before which `found` relevant ones and `seen`
    /// items stand, a relevant item has a precision of at most (found + p) / (seen + p): all
    /// relevant ones tie before the others. The precisions are lowest where no two items tie and
    /// the irrelevant ones stand first: (found + i) / (seen + n + i), i from 1 to p. The value is the
    /// middle between the two sums, the error half of their distance.
    pub fn average_precision(&self) -> Option<Bounded> {
        let (mut found, mut seen) = (0, 0);
        let (mut low, mut high) = (0.0, 0.0);
        for (relevant, irrelevant) in self.bins() {
            let ratio = |a: u64, b: u64| a as f64 / b as f64;
            let in_turn = (1..=relevant).map(|at| ratio(found + at, seen + irrelevant + at));
            low += in_turn.sum::<f64>();
            if relevant > 0 {
                high += relevant as f64 * ratio(found + relevant, seen + relevant);
            }
            found += relevant;
            seen += relevant + irrelevant;
        }
        let share = |sum: f64| sum / found as f64;
        (found > 0).then(|| Bounded {
            value: share(f64::midpoint(low, high)),
            error: share((high - low) / 2.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::average_precision;
    use super::*;

    /// A number below `n`, from a linear congruential generator.
    fn draw(state: &mut u64, n: u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) % n
    }

    fn items(seed: u64, count: usize) -> Vec<(f32, bool)> {
        let mut state = seed;
        let mut item = |_| {
            let relevant = draw(&mut state, 20) == 0;
            let logit =
                draw(&mut state, 1 << 20) as f32 / 65536.0 - if relevant { 8.0 } else { 11.0 };
            (-(-logit).exp().ln_1p(), relevant)
        };
        (0..count).map(&mut item).collect()
    }

    #[test]
    fn the_exact_value_lies_within_the_error_which_finer_bins_make_smaller() {
        for seed in 0..5 {
            let items = items(seed, 20_000);
            let (scores, relevant): (Vec<f32>, Vec<bool>) = items.iter().copied().unzip();
            let exact = average_precision(&scores, &relevant).unwrap();
            let mut last = f64::INFINITY;
            for bits in [4, 8, 12, 17] {
                let mut bins = ScoreBins::<u32>::new(bits);
                items.iter().for_each(|(score, relevant)| bins.add(*score, *relevant));
                let Bounded { value, error } = bins.average_precision().unwrap();
                assert!((value - exact).abs() <= error, "{bits} bits: {value} ± {error}, {exact}");
                assert!(error < last / 4.0, "{bits} bits: ± {error} after ± {last}");
                last = error;
            }
            assert!(last < 1e-3, "± {last}");
        }
    }

    #[test]
    fn extremes_are_counted_and_distinct_scores_are_exact() {
        let mut bins = ScoreBins::<u64>::new(17);
        assert_eq!(bins.average_precision(), None);
        for (score, relevant) in
            [(5e-4, true), (-1e-30, false), (-2.0, true), (f32::NEG_INFINITY, false)]
        {
            bins.add(score, relevant);
        }
        let expected = (1.0 + 2.0 / 3.0) / 2.0;
        assert_eq!(bins.average_precision(), Some(Bounded { value: expected, error: 0.0 }));
        // Items with one score: the share of relevant ones is within the error.
        let mut same = ScoreBins::<u64>::new(17);
        (0..10).for_each(|at| same.add(-1.0, at % 2 == 0));
        let Bounded { value, error } = same.average_precision().unwrap();
        assert!((value - 0.5).abs() <= error, "{value} ± {error}");
    }
}
