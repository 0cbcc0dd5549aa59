//! The layers of networks over plain slices, with their gradients, at the speed of the machine.
//!
//! | module | contents |
//! |---|---|
//! | [`dense`] | the dense layer; also used for products of matrices |
//! | `dense::tile` | the register tile that all products run on, and operands packed for it |
//! | `dense::backward` | the gradients of the dense layer |
//! | [`convolution`] | convolutions with stride, padding and groups, and their gradients |
//! | `convolution::window` | what the taps of a kernel see, copied so that every tap reads whole vectors |
//! | `convolution::blocks`, `panel` | how images are cut into blocks of pixels, and pixels into vectors |
//! | `convolution::product`, `weight`, `depthwise` | the products: output and input gradient; weight gradient; one channel at a time |
//! | [`batch_norm`] | batch normalisation with the rectifier after it, and its gradients |
//! | `batch_norm::channel` | the loops over one channel of all images |
//! | [`convolution::reference`], [`batch_norm::reference`] | the same in f64 with plain loops; the tests compare against it |
//! | [`neighbours`] | the nearest neighbours of every point, by products of matrices |
//! | `neighbours::subspace` | a few coordinates in which points are as far apart as possible |
//! | `neighbours::shortlist` | the best candidates of a point, while scores come in |
//! | `shared` | one slice that many tasks write to, each in its own part |
//!
//! Functions run in the rayon pool that calls them and return the same bits for any number of
//! threads. They choose the vector instructions at run time. They panic if a slice does not have
//! the length that its shape requires, and the message names the slice.
//!
//! This is the only crate of vector code with `unsafe`: tables of offsets are checked once instead
//! of at every load, and tasks write to disjoint parts of one slice.

#![allow(
    clippy::needless_range_loop,
    clippy::manual_memcpy,
    reason = "vector code counts its registers; closures and slice copies hide them from it"
)]

pub mod batch_norm;
pub mod convolution;
pub mod dense;
pub mod neighbours;
mod shared;
