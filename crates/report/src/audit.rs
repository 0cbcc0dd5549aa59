//! Which labels are wrong, and what they should be.

mod record;
mod tables;

pub use record::{
    AnnotatorFinding, Answer, Audit, AuditSummary, ClassFinding, Estimate, Issue, Known,
    PairFinding,
};
