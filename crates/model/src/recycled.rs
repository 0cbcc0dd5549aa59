//! Large buffers that are used again.
//!
//! A gradient of a wide layer is hundreds of megabytes, freed and allocated again at every step.
//! Fresh memory costs a page fault for every 4 KiB, several times the work of filling it, so
//! tensors made here give their memory back to a pool when they are dropped.
//!
//! The pool takes back as many buffers of a size as it gave. Results that others have allocated are
//! tensors here, too; kept as well, those of every batch would fill the pool and never be used.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use burn::backend::Flex;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Shape, Tensor};
use burn_std::{AccessError, AccessPolicy, AllocationController, AllocationProperty};

/// Below this many floats the allocator is as fast.
const LARGE: usize = 1 << 18;

/// Floats kept at most (1 GiB); the oldest buffers go first.
const KEPT: usize = 1 << 28;

static POOL: Mutex<Pool> = Mutex::new(Pool { waiting: Vec::new(), lent: BTreeMap::new() });

struct Pool {
    waiting: Vec<Vec<f32>>,
    /// How many buffers of each size were taken and have not come back.
    lent: BTreeMap<usize, usize>,
}

impl Pool {
    fn take(&mut self, len: usize) -> Option<Vec<f32>> {
        *self.lent.entry(len).or_default() += 1;
        let at = self.waiting.iter().position(|buffer| buffer.len() == len)?;
        Some(self.waiting.swap_remove(at))
    }

    fn give_back(&mut self, buffer: Vec<f32>) {
        let Some(lent) = self.lent.get_mut(&buffer.len()).filter(|lent| **lent > 0) else { return };
        *lent -= 1;
        self.waiting.push(buffer);
        while self.waiting.iter().map(Vec::len).sum::<usize>() > KEPT {
            self.waiting.remove(0);
        }
    }
}

/// A buffer of this many floats with arbitrary contents.
pub(crate) fn take(len: usize) -> Vec<f32> {
    if len >= LARGE {
        let mut pool = POOL.lock().expect("no one panics with the pool");
        if let Some(buffer) = pool.take(len) {
            return buffer;
        }
    }
    vec![0.0; len]
}

/// Working memory for a while, with arbitrary contents at first; it returns to the pool.
pub(crate) struct Scratch(Vec<f32>);

impl Scratch {
    pub fn new(len: usize) -> Self {
        Self(take(len))
    }
}

impl std::ops::Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl std::ops::DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

fn give_back(buffer: Vec<f32>) {
    // A poisoned pool only means that this buffer is freed instead.
    if buffer.len() >= LARGE
        && let Ok(mut pool) = POOL.lock()
    {
        pool.give_back(buffer);
    }
}

/// A tensor on the CPU from a buffer, without copying; its memory returns to the pool.
pub(crate) fn tensor<const D: usize>(buffer: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
    let bytes = if buffer.len() >= LARGE { pooled(buffer) } else { Bytes::from_elems(buffer) };
    let layout = Layout::contiguous(Shape::from(shape));
    Tensor::from_primitive::<Flex>(FlexTensor::new(bytes, layout, DType::F32))
}

/// A tensor on the CPU whose numbers `fill` overwrites.
pub(crate) fn filled<const D: usize>(
    shape: [usize; D],
    fill: impl FnOnce(&mut [f32]),
) -> Tensor<D> {
    let mut buffer = take(shape.iter().product());
    fill(&mut buffer);
    tensor(buffer, shape)
}

struct Pooled(Vec<f32>);

impl Drop for Pooled {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

#[allow(unsafe_code, reason = "Burn takes memory with an owner of its own only this way")]
impl AllocationController for Pooled {
    fn alloc_align(&self) -> usize {
        align_of::<f32>()
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(
        &mut self,
        _: AccessPolicy,
    ) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let size = size_of_val(self.0.as_slice());
        // SAFETY: the vector owns `size` initialised bytes, borrowed for as long as `self`, and
        // any bytes are valid floats; the caller promises to leave them initialised.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), size) })
    }

    fn memory(&self, _: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let size = size_of_val(self.0.as_slice());
        // SAFETY: the vector owns `size` initialised bytes, borrowed for as long as `self`.
        Ok(unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), size) })
    }
}

#[allow(unsafe_code, reason = "Burn takes memory with an owner of its own only this way")]
fn pooled(buffer: Vec<f32>) -> Bytes {
    let size = size_of_val(buffer.as_slice());
    // SAFETY: the controller's memory is `size` bytes, all of them initialised.
    unsafe { Bytes::from_controller(Box::new(Pooled(buffer)), size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_tensor_gives_its_memory_to_the_next_of_its_size() {
        let len = LARGE + 12_345; // a size that no other test uses
        let buffer = take(len);
        let address = buffer.as_ptr() as usize;
        let tensor = tensor(buffer, [len]);
        assert_eq!(tensor.clone().sum().into_scalar::<f32>(), 0.0);
        drop(tensor);
        let next = take(len);
        assert_eq!(next.as_ptr() as usize, address);
    }

    #[test]
    fn a_clone_keeps_the_memory() {
        let len = LARGE + 54_321;
        let first = tensor::<1>(take(len), [len]);
        let second = first.clone();
        drop(first);
        let other = take(len);
        assert_eq!(second.sum().into_scalar::<f32>(), 0.0);
        drop(other);
    }

    /// A batch of an evaluation makes more tensors than it takes buffers.
    #[test]
    fn buffers_of_others_do_not_fill_the_pool() {
        let len = LARGE + 33_333;
        let kept = || {
            let pool = POOL.lock().unwrap();
            pool.waiting.iter().filter(|buffer| buffer.len() == len).count()
        };
        for _ in 0..5 {
            let own: Tensor<1> = tensor(take(len), [len]);
            let others: [Tensor<1>; 2] = [(); 2].map(|()| tensor(vec![0.0; len], [len]));
            drop((others, own));
            assert_eq!(kept(), 1);
        }
    }
}
