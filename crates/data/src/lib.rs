//! Data sets for classification, from files to batches.
//!
//! ```text
//! recipe::Data → Inputs + Labels + Ids → (LabelNoise) → Split × 3 → Batches
//! ```
//!
//! [`DataSet::open`] reads and checks everything that a recipe's `[data]` names; from then on
//! nothing about labels can be wrong. [`training_batches`] and [`evaluation_batches`] make batches
//! of a [`Split`] on worker threads, in an order that depends on the seed and the step alone.
//! Every random choice is a hash of (seed, what for, example id), so it depends neither on the
//! order of rows nor on the number of threads.

mod draws;

pub mod array;
pub mod augment;
pub mod batch;
pub mod dataset;
pub mod digits;
pub mod doctor;
mod error;
pub mod ids;
pub mod inputs;
pub mod labels;
pub mod noise;
pub mod picture;
pub mod split;
pub mod thumbnails;
pub mod write;

pub use batch::{
    Batch, Batches, Order, SparseTargets, Targets, evaluation_batches, training_batches,
};
pub use dataset::{DataSet, NoisyLabels, SetAside, Split, noisy_labels, training_ids};
pub use doctor::{Diagnosis, examine};
pub use error::DataError;
pub use ids::Ids;
pub use inputs::{InputShape, Inputs};
pub use labels::{DenseRows, Labels, SparseRows, Votes};
pub use picture::Picture;
pub use thumbnails::{Thumbnail, ThumbnailError, Thumbnails, thumbnail_of_file};
