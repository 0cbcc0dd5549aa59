//! Average precision in bounded memory: counts of scores in bins.

use std::ops::AddAssign;

/// A number that is known to lie within `error` of `value`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounded {
    pub value: f64,
    /// 0 where the value is exact.
    pub error: f64,
}

/// Relevant and irrelevant items of each of some classes by their scores, which are logarithms of
/// probabilities.
///
/// A bin is the exponent and the first bits of the mantissa of a score: `bits` of them, so that its
/// scores differ by less than one part in 2^`bits`, and [`FEWER`] of a score above −1, where an
/// exponent stands for fewer probabilities. Only exponents that occur take memory, two counts for
/// each class and bin, in one piece: pieces of single classes that grow one by one lie between the
/// buffers of an evaluation and keep the system from using their memory again. The order of items in
/// one bin is forgotten, which bounds the error of [`average_precision`](Self::average_precision).
#[derive(Clone, Debug)]
pub(super) struct ScoreBins<C> {
    bits: u32,
    classes: usize,
    /// Relevant and irrelevant items of each class and bin, by exponents; empty where no score has
    /// the exponent.
    counts: Vec<Vec<[C; 2]>>,
}

const EXPONENTS: usize = 1 << 8;
const MANTISSA: u32 = 23;

/// The exponent of 1, which scores of −1 to −2 have.
const ONE: usize = 127;

/// Bits that bins of scores above −1 have less.
const FEWER: u32 = 3;

impl<C: Copy + Default + AddAssign + From<u8> + Into<u64>> ScoreBins<C> {
    pub fn new(bits: u32, classes: usize) -> Self {
        assert!((FEWER..=MANTISSA).contains(&bits), "{bits} bits of {MANTISSA}");
        Self { bits, classes, counts: vec![vec![]; EXPONENTS] }
    }

    pub fn add(&mut self, class: usize, score: f32, relevant: bool) {
        // Rounding may have lifted a certain item above 0. Larger bits are lower scores.
        let key = if score >= 0.0 { 0 } else { (-score).to_bits() };
        let exponent = (key >> MANTISSA) as usize;
        let bits = self.bits_of(exponent);
        let counts = &mut self.counts[exponent];
        if counts.is_empty() {
            *counts = vec![[C::default(); 2]; self.classes << bits];
        }
        let within = (key >> (MANTISSA - bits)) as usize & ((1 << bits) - 1);
        counts[(class << bits) + within][usize::from(!relevant)] += C::from(1);
    }

    fn bits_of(&self, exponent: usize) -> u32 {
        if exponent < ONE { self.bits - FEWER } else { self.bits }
    }

    /// Relevant and irrelevant items of each bin of a class that has any, the highest scores first.
    fn bins(&self, class: usize) -> impl Iterator<Item = (u64, u64)> {
        let used = self.counts.iter().enumerate().filter(|(_, counts)| !counts.is_empty());
        let bins = used.flat_map(move |(exponent, counts)| {
            let bits = self.bits_of(exponent);
            &counts[class << bits..(class + 1) << bits]
        });
        bins.map(|[relevant, irrelevant]| ((*relevant).into(), (*irrelevant).into()))
            .filter(|(relevant, irrelevant)| relevant + irrelevant > 0)
    }

    /// [`average_precision`](super::average_precision) of the items of a class; `None` if none is
    /// relevant.
    ///
    /// In a bin of p relevant and n irrelevant items, before which `found` relevant ones and `seen`
    /// items stand, a relevant item has a precision of at most (found + p) / (seen + p): all
    /// relevant ones tie before the others. The precisions are lowest where no two items tie and
    /// the irrelevant ones stand first: (found + i) / (seen + n + i), i from 1 to p. The value is the
    /// middle between the two sums, the error half of their distance.
    pub fn average_precision(&self, class: usize) -> Option<Bounded> {
        let (mut found, mut seen) = (0, 0);
        let (mut low, mut high) = (0.0, 0.0);
        for (relevant, irrelevant) in self.bins(class) {
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
                let mut bins = ScoreBins::<u32>::new(bits, 1);
                items.iter().for_each(|(score, relevant)| bins.add(0, *score, *relevant));
                let Bounded { value, error } = bins.average_precision(0).unwrap();
                assert!((value - exact).abs() <= error, "{bits} bits: {value} ± {error}, {exact}");
                assert!(error < last / 4.0, "{bits} bits: ± {error} after ± {last}");
                last = error;
            }
            assert!(last < 1e-3, "± {last}");
        }
    }

    #[test]
    fn extremes_are_counted_and_distinct_scores_are_exact() {
        let mut bins = ScoreBins::<u64>::new(17, 1);
        assert_eq!(bins.average_precision(0), None);
        for (score, relevant) in
            [(5e-4, true), (-1e-30, false), (-2.0, true), (f32::NEG_INFINITY, false)]
        {
            bins.add(0, score, relevant);
        }
        let expected = (1.0 + 2.0 / 3.0) / 2.0;
        assert_eq!(bins.average_precision(0), Some(Bounded { value: expected, error: 0.0 }));
        // Items with one score: the share of relevant ones is within the error.
        let mut same = ScoreBins::<u64>::new(17, 1);
        (0..10).for_each(|at| same.add(0, -1.0, at % 2 == 0));
        let Bounded { value, error } = same.average_precision(0).unwrap();
        assert!((value - 0.5).abs() <= error, "{value} ± {error}");
    }

    /// Classes do not see each other, and memory depends on the exponents of all of them alone.
    #[test]
    fn classes_share_the_memory_of_an_exponent() {
        const CLASSES: usize = 40;
        let mut all = ScoreBins::<u32>::new(8, CLASSES);
        for class in 0..CLASSES {
            let mut own = ScoreBins::<u32>::new(8, 1);
            for (score, relevant) in items(class as u64, 300) {
                all.add(class, score, relevant);
                own.add(0, score, relevant);
            }
            assert_eq!(all.average_precision(class), own.average_precision(0));
        }
        let held = |bins: &ScoreBins<u32>| bins.counts.iter().map(Vec::capacity).sum::<usize>();
        let open = |range: std::ops::Range<usize>| {
            all.counts[range].iter().filter(|counts| !counts.is_empty()).count()
        };
        let (above, below) = (open(0..ONE), open(ONE..EXPONENTS));
        assert!(above > 5 && below > 3, "{above} exponents above -1, {below} below");
        assert_eq!(held(&all), CLASSES * ((above << 5) + (below << 8)));
    }
}
