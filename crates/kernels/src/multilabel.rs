//! The sigmoid link: each class is on or off independently, given the utilities.
//!
//! Marginals are exact, by [`probit`](crate::probit), and depend on the variances alone. The joint
//! likelihood of all labels, joint probabilities of a label set, the most probable set and conditional probabilities given
//! some labels depend on the correlations and are sampled. Sampled marginals exist for comparison.

mod exact;
mod joint;
mod sampled;
mod sets;

pub use exact::{backward, log_probs, loss_and_grad};
pub use joint::{joint_log_probs, joint_loss_and_grad};
pub use sampled::{
    Conditional, Joint, choice_probs, conditional, joint_log_prob, predictive_variance,
    sampled_backward, sampled_log_probs,
};
pub use sets::{LabelSet, most_probable_set};

/// log p_c and log(1 − p_c), [B, K] each.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbs {
    /// log p_c.
    pub on: Vec<f32>,
    /// log(1 − p_c).
    pub off: Vec<f32>,
}
