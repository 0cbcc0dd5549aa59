//! The numbers of a parameter, wherever they are computed with.

use std::borrow::Cow;

use burn::backend::Flex;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Device, Shape, Tensor, TensorData};

use crate::slices::is_cpu;

/// The numbers of a parameter, of its gradient, or of an average of either, on the device that
/// computes with them.
///
/// On the CPU they are a slice, changed in place. On another device they stay there until
/// they are read or changed.
///
/// ```
/// use aleator_model::params::Values;
/// use burn::tensor::{Device, Tensor};
///
/// let mut values = Values::from_tensor(Tensor::<2>::ones([2, 3], &Device::flex()));
/// values.change(|numbers| numbers[4] = 7.0);
/// assert_eq!(*values.read(), [1.0, 1.0, 1.0, 1.0, 7.0, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Values(Place);

#[derive(Clone, Debug)]
enum Place {
    Cpu(FlexTensor),
    Elsewhere(Tensor<1>),
}

impl Values {
    /// The numbers of a tensor, row by row, without copying where they lie in that order. A tensor
    /// that is shared is copied when the values are first changed.
    pub fn from_tensor<const D: usize>(tensor: Tensor<D>) -> Self {
        let tensor = tensor.inner();
        if !is_cpu(&tensor.device()) {
            return Self(Place::Elsewhere(tensor.flatten(0, D - 1)));
        }
        let tensor = tensor
            .try_into_primitive::<Flex>()
            .unwrap_or_else(|_| panic!("a tensor of the CPU is a plain one"));
        let whole = |tensor: &FlexTensor| {
            let slice: Option<&[f32]> = tensor.as_slice();
            slice.is_some_and(|slice| slice.len() == tensor.storage::<f32>().len())
        };
        Self(Place::Cpu(if whole(&tensor) { tensor } else { tensor.to_contiguous() }))
    }

    /// A tensor of these numbers, without copying.
    ///
    /// # Panics
    /// When the shape is of another size.
    pub fn into_tensor<const D: usize>(self, shape: [usize; D]) -> Tensor<D> {
        assert_eq!(self.len(), shape.iter().product::<usize>(), "values of {shape:?}");
        match self.0 {
            Place::Cpu(tensor) => {
                let layout = Layout::contiguous(Shape::from(shape));
                Tensor::from_primitive::<Flex>(tensor.with_layout(layout))
            }
            Place::Elsewhere(tensor) => tensor.reshape(shape),
        }
    }

    /// As many zeros on the same device.
    pub fn zeros_like(&self) -> Self {
        match &self.0 {
            Place::Cpu(_) => Self::from(vec![0.0; self.len()]),
            Place::Elsewhere(tensor) => Self(Place::Elsewhere(tensor.zeros_like())),
        }
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        match &self.0 {
            Place::Cpu(tensor) => tensor.storage::<f32>().len(),
            Place::Elsewhere(tensor) => tensor.dims()[0],
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, borrowed where they are in this process's memory.
    pub fn read(&self) -> Cow<'_, [f32]> {
        match &self.0 {
            Place::Cpu(tensor) => Cow::Borrowed(tensor.storage()),
            Place::Elsewhere(tensor) => Cow::Owned(tensor.to_data().iter::<f32>().collect()),
        }
    }

    /// The numbers of values on the CPU.
    ///
    /// # Panics
    /// When they are on another device.
    pub(crate) fn as_slice(&self) -> &[f32] {
        match &self.0 {
            Place::Cpu(tensor) => tensor.storage(),
            Place::Elsewhere(_) => panic!("values on the CPU were expected"),
        }
    }

    /// Changes the numbers, in place where they are in this process's memory.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut [f32]) -> R) -> R {
        match &mut self.0 {
            Place::Cpu(tensor) => change(tensor.storage_mut()),
            Place::Elsewhere(tensor) => {
                let mut numbers: Vec<f32> = tensor.to_data().iter::<f32>().collect();
                let result = change(&mut numbers);
                let data = TensorData::new(numbers, [tensor.dims()[0]]);
                *tensor = Tensor::from_data(data, &tensor.device());
                result
            }
        }
    }

    /// The same numbers on a device.
    pub fn on(self, device: &Device) -> Self {
        let length = self.len();
        Self::from_tensor(self.into_tensor([length]).to_device(&device.clone().inner()))
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        let length = values.len();
        Self(Place::Cpu(FlexTensor::from_data(TensorData::new(values, [length]))))
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_of_one_owner_is_changed_where_it_lies() {
        let tensor = Tensor::<2>::ones([3, 5], &Device::flex());
        let mut values = Values::from_tensor(tensor);
        let address = values.read().as_ptr();
        values.change(|numbers| numbers[0] = 2.0);
        assert_eq!(values.read().as_ptr(), address);
        let shared = values.clone();
        values.change(|numbers| numbers[0] = 3.0);
        assert_eq!((shared.read()[0], values.read()[0]), (2.0, 3.0));
    }

    #[test]
    fn a_transposed_tensor_is_read_row_by_row() {
        let tensor = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &Device::flex());
        assert_eq!(*Values::from_tensor(tensor.transpose()).read(), [1.0, 3.0, 2.0, 4.0]);
    }
}
