//! The references of each class: centres of the features of its examples, by k-means.

use std::ops::Range;

use aleator_layers::dense::{self, DenseShape};

/// References of all classes, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct References {
    /// [M, D].
    pub rows: Vec<f32>,
    /// D.
    pub width: usize,
    /// Where the references of each class begin, and where the last ones end, `[K + 1]`.
    offsets: Vec<usize>,
}

/// Rounds of k-means at most.
const ROUNDS: usize = 50;

impl References {
    /// At most `count` references of each class. A class of so few examples has them for references,
    /// and one without examples has none. `words` gives random words for a class.
    pub fn find<W: Iterator<Item = u64>>(
        features: &[f32],
        labels: &[u32],
        classes: usize,
        count: usize,
        words: impl Fn(usize) -> W,
    ) -> Self {
        let width = features.len() / labels.len();
        let mut found = Self { rows: vec![], width, offsets: vec![0] };
        for class in 0..classes {
            let examples = (0..labels.len()).filter(|row| labels[*row] as usize == class);
            let rows: Vec<f32> =
                examples.flat_map(|row| &features[row * width..][..width]).copied().collect();
            let points = Points { rows, width };
            found.rows.extend(points.centres(count, words(class)));
            found.offsets.push(found.rows.len() / width);
        }
        found
    }

    /// Which rows are those of a class.
    pub fn of(&self, class: usize) -> Range<usize> {
        self.offsets[class]..self.offsets[class + 1]
    }
}

/// The features of the examples of one class, [n, D].
struct Points {
    rows: Vec<f32>,
    width: usize,
}

impl Points {
    fn len(&self) -> usize {
        self.rows.len() / self.width
    }

    fn row(&self, at: usize) -> &[f32] {
        &self.rows[at * self.width..][..self.width]
    }

    /// Centres by k-means, [min(count, n), D].
    fn centres(&self, count: usize, words: impl Iterator<Item = u64>) -> Vec<f32> {
        if self.len() <= count {
            return self.rows.clone();
        }
        let mut centres = self.first_centres(count, words);
        let mut nearest = self.nearest(&centres);
        for _ in 0..ROUNDS {
            self.move_centres(&mut centres, &nearest);
            let next = self.nearest(&centres);
            if next == nearest {
                break;
            }
            nearest = next;
        }
        centres
    }

    /// k-means++: each next centre is a point, drawn by its square distance to the nearest so far.
    fn first_centres(&self, count: usize, mut words: impl Iterator<Item = u64>) -> Vec<f32> {
        let mut unit = || (words.next().expect("endless") >> 11) as f64 / (1u64 << 53) as f64;
        let mut squares = vec![f64::INFINITY; self.len()];
        let mut chosen = (unit() * self.len() as f64) as usize;
        let mut centres = self.row(chosen).to_vec();
        for _ in 1..count {
            for (at, square) in squares.iter_mut().enumerate() {
                *square = square.min(square_distance(self.row(at), self.row(chosen)));
            }
            let mut left = unit() * squares.iter().sum::<f64>();
            let drawn = squares.iter().position(|square| {
                left -= square;
                left < 0.0
            });
            // Where all points are centres already, any will do.
            chosen = drawn.unwrap_or(0);
            centres.extend(self.row(chosen));
        }
        centres
    }

    /// The nearest centre of each point; of equally near ones the first.
    fn nearest(&self, centres: &[f32]) -> Vec<usize> {
        let (count, width) = (centres.len() / self.width, self.width);
        let mut columns = vec![0.0; centres.len()];
        let mut half_squares = vec![0.0; count];
        for (centre, row) in centres.chunks_exact(width).enumerate() {
            row.iter().enumerate().for_each(|(at, value)| columns[at * count + centre] = *value);
            half_squares[centre] = -0.5 * row.iter().map(|value| value * value).sum::<f32>();
        }
        let mut products = vec![0.0; self.len() * count];
        let shape = DenseShape { batch: self.len(), inputs: width, outputs: count };
        // x · c − ‖c‖²/2 is largest where ‖x − c‖² is smallest.
        dense::forward(&self.rows, &columns, Some(&half_squares), &mut products, shape);
        let largest = |row: &[f32]| {
            let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
            (1..count).fold(0, better)
        };
        products.chunks_exact(count).map(largest).collect()
    }

    /// Each centre becomes the mean of the points nearest to it; one that has none stays.
    fn move_centres(&self, centres: &mut [f32], nearest: &[usize]) {
        let mut sums = vec![0.0f64; centres.len()];
        let mut counts = vec![0usize; centres.len() / self.width];
        for (at, centre) in nearest.iter().enumerate() {
            counts[*centre] += 1;
            let sum = &mut sums[centre * self.width..][..self.width];
            sum.iter_mut().zip(self.row(at)).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let rows = centres.chunks_exact_mut(self.width).zip(sums.chunks_exact(self.width));
        for ((centre, sum), count) in rows.zip(counts).filter(|(_, count)| *count > 0) {
            let means = sum.iter().map(|sum| (sum / count as f64) as f32);
            centre.iter_mut().zip(means).for_each(|(value, mean)| *value = mean);
        }
    }
}

fn square_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b) * (a - b))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aleator_kernels::split_mix;

    #[test]
    fn centres_are_the_means_of_separate_groups() {
        // Two classes, the examples in turn; class 0 has groups around (0, 0), (10, 0) and (0, 10).
        let places = [[0.0f32, 0.0], [10.0, 0.0], [0.0, 10.0]];
        let offsets = [[0.5f32, 0.0], [-0.5, 0.0], [0.0, 0.25], [0.0, -0.25]];
        let (mut features, mut labels) = (vec![], vec![]);
        for (at, place) in places.iter().cycle().take(12).enumerate() {
            let offset = offsets[at / 3];
            features.extend([place[0] + offset[0], place[1] + offset[1]]);
            features.extend([7.0, at as f32]);
            labels.extend([0, 1]);
        }
        let find = |seed: u64| {
            References::find(&features, &labels, 3, 3, |class| split_mix(seed + class as u64))
        };
        for seed in 0..5 {
            let found = find(seed);
            let mut centres: Vec<Vec<f32>> =
                found.of(0).map(|row| found.rows[2 * row..][..2].to_vec()).collect();
            centres.sort_by(|a, b| a.partial_cmp(b).unwrap());
            assert_eq!(centres, [[0.0, 0.0], [0.0, 10.0], [10.0, 0.0]], "seed {seed}");
            assert_eq!((found.of(1).len(), found.of(2).len()), (3, 0));
            assert_eq!(found, find(seed));
        }
    }

    #[test]
    fn few_examples_are_their_own_references_and_equal_ones_do_no_harm() {
        let found = References::find(&[1.0, 2.0], &[0, 0], 1, 4, |_| split_mix(1));
        assert_eq!(found.rows, [1.0, 2.0]);
        let found = References::find(&[3.0; 8], &[0; 8], 1, 2, |_| split_mix(1));
        assert_eq!(found.rows, [3.0, 3.0]);
    }
}
