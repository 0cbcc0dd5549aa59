//! From run directories to findings; no tensor library here.

pub mod audit;
pub mod compare;
pub mod confusion;
pub mod covariance;
pub mod ensemble;
mod error;
pub mod spreadsheet;
pub mod table;

pub use error::ReportError;
