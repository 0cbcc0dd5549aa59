//! The data set that ships inside the program: handwritten digits.
//!
//! `digits.md` says where they come from and under which licence.

use aleator_run::recipe::Framing;

use crate::error::DataError;
use crate::inputs::{CarriedLabels, InputShape, Inputs, Opened};

/// Images in the set.
pub const EXAMPLES: usize = 1_797;

const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
/// One record: the pixels, 0 to 16, then the digit.
static RECORDS: &[u8; EXAMPLES * (PIXELS + 1)] = include_bytes!("digits.bin");

/// 1,797 grey images of 8 × 8 pixels in [−1, 1], and the digits that they show.
///
/// ```
/// let digits = aleator_data::digits::open()?;
/// assert_eq!(digits.inputs.len(), 1797);
/// assert_eq!(digits.labels.unwrap().classes().unwrap()[..4], [0, 1, 2, 3]);
/// # Ok::<(), aleator_data::DataError>(())
/// ```
pub fn open() -> Result<Opened, DataError> {
    framed(&Framing::PLAIN)
}

/// [`open`] with the images brought to a size, to colour, or to other values.
///
/// # Errors
/// None at present.
pub fn framed(framing: &Framing) -> Result<Opened, DataError> {
    let records = RECORDS.chunks_exact(PIXELS + 1);
    let pixels = records.clone().flat_map(|record| &record[..PIXELS]);
    let inputs = if *framing == Framing::PLAIN {
        let values = pixels.map(|pixel| f32::from(*pixel) / 8.0 - 1.0).collect();
        Inputs::in_memory(values, InputShape::Image { channels: 1, height: SIDE, width: SIDE })
    } else {
        // 17 levels of grey, spread over those of a byte.
        let bytes = pixels.map(|pixel| ((u16::from(*pixel) * 255 + 8) / 16) as u8).collect();
        Inputs::of_bytes(bytes, [1, SIDE, SIDE], framing)
    };
    Ok(Opened {
        labels: Some(CarriedLabels::Classes(
            records.map(|record| u32::from(record[PIXELS])).collect(),
        )),
        class_names: Some((0..10).map(|digit| digit.to_string()).collect()),
        ..Opened::new(inputs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sklearn.datasets.load_digits()`: `np.bincount(target)` and `data.sum()`.
    #[test]
    fn digits_are_those_of_scikit_learn() {
        let digits = open().unwrap();
        let mut counts = [0; 10];
        for label in digits.labels.as_ref().unwrap().classes().unwrap() {
            counts[*label as usize] += 1;
        }
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let sum: u64 = RECORDS.chunks(65).flat_map(|r| &r[..64]).map(|p| u64::from(*p)).sum();
        assert_eq!(sum, 561_718);
        let mut first = [0.0; 64];
        digits.inputs.read(0, &mut first).unwrap();
        assert_eq!(first[..8], [-1.0, -1.0, -0.375, 0.625, 0.125, -0.875, -1.0, -1.0]);
    }

    #[test]
    fn digits_are_framed_as_other_images() {
        let framing = Framing { channels: Some(3), ..Framing::sized(16) };
        let digits = framed(&framing).unwrap().inputs;
        assert_eq!(digits.shape(), InputShape::Image { channels: 3, height: 16, width: 16 });
        let mut first = vec![0.0; 3 * 256];
        digits.read(0, &mut first).unwrap();
        assert_eq!(first[..256], first[512..]);
        // The upper left is paper, and the middle of the top of a zero is ink.
        assert!(first[0] < -0.9 && first[16 + 7] > 0.3, "{:?}", &first[..32]);
    }
}
