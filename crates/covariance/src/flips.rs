//! Rates of each pair of classes, averaged over the examples of the first.

use aleator_metrics::classification::argmax;
use aleator_run::Predictions;
use rayon::prelude::*;

/// A rate for each class, added up over the examples of each class.
#[derive(Clone, Debug)]
pub struct RateSums {
    classes: usize,
    examples: Vec<usize>,
    rates: Vec<f64>,
}

/// Examples whose rates are held together.
const TOGETHER: usize = 256;

impl RateSums {
    /// Of K classes; holds K² numbers.
    pub fn new(classes: usize) -> Self {
        Self { classes, examples: vec![0; classes], rates: vec![0.0; classes * classes] }
    }

    /// Adds an example of class `from`, with a rate for each class.
    pub fn add(&mut self, from: usize, rates: impl Iterator<Item = f64>) {
        self.examples[from] += 1;
        let sums = &mut self.rates[from * self.classes..(from + 1) * self.classes];
        sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate);
    }

    /// Adds an example of class `from` whose rate is 1 for one class and 0 for all others.
    pub fn add_one(&mut self, from: usize, to: usize) {
        self.examples[from] += 1;
        self.rates[from * self.classes + to] += 1.0;
    }

    /// Adds P(u_class > u_top) of each example and class, with `top` the class whose utility has the
    /// largest mean.
    pub fn add_flips(&mut self, predictions: &Predictions) {
        let classes = self.classes;
        let of_example = |(example, mean): (usize, &[f32])| {
            let top = argmax(mean);
            let flip = |class: usize| predictions.flip_probability(example, class, top);
            (top, (0..classes).map(flip).collect::<Vec<f64>>())
        };
        let means: Vec<(usize, &[f32])> =
            predictions.mean.chunks_exact(classes).enumerate().collect();
        for means in means.chunks(TOGETHER) {
            let found: Vec<(usize, Vec<f64>)> = means.par_iter().copied().map(of_example).collect();
            found.into_iter().for_each(|(top, rates)| self.add(top, rates.into_iter()));
        }
    }

    /// How many examples each class has, `[K]`.
    pub fn examples(&self) -> &[usize] {
        &self.examples
    }

    /// The sums, `[K, K]`.
    pub fn sums(&self) -> &[f64] {
        &self.rates
    }

    /// The mean rate of a pair; `None` without an example of `from`.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let examples = self.examples[from];
        (examples > 0).then(|| self.rates[from * self.classes + to] / examples as f64)
    }

    /// The mean rates, `[K, K]`: zero without an example, and on the diagonal.
    pub fn into_means(mut self) -> Vec<f64> {
        for (from, row) in self.rates.chunks_exact_mut(self.classes).enumerate() {
            let examples = self.examples[from].max(1) as f64;
            row.iter_mut().for_each(|rate| *rate /= examples);
            row[from] = 0.0;
        }
        self.rates
    }
}
