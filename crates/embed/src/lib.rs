//! Images → embeddings, by any ONNX network.
//!
//! ```text
//! paths → Source → batches of numbers │ Extractor │ features → F.safetensors
//!                   decoded ahead       the network    written as they come
//! ```
//!
//! [`embed`] is the whole job for one [`Source`] and any [`Extractor`]. [`OnnxNetwork`] is the
//! extractor for ONNX files, run by ONNX Runtime where its library is found, otherwise by rten.

mod batches;
mod embed;
mod error;
mod extractor;
mod file;
mod onnx;
mod prepare;
mod record;
mod signature;
mod source;

pub use embed::{Event, Job, Outcome, USUAL_BATCH, embed};
pub use error::EmbedError;
pub use extractor::{Extractor, Identity, Images};
pub use file::{FORMAT, Precision};
pub use onnx::library::is_found as onnx_runtime_is_found;
pub use onnx::{OnnxNetwork, OnnxOptions, Runtime};
pub use prepare::{Preprocessing, SizeFrom, USUAL_SIDE};
pub use signature::{Element, InputSpec, Layout, Length, Port, Reading};
pub use source::{Source, open_sources};
