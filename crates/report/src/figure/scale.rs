//! From numbers to positions, with ticks at round numbers.

use crate::number;

/// Maps a range of numbers to a range of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    from: (f64, f64),
    to: (f64, f64),
}

impl Scale {
    /// Exactly between two numbers.
    pub fn new(from: (f64, f64), to: (f64, f64)) -> Self {
        // An empty range would divide by zero.
        let high = if from.1 > from.0 { from.1 } else { from.0 + 1.0 };
        Self { from: (from.0, high), to }
    }

    /// A range that holds all values and ends at ticks.
    pub fn nice(values: impl Iterator<Item = f64>, to: (f64, f64)) -> Self {
        let mut range = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            range = (range.0.min(value), range.1.max(value));
        }
        if range.0 > range.1 {
            range = (0.0, 1.0);
        }
        if range.0 == range.1 {
            let around = if range.0 == 0.0 { 1.0 } else { range.0.abs() / 2.0 };
            range = (range.0 - around, range.1 + around);
        }
        let step = tick_step(range.1 - range.0, TICKS);
        let low = (range.0 / step).floor() * step;
        let high = (range.1 / step).ceil() * step;
        Self::new((low, high), to)
    }

    pub fn place(&self, value: f64) -> f64 {
        let share = (value - self.from.0) / (self.from.1 - self.from.0);
        self.to.0 + share * (self.to.1 - self.to.0)
    }

    /// Round numbers in the range, with their labels.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let step = tick_step(self.from.1 - self.from.0, about);
        let digits = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
        let first = (self.from.0 / step - 1e-9).ceil() as i64;
        let last = (self.from.1 / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|at| at as f64 * step)
            .map(|value| (value, number::fixed(value, digits)))
            .collect()
    }
}

/// The approximate number of ticks on an axis.
const TICKS: usize = 5;

/// 1, 2 or 5 times a power of ten.
fn tick_step(range: f64, about: usize) -> f64 {
    let raw = range / about as f64;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|step| *step >= raw);
    step.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> Vec<String> {
        scale.ticks(5).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let scale = Scale::nice([0.13, 0.87].into_iter(), (0.0, 100.0));
        assert_eq!(labels(scale), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let scale = Scale::nice([1.0, 510.0].into_iter(), (0.0, 100.0));
        assert_eq!(labels(scale), ["0", "200", "400", "600"]);
        assert_eq!(scale.place(300.0), 50.0);
    }

    #[test]
    fn any_numbers_make_a_scale() {
        for values in [vec![], vec![0.0], vec![-3.0, -3.0], vec![f64::NAN, f64::INFINITY, 1.0]] {
            let scale = Scale::nice(values.into_iter(), (10.0, 0.0));
            assert!(scale.place(1.0).is_finite());
            assert!((2..=12).contains(&scale.ticks(5).len()));
        }
        assert!(Scale::nice([1e-300, 2e-300].into_iter(), (0.0, 1.0)).ticks(5).len() < 12);
    }
}
