//! From run directories to findings: audits, comparisons, analyses and the HTML report.
//!
//! Everything here reads files that runs have written, through `aleator_run`'s `RunTree`,
//! `EvaluatedRun` and `SplitReader`. No tensor library is linked.
//!
//! | module | what it does |
//! |---|---|
//! | [`audit`] | judges every label by models that were not trained on it |
//! | [`compare`] | rows of runs with t-tests; the planned tables of `reports/*.toml` |
//! | [`confusion`] | which classes are confused, in the labels and by a model; flip probabilities |
//! | [`covariance`] | the learned noise: pairs of classes, ties of examples, a run against another |
//! | [`ensemble`] | the mean of the probabilities of several runs, as a run of its own |
//! | [`temperature`] | the bias of the likelihood and the variance of its gradient, by temperature |
//! | [`expansion`] | the coefficients of the second-order expansion: Figures 3 and 4 of the paper |
//! | [`sampling_free`] | predictions without sampling, and their errors against sampling |
//! | [`page`] | the HTML report, one file without dependencies |
//! | [`figure`] | the figures of the report as SVG |
//! | [`cluster`] | an order of classes in which similar ones are neighbours |
//! | [`table`] | a table of scores as text, Markdown, LaTeX or CSV; aligned columns for the terminal |
//! | [`spreadsheet`] | cells that no spreadsheet evaluates as a formula |

pub mod audit;
pub mod cluster;
pub mod compare;
pub mod confusion;
pub mod covariance;
pub mod ensemble;
mod error;
mod escape;
pub mod expansion;
pub mod figure;
mod number;
pub mod page;
pub mod sampling_free;
pub mod spreadsheet;
pub mod table;
mod task;
pub mod temperature;

pub use error::ReportError;
