//! From run directories to findings; no tensor library here.

pub mod confusion;
pub mod ensemble;
mod error;

pub use error::ReportError;
