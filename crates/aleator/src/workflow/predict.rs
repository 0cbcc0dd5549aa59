//! `Predictor`: a trained run applied to new examples.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use aleator_data::{Ids, InputShape, Inputs};
use aleator_run::recipe::{Framing, InputSource};
use aleator_train::{Prediction, load_run};

use crate::workflow::error::Error;
use crate::workflow::watch::{Event, Watch};

/// A trained run, ready to predict. The data that it was trained on are not needed.
///
/// ```no_run
/// use aleator::{Predictor, Watch};
///
/// let predictor = Predictor::open("run".as_ref(), &mut Watch::silent())?;
/// let examples = predictor.examples("new.npy".as_ref())?;
/// let prediction = predictor.predict(&examples)?;
/// for row in 0..examples.len() {
///     let described = prediction.describe(row);
///     println!("{}: {:?}", described.id, described.classes);
/// }
/// # Ok::<(), aleator::Error>(())
/// ```
pub struct Predictor {
    predictor: aleator_train::Predictor,
    framing: Framing,
    batch: usize,
}

/// New examples, without labels.
#[derive(Debug)]
pub struct Examples {
    inputs: Arc<Inputs>,
    ids: Ids,
}

impl Examples {
    /// Rows of numbers in C order; ids are the row numbers.
    ///
    /// # Errors
    /// When the numbers are not whole rows of this shape, or one is not finite.
    pub fn of_rows(values: Vec<f32>, shape: InputShape) -> Result<Self, Error> {
        let width = shape.len();
        if !values.len().is_multiple_of(width) {
            return Err(Error::invalid(format!(
                "{} numbers are not whole rows of {shape}",
                values.len()
            )));
        }
        let inputs = Arc::new(Inputs::in_memory(values, shape));
        let ids = Ids::Rows(inputs.len());
        check_finite("the array", &inputs)?;
        Ok(Self { inputs, ids })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Predictor {
    /// Opens a trained run: the weights that were evaluated last, and their calibration.
    ///
    /// # Errors
    /// When the directory is not a trained run, or its checkpoints are damaged.
    pub fn open(dir: &Path, watch: &mut Watch<'_>) -> Result<Self, Error> {
        let (run, recipe) = load_run(dir)?;
        let predictor = aleator_train::Predictor::new(&run, &recipe, &mut |event| {
            watch.event(Event::Training { run: "", event });
        })?;
        Ok(Self { predictor, framing: recipe.data.framing, batch: recipe.evaluation.batch })
    }

    /// The shape of an example.
    pub fn shape(&self) -> InputShape {
        self.predictor.shape()
    }

    /// The names of the classes, `[K]`.
    pub fn class_names(&self) -> &[String] {
        self.predictor.class_names()
    }

    /// Opens embeddings or images of the kind that the run was trained on.
    ///
    /// # Errors
    /// When they cannot be read, have another shape, or hold a number that is not finite.
    pub fn examples(&self, path: &Path) -> Result<Examples, Error> {
        let shape = self.shape();
        let source = match shape {
            InputShape::Features(_) => InputSource::Features(path.display().to_string()),
            InputShape::Image { .. } => InputSource::images(path),
        };
        let opened = Inputs::open_unlabelled(&source, &self.framing)?;
        let inputs = opened.inputs;
        if inputs.shape() != shape {
            let (place, found) = (path.display(), inputs.shape());
            return Err(Error::invalid(format!(
                "{place}: the run was trained on {shape}, and these are {found}"
            )));
        }
        check_finite(&path.display().to_string(), &inputs)?;
        let ids = match opened.ids {
            Some(names) => Ids::named(names, path)?,
            None => Ids::Rows(inputs.len()),
        };
        Ok(Examples { inputs, ids })
    }

    /// Predicts all examples.
    ///
    /// # Errors
    /// When an image cannot be decoded, or a prediction is not finite.
    pub fn predict(&self, examples: &Examples) -> Result<Prediction, Error> {
        let mut pieces = self.predict_pieces(examples);
        let first = pieces.next().ok_or_else(|| Error::invalid("there are no examples"))?;
        pieces.try_fold(first?, |mut all, piece| {
            all.append(piece?);
            Ok(all)
        })
    }

    /// Predicts examples piece by piece, so that only one piece is in memory.
    pub fn predict_pieces<'a>(
        &'a self,
        examples: &'a Examples,
    ) -> impl Iterator<Item = Result<Prediction, Error>> + 'a {
        let total = examples.len();
        let piece = move |start: usize| start..total.min(start + self.batch);
        (0..total).step_by(self.batch).map(move |start| self.predict_rows(examples, piece(start)))
    }

    fn predict_rows(&self, examples: &Examples, rows: Range<usize>) -> Result<Prediction, Error> {
        Ok(self.predictor.predict(&examples.inputs, &examples.ids, rows)?)
    }
}

/// Refuses features that no model can answer for.
fn check_finite(place: &str, inputs: &Inputs) -> Result<(), Error> {
    let InputShape::Features(width) = inputs.shape() else { return Ok(()) };
    let mut example = vec![0.0; width];
    for row in 0..inputs.len() {
        inputs.read(row, &mut example)?;
        if let Some(column) = example.iter().position(|value| !value.is_finite()) {
            return Err(Error::invalid(format!(
                "{place}: row {row}, column {column} is {}; every number must be finite: remove \
                 the row or replace the number",
                example[column]
            )));
        }
    }
    Ok(())
}
