//! One slice that many tasks write to, each in its own part, and unchecked loads of vectors.
#![allow(unsafe_code, reason = "tables of offsets are checked once, not at every load")]

use pulp::Simd;
use std::marker::PhantomData;

/// A slice that tasks write to concurrently; no two may write the same position.
#[derive(Clone, Copy)]
pub(crate) struct SharedSlice<'a> {
    start: *mut f32,
    len: usize,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: every write goes to a position that only the writing task owns, see `slice_mut`.
unsafe impl Send for SharedSlice<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedSlice<'_> {}

impl<'a> SharedSlice<'a> {
    pub fn new(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), lifetime: PhantomData }
    }

    /// # Safety
    /// No two live slices may overlap.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the caller promises that slices do not overlap")]
    pub unsafe fn slice_mut(&self, at: usize, len: usize) -> &mut [f32] {
        let end = at.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{at} + {len} is beyond {}", self.len);
        // SAFETY: within the slice by the assertion above; not aliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }
}

/// The vector that starts at `source[at]`.
///
/// # Safety
/// `at + S::F32_LANES <= source.len()`.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(source: &[f32], at: usize) -> S::f32s {
    debug_assert!(at + S::F32_LANES <= source.len());
    // SAFETY: within the slice by the caller's promise, and any bits are floats.
    unsafe { source.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
}
