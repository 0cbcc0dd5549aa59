//! `Predictor`: a trained run, or an ensemble of runs, applied to new examples.

mod write;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use aleator_data::{Ids, InputShape, Inputs, Sources, Split};
use aleator_run::recipe::{InputSource, Link, Recipe, Source};
use aleator_run::{EnsembleFile, EvaluatedRun, GroupKind, RunDir, RunGroup, RunTree};
use aleator_train::{PredictedPiece, Prediction, load_run};

pub use write::{PredictionColumns, PredictionFile, write_json_line};

use crate::Error;
use crate::workflow::class_name::class_of;

/// A trained run, or an ensemble of runs, ready to predict. The data that it was trained on are
/// not needed.
///
/// A prediction depends on the example and the run alone: not on the example's row, its name, or
/// the examples that it is predicted with.
///
/// ```no_run
/// use aleator::Predictor;
///
/// let predictor = Predictor::open("run".as_ref())?;
/// let examples = predictor.examples("new.npy".as_ref())?;
/// let prediction = predictor.predict(&examples)?;
/// for row in 0..examples.len() {
///     let described = prediction.describe(row, None);
///     println!("{}: {:?}", described.id, described.classes);
/// }
/// # Ok::<(), aleator::Error>(())
/// ```
pub struct Predictor {
    pub(crate) predictor: aleator_train::Predictor,
    recipe: Recipe,
    /// The features of the table that the run was trained on.
    features: Option<Vec<String>>,
}

/// New examples, without labels.
#[derive(Debug)]
pub struct Examples {
    inputs: Arc<Inputs>,
    ids: Ids,
}

impl Examples {
    /// The number of examples.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether ids are more than the numbers of rows.
    fn has_names(&self) -> bool {
        matches!(self.ids, Ids::Names(_))
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.len()).map(|row| self.ids.name(row).into_owned())
    }
}

impl Predictor {
    /// Opens a trained run: the weights that were evaluated last, and their calibration; or runs
    /// of several seeds or an ensemble, whose probabilities are averaged.
    ///
    /// # Errors
    /// When the directory is not a trained run, or the checkpoint is damaged; no other one is taken.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_at(dir, None)
    }

    /// As [`open`](Self::open); with a step, the weights of that checkpoint of a single run, without
    /// the calibration and the law of the true class unless they are its own. Everything that is
    /// predicted then names the step.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when several runs are to predict at one step.
    pub fn open_at(dir: &Path, checkpoint: Option<usize>) -> Result<Self, Error> {
        let tree = RunTree::open(dir)?;
        let ensemble = EnsembleFile::load(dir)?;
        if checkpoint.is_some() && (ensemble.is_some() || matches!(tree, Some(RunTree::Group(_)))) {
            let message = "holds several runs: name a checkpoint of one of them";
            return Err(Error::invalid(message).at(dir.display().to_string()));
        }
        if let Some(RunTree::Group(group)) = tree {
            let ensemble = ensemble_of(&group)?;
            return Self::open(ensemble.dir.path());
        }
        if let Some(ensemble) = ensemble {
            let evaluation = EvaluatedRun::open(dir)?.evaluation;
            let members = ensemble.dirs(dir).into_iter().map(|member| {
                load_run(&member).map_err(|error| {
                    Error::from(error).at(format!("{}: a member is missing", dir.display()))
                })
            });
            let members: Vec<(RunDir, Recipe)> = members.collect::<Result<_, _>>()?;
            let predictor = aleator_train::Predictor::ensemble(&members, &evaluation)?;
            let (first, recipe) = &members[0];
            let features = first.info().feature_names.clone();
            return Ok(Self { predictor, recipe: recipe.clone(), features });
        }
        let (run, recipe) = load_run(dir)?;
        let predictor = aleator_train::Predictor::new(&run, &recipe, checkpoint)?;
        let features = run.info().feature_names.clone();
        Ok(Self { predictor, recipe, features })
    }

    /// The step of the checkpoint, where the caller named it.
    pub fn checkpoint(&self) -> Option<usize> {
        self.predictor.checkpoint
    }

    /// Whether one class is right, or each is on or off.
    pub fn link(&self) -> Link {
        self.recipe.head.link
    }

    /// Whether it gives the probability of the true class.
    pub fn knows_true_class(&self) -> bool {
        self.predictor.knows_true_class()
    }

    /// Whether it says which labels go together: a single run of a joint likelihood.
    pub fn knows_sets(&self) -> bool {
        self.predictor.knows_sets()
    }

    /// Predicts given labels that are known of every example: these classes are on, those off.
    /// Probabilities of all other classes, and the most probable set, change accordingly.
    ///
    /// ```no_run
    /// use aleator::Predictor;
    ///
    /// // The photographs are known to show a beach.
    /// let predictor = Predictor::open("run".as_ref())?.given(&["beach".into()], &[])?;
    /// # Ok::<(), aleator::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such class, one is named twice, or the run has not learned which labels go
    /// together (`head.likelihood = "joint"`).
    pub fn given(self, on: &[String], off: &[String]) -> Result<Self, Error> {
        let named = |name: &String, is_on: bool| {
            class_of(name, self.class_names()).map(|class| (class, is_on))
        };
        let all = on.iter().map(|name| named(name, true));
        let known = all.chain(off.iter().map(|name| named(name, false)));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        let Self { predictor, recipe, features } = self;
        Ok(Self { predictor: predictor.given(known)?, recipe, features })
    }

    /// Whether labels of the examples are known.
    pub fn is_given_labels(&self) -> bool {
        self.predictor.is_given_labels()
    }

    /// The shape of an example.
    pub fn shape(&self) -> InputShape {
        self.predictor.shape
    }

    /// The names of the classes, `[K]`.
    pub fn class_names(&self) -> &[String] {
        &self.predictor.class_names
    }

    /// Examples in memory: rows of numbers in C order, of the shape of the run's examples; of
    /// images `[channels, height, width]`, scaled as by `data.pixel_values`. Ids are the row numbers.
    ///
    /// # Errors
    /// When there is no number, the numbers are not whole rows, or one is not finite.
    pub fn rows(&self, values: Vec<f32>) -> Result<Examples, Error> {
        let (shape, count) = (self.shape(), values.len());
        if count == 0 || !count.is_multiple_of(shape.len()) {
            return Err(Error::invalid(format!(
                "{count} numbers are not rows of {shape}: give {} for each example",
                shape.len()
            )));
        }
        let inputs = Inputs::in_memory(values, shape);
        check_finite(&inputs, "the array")?;
        Ok(Examples { ids: Ids::Rows(inputs.len()), inputs: Arc::new(inputs) })
    }

    /// Opens embeddings or images of the kind that the run was trained on. Where that was a table,
    /// a new table is read by the names of its columns, whatever their order and whatever further
    /// columns there are.
    ///
    /// # Errors
    /// When they cannot be read, have another shape, or hold a number that is not finite.
    pub fn examples(&self, path: &Path) -> Result<Examples, Error> {
        let (shape, source) = (self.shape(), self.inputs_at(path));
        let opened = match &self.features {
            Some(features) if Inputs::is_wide_table(path) => {
                let id = match &self.recipe.data.train.inputs {
                    InputSource::Table(table) => table.id.as_deref(),
                    _ => None,
                };
                Inputs::open_columns(path, features, id)?
            }
            _ => Inputs::open_unlabelled(&source, &self.recipe.data.framing)?,
        };
        let inputs = opened.inputs;
        self.check_shape(&inputs).map_err(|error| error.at(path.display().to_string()))?;
        if let InputShape::Features(_) = shape {
            check_finite(&inputs, &path.display().to_string())?;
        }
        let ids = match opened.ids {
            Some(names) => Ids::named(names, path)?,
            None => Ids::Rows(inputs.len()),
        };
        Ok(Examples { inputs, ids })
    }

    /// The embeddings or images at a path.
    pub(crate) fn inputs_at(&self, path: &Path) -> InputSource {
        match self.shape() {
            InputShape::Features(_) => InputSource::Features(path.display().to_string()),
            InputShape::Image { .. } => InputSource::images(path),
        }
    }

    /// All examples of a source, with labels of the run's classes.
    pub(crate) fn labelled(&self, source: &Source) -> Result<Split, Error> {
        let (shape, names) = (self.shape(), self.class_names());
        let (data, features) = (&self.recipe.data, self.features.as_deref());
        Ok(Sources::labelled(source, shape, names, data, self.link(), features)?)
    }

    /// Predicts all examples.
    ///
    /// # Errors
    /// When an image cannot be decoded, or a prediction is not finite.
    pub fn predict(&self, examples: &Examples) -> Result<Prediction, Error> {
        self.check_shape(&examples.inputs)?;
        let (inputs, ids) = (&examples.inputs, &examples.ids);
        let mut pieces =
            self.pieces(examples).map(|rows| self.predictor.predict(inputs, ids, rows));
        let first = pieces.next().ok_or_else(|| Error::invalid("there are no examples"))?;
        pieces.try_fold(first?, |mut all, piece| {
            all.append(piece?);
            Ok(all)
        })
    }

    /// Predicts examples piece by piece, so that only one piece is in memory. Images that cannot be
    /// decoded are left out, and listed in their piece.
    pub fn predict_pieces<'a>(
        &'a self,
        examples: &'a Examples,
    ) -> impl Iterator<Item = Result<PredictedPiece, Error>> + 'a {
        self.pieces(examples).map(|rows| {
            self.check_shape(&examples.inputs)?;
            Ok(self.predictor.predict_readable(&examples.inputs, &examples.ids, rows)?)
        })
    }

    /// The rows of each piece.
    fn pieces(&self, examples: &Examples) -> impl Iterator<Item = Range<usize>> + use<> {
        let (total, batch) = (examples.len(), self.recipe.evaluation.batch);
        (0..total).step_by(batch).map(move |start| start..total.min(start + batch))
    }

    /// Examples may have been opened for another run.
    fn check_shape(&self, inputs: &Inputs) -> Result<(), Error> {
        let (expected, found) = (self.shape(), inputs.shape());
        if found == expected {
            return Ok(());
        }
        let message = format!("the run was trained on {expected}, and these are {found}");
        Err(Error::invalid(message))
    }
}

/// The ensemble of a group of seeds.
fn ensemble_of(group: &RunGroup) -> Result<EvaluatedRun, Error> {
    if group.kind == GroupKind::Seeds {
        return group.ensemble()?.ok_or_else(|| group.unfinished().into());
    }
    let (dir, first) = (group.dir.display(), &group.members[0].name);
    Err(Error::invalid(format!(
        "{dir} holds {} runs that are no ensemble: give one of them, as {dir}/{first}, or average \
         some with `aleator ensemble`",
        group.members.len()
    )))
}

/// Refuses numbers that no model can answer for.
fn check_finite(inputs: &Inputs, place: &str) -> Result<(), Error> {
    let mut example = vec![0.0; inputs.shape().len()];
    for row in 0..inputs.len() {
        inputs.read(row, &mut example)?;
        if let Some(column) = example.iter().position(|value: &f32| !value.is_finite()) {
            return Err(Error::invalid(format!(
                "{place}: row {row}, column {column} is {}; every number must be finite: remove \
                 the row or replace the number",
                example[column]
            )));
        }
    }
    Ok(())
}
