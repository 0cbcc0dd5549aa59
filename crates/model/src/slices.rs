//! Between Burn tensors and plain slices.

use burn::backend::flex::FlexTensor;
use burn::backend::{DispatchDevice, Flex};
use burn::tensor::{Device, Tensor};

/// Whether tensors of this device lie in this process's memory, where the kernels work.
pub(crate) fn is_cpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// A tensor of the CPU that can be read as a slice.
#[derive(Clone, Debug)]
pub(crate) struct Floats(FlexTensor);

impl Floats {
    /// The numbers of a tensor of any device, without copying where it is a contiguous one of the CPU.
    pub fn of<const D: usize>(tensor: &Tensor<D>) -> Self {
        let plain = tensor.clone().inner();
        Self::new(if is_cpu(&plain.device()) { plain } else { plain.to_device(&Device::flex()) })
    }

    /// # Panics
    /// When the tensor is not on the CPU, carries autodiff, or is not of f32.
    pub fn new<const D: usize>(tensor: Tensor<D>) -> Self {
        let tensor = tensor
            .try_into_primitive::<Flex>()
            .unwrap_or_else(|_| panic!("a plain CPU tensor was expected"));
        Self(if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() })
    }

    pub fn as_slice(&self) -> &[f32] {
        self.0
            .as_slice()
            .unwrap_or_else(|| panic!("aleator computes in f32, found {:?}", self.0.dtype()))
    }
}
