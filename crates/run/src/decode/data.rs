//! `[data]` and the sections below it.

mod images;

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::MANY;
use crate::document::Document;
use crate::recipe::{
    Annotations, Data, HeldOut, InputSource, LabelKind, LabelNoise, NoiseKind, Source,
};
use crate::recipe_error::RecipeError;
use crate::section::{Field, Section};

/// What a source of examples is made of, the inputs first.
const SOURCE: [&str; 7] =
    ["features", "images", "builtin", "memory", "labels", "clean_labels", "ids"];

pub(super) fn data(document: &Document) -> Result<Data, RecipeError> {
    let section = Section::new(document, "data")?;
    let network = Section::new(document, "network")?.optional("kind");
    let on_images =
        network.is_some_and(|kind| kind.text().is_ok_and(|kind| !matches!(kind, "none" | "mlp")));
    let wanted = if on_images {
        ("images", "FOLDER")
    } else {
        ("features", "FILE (or --set data.train.images=FOLDER)")
    };
    let train = source(&Section::new(document, "data.train")?, wanted)?;
    let classes = section.optional("classes").map(|classes| classes.size(2, MANY)).transpose()?;
    images::check_inputs(document, &train.inputs)?;
    let data = Data {
        label_kind: section.required("label_kind", "auto")?.choice(&[
            ("auto", LabelKind::Auto),
            ("single", LabelKind::Single),
            ("multi-hot", LabelKind::MultiHot),
            ("soft", LabelKind::Soft),
            ("annotators", LabelKind::Annotators),
        ])?,
        annotations: section.required("annotations", "majority")?.choice(&[
            ("majority", Annotations::Majority),
            ("sampled", Annotations::Sampled),
            ("each", Annotations::Each),
        ])?,
        classes,
        class_names: section
            .optional("class_names")
            .map(|names| names.path().map(PathBuf::from))
            .transpose()?,
        limit: section.optional("limit").map(|limit| limit.size(2, MANY)).transpose()?,
        framing: images::framing(&section)?,
        augment: images::augment(document)?,
        train,
        validation: held_out(&Section::new(document, "data.validation")?)?,
        test: test(document)?,
        noise: noise(document, classes)?,
    };
    check_what_is_left(document, &data)?;
    Ok(data)
}

fn test(document: &Document) -> Result<Option<HeldOut>, RecipeError> {
    let section = Section::new(document, "data.test")?;
    if section.is_there() { held_out(&section).map(Some) } else { Ok(None) }
}

/// Something must be left to train on.
fn check_what_is_left(document: &Document, data: &Data) -> Result<(), RecipeError> {
    let HeldOut::Fraction { fraction: validation, .. } = &data.validation else { return Ok(()) };
    let (key, test) = match &data.test {
        Some(HeldOut::Fraction { fraction, .. }) => ("fraction", *fraction),
        Some(HeldOut::Fold { folds, .. }) => ("folds", 1.0 / *folds as f64),
        Some(HeldOut::Source(_)) | None => return Ok(()),
    };
    let section = Section::new(document, "data.test")?;
    match section.optional(key) {
        Some(field) if validation + test >= 1.0 => Err(field.impossible(format!(
            "data.validation.fraction = {validation} and the {test} of the examples that \
             data.test.{key} holds out leave nothing to train on"
        ))),
        _ => Ok(()),
    }
}

/// `wanted` is the input to ask for if there is none, with what it takes.
fn source(section: &Section, wanted: (&str, &str)) -> Result<Source, RecipeError> {
    let inputs: Vec<Field> = SOURCE[..4].iter().filter_map(|key| section.optional(key)).collect();
    let input = match &inputs[..] {
        [input] => input,
        [] => return Err(section.missing(wanted.0, wanted.1)),
        [first, second, ..] => {
            return Err(first.impossible(format!(
                "{} and {} ({}) are both given: one of them must be the input",
                first.key,
                second.key,
                second.origin()
            )));
        }
    };
    let path = |key| section.optional(key).map(|field| field.path()).transpose();
    let source = Source {
        inputs: match input.key.rsplit('.').next() {
            Some("features") => InputSource::Features(input.path()?),
            Some("images") => InputSource::Images(images::paths(input)?),
            Some("memory") => InputSource::Memory(input.text()?.to_string()),
            _ => input.choice(&[("digits", ())]).map(|()| InputSource::Digits)?,
        },
        labels: path("labels")?,
        clean_labels: path("clean_labels")?,
        ids: path("ids")?,
    };
    if let (InputSource::Features(_), None) = (&source.inputs, &source.labels) {
        return Err(section.missing("labels", "FILE"));
    }
    Ok(source)
}

fn held_out(section: &Section) -> Result<HeldOut, RecipeError> {
    let is_source = SOURCE.iter().any(|key| section.optional(key).is_some());
    if let Some(folds) = section.optional("folds") {
        return fold(section, &folds);
    }
    let Some(fraction) = section.optional("fraction") else {
        if !is_source {
            return Err(section.missing("fraction", "0.1"));
        }
        if let Some(seed) = section.optional("seed") {
            return Err(seed.impossible(format!(
                "{} chooses a fraction of the training data, and this split has data of its own; \
                 remove it: on the command line by --set {}=",
                seed.key, seed.key
            )));
        }
        return source(section, ("features", "FILE")).map(HeldOut::Source);
    };
    refuse_source(section, &fraction)?;
    let seed = section.required("seed", "0")?.seed()?;
    Ok(HeldOut::Fraction { fraction: fraction.fraction()?, seed })
}

/// One of several equal parts.
fn fold(section: &Section, folds: &Field) -> Result<HeldOut, RecipeError> {
    refuse_source(section, folds)?;
    section.refuse(&["fraction"], folds)?;
    let count = folds.size(2, MANY)?;
    Ok(HeldOut::Fold {
        fold: section.required("fold", "0")?.size(0, count - 1)?,
        folds: count,
        seed: section.required("seed", "0")?.seed()?,
    })
}

/// A part of the training data has no source of its own.
fn refuse_source(section: &Section, part: &Field) -> Result<(), RecipeError> {
    let Some(other) = SOURCE.iter().find_map(|key| section.optional(key)) else { return Ok(()) };
    let split = part.key.rsplit_once('.').map_or(part.key.as_str(), |(split, _)| split);
    Err(part.impossible(format!(
        "{} takes a part of the training data, and {} ({}) gives data of its own: keep one; \
         --set {split}= before the other settings of {split} removes all that the recipe says of \
         it",
        part.key,
        other.key,
        other.origin()
    )))
}

fn noise(document: &Document, classes: Option<usize>) -> Result<Option<LabelNoise>, RecipeError> {
    #[derive(Clone, Copy)]
    enum Kind {
        Symmetric,
        Pairwise,
        Matrix,
        Instance,
    }
    let section = Section::new(document, "data.noise")?;
    if !section.is_there() {
        return Ok(None);
    }
    let field = section.required("kind", "symmetric")?;
    let kind = field.choice(&[
        ("symmetric", Kind::Symmetric),
        ("pairwise", Kind::Pairwise),
        ("matrix", Kind::Matrix),
        ("instance", Kind::Instance),
    ])?;
    section.refuse(
        match kind {
            Kind::Symmetric | Kind::Instance => &["pairs", "matrix"][..],
            Kind::Pairwise => &["matrix"],
            Kind::Matrix => &["rate", "pairs"],
        },
        &field,
    )?;
    let rate = || section.required("rate", "0.3")?.below_one();
    let kind = match kind {
        Kind::Symmetric => NoiseKind::Symmetric { rate: rate()? },
        Kind::Instance => NoiseKind::Instance { rate: rate()? },
        Kind::Pairwise => NoiseKind::Pairwise {
            rate: rate()?,
            pairs: match section.optional("pairs") {
                Some(field) => pairs(&field, classes)?,
                None => vec![],
            },
        },
        Kind::Matrix => NoiseKind::Matrix { file: section.required("matrix", "FILE")?.path()? },
    };
    Ok(Some(LabelNoise { seed: section.required("seed", "0")?.seed()?, kind }))
}

fn pairs(field: &Field, classes: Option<usize>) -> Result<Vec<(usize, usize)>, RecipeError> {
    let last = classes.unwrap_or(MANY) - 1;
    let mut from_seen = BTreeSet::new();
    let pair = |field: &Field| {
        let expected = "a pair of classes, as in [3, 5]";
        let items = field.list().map_err(|_| field.wrong_type(expected))?;
        let [from, to] = &items[..] else { return Err(field.must_be(expected)) };
        let (from, to) = (from.size(0, last)?, to.size(0, last)?);
        if from == to {
            return Err(field.must_be("two different classes"));
        }
        if !from_seen.insert(from) {
            return Err(field.impossible(format!(
                "data.noise.pairs: class {from} can go to one other class only, found a second"
            )));
        }
        Ok((from, to))
    };
    field.list()?.iter().map(pair).collect()
}
