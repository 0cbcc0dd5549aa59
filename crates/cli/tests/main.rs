//! The integration tests of this crate: one program, linked once.

mod accept;
mod analysis;
mod audit;
mod audit_features;
mod bad_input;
mod commands;
mod compare;
mod embed;
mod end_to_end;
#[cfg(target_os = "linux")]
mod faults;
#[path = "../../data/tests/fuzz/mod.rs"]
mod fuzz;
mod fuzz_onnx;
mod fuzz_records;
mod images;
mod joint;
#[cfg(unix)]
mod leftovers;
mod limits;
#[cfg(unix)]
mod links;
#[path = "../../embed/tests/support/onnx.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod onnx;
mod paper;
mod predict;
#[cfg(unix)]
mod records;
mod report;
#[cfg(unix)]
mod resume;
#[cfg(unix)]
mod review;
mod support;
mod tables;
#[cfg(unix)]
mod terminal;
mod theory;
mod tidy;
mod training;
mod transfer;
#[path = "../../data/tests/format_support/zip.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod zip;
