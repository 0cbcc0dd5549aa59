//! Data sets for classification, from files or arrays to batches.
//!
//! ```text
//! recipe::Data │ Sources: inputs, labels, ids │ DataSet: splits, noise │ batches
//!   files, arrays        opened once               divided at will
//! ```
//!
//! [`Sources::open`] reads, hashes and checks everything that a recipe's `[data]` names, and
//! [`Sources::in_memory`] does the same with arrays; from then on nothing about labels can be
//! wrong. [`Sources::divide`] makes a [`DataSet`] of them, cheaply and as often as needed.
//! [`training_batches`] and [`evaluation_batches`] make batches of a [`Split`] on worker threads.
//! Every random choice is a hash of (seed, purpose, example id), so it depends neither on the
//! order of rows nor on the number of threads.
//!
//! | module | what it does |
//! |---|---|
//! | [`array`](mod@array) | small arrays from `.npy`, `.csv`, `.parquet`, `.safetensors` and IDX files |
//! | [`inputs`] | embeddings and images of all formats, read row by row; what a path holds |
//! | [`picture`] | decodes one image, crops, resizes and scales it |
//! | [`labels`] | single, multi-hot, soft and annotators' labels, and their classes |
//! | [`ids`] | stable names of examples, by which they are chosen and found |
//! | `sources` | inputs, labels and ids of all sources, opened once; [`Arrays`] in memory |
//! | [`noise`] | labels made wrong on purpose |
//! | [`split`] | which examples are held out |
//! | [`dataset`] | the divided data; images that cannot be decoded are left out of it |
//! | [`augment`] | random crops, flips, RandAugment and mixup of training images |
//! | [`batch`] | order, inputs and targets of every step |
//! | [`variation`] | how features vary, and so how they may be scaled |
//! | [`doctor`] | a report on data before anything is trained on it |
//! | [`thumbnails`] | pictures of examples for pages |
//! | [`digits`] | the data set that ships with the program |
//! | [`mod@write`] | labels and tables as files |

mod draws;
mod ending;

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
mod sources;
pub mod split;
pub mod thumbnails;
pub mod variation;
pub mod write;

pub use batch::{
    Batch, Batches, Order, SparseTargets, Targets, Views, evaluation_batches, training_batches,
    training_views,
};
pub use dataset::{DataSet, Split};
pub use doctor::{Diagnosis, examine, examine_columns};
pub use error::DataError;
pub use ids::Ids;
pub use inputs::recognise::ColumnNames;
pub use inputs::{InputShape, Inputs};
pub use labels::{DenseRows, Labels, SparseRows, Votes};
pub use picture::Picture;
pub use sources::{
    ArrayInputs, ArraySplit, Arrays, NoisyLabels, Sources, noisy_labels, training_ids,
};
pub use thumbnails::{Thumbnail, ThumbnailError, Thumbnails};
