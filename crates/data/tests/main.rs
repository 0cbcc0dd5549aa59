//! The integration tests of this crate: one program, linked once.

mod arrays;
mod augment;
mod batches;
mod dataset;
mod doctor;
mod format_cifar;
mod format_fuzz;
mod format_idx;
mod format_image_columns;
mod format_images;
mod format_manifest;
mod format_npy;
mod format_npz;
mod format_parquet;
mod format_recognise;
mod format_recognise_images;
mod format_safetensors;
mod format_shards;
mod format_support;
mod format_table;
mod formats;
mod fuzz;
mod fuzz_harness;
#[path = "golden/check.rs"]
mod golden;
mod label_encoding;
mod label_sets;
mod labels;
mod labels_by_id;
mod latent_noise;
mod noise;
mod pictures;
mod set_aside;
mod support;
mod thumbnails;
mod views;

// `golden` takes them from its parent: unit tests include the file, too.
use aleator_data::Picture;
use aleator_data::picture::{Limits, decode};
