//! The learning rate of each step.

use aleator_run::recipe::{self, Decay, WarmUp};

/// The learning rate as a function of the step, and how many steps there are.
///
/// ```
/// use aleator_run::recipe;
/// use aleator_train::Schedule;
///
/// let warm_up = recipe::WarmUp::Epochs(1.0);
/// let recipe = recipe::Schedule { epochs: 10, warm_up, decay: recipe::Decay::Cosine };
/// let schedule = Schedule::new(&recipe, 0.1, 100);
/// assert_eq!(schedule.total_steps(), 1000);
/// assert!(schedule.learning_rate(0) < schedule.learning_rate(50));
/// assert!(schedule.learning_rate(999) < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    recipe: recipe::Schedule,
    peak: f64,
    steps_per_epoch: usize,
    warm_up_steps: f64,
}

impl Schedule {
    /// A schedule with this learning rate at its height.
    pub fn new(schedule: &recipe::Schedule, peak: f64, steps_per_epoch: usize) -> Self {
        let warm_up_steps = match schedule.warm_up {
            WarmUp::Epochs(epochs) => epochs * steps_per_epoch as f64,
            WarmUp::Steps(steps) => steps as f64,
        };
        Self { recipe: schedule.clone(), peak, steps_per_epoch, warm_up_steps }
    }

    /// Steps of the whole run.
    pub fn total_steps(&self) -> usize {
        self.recipe.epochs * self.steps_per_epoch
    }

    /// Steps of one pass over the training data.
    pub fn steps_per_epoch(&self) -> usize {
        self.steps_per_epoch
    }

    /// The learning rate of a step, counted from 0. The first is above zero.
    pub fn learning_rate(&self, step: usize) -> f64 {
        let done = (step + 1) as f64;
        if done < self.warm_up_steps {
            return self.peak * done / self.warm_up_steps;
        }
        self.peak * self.decayed(step as f64)
    }

    fn decayed(&self, step: f64) -> f64 {
        match &self.recipe.decay {
            Decay::Constant => 1.0,
            Decay::Cosine => {
                let length = (self.total_steps() as f64 - self.warm_up_steps).max(1.0);
                let part = ((step - self.warm_up_steps).max(0.0) / length).min(1.0);
                0.5 * (1.0 + (std::f64::consts::PI * part).cos())
            }
            Decay::Steps { at, factor } => {
                let epoch = step / self.steps_per_epoch as f64;
                factor.powi(at.iter().filter(|drop| epoch >= **drop).count() as i32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(warm_up: f64, decay: Decay) -> Schedule {
        let warm_up = WarmUp::Epochs(warm_up);
        Schedule::new(&recipe::Schedule { epochs: 90, warm_up, decay }, 0.1, 10)
    }

    #[test]
    fn the_paper_s_steps_divide_by_ten_at_30_60_and_80_epochs() {
        let schedule = schedule(5.0, Decay::Steps { at: vec![30.0, 60.0, 80.0], factor: 0.1 });
        for (step, expected) in [(0, 0.002), (24, 0.05), (50, 0.1), (299, 0.1), (300, 0.01)] {
            assert!((schedule.learning_rate(step) - expected).abs() < 1e-15, "{step}");
        }
        assert!((schedule.learning_rate(899) - 1e-4).abs() < 1e-15);
        assert_eq!(schedule.total_steps(), 900);
    }

    #[test]
    fn a_cosine_falls_from_the_peak_through_its_half_to_almost_nothing() {
        let schedule = schedule(0.0, Decay::Cosine);
        assert_eq!(schedule.learning_rate(0), 0.1);
        assert!((schedule.learning_rate(450) - 0.05).abs() < 1e-15);
        assert!(schedule.learning_rate(899) < 1e-6);
        let rates: Vec<f64> = (0..900).map(|step| schedule.learning_rate(step)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]));
    }

    #[test]
    fn warm_up_meets_the_peak_and_may_be_part_of_an_epoch() {
        let schedule = schedule(0.5, Decay::Constant);
        let rates: Vec<f64> = (0..6).map(|step| schedule.learning_rate(step)).collect();
        for (rate, expected) in rates.iter().zip([0.02, 0.04, 0.06, 0.08, 0.1, 0.1]) {
            assert!((rate - expected).abs() < 1e-15, "{rates:?}");
        }
    }
}
