//! Images → embeddings, with any ONNX network.
//!
//! ```text
//! paths → Source → batches of numbers │ Extractor │ features → F.safetensors
//!                   decoded ahead       the network    written as they are computed
//! ```
//!
//! [`embed()`] does the whole work for one [`Source`] and any [`Extractor`]. [`OnnxNetwork`] is the
//! extractor for ONNX files; it uses ONNX Runtime if its library is found, otherwise rten.
//!
//! | module | what it does |
//! |---|---|
//! | `embed` | the loop, with resuming: [`embed()`] |
//! | `source` | the images at a path, split by split |
//! | `prepare`, `batches` | images → numbers, on other threads while the network computes |
//! | `extractor` | the trait of everything that turns images into features |
//! | `onnx`, `signature` | ONNX networks in two runtimes, and what they accept |
//! | `file`, `record` | the file of embeddings, and the progress of an unfinished one |

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

pub use embed::{DEFAULT_BATCH, Event, Job, Outcome, embed};
pub use error::EmbedError;
pub use extractor::{Extractor, Identity, Images};
pub use file::{FORMAT, Precision};
pub use onnx::library::is_found as onnx_runtime_is_found;
pub use onnx::model_file::model_bytes;
pub use onnx::{OnnxNetwork, OnnxOptions, Runtime};
pub use prepare::{DEFAULT_SIDE, Preprocessing, SizeFrom};
pub use signature::{Element, InputSpec, Layout, Length, Port, Reading};
pub use source::{Source, open_sources};
