//! From run directories to findings; no tensor library here.

pub mod audit;
pub mod cluster;
pub mod compare;
pub mod confusion;
pub mod covariance;
pub mod ensemble;
mod error;
mod escape;
pub mod figure;
mod number;
pub mod page;
pub mod spreadsheet;
pub mod table;
mod task;

pub use error::ReportError;
