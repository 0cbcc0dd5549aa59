//! `count_parameters`: how many numbers the model of a recipe learns.

use aleator_data::{InputShape, Sources};
use aleator_model::ParameterCounts;
use aleator_run::recipe::{DataOverlay, HeldOut, InputSource, Layers, Overlay, Source};
use aleator_run::{Recipe, RecipeError, load_over};

use crate::Error;

/// What the caller knows of the data of a recipe, in place of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownShape {
    /// K.
    pub classes: Option<usize>,
    /// The numbers of an example; for recipes of embeddings and tables.
    pub features: Option<usize>,
}

/// The size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSize {
    /// One example.
    pub input: InputShape,
    /// K.
    pub classes: usize,
    /// The numbers that each part learns.
    pub counts: ParameterCounts,
}

/// How many numbers the model of a recipe learns. Nothing is trained and no weights are made; data
/// are opened only where the recipe names them and `known` is not enough.
///
/// ```
/// use aleator::{KnownShape, count_parameters};
///
/// let known = KnownShape { classes: Some(1000), features: None };
/// let size = count_parameters("ilsvrc12/full", &[], known)?;
/// assert_eq!(size.counts.total(), Some(92_969_128));
/// # Ok::<(), aleator::Error>(())
/// ```
///
/// # Errors
/// When the recipe cannot be loaded, or a size depends on data that are not there.
pub fn count_parameters(
    recipe: &str,
    sets: &[String],
    known: KnownShape,
) -> Result<ModelSize, Error> {
    let (loaded, has_data) = without_data(recipe, sets)?;
    let known =
        KnownShape { classes: known.classes.or(loaded.data.classes), features: known.features };
    let (input, classes) = match (input_of(&loaded, known), known.classes) {
        (Some(input), Some(classes)) => (input, classes),
        (input, classes) if has_data => {
            let sources = Sources::open(&loaded.data, loaded.head.link)?;
            let found = sources.class_names().len();
            (input.unwrap_or_else(|| sources.shape()), classes.unwrap_or(found))
        }
        (input, _) => {
            let (what, flag, key) = match input {
                None => ("features", "--features D", "--set data.train.features=FILE"),
                Some(_) => ("classes", "--classes K", "--set data.train.images=PATH"),
            };
            return Err(Error::invalid(format!(
                "{recipe}: the number of {what} depends on data that are not there: give it by \
                 {flag}, or name the data by {key}"
            )));
        }
    };
    let counts = aleator_train::count_parameters(&loaded, input, classes)?;
    Ok(ModelSize { input, classes, counts })
}

/// Loads a recipe that need not name its data, and says whether it does.
fn without_data(recipe: &str, sets: &[String]) -> Result<(Recipe, bool), Error> {
    let mut overlay = Overlay { origin: "no data".to_string(), ..Overlay::default() };
    loop {
        let loaded = load_over(recipe, &overlay, sets, None);
        let lacks = |split: &str| matches!(&loaded, Err(RecipeError::Missing { key, .. }) if key.starts_with(split));
        let DataOverlay { train, validation, .. } = &mut overlay.data;
        if lacks("data.train.") && train.is_none() {
            *train = Some(Source::of(InputSource::Memory(String::new())));
        } else if lacks("data.validation.") && validation.is_none() {
            *validation = Some(HeldOut::Fraction { fraction: 0.5, seed: 0 });
        } else {
            return Ok((loaded?.recipe, train.is_none()));
        }
    }
}

/// The inputs of a recipe, if it or the caller says what they are.
fn input_of(recipe: &Recipe, known: KnownShape) -> Option<InputShape> {
    let framing = recipe.data.framing;
    let smallest = match &recipe.network.layers {
        Layers::None | Layers::Mlp { .. } => return known.features.map(InputShape::Features),
        Layers::Conv { .. } => 1,
        Layers::Image { network, .. } => network.smallest_image(),
    };
    // Convolutions have as many weights for images of any size.
    let side = framing.size.unwrap_or(smallest);
    let channels = framing.channels.unwrap_or(3);
    Some(InputShape::Image { channels, height: side, width: side })
}
