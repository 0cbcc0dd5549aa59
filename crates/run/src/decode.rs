//! From a document to a recipe: every key is known, every value is possible.

mod data;
mod network;

use std::collections::BTreeSet;

use crate::document::{Document, Table, Value, unknown_key};
use crate::recipe::{
    BootstrapTargets, Bootstrapping, Checkpoint, Decay, DiagScale, Draws, EvaluatedWeights,
    Evaluation, Head, HeadTemperature, InputSource, LabelKind, Layers, Link, Method, Moments,
    Noise, Optimizer, Recipe, Rule, Schedule, Training, WarmUp, WeightDecay,
};
use crate::recipe_error::RecipeError;
use crate::schema;
use crate::section::{Field, Section};

/// Far above anything useful, and low enough that products of a few of them fit a machine.
const MANY: usize = 1 << 24;

/// Monte Carlo samples are counted in 32 bits.
const MAX_SAMPLES: usize = u32::MAX as usize;

impl Document {
    /// The recipe that this document says, if it says one completely.
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
        check_keys("", &self.root)?;
        let top = Section::new(self, "")?;
        for key in ["base", "without"] {
            if let Some(field) = top.optional(key) {
                return Err(field.impossible(format!(
                    "{key} must stand in a recipe file; on the command line name the recipe itself"
                )));
            }
        }
        let recipe = Recipe {
            summary: top.required("summary", "TEXT")?.text()?.to_string(),
            seeds: seeds(&top)?,
            method: method(self, &top)?,
            data: data::data(self)?,
            network: network::network(&Section::new(self, "network")?)?,
            head: head(&Section::new(self, "head")?)?,
            optimizer: optimizer(self)?,
            schedule: schedule(&Section::new(self, "schedule")?)?,
            training: training(&Section::new(self, "training")?)?,
            checkpoint: checkpoint(&Section::new(self, "checkpoint")?)?,
            evaluation: evaluation(&Section::new(self, "evaluation")?)?,
        };
        check_together(self, &recipe)?;
        Ok(recipe)
    }
}

/// Refuses the first key that no recipe has. A misspelt key is found before the key that is
/// missing because of it.
fn check_keys(section: &str, table: &Table) -> Result<(), RecipeError> {
    for (key, node) in table {
        let name = schema::join(section, key);
        if !schema::is_known(&name) {
            return Err(unknown_key(node.origin.clone(), &name));
        }
        if let (Value::Table(inner), Some(_)) = (&node.value, schema::keys_of(&name)) {
            check_keys(&name, inner)?;
        }
    }
    Ok(())
}

/// What no section can know alone.
fn check_together(document: &Document, recipe: &Recipe) -> Result<(), RecipeError> {
    let network = Section::new(document, "network")?;
    let on_features = matches!(recipe.data.train.inputs, InputSource::Features(_));
    let wants_images = matches!(recipe.network.layers, Layers::Conv { .. } | Layers::Image { .. });
    if let (true, true, Some(kind)) = (wants_images, on_features, network.optional("kind")) {
        return Err(kind.impossible(format!(
            "network.kind = {:?} needs images, and data.train has features: give \
             data.train.images, or take network.kind = \"mlp\"",
            kind.text()?
        )));
    }
    let top = Section::new(document, "")?;
    if let (Method::Bootstrapping(_), Link::Sigmoid, Some(method)) =
        (&recipe.method, recipe.head.link, top.optional("method"))
    {
        return Err(method.impossible(
            "method = \"bootstrapping\" is for labels of one class: it needs \
             head.link = \"softmax\""
                .to_string(),
        ));
    }
    let head = Section::new(document, "head")?;
    if let (LabelKind::MultiHot, Link::Softmax, Some(link)) =
        (recipe.data.label_kind, recipe.head.link, head.optional("link"))
    {
        return Err(link.impossible(
            "head.link = \"softmax\" is for labels of one class, and data.label_kind is \
             \"multi-hot\": take head.link = \"sigmoid\""
                .to_string(),
        ));
    }
    Ok(())
}

fn seeds(top: &Section) -> Result<Vec<u64>, RecipeError> {
    const MAX_SEEDS: usize = 1000;
    match (top.optional("seed"), top.optional("seeds")) {
        (Some(seed), Some(seeds)) => Err(seed.impossible(format!(
            "seed and seeds ({}) are two ways to write the same: keep one",
            seeds.origin()
        ))),
        (Some(seed), None) => Ok(vec![seed.seed()?]),
        (None, Some(list)) => {
            let mut seen = BTreeSet::new();
            let fields = list.short_list(MAX_SEEDS)?;
            let once = |field: &Field| {
                let seed = field.seed()?;
                if seen.insert(seed) {
                    Ok(seed)
                } else {
                    Err(field.impossible(format!("seeds: {seed} stands twice")))
                }
            };
            fields.iter().map(once).collect()
        }
        (None, None) => Err(top.missing("seeds", "[0]")),
    }
}

fn head(section: &Section) -> Result<Head, RecipeError> {
    Ok(Head {
        noise: noise(section)?,
        link: section
            .required("link", "softmax")?
            .choice(&[("softmax", Link::Softmax), ("sigmoid", Link::Sigmoid)])?,
        temperature: temperature(&section.required("temperature", "1.0")?)?,
        diag_scale: section
            .required("diag_scale", "softplus")?
            .choice(&[("affine", DiagScale::Affine), ("softplus", DiagScale::Softplus)])?,
        covariance_init: section.required("covariance_init", "1.0")?.not_negative()?,
        samples: section.required("samples", "100")?.size(1, MAX_SAMPLES)?,
        draws: section.required("draws", "antithetic")?.choice(&[
            ("independent", Draws::Independent),
            ("antithetic", Draws::Antithetic),
            ("sobol", Draws::Sobol),
        ])?,
    })
}

/// `noise = "none"` switches the noise of any recipe off, so it lets `rank` stand beside the
/// other keys that describe the noise. Beside `"diagonal"`, which has noise, a rank would
/// promise factors that are not there.
fn noise(section: &Section) -> Result<Noise, RecipeError> {
    const MAX_RANK: usize = 1 << 16;
    #[derive(Clone, Copy)]
    enum Kind {
        None,
        Diagonal,
        Full,
        Shared,
    }
    let noise = section.required("noise", "full")?;
    let kind = noise.choice(&[
        ("none", Kind::None),
        ("diagonal", Kind::Diagonal),
        ("full", Kind::Full),
        ("shared", Kind::Shared),
    ])?;
    let given = section.optional("rank").map(|rank| rank.size(1, MAX_RANK)).transpose()?;
    let rank = || given.ok_or_else(|| section.missing("rank", "6"));
    match kind {
        Kind::None => Ok(Noise::None),
        Kind::Diagonal => {
            section.refuse(&["rank"], &noise)?;
            Ok(Noise::Diagonal)
        }
        Kind::Full => Ok(Noise::LowRank { rank: rank()? }),
        Kind::Shared => Ok(Noise::SharedLowRank { rank: rank()? }),
    }
}

fn temperature(field: &Field) -> Result<HeadTemperature, RecipeError> {
    let positive = |field: &Field| {
        // What rounds to 0 or to infinity in 32 bits is no temperature either.
        let expected = "a number above 0, within the range of 32-bit numbers";
        let possible = |value: f64| value as f32 > 0.0 && (value as f32).is_finite();
        field.number_that(expected, possible).map(|value| value as f32)
    };
    let Value::Table(bounds) = &field.node.value else {
        if let Value::Integer(_) | Value::Float(_) = field.node.value {
            return positive(field).map(HeadTemperature::Fixed);
        }
        return Err(field.wrong_type("a number, or bounds as in { low = 0.3, high = 3.0 }"));
    };
    let bound = |name: &str| match bounds.get(name) {
        Some(node) => positive(&Field { key: format!("{}.{name}", field.key), node }),
        None => Err(field.impossible(format!(
            "{} must have both bounds, as in {{ low = 0.3, high = 3.0 }}; {name} is missing",
            field.key
        ))),
    };
    let (low, high) = (bound("low")?, bound("high")?);
    if low < high {
        Ok(HeadTemperature::Learned { low, high })
    } else {
        Err(field.must_be("bounds with low below high"))
    }
}

fn optimizer(document: &Document) -> Result<Optimizer, RecipeError> {
    let section = Section::new(document, "optimizer")?;
    let l2 = Section::new(document, "optimizer.l2")?;
    let decay = |key: &'static str| l2.required(key, "0.001")?.not_negative();
    Ok(Optimizer {
        rule: rule(&section)?,
        learning_rate: section.required("learning_rate", "0.002")?.positive()?,
        network_rate: section.optional("network_rate").map(|rate| rate.positive()).transpose()?,
        clip_norm: section.optional("clip_norm").map(|norm| norm.positive()).transpose()?,
        l2: WeightDecay {
            network: decay("network")?,
            mean: decay("mean")?,
            covariance: decay("covariance")?,
        },
    })
}

fn rule(section: &Section) -> Result<Rule, RecipeError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Sgd,
        Adam,
        AdamW,
    }
    let field = section.required("kind", "adam")?;
    let kind = field.choice(&[("sgd", Kind::Sgd), ("adam", Kind::Adam), ("adamw", Kind::AdamW)])?;
    if let Kind::Sgd = kind {
        section.refuse(&["beta1", "beta2", "epsilon"], &field)?;
        let momentum = section.required("momentum", "0.9")?.below_one()?;
        let nesterov = section.required("nesterov", "false")?;
        let looks_ahead = nesterov.boolean()?;
        if looks_ahead && momentum == 0.0 {
            let message = "optimizer.nesterov = true needs optimizer.momentum above 0";
            return Err(nesterov.impossible(message.to_string()));
        }
        return Ok(Rule::Sgd { momentum, nesterov: looks_ahead });
    }
    section.refuse(&["momentum", "nesterov"], &field)?;
    let moments = Moments {
        beta1: section.required("beta1", "0.9")?.below_one()?,
        beta2: section.required("beta2", "0.999")?.below_one()?,
        epsilon: section.required("epsilon", "1e-8")?.positive()?,
    };
    Ok(if let Kind::Adam = kind { Rule::Adam(moments) } else { Rule::AdamW(moments) })
}

fn schedule(section: &Section) -> Result<Schedule, RecipeError> {
    const MAX_EPOCHS: usize = 1_000_000;
    #[derive(Clone, Copy)]
    enum Kind {
        Constant,
        Cosine,
        Steps,
    }
    let epochs = section.required("epochs", "10")?.size(1, MAX_EPOCHS)?;
    let warm_up = warm_up(section, epochs)?;
    let field = section.required("kind", "cosine")?;
    let kind = field.choice(&[
        ("constant", Kind::Constant),
        ("cosine", Kind::Cosine),
        ("steps", Kind::Steps),
    ])?;
    if !matches!(kind, Kind::Steps) {
        section.refuse(&["at", "factor"], &field)?;
    }
    let decay = match kind {
        Kind::Constant => Decay::Constant,
        Kind::Cosine => Decay::Cosine,
        Kind::Steps => Decay::Steps {
            at: drops(&section.required("at", "[30,60]")?, epochs)?,
            factor: section
                .required("factor", "0.1")?
                .number_that("above 0 and at most 1", |value| value > 0.0 && value <= 1.0)?,
        },
    };
    Ok(Schedule { epochs, warm_up, decay })
}

fn warm_up(section: &Section, epochs: usize) -> Result<WarmUp, RecipeError> {
    if let Some(steps) = section.optional("warm_up_steps") {
        if let Some(other) = section.optional("warm_up") {
            return Err(steps.impossible(format!(
                "schedule.warm_up_steps and schedule.warm_up ({}) are two ways to write the same: \
                 keep one",
                other.origin()
            )));
        }
        return Ok(WarmUp::Steps(steps.size(0, MANY)?));
    }
    let at_most_all = format!("from 0 to schedule.epochs = {epochs}");
    let epochs = section
        .required("warm_up", "0.5")?
        .number_that(&at_most_all, |value| (0.0..=epochs as f64).contains(&value))?;
    Ok(WarmUp::Epochs(epochs))
}

/// Epochs at which the learning rate drops.
fn drops(field: &Field, epochs: usize) -> Result<Vec<f64>, RecipeError> {
    const MAX_DROPS: usize = 1000;
    let expected = format!("above 0 and below schedule.epochs = {epochs}");
    let within =
        |at: &Field| at.number_that(&expected, |value| value > 0.0 && value < epochs as f64);
    let fields = field.short_list(MAX_DROPS)?;
    let at = fields.iter().map(within).collect::<Result<Vec<f64>, _>>()?;
    if at.is_sorted_by(|a, b| a < b) { Ok(at) } else { Err(field.must_be("ascending epochs")) }
}

/// Settings of a method may wait in a recipe whose `method` is another one, but not where there is
/// no `method`: it would be forgotten rather than chosen.
fn method(document: &Document, top: &Section) -> Result<Method, RecipeError> {
    let section = Section::new(document, "bootstrapping")?;
    let Some(field) = top.optional("method") else {
        return match document.get("bootstrapping") {
            None => Ok(Method::Plain),
            Some(node) => Err(Field { key: "bootstrapping".to_string(), node }.impossible(
                "[bootstrapping] is for method = \"bootstrapping\": set method".to_string(),
            )),
        };
    };
    if !field.choice(&[("plain", false), ("bootstrapping", true)])? {
        return Ok(Method::Plain);
    }
    Ok(Method::Bootstrapping(Bootstrapping {
        beta: section
            .required("beta", "0.95")?
            .number_that("from 0 to 1", |value| (0.0..=1.0).contains(&value))?,
        targets: section.required("targets", "soft")?.choice(&[
            ("hard", BootstrapTargets::Hard),
            ("soft", BootstrapTargets::Soft),
            ("soft-fixed", BootstrapTargets::SoftFixed),
        ])?,
        burn_in: section.required("burn_in", "1")?.size(0, MANY)?,
    }))
}

fn training(section: &Section) -> Result<Training, RecipeError> {
    const MAX_WORKERS: usize = 1024;
    Ok(Training {
        batch: section.required("batch", "128")?.size(1, MANY)?,
        min_steps: section.optional("min_steps").map(|field| field.size(1, MANY)).transpose()?,
        parts: section.required("parts", "1")?.size(1, MANY)?,
        ema: section.optional("ema").map(|decay| decay.fraction()).transpose()?,
        patience: section.optional("patience").map(|field| field.size(1, MANY)).transpose()?,
        workers: section.required("workers", "1")?.size(1, MAX_WORKERS)?,
    })
}

fn checkpoint(section: &Section) -> Result<Checkpoint, RecipeError> {
    let every_steps = section.optional("every_steps");
    Ok(Checkpoint {
        every_steps: every_steps.map(|field| field.size(1, u32::MAX as usize)).transpose()?,
        keep: section.required("keep", "2")?.size(1, MANY)?,
    })
}

fn evaluation(section: &Section) -> Result<Evaluation, RecipeError> {
    Ok(Evaluation {
        weights: section
            .required("weights", "best")?
            .choice(&[("best", EvaluatedWeights::Best), ("last", EvaluatedWeights::Last)])?,
        samples: section.required("samples", "1000")?.size(1, MAX_SAMPLES)?,
        batch: section.required("batch", "512")?.size(1, MANY)?,
        calibrate: match section.optional("calibrate") {
            Some(field) => field.boolean()?,
            None => false,
        },
        loadings_mib: section.required("loadings_mib", "256")?.size(0, MANY)?,
    })
}
