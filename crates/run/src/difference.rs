//! Two utilities of one example: their difference, and which one is probably larger.

use aleator_metrics::probability_above_zero;

use crate::predictions::Predictions;

/// The Normal of u_i − u_j.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// μ_i − μ_j.
    pub mean: f64,
    /// Σ_ii + Σ_jj − 2 Σ_ij; parts of Σ that were not kept count as zero.
    pub variance: f64,
}

impl Predictions {
    /// The distribution of u_i − u_j for an example, which decides between the two classes.
    ///
    /// ```
    /// # use aleator_run::Predictions;
    /// # let predictions = Predictions {
    /// #     classes: 2, rank: 1, temperature: 1.0, log_probs: vec![-0.1, -2.3],
    /// #     log_probs_off: None, mean: vec![1.5, -0.5], diag_scale: Some(vec![0.1, 0.2]),
    /// #     loadings: Some(vec![1.0, -1.0]), loading_scale: None, shared_loadings: None,
    /// #     joint_log_probs: None,
    /// # };
    /// let difference = predictions.difference(0, 0, 1);
    /// assert_eq!(difference.mean, 2.0);
    /// assert!((difference.variance - (0.01 + 0.04 + 4.0)).abs() < 1e-6);
    /// ```
    ///
    /// # Panics
    /// When there is no such example or class.
    pub fn difference(&self, example: usize, i: usize, j: usize) -> Difference {
        let at = |values: &[f32], class: usize| values[example * self.classes + class] as f64;
        let own = self.diag_scale.as_deref().map_or(0.0, |diag| {
            if i == j { 0.0 } else { at(diag, i).powi(2) + at(diag, j).powi(2) }
        });
        let shared: f64 = (0..self.rank)
            .map(|factor| {
                (self.loading(example, i, factor) - self.loading(example, j, factor)).powi(2)
            })
            .sum();
        Difference { mean: at(&self.mean, i) - at(&self.mean, j), variance: own + shared }
    }

    /// P(u_class > u_top): how likely noise alone lifts one class above another.
    ///
    /// # Panics
    /// When there is no such example or class.
    pub fn flip_probability(&self, example: usize, class: usize, top: usize) -> f64 {
        let Difference { mean, variance } = self.difference(example, class, top);
        probability_above_zero(mean, variance)
    }

    /// V(x) of one class and factor.
    fn loading(&self, example: usize, class: usize, factor: usize) -> f64 {
        let row = example * self.classes + class;
        match (&self.loadings, &self.loading_scale, &self.shared_loadings) {
            (Some(loadings), _, _) => loadings[row * self.rank + factor] as f64,
            (None, Some(scale), Some(shared)) => {
                scale[row] as f64 * shared[class * self.rank + factor] as f64
            }
            _ => 0.0,
        }
    }
}
