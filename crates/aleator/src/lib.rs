//! x
pub use aleator_kernels as kernels;
pub use aleator_model::*;
pub use burn;
