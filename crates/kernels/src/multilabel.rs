//! The sigmoid link: each class is on or off by itself.
//!
//! Marginals are exact, by [`probit`](crate::probit). What needs the correlations, the joint
//! probability of a label set and the conditional given some labels, is sampled; so are the
//! marginals where someone wants to compare.

mod exact;
mod sampled;

pub use exact::{backward, log_probs, loss_and_grad};
pub use sampled::{
    Joint, conditional_log_probs, joint_log_prob, predictive_variance, sampled_backward,
    sampled_log_probs,
};

/// log p_c and log(1 − p_c), [B, K] each.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbs {
    /// log p_c.
    pub on: Vec<f32>,
    /// log(1 − p_c).
    pub off: Vec<f32>,
}
