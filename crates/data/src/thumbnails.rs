//! Pictures of examples by their ids, for pages and reviews.

mod encode;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_run::Split;
use aleator_run::recipe::{self, Data, Framing, HeldOut, InputSource};

use crate::error::{DataError, guarded};
use crate::ids::{IdIndex, Ids};
use crate::inputs::Inputs;
use crate::sources::source;
pub use encode::Thumbnail;

/// Pictures of a data set's examples: found by id, decoded when they are asked for.
///
/// They show the whole image, turned as its EXIF orientation says, even where the recipe crops it.
/// Images are never enlarged: those of few pixels are to be shown with hard edges.
///
/// ```
/// use aleator_data::Thumbnails;
/// use aleator_run::load;
///
/// let recipe = load("digits-none", &[], None)?.recipe;
/// let digits = Thumbnails::open(&recipe.data)?.expect("digits are images");
/// let first = digits.training("0", 64)?;
/// assert_eq!((first.width, first.height, first.media_type), (8, 8, "image/png"));
/// assert!(digits.training("1797", 64).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Thumbnails {
    training: Gallery,
    /// Where the validation split has a source of its own.
    validation: Option<Gallery>,
    /// Where the test split has a source of its own.
    test: Option<Gallery>,
}

/// Why there is no picture of an example.
#[derive(Debug, thiserror::Error)]
pub enum ThumbnailError {
    /// The data have no such example, or no longer.
    #[error("{}: has no image of the example {id:?}; was it moved or deleted?", images.display())]
    Unknown {
        /// The requested id.
        id: String,
        /// Where it should be.
        images: PathBuf,
    },
    /// Its image cannot be read or decoded.
    #[error(transparent)]
    Unreadable(#[from] DataError),
}

/// The images of one source.
#[derive(Debug)]
struct Gallery {
    /// For messages.
    path: PathBuf,
    inputs: Arc<Inputs>,
    rows: IdIndex,
}

/// Any size will do: what is shown is the image as it is stored. Without one all headers would
/// be read to see that they agree.
const FRAMING: Framing = Framing::sized(64);

impl Thumbnails {
    /// Opens the images that `data` names; `None` if its inputs are features. Neither labels nor
    /// contents are read.
    ///
    /// # Errors
    /// When the images no longer exist, or their ids have changed.
    pub fn open(data: &Data) -> Result<Option<Self>, DataError> {
        let Some(training) = Gallery::open(&data.train)? else { return Ok(None) };
        let own = |held_out: Option<&HeldOut>| {
            let gallery = source::own_source(held_out).map(Gallery::open).transpose()?;
            Ok::<_, DataError>(gallery.flatten())
        };
        let validation = own(Some(&data.validation))?;
        Ok(Some(Self { training, validation, test: own(data.test.as_ref())? }))
    }

    /// The images that features were made from: anything that can be predicted on. They belong
    /// to the training examples `ids`: those of the same id, or else, if the examples are named
    /// by their rows and there are as many images, those of the same row.
    ///
    /// # Errors
    /// When there are no images, or they match the examples in neither way.
    pub fn from_images(images: &Path, ids: &Ids) -> Result<Self, DataError> {
        let source = InputSource::Images(vec![images.to_path_buf()]);
        let opened = Inputs::open_unlabelled(&source, &FRAMING)?;
        let count = opened.inputs.len();
        let names = match opened.ids {
            Some(names) => Ids::named(names, images)?,
            None => Ids::Rows(count),
        };
        let by_id = IdIndex::new(names);
        let alike = (0..ids.len()).any(|index| by_id.row(&ids.name(index)).is_some());
        let rows = match (ids, by_id.ids()) {
            (Ids::Rows(rows), _) if *rows == count => IdIndex::new(Ids::Rows(count)),
            (Ids::Names(_), Ids::Names(_)) if alike => by_id,
            _ => return Err(misfit(images, by_id.ids(), ids)),
        };
        let training = Gallery { path: images.to_path_buf(), inputs: opened.inputs, rows };
        Ok(Self { training, validation: None, test: None })
    }

    /// An example of the training source, in whichever split it is, with at most `side` pixels
    /// a side.
    pub fn training(&self, id: &str, side: usize) -> Result<Thumbnail, ThumbnailError> {
        self.training.thumbnail(id, side)
    }

    /// An example of a split, with at most `side` pixels a side.
    pub fn of_split(
        &self,
        split: Split,
        id: &str,
        side: usize,
    ) -> Result<Thumbnail, ThumbnailError> {
        let own = match split {
            Split::Train => None,
            Split::Validation => self.validation.as_ref(),
            Split::Test => self.test.as_ref(),
        };
        own.unwrap_or(&self.training).thumbnail(id, side)
    }

    /// The file of a training example's image, where it has one of its own.
    pub fn path(&self, id: &str) -> Option<PathBuf> {
        let row = self.training.rows.row(id)?;
        self.training.inputs.file(row)
    }
}

impl Gallery {
    fn open(source: &recipe::Source) -> Result<Option<Self>, DataError> {
        if source.inputs.are_features() || matches!(source.inputs, InputSource::Memory(_)) {
            return Ok(None);
        }
        let (opened, ids) = source::inputs_and_ids(source, &FRAMING, None)?;
        let path = source::path_of(&source.inputs);
        Ok(Some(Self { path, inputs: opened.inputs, rows: IdIndex::new(ids) }))
    }

    fn thumbnail(&self, id: &str, side: usize) -> Result<Thumbnail, ThumbnailError> {
        let Some(row) = self.rows.row(id) else {
            return Err(ThumbnailError::Unknown { id: id.to_string(), images: self.path.clone() });
        };
        let picture = self.inputs.picture(row)?;
        Ok(guarded(&self.path, || Ok(Thumbnail::of(&picture, side)))?)
    }
}

fn misfit(path: &Path, images: &Ids, examples: &Ids) -> DataError {
    let called = |ids: &Ids| match ids {
        Ids::Names(_) => format!("named as {:?}", ids.name(0)),
        Ids::Rows(_) | Ids::Selected(_) => "named by their rows".to_string(),
    };
    let message = format!(
        "its {} images ({}) fit the {} examples ({}) neither by their ids nor, in equal number, by \
         their rows; give the images that the features were made from",
        images.len(),
        called(images),
        examples.len(),
        called(examples),
    );
    DataError::invalid(path, message)
}
