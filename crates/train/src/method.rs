//! Training methods: how the labels of a batch become a step.
//!
//! A method is one file that the one loop calls. It sees a part of a batch and the state, and says
//! what the part adds to the step; the loop, checkpoints, logs and evaluation do not know which
//! method runs. What it keeps from step to step are tensors in [`State::memory`] and further
//! networks in [`State::networks`], which checkpoints save and restore by name.
//!
//! | module | method |
//! |---|---|
//! | `plain` | the likelihood of the given labels |
//! | `bootstrapping`, `label_smoothing`, `gce` | other targets, or another function of the label's probability |
//! | `forward_correction` | a matrix from true to given classes |
//! | `data_parameters` | temperatures of classes and of examples |
//! | `elr`, `sop` | what is remembered or learned of each example |
//! | `cores` | a reward of confidence, and a sieve |
//! | `har` | a penalty by class |
//! | `mentornet`, `curriculumnet` | weights by the loss, or by the density of features |
//! | `cleannet` | weights by what verified examples teach of the features |
//! | `co_teaching` | two networks that choose examples for each other |
//! | `dividemix` | two networks that divide the examples for each other; `mixture` is how |
//! | `mixup`, `mentormix` | examples that are mixed; `mixing` is what they share |
//! | `dynamics` | plain training that keeps its predictions |
//! | `example_loss` | what those have in common that are functions of log-probabilities |
//! | `views` | two views of every example |
//! | `verified`, `adam` | the verified examples, and what moves the small networks that learn from them |
//! | `survey` | what a model predicts for a whole split, for methods that ask between epochs |

mod adam;
mod bootstrapping;
mod cleannet;
mod co_teaching;
mod cores;
mod curriculumnet;
mod data_parameters;
mod dividemix;
pub(crate) mod dynamics;
mod elr;
mod example_loss;
mod forward_correction;
mod gce;
mod har;
mod label_smoothing;
mod mentormix;
mod mentornet;
mod mixing;
mod mixture;
mod mixup;
mod plain;
mod sop;
mod survey;
#[cfg(test)]
mod tests;
mod verified;
mod views;

use aleator_data::{DataSet, SparseTargets, Views};
use aleator_model::Targets;
use aleator_run::recipe::{self, Recipe};

use crate::TrainError;
use crate::experiment::Shape;
use crate::state::State;
use crate::step::{Contribution, Part};

use bootstrapping::Bootstrapping;
use cleannet::CleanNet;
use co_teaching::CoTeaching;
use cores::Cores;
use curriculumnet::CurriculumNet;
use data_parameters::DataParameters;
use dividemix::DivideMix;
use dynamics::Dynamics;
use elr::Elr;
use forward_correction::ForwardCorrection;
use gce::Gce;
use har::Har;
use label_smoothing::LabelSmoothing;
use mentormix::MentorMix;
use mentornet::MentorNet;
use mixup::Mixup;
use plain::Plain;
use sop::Sop;
pub(crate) use survey::Survey;

/// What a training method decides.
pub(crate) trait Method {
    /// Refuses data that the method cannot be used with, before a run is made.
    ///
    /// # Errors
    /// When they do not fit, or a file of the method's settings cannot be read.
    fn check(&self, data: &DataSet) -> Result<(), TrainError> {
        let _ = data;
        Ok(())
    }

    /// How many views of each example the parts of its steps hold.
    fn views(&self) -> Views {
        Views::One
    }

    /// Prepares a fresh state: further networks, and tensors by name, as large as those of a
    /// checkpoint.
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let _ = (state, start);
    }

    /// Completes a fresh state by what is known of the data; a resumed one has it from its
    /// checkpoint.
    ///
    /// # Errors
    /// When a file of the method's settings cannot be read.
    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        let _ = (state, survey);
        Ok(())
    }

    /// Changes the state before the first step of an epoch. It must depend on nothing but its
    /// arguments, and doing it twice must be the same as doing it once: a run that ends before the
    /// next step repeats it.
    ///
    /// # Errors
    /// When inputs cannot be read, or predictions are not finite.
    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        let _ = (state, epoch, survey);
        Ok(())
    }

    /// What a part adds to its step. It must depend on nothing but its arguments: a part may be
    /// computed by any process.
    ///
    /// # Errors
    /// The rows of the examples whose utilities are not finite.
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>>;

    /// Updates the state by the sum over all parts.
    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        update_networks(state, &sum, rate);
    }
}

/// What a fresh state is prepared for.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub recipe: &'a Recipe,
    pub seed: u64,
    /// N, of the training split.
    pub examples: usize,
    pub shape: Shape,
}

/// Moves every network by its gradients.
pub(crate) fn update_networks(state: &mut State, sum: &Contribution, rate: f64) {
    let networks = state.networks.iter_mut().zip(&sum.networks);
    networks.for_each(|(network, gradients)| network.update(gradients, sum.loss, rate));
}

/// The method of a recipe.
pub(crate) fn of(recipe: &Recipe) -> Box<dyn Method> {
    match recipe.method.clone() {
        recipe::Method::Plain => Box::new(Plain),
        recipe::Method::Bootstrapping { bootstrapping } => Box::new(Bootstrapping(bootstrapping)),
        recipe::Method::Dynamics { dynamics } => Box::new(Dynamics(dynamics)),
        recipe::Method::LabelSmoothing { label_smoothing } => {
            Box::new(LabelSmoothing(label_smoothing))
        }
        recipe::Method::Gce { gce } => Box::new(Gce(gce)),
        recipe::Method::ForwardCorrection { forward_correction } => {
            Box::new(ForwardCorrection(forward_correction))
        }
        recipe::Method::DataParameters { data_parameters } => {
            Box::new(DataParameters(data_parameters))
        }
        recipe::Method::Elr { elr } => Box::new(Elr(elr)),
        recipe::Method::Sop { sop } => Box::new(Sop(sop)),
        recipe::Method::Cores { cores } => Box::new(Cores(cores)),
        recipe::Method::Har { har } => Box::new(Har(har)),
        recipe::Method::Mixup { mixup } => Box::new(Mixup(mixup)),
        recipe::Method::MentorNet { mentornet: settings } => {
            Box::new(MentorNet { settings, epochs: recipe.schedule.epochs })
        }
        recipe::Method::MentorMix { mentormix } => Box::new(MentorMix(mentormix)),
        recipe::Method::CurriculumNet { curriculumnet } => Box::new(CurriculumNet(curriculumnet)),
        recipe::Method::CleanNet { cleannet } => Box::new(CleanNet(cleannet)),
        recipe::Method::DivideMix { dividemix } => Box::new(DivideMix(dividemix)),
        recipe::Method::CoTeaching { co_teaching } => Box::new(CoTeaching(co_teaching)),
    }
}

/// The given classes of an example with their weights.
pub(crate) fn given(targets: &aleator_data::Targets, example: usize) -> Vec<(usize, f64)> {
    match targets {
        aleator_data::Targets::Classes(classes) => vec![(classes[example] as usize, 1.0)],
        aleator_data::Targets::Sparse(rows) => {
            let wide = |(class, weight): (u32, f32)| (class as usize, f64::from(weight));
            rows.row(example).map(wide).collect()
        }
    }
}

/// Sparse targets as the likelihood takes them.
pub(crate) fn view(rows: &SparseTargets) -> Targets<'_> {
    Targets::Sparse { offsets: &rows.offsets, classes: &rows.classes, probs: &rows.weights }
}
