//! `--checkpoint STEP`, of all commands that use the weights of a trained run.

use clap::Args;

/// Which weights of a run to use.
#[derive(Args, Clone, Copy, Debug)]
pub struct CheckpointArg {
    /// Use the weights of this step, as in checkpoints/step-00000900, in place of those that the
    /// run was evaluated with; everything that is printed or written then names the step
    #[arg(long = "checkpoint", value_name = "STEP")]
    pub step: Option<usize>,
}
