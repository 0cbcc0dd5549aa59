//! Anything that turns images into features.

use crate::error::EmbedError;
use crate::signature::{InputSpec, Reading};

/// Something that turns every image into one vector.
///
/// An ONNX network is one ([`OnnxNetwork`](crate::OnnxNetwork)); implement these three methods to
/// use another with [`embed`](crate::embed).
///
/// ```
/// use aleator_embed::{EmbedError, Extractor, Identity, Images, InputSpec};
///
/// /// The mean of each colour.
/// struct MeanColour;
///
/// impl Extractor for MeanColour {
///     fn identity(&self) -> Identity {
///         Identity::from([("model", "mean colour".into())])
///     }
///     fn input(&self) -> InputSpec {
///         InputSpec::OPEN
///     }
///     fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
///         let plane = images.height * images.width;
///         let mean = |plane: &[f32]| plane.iter().sum::<f32>() / plane.len() as f32;
///         Ok(images.values.chunks_exact(plane).map(mean).collect())
///     }
/// }
/// let image = Images { values: &[1.0, 3.0, 0.0, 0.0, 8.0, 6.0], count: 1, height: 1, width: 2 };
/// assert_eq!(MeanColour.extract(&image).unwrap(), [2.0, 0.0, 7.0]);
/// ```
pub trait Extractor {
    /// Everything that determines the features: the model's name and hash, the runtime. It is
    /// stored in the file, and an unfinished file is resumed only if it is the same.
    fn identity(&self) -> Identity;

    /// The images that it accepts.
    fn input(&self) -> InputSpec;

    /// The features of some images, `[count, D]`. D is the same in every call.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError>;

    /// How the output of a network is read; known after the first images.
    fn reading(&self) -> Option<Reading> {
        None
    }
}

/// Images of one size, one after the other, in the layout of the extractor.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    /// `[count, channels, height, width]` or `[count, height, width, channels]`.
    pub values: &'a [f32],
    /// How many; never 0.
    pub count: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
}

/// Everything that determines the features, as (name, value).
pub type Identity = std::collections::BTreeMap<&'static str, String>;
