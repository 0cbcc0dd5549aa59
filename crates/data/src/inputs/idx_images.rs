//! IDX images, as MNIST's, with the labels in the same folder.

use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::pixels::{Bytes, Pixels};
use super::{CarriedLabels, Inputs, Opened, Storage};
use crate::array::element::Element;
use crate::array::idx;
use crate::error::DataError;
use crate::picture::{Limits, between};

/// Opens an IDX file of grey images, plain or gzipped.
pub(crate) fn open(path: &Path, framing: &Framing) -> Result<Opened, DataError> {
    let (file, at) = idx::open(path)?;
    let invalid = |message: String| Err(DataError::invalid(path, message));
    let (Element::U8, &[rows, height, width]) = (at.element, &at.shape[..]) else {
        let (element, shape) = (at.element.name(), &at.shape);
        return invalid(format!(
            "holds {element} of shape {shape:?}; IDX images are uint8 of [examples, height, \
             width] with magic number 0x00000803"
        ));
    };
    if rows == 0 || height == 0 || width == 0 {
        return invalid(format!("shape [{rows}, {height}, {width}] has no pixels"));
    }
    let mut pixels = Pixels::new(0, [1, height, width], framing);
    let most = Limits::DEFAULT.decoded_bytes;
    if between(height, framing.size.unwrap_or(width), 1).max(height as u64 * width as u64) > most {
        return invalid(format!(
            "holds images of {width} × {height} pixels, which take more than {} MiB each",
            most >> 20
        ));
    }
    pixels.push(Bytes::File(file.for_rows(at.bytes.clone())?), at.bytes.start);
    let labels = labels_beside(path).map(|beside| read_labels(&beside, path, rows)).transpose()?;
    let labels = labels.map(CarriedLabels::Classes);
    Ok(Opened { labels, ..Opened::new(Inputs::new(path, Storage::Pixels(pixels))) })
}

/// `train-labels-idx1-ubyte` for `train-images-idx3-ubyte`, with or without `.gz`.
pub(crate) fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    if !name.contains("images") {
        return None;
    }
    let name = name.replace("images", "labels").replace("idx3", "idx1");
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let candidates = [name.clone(), plain.to_string(), format!("{plain}.gz")];
    candidates.into_iter().map(|name| images.with_file_name(name)).find(|path| path.is_file())
}

fn read_labels(path: &Path, images: &Path, rows: usize) -> Result<Vec<u32>, DataError> {
    let (file, at) = idx::open(path)?;
    let (Element::U8, &[found]) = (at.element, &at.shape[..]) else {
        let (element, shape) = (at.element.name(), &at.shape);
        let message = format!(
            "holds {element} of shape {shape:?}; IDX labels are uint8 of [examples] with magic \
             number 0x00000801"
        );
        return Err(DataError::invalid(path, message));
    };
    if found != rows {
        let images = images.display();
        let message = format!("has {found} labels for the {rows} images of {images}");
        return Err(DataError::invalid(path, message));
    }
    Ok(file.bytes(at.bytes)?.into_iter().map(u32::from).collect())
}
