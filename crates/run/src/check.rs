//! What no key of a recipe can know alone, and the decoding of whole recipes.

use std::collections::BTreeSet;

use crate::check_method::{check_method, forget_other_methods};
use crate::decode::decode;
use crate::document::{Document, Value};
use crate::presets::example;
use crate::recipe::{
    Annotations, Crop, Data, Decay, EvaluatedWeights, Framing, Head, HeldOut, ImageNetwork,
    LabelKind, Layers, Likelihood, Link, Method, NoiseKind, Pretraining, Recipe, Rule, Tune,
    WarmUp,
};
use crate::recipe_error::RecipeError;
use crate::schema::Shape;

impl Recipe {
    /// Reads a complete recipe, as [`Recipe::to_toml`] writes it. Messages call it `name`.
    ///
    /// # Errors
    /// When it is no TOML, lacks a key, or has one that is unknown or has an impossible value.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, RecipeError> {
        Document::parse(text, name)?.recipe()
    }

    /// Refuses a recipe that could not be loaded: call it after changing one.
    ///
    /// ```
    /// let mut recipe = aleator_run::load("digits-full", &[], None)?.recipe;
    /// recipe.training.batch = 0;
    /// let message = recipe.check().unwrap_err().to_string();
    /// assert!(message.contains("training.batch must be an integer from 1"), "{message}");
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    ///
    /// # Errors
    /// When a value is impossible, alone or together with another, or a path is not Unicode.
    pub fn check(&self) -> Result<(), RecipeError> {
        let written = Document::of(self);
        if written.recipe()? == *self {
            return Ok(());
        }
        let message = "a path cannot be written, since it is not Unicode: rename it";
        Err(written.refuse("", message))
    }
}

impl Document {
    /// The recipe that this document describes, if it is complete.
    ///
    /// ```
    /// use aleator_run::Document;
    ///
    /// let mut document = Document::preset("digits-full")?;
    /// document.set("head.rank=0")?;
    /// let error = document.recipe().unwrap_err().to_string();
    /// assert!(error.starts_with("--set head.rank=0: head.rank must be"), "{error}");
    /// # Ok::<(), aleator_run::RecipeError>(())
    /// ```
    pub fn recipe(&self) -> Result<Recipe, RecipeError> {
        for key in ["base", "without"] {
            if let Some(node) = self.root.get(key) {
                return Err(node.origin.refuse(format!(
                    "{key} must stand in a recipe file; on the command line name the recipe itself"
                )));
            }
        }
        let mut document = self.clone();
        // This switches the noise of any recipe off; its settings may stay.
        if self.get("head.noise").is_some_and(|node| node.value.is_text("none")) {
            document.remove("head.rank");
        }
        forget_other_methods(&mut document)?;
        let decoded = decode(&document, Shape::recipe(), example);
        // What is missing depends on the way in which a split is given.
        if matches!(decoded, Ok(_) | Err(RecipeError::Missing { .. })) {
            ["train", "validation", "test"]
                .iter()
                .try_for_each(|split| document.check_split(split))?;
        }
        let recipe: Recipe = decoded.map_err(|error| self.suggest_epsilon(error))?;
        check_together(&recipe).map_err(|(key, message)| document.refuse(&key, message))?;
        Ok(recipe)
    }

    /// A missing `norm_epsilon` is suggested as the weights of the network were trained with it.
    fn suggest_epsilon(&self, mut error: RecipeError) -> RecipeError {
        let kind = match self.get("network.kind").map(|node| &node.value) {
            Some(Value::String(name)) => ImageNetwork::from_name(name),
            _ => None,
        };
        if let (RecipeError::Missing { key, placeholder, .. }, Some(network)) = (&mut error, kind)
            && key == "network.norm_epsilon"
        {
            *placeholder = Some(format!("{:e}", Pretraining::of(network).norm_epsilon));
        }
        error
    }
}

/// Values that cannot be meant together: the key to change, and the message.
pub(crate) type Conflict = (String, String);

pub(crate) fn require(
    holds: bool,
    key: &str,
    message: impl FnOnce() -> String,
) -> Result<(), Conflict> {
    if holds { Ok(()) } else { Err((key.to_string(), message())) }
}

fn check_together(recipe: &Recipe) -> Result<(), Conflict> {
    let mut seen = BTreeSet::new();
    for seed in &recipe.seeds {
        require(seen.insert(seed), "seeds", || format!("seeds: {seed} stands twice"))?;
    }
    check_data(&recipe.data)?;
    check_network(recipe)?;
    check_schedule(recipe)?;
    check_method(recipe)?;
    let multi_hot = recipe.data.label_kind == LabelKind::MultiHot;
    require(!(multi_hot && recipe.head.link == Link::Softmax), "head.link", || {
        "head.link = \"softmax\" is for labels of one class, and data.label_kind is \"multi-hot\": \
         take head.link = \"sigmoid\""
            .to_string()
    })?;
    check_likelihood(recipe)?;
    check_optimizer(recipe)?;
    let still =
        matches!(recipe.optimizer.rule, Rule::Sgd { momentum, nesterov: true } if momentum == 0.0);
    require(!still, "optimizer.nesterov", || {
        "optimizer.nesterov = true needs optimizer.momentum above 0".to_string()
    })
}

/// A likelihood is for labels of its kind, and a temperature is fitted to classes one by one.
fn check_likelihood(recipe: &Recipe) -> Result<(), Conflict> {
    let Head { link, likelihood, .. } = recipe.head;
    require(likelihood != Likelihood::Joint || link == Link::Sigmoid, "head.likelihood", || {
        "head.likelihood = \"joint\" is for several labels at once: it needs head.link = \
         \"sigmoid\""
            .to_string()
    })?;
    let expands = matches!(likelihood, Likelihood::Expansion | Likelihood::LogExpansion);
    require(!expands || link == Link::Softmax, "head.likelihood", || {
        "head.likelihood: an expansion is for labels of one class: it needs head.link = \
         \"softmax\"; with \"sigmoid\" the likelihood is exact without it"
            .to_string()
    })?;
    let scaled = likelihood == Likelihood::Joint && recipe.evaluation.calibrate;
    require(!scaled, "evaluation.calibrate", || {
        "evaluation.calibrate fits a temperature to each class by itself, which would change \
         nothing about the labels together (head.likelihood = \"joint\"): remove it"
            .to_string()
    })
}

/// L-BFGS needs an objective that stays the same.
fn check_optimizer(recipe: &Recipe) -> Result<(), Conflict> {
    let whole = matches!(recipe.optimizer.rule, Rule::Lbfgs { .. });
    require(whole || recipe.tune == Tune::Off, "tune", || {
        "tune = \"auto\" needs optimizer.kind = \"lbfgs\"; with another optimizer take tune = \
         \"off\""
            .to_string()
    })?;
    let last = recipe.evaluation.weights == EvaluatedWeights::Last;
    require(!recipe.optimizer.rule.refits() || last, "evaluation.weights", || {
        "evaluation.weights = \"best\" needs optimizer.refit = false: in the end the validation \
         examples, by which the best weights are found, are trained on too"
            .to_string()
    })?;
    for (given, key) in [
        (recipe.method != Method::Plain, "method"),
        (recipe.training.ema.is_some(), "training.ema"),
        (recipe.optimizer.clip_norm.is_some(), "optimizer.clip_norm"),
        (recipe.optimizer.network_rate.is_some(), "optimizer.network_rate"),
        (recipe.data.augment.is_some(), "data.augment"),
    ] {
        require(!(whole && given), key, || {
            format!("{key} changes {UNSTEADY}: remove it, or {TRAIN_IN_BATCHES}")
        })?;
    }
    let sampled = recipe.data.annotations == Annotations::Sampled;
    require(!(whole && sampled), "data.annotations", || {
        let steady = match recipe.head.link {
            Link::Softmax => "\"each\" (every annotation counts) or \"majority\"",
            Link::Sigmoid => "\"majority\"",
        };
        format!(
            "data.annotations = \"sampled\" changes {UNSTEADY}: take {steady}, or \
             {TRAIN_IN_BATCHES}"
        )
    })
}

const UNSTEADY: &str = "what every step minimises, which optimizer.kind = \"lbfgs\" does not allow";
/// What turns the presets with L-BFGS into recipes for Adam.
const TRAIN_IN_BATCHES: &str = "train in batches: --set tune=off --set optimizer.kind=adam --set \
    optimizer.beta1=0.9 --set optimizer.beta2=0.999 --set optimizer.epsilon=1e-8 --set \
    optimizer.learning_rate=5e-3 --set optimizer.memory= --set optimizer.tolerance= --set \
    optimizer.refit= --set training.validate_every= --set training.batch=256 --set \
    training.parts=1 --set schedule.epochs=20";

fn check_network(recipe: &Recipe) -> Result<(), Conflict> {
    let network = &recipe.network;
    let (kind, wants_images) = match &network.layers {
        Layers::None => ("none", false),
        Layers::Mlp { .. } => ("mlp", false),
        Layers::Conv { .. } => ("conv", true),
        Layers::Image { network, .. } => (network.name(), true),
    };
    let on_features = recipe.data.train.inputs.are_features();
    require(!(wants_images && on_features), "network.kind", || {
        format!(
            "network.kind = {kind:?} needs images, and data.train has features: give \
             data.train.images, or take network.kind = \"mlp\""
        )
    })?;
    let has_layers = network.layers != Layers::None;
    for (given, key) in
        [(network.pretrained.is_some(), "network.pretrained"), (network.frozen, "network.frozen")]
    {
        require(has_layers || !given, key, || {
            format!("{key} is for networks with layers, and network.kind is \"none\"; remove it")
        })?;
    }
    Ok(())
}

fn check_schedule(recipe: &Recipe) -> Result<(), Conflict> {
    let epochs = recipe.schedule.epochs as f64;
    if let WarmUp::Epochs(warm_up) = recipe.schedule.warm_up {
        require((0.0..=epochs).contains(&warm_up), "schedule.warm_up", || {
            format!(
                "schedule.warm_up must be from 0 to schedule.epochs = {epochs}, found {warm_up:?}"
            )
        })?;
    }
    let Decay::Steps { at, .. } = &recipe.schedule.decay else { return Ok(()) };
    for (index, drop) in at.iter().enumerate() {
        let key = format!("schedule.at[{index}]");
        require(*drop > 0.0 && *drop < epochs, &key, || {
            format!("{key} must be above 0 and below schedule.epochs = {epochs}, found {drop:?}")
        })?;
    }
    require(at.is_sorted_by(|a, b| a < b), "schedule.at", || {
        format!("schedule.at must be ascending epochs, found {at:?}")
    })
}

fn check_data(data: &Data) -> Result<(), Conflict> {
    check_images(data)?;
    if let Some(HeldOut::Fold { fold, folds, .. }) = &data.test {
        require(fold < folds, "data.test.fold", || {
            let last = folds - 1;
            format!("data.test.fold must be an integer from 0 to {last}, found {fold}")
        })?;
    }
    if let (HeldOut::Count { count, .. }, Some(limit)) = (&data.validation, data.limit) {
        require(*count < limit, "data.validation.count", || {
            format!(
                "data.validation.count = {count} leaves nothing to train on of the {limit} examples \
                 of data.limit"
            )
        })?;
    }
    if let HeldOut::Fraction { fraction: validation, .. } = &data.validation {
        let (key, test) = match &data.test {
            Some(HeldOut::Fraction { fraction, .. }) => ("data.test.fraction", *fraction),
            Some(HeldOut::Fold { folds, .. }) => ("data.test.folds", 1.0 / *folds as f64),
            Some(HeldOut::Count { .. } | HeldOut::Source(_)) | None => ("", 0.0),
        };
        require(validation + test < 1.0, key, || {
            format!(
                "data.validation.fraction = {validation} and the {test} of the examples that {key} \
                 holds out leave nothing to train on"
            )
        })?;
    }
    let last = data.classes.unwrap_or(1 << 24) - 1;
    match data.noise.as_ref().map(|noise| &noise.kind) {
        Some(NoiseKind::Pairwise { pairs, .. }) => check_pairs(pairs, last),
        Some(NoiseKind::Latent { covariances, .. }) => check_covariances(covariances, last),
        _ => Ok(()),
    }
}

fn check_covariances(covariances: &[(usize, usize, f64)], last: usize) -> Result<(), Conflict> {
    let mut seen = BTreeSet::new();
    for (index, (first, second, _)) in covariances.iter().enumerate() {
        let key = format!("data.noise.covariances[{index}]");
        require(first.max(second) <= &last, &key, || {
            format!(
                "{key} must have classes, each an integer from 0 to {last}, found {first}, {second}"
            )
        })?;
        require(first != second, &key, || {
            format!(
                "{key} must have two different classes, found {first} twice; for one class set \
                     data.noise.scale"
            )
        })?;
        require(seen.insert((first.min(second), first.max(second))), &key, || {
            format!("{key} repeats the classes {first} and {second}; give their covariance once")
        })?;
    }
    Ok(())
}

fn check_pairs(pairs: &[(usize, usize)], last: usize) -> Result<(), Conflict> {
    let mut seen = BTreeSet::new();
    for (index, (from, to)) in pairs.iter().enumerate() {
        let key = format!("data.noise.pairs[{index}]");
        require(from.max(to) <= &last, &key, || {
            format!("{key} must be classes, each an integer from 0 to {last}, found [{from}, {to}]")
        })?;
        require(from != to, &key, || {
            format!("{key} must be two different classes, found [{from}, {to}]")
        })?;
        require(seen.insert(from), &key, || {
            format!("data.noise.pairs: class {from} can go to one other class only, found a second")
        })?;
    }
    Ok(())
}

fn check_images(data: &Data) -> Result<(), Conflict> {
    let Framing { size, channels, centre_crop, filter, values } = data.framing;
    let on_images = !data.train.inputs.are_features();
    for (given, key) in [
        (size.is_some(), "data.image_size"),
        (channels.is_some(), "data.channels"),
        (centre_crop.is_some(), "data.centre_crop"),
        (filter != Framing::PLAIN.filter, "data.filter"),
        (values != Framing::PLAIN.values, "data.pixel_values"),
        (data.augment.is_some(), "data.augment"),
    ] {
        require(on_images || !given, key, || {
            format!(
                "{key} is for images, and data.train has none; remove it: on the command line by \
                 --set {key}="
            )
        })?;
    }
    require(channels != Some(2), "data.channels", || {
        "data.channels must be 1 for grey or 3 for colour, found 2".to_string()
    })?;
    require(size.is_some() || centre_crop.is_none(), "data.centre_crop", || {
        "data.centre_crop needs data.image_size, the side that its square is brought to".to_string()
    })?;
    let Some(Crop::Inception { area, ratio }) = data.augment.map(|augment| augment.crop) else {
        return Ok(());
    };
    for (key, (low, high), most) in
        [("data.augment.area", area, 1.0), ("data.augment.ratio", ratio, 100.0)]
    {
        require(low > 0.0 && low <= high && high <= most, key, || {
            format!(
                "{key} must be two ascending numbers above 0 and at most {most}, found [{low:?}, \
                 {high:?}]"
            )
        })?;
    }
    Ok(())
}
