//! The integration tests of this crate: one program, linked once.

mod audit;
mod audit_support;
mod compare;
mod compare_epochs;
mod compare_refusals;
mod covariance;
mod covariance_runs;
mod covariance_sums;
mod covariance_support;
mod ensemble;
mod figures;
mod judge;
mod layouts;
mod lists;
mod page;
mod planted;
mod runs_on_disk;
mod sample;
mod support;
mod tables;
