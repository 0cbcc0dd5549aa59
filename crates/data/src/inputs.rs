//! The inputs of a split: a matrix of embeddings, or images.

mod cifar;
mod embedded;
mod encoded;
pub(crate) mod file_bytes;
mod folder;
mod idx_images;
mod image_columns;
mod images;
mod manifest;
mod matrix;
mod names;
mod patterns;
mod pixels;
pub mod recognise;
mod shards;
pub(crate) mod spool;
pub(crate) mod unpack;
mod wide;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_run::recipe::{Framing, InputSource};

use crate::augment::Augmenter;
use crate::error::DataError;
use crate::labels::{WrittenAnnotations, WrittenLabels};
use crate::picture::{Frame, Limits, Picture};
pub use embedded::FORMAT as EMBEDDINGS_FORMAT;
pub(crate) use embedded::names_beside_labels;
use encoded::Encoded;
pub use folder::empty_classes;
pub(crate) use manifest::weight_of;
use matrix::Matrix;
use pixels::{Bytes, Pixels};

/// Floats that are checked and hashed at once.
const BLOCK_FLOATS: usize = 1 << 16;

/// The inputs of one split, read one row at a time from any thread.
///
/// Large files are read by rows, so a data set may exceed the memory. Of encoded images only names and
/// places are held; they are decoded when they are read.
#[derive(Debug)]
pub struct Inputs {
    name: String,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    Matrix(Matrix),
    Pixels(Pixels),
    Encoded(Encoded),
    Memory { values: Vec<f32>, shape: InputShape },
}

/// The shape of one example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputShape {
    /// A vector of this many numbers.
    Features(usize),
    /// An image, channel first: `[channels, height, width]`.
    Image {
        /// 3 for colour, 1 for grey.
        channels: usize,
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
    },
}

/// Inputs, and the labels and ids that their files hold.
#[derive(Debug)]
pub struct Opened {
    /// The inputs.
    pub inputs: Arc<Inputs>,
    /// The labels, where the files hold them.
    pub labels: Option<CarriedLabels>,
    /// The classes' names, where the files hold them.
    pub class_names: Option<Vec<String>>,
    /// A stable id for each example, where the files have one.
    pub ids: Option<Vec<String>>,
    /// The true labels, where the files hold them in addition to the given ones.
    pub clean_labels: Option<WrittenLabels>,
    /// The weight of each example in training, where the files hold one; all above 0.
    pub weights: Option<Vec<f32>>,
}

/// Labels that lie with the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarriedLabels {
    /// One class per example: a position in the classes' names, if there are any.
    Classes(Vec<u32>),
    /// One name or number per example, as the file has it.
    Written(WrittenLabels),
    /// Several labels per example, with their annotators.
    Annotated(WrittenAnnotations),
}

impl CarriedLabels {
    /// One class per example, if that is what the files hold.
    pub fn classes(&self) -> Option<&[u32]> {
        if let Self::Classes(classes) = self { Some(classes) } else { None }
    }
}

impl Opened {
    /// Inputs alone.
    pub fn new(inputs: impl Into<Arc<Inputs>>) -> Self {
        Self {
            inputs: inputs.into(),
            labels: None,
            class_names: None,
            ids: None,
            clean_labels: None,
            weights: None,
        }
    }

    /// The same with one class per example where the labels were written as words or numbers;
    /// labels of several annotators are left out.
    pub fn in_classes(self) -> Self {
        match self.labels {
            Some(CarriedLabels::Written(written)) => {
                let (labels, names) = written.numbered();
                let class_names = self.class_names.or(names);
                Self { labels: Some(CarriedLabels::Classes(labels)), class_names, ..self }
            }
            Some(CarriedLabels::Annotated(_)) => Self { labels: None, ..self },
            Some(CarriedLabels::Classes(_)) | None => self,
        }
    }
}

impl std::fmt::Display for InputShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Features(width) => write!(f, "vectors of {width} numbers"),
            Self::Image { channels, height, width } => {
                let colour = if *channels == 1 { "grey" } else { "colour" };
                write!(f, "{colour} images of {width} × {height} pixels")
            }
        }
    }
}

impl InputShape {
    /// Numbers in one example.
    #[expect(clippy::len_without_is_empty, reason = "no example is empty")]
    pub fn len(&self) -> usize {
        match *self {
            Self::Features(width) => width,
            Self::Image { channels, height, width } => channels * height * width,
        }
    }

    /// As [`InputShape::len`]; `None` where that is more than can be counted.
    pub(crate) fn checked_len(&self) -> Option<usize> {
        match *self {
            Self::Features(width) => Some(width),
            Self::Image { channels, height, width } => {
                channels.checked_mul(height)?.checked_mul(width)
            }
        }
    }
}

impl Inputs {
    /// Opens what a recipe names, and checks all that can be checked without reading every
    /// number. `framing` says how images become inputs of one size.
    ///
    /// ```
    /// use aleator_data::inputs::{InputShape, Inputs};
    /// use aleator_run::recipe::{Framing, InputSource};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("x.npy");
    /// let mut npy = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    /// npy.extend(format!("{:<70}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}").bytes());
    /// npy.extend([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()));
    /// std::fs::write(&path, npy)?;
    ///
    /// let source = InputSource::Features(path.to_str().unwrap().into());
    /// let inputs = Inputs::open(&source, &Framing::PLAIN)?.inputs;
    /// assert_eq!((inputs.len(), inputs.shape()), (2, InputShape::Features(3)));
    /// let mut row = [0.0; 3];
    /// inputs.read(1, &mut row)?;
    /// assert_eq!(row, [4.0, 5.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(source: &InputSource, framing: &Framing) -> Result<Opened, DataError> {
        Self::open_like(source, framing, None)
    }

    /// [`Inputs::open`], where the features of a table are those of these names.
    pub(crate) fn open_like(
        source: &InputSource,
        framing: &Framing,
        features: Option<&[String]>,
    ) -> Result<Opened, DataError> {
        match source {
            InputSource::Table(table) => wide::open(table, features),
            InputSource::Features(spec) => {
                let storage = Storage::Matrix(Matrix::open(spec)?);
                embedded::complete(Opened::new(Self { name: spec.clone(), storage }), spec)
            }
            InputSource::Images(paths) => images::open(paths, framing),
            InputSource::Digits => crate::digits::framed(framing),
            InputSource::Memory(fingerprint) => Err(DataError::invalid(
                "data.memory",
                format!(
                    "the examples were arrays in memory (fingerprint {fingerprint}), which no \
                     file holds; the program that trained on them must give them again"
                ),
            )),
        }
    }

    /// Opens new inputs that have no labels yet: as [`Inputs::open`], and for images also one
    /// file, or a folder whose images are not sorted by class.
    ///
    /// # Errors
    /// When there are no such inputs, or they cannot be read.
    pub fn open_unlabelled(source: &InputSource, framing: &Framing) -> Result<Opened, DataError> {
        let InputSource::Images(paths) = source else { return Self::open(source, framing) };
        if let [path] = &paths[..] {
            let is_folder = path.is_dir() && folder::any_image(path)?.is_some();
            if is_folder || (path.is_file() && folder::is_image(path)) {
                return folder::open_unlabelled(path, framing);
            }
        }
        Self::open(source, framing)
    }

    /// Opens the columns of these names in a new table, whatever their order and whatever else it
    /// has. Its ids are in the column `id`, if there is one.
    ///
    /// # Errors
    /// When a column is missing, or holds something that is no number.
    pub fn open_columns(
        path: &Path,
        features: &[String],
        id: Option<&str>,
    ) -> Result<Opened, DataError> {
        wide::open_new(path, features, id)
    }

    /// Whether a file is a table with a column for each feature, by its name and columns.
    pub fn is_wide_table(path: &Path) -> bool {
        wide::TableFile::open(path).is_ok_and(|table| !table.has_lists())
    }

    /// The names of the features, where they are the columns of a table.
    pub fn feature_names(&self) -> Option<&[String]> {
        if let Storage::Matrix(matrix) = &self.storage { matrix.names.as_deref() } else { None }
    }

    /// Inputs that are in memory already, `[N, shape]`.
    ///
    /// # Panics
    /// Unless `values` holds whole examples, and at least one.
    pub fn in_memory(values: Vec<f32>, shape: InputShape) -> Self {
        let whole = shape.len() > 0 && values.len().is_multiple_of(shape.len());
        assert!(whole && !values.is_empty(), "{} values do not fill [N, {shape:?}]", values.len());
        Self { name: "memory".into(), storage: Storage::Memory { values, shape } }
    }

    /// The same under another name in messages.
    pub(crate) fn called(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Images of `[channels, height, width]`, one byte a pixel and channel.
    pub(crate) fn of_bytes(bytes: Vec<u8>, shape: [usize; 3], framing: &Framing) -> Self {
        let mut pixels = Pixels::new(0, shape, framing);
        pixels.push(Bytes::Memory(bytes), 0);
        Self::new(Path::new("memory"), Storage::Pixels(pixels))
    }

    fn new(name: &Path, storage: Storage) -> Self {
        Self { name: name.display().to_string(), storage }
    }

    /// The number of examples; never 0.
    #[expect(clippy::len_without_is_empty, reason = "a split without examples is refused")]
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Matrix(matrix) => matrix.rows,
            Storage::Pixels(pixels) => pixels.rows,
            Storage::Encoded(encoded) => encoded.rows(),
            Storage::Memory { values, shape } => values.len() / shape.len(),
        }
    }

    /// The shape of one example.
    pub fn shape(&self) -> InputShape {
        match &self.storage {
            Storage::Matrix(matrix) => InputShape::Features(matrix.width),
            Storage::Pixels(pixels) => pixels.shape(),
            Storage::Encoded(encoded) => encoded.shape(),
            Storage::Memory { shape, .. } => *shape,
        }
    }

    /// The image of example `row` as it is stored, before it is brought to the shape of the
    /// inputs.
    ///
    /// # Errors
    /// When it cannot be decoded, or the inputs are not images.
    pub fn picture(&self, row: usize) -> Result<Picture, DataError> {
        assert!(row < self.len(), "row {row} of {}", self.len());
        match &self.storage {
            Storage::Pixels(pixels) => pixels.picture(row),
            Storage::Encoded(encoded) => encoded.picture(row),
            Storage::Matrix(_) | Storage::Memory { .. } => Err(self.no_images()),
        }
    }

    fn no_images(&self) -> DataError {
        DataError::invalid(&self.name, "holds no images; name a folder of images")
    }

    fn encoded(&self) -> Option<&Encoded> {
        if let Storage::Encoded(encoded) = &self.storage { Some(encoded) } else { None }
    }

    /// The file of example `row`, where its image has one of its own.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn file(&self, row: usize) -> Option<PathBuf> {
        assert!(row < self.len(), "row {row} of {}", self.len());
        self.encoded()?.file(row)
    }

    /// Whether the images are encoded, so that one may turn out to be damaged when it is read.
    pub fn is_encoded(&self) -> bool {
        self.encoded().is_some()
    }

    /// Why the image of example `row` cannot be decoded, if it cannot. Each is decoded once.
    pub(crate) fn check(&self, row: usize) -> Option<String> {
        self.encoded()?.check(row)
    }

    /// Whether [`Inputs::check`] has nothing left to decode for example `row`.
    pub(crate) fn is_checked(&self, row: usize) -> bool {
        self.encoded().is_none_or(|encoded| encoded.is_checked(row))
    }

    /// The hash of what is stored of an image, and the image.
    pub(crate) fn examined(&self, row: usize) -> Result<(blake3::Hash, Picture), DataError> {
        match &self.storage {
            Storage::Encoded(encoded) => encoded.examined(row),
            Storage::Pixels(pixels) => Ok((pixels.with(row, blake3::hash)?, pixels.picture(row)?)),
            Storage::Matrix(_) | Storage::Memory { .. } => Err(self.no_images()),
        }
    }

    /// The type of the numbers in the file, of embeddings only.
    pub(crate) fn stored_type(&self) -> Option<&'static str> {
        if let Storage::Matrix(matrix) = &self.storage { Some(matrix.stored) } else { None }
    }

    /// Writes example `row` to `out`, pixels as the framing says.
    ///
    /// # Errors
    /// When its image cannot be decoded, or the file cannot be read any more.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as long as the shape says.
    pub fn read(&self, row: usize, out: &mut [f32]) -> Result<(), DataError> {
        assert!(row < self.len(), "row {row} of {}", self.len());
        assert_eq!(out.len(), self.shape().len(), "out must have the shape of one example");
        match &self.storage {
            Storage::Pixels(pixels) => pixels.read(row, out),
            Storage::Encoded(encoded) => encoded.read(row, out),
            Storage::Matrix(_) | Storage::Memory { .. } => self.read_numbers(row, out),
        }
    }

    /// Writes as many rows as fill `out`.
    fn read_numbers(&self, first: usize, out: &mut [f32]) -> Result<(), DataError> {
        match &self.storage {
            Storage::Matrix(matrix) => matrix.read(first, out),
            Storage::Memory { values, shape } => {
                out.copy_from_slice(&values[first * shape.len()..][..out.len()]);
                Ok(())
            }
            Storage::Pixels(_) | Storage::Encoded(_) => unreachable!("images are read one by one"),
        }
    }

    /// Writes example `row` to `out` as training sees it in this epoch; `key` names the example.
    ///
    /// # Errors
    /// When its image cannot be decoded, or the inputs are not images.
    ///
    /// # Panics
    /// If there is no such row, or `out` is not as long as the augmenter's frame says.
    pub fn read_augmented(
        &self,
        row: usize,
        augmenter: &Augmenter,
        seed: u64,
        epoch: usize,
        key: u64,
        out: &mut [f32],
    ) -> Result<(), DataError> {
        assert!(row < self.len(), "row {row} of {}", self.len());
        let picture = match self.encoded() {
            Some(encoded) => encoded.decoded_as(row, |bytes| {
                augmenter.apply_encoded(bytes, Limits::DEFAULT, seed, epoch, key)
            })?,
            None => augmenter.apply(&self.picture(row)?, seed, epoch, key),
        };
        augmenter.frame().numbers(&picture, out);
        Ok(())
    }

    /// How these inputs are framed in evaluation; `None` where they are not images.
    pub fn frame(&self, framing: &Framing) -> Option<Frame> {
        let InputShape::Image { height, width, .. } = self.shape() else { return None };
        let has_pixels = matches!(self.storage, Storage::Encoded(_) | Storage::Pixels(_));
        has_pixels.then(|| Frame::new(framing, width, height))
    }

    /// Feeds shape and content to `hasher`, and checks in the same pass that all numbers are
    /// finite.
    ///
    /// The same numbers give the same fingerprint whatever file format or float width holds
    /// them. Encoded images count by all their names and sizes, and the bytes of at most 1,024 of
    /// them, chosen by the hash of their names.
    pub fn fingerprint_into(&self, hasher: &mut blake3::Hasher) -> Result<(), DataError> {
        let (rows, width) = (self.len(), self.shape().len());
        hasher.update(format!("{:?} × {rows}\n", self.shape()).as_bytes());
        match &self.storage {
            Storage::Encoded(encoded) => return encoded.fingerprint_into(hasher),
            Storage::Pixels(pixels) => {
                for row in 0..rows {
                    pixels.with(row, |bytes| {
                        hasher.update(bytes);
                    })?;
                }
                return Ok(());
            }
            Storage::Matrix(_) | Storage::Memory { .. } => {}
        }
        let block = (BLOCK_FLOATS / width).clamp(1, rows);
        let mut values = vec![0.0; block * width];
        let mut bytes = vec![0; 4 * values.len()];
        for first in (0..rows).step_by(block) {
            let values = &mut values[..block.min(rows - first) * width];
            self.read_numbers(first, values)?;
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                let (row, column, value) = (first + at / width, at % width, values[at]);
                let message = format!(
                    "row {row}, column {column} is {value} as float32; every number must be \
                     finite: remove the row or replace the number"
                );
                return Err(DataError::invalid(&self.name, message));
            }
            let bytes = &mut bytes[..4 * values.len()];
            for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                *bytes = value.to_le_bytes();
            }
            hasher.update(bytes);
        }
        Ok(())
    }

    /// A phrase for messages: how many examples of what shape, from where.
    ///
    /// ```
    /// use aleator_data::inputs::{InputShape, Inputs};
    ///
    /// let inputs = Inputs::in_memory(vec![0.0; 6], InputShape::Features(3));
    /// assert_eq!(inputs.describe(), "2 vectors of 3 numbers from memory");
    /// ```
    pub fn describe(&self) -> String {
        let stored = self.stored_type().map_or(String::new(), |stored| format!(" ({stored})"));
        format!("{} {}{stored} from {}", self.len(), self.shape(), self.name)
    }
}
