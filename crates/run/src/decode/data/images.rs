//! What a recipe says of images: where they are, how they become inputs, how they are varied.

use std::path::PathBuf;

use crate::document::{Document, Value};
use crate::recipe::{Augment, Crop, Filter, Framing, InputSource, PixelValues, RandAugment};
use crate::recipe_error::RecipeError;
use crate::section::{Field, Section};

const MAX_IMAGE_SIZE: usize = 4096;

/// One path, or a list of them.
pub(super) fn paths(field: &Field) -> Result<Vec<PathBuf>, RecipeError> {
    const MAX_PATHS: usize = 1 << 16;
    if let Value::Array(_) = field.node.value {
        let items = field.short_list(MAX_PATHS)?;
        return items.iter().map(|item| item.path().map(PathBuf::from)).collect();
    }
    Ok(vec![PathBuf::from(field.path()?)])
}

/// Refuses what is for images only where there are none.
pub(super) fn check_inputs(document: &Document, inputs: &InputSource) -> Result<(), RecipeError> {
    if !matches!(inputs, InputSource::Features(_)) {
        return Ok(());
    }
    let data = Section::new(document, "data")?;
    let keys = ["image_size", "channels", "centre_crop", "filter", "pixel_values"];
    let mut given = keys.iter().filter_map(|key| data.optional(key));
    let augment = Section::new(document, "data.augment")?;
    let Some(field) = given.next().or_else(|| augment.optional("crop")) else { return Ok(()) };
    let key = if augment.is_there() && field.key.starts_with("data.augment") {
        "data.augment"
    } else {
        field.key.as_str()
    };
    Err(field.impossible(format!(
        "{key} is for images, and data.train has none; remove it: on the command line by --set \
         {key}="
    )))
}

pub(super) fn framing(section: &Section) -> Result<Framing, RecipeError> {
    let size = section.optional("image_size");
    let centre_crop = section.optional("centre_crop");
    if let (None, Some(crop)) = (&size, &centre_crop) {
        return Err(crop.impossible(
            "data.centre_crop needs data.image_size, the side that its square is brought to"
                .to_string(),
        ));
    }
    let whole_share = "above 0 and at most 1";
    Ok(Framing {
        size: size.map(|size| size.size(1, MAX_IMAGE_SIZE)).transpose()?,
        channels: section.optional("channels").map(|field| one_or_three(&field)).transpose()?,
        centre_crop: centre_crop
            .map(|share| share.number_that(whole_share, |value| value > 0.0 && value <= 1.0))
            .transpose()?,
        filter: section.optional("filter").map_or(Ok(Filter::Bicubic), |filter| {
            filter.choice(&[("bilinear", Filter::Bilinear), ("bicubic", Filter::Bicubic)])
        })?,
        values: section.optional("pixel_values").map_or(Ok(PixelValues::Symmetric), |values| {
            values.choice(&[
                ("symmetric", PixelValues::Symmetric),
                ("unit", PixelValues::Unit),
                ("imagenet", PixelValues::ImageNet),
                ("lite", PixelValues::Lite),
            ])
        })?,
    })
}

fn one_or_three(field: &Field) -> Result<usize, RecipeError> {
    match field.size(1, 3)? {
        2 => Err(field.must_be("1 for grey or 3 for colour")),
        channels => Ok(channels),
    }
}

pub(super) fn augment(document: &Document) -> Result<Option<Augment>, RecipeError> {
    let section = Section::new(document, "data.augment")?;
    if !section.is_there() {
        return Ok(None);
    }
    Ok(Some(Augment {
        crop: crop(&section)?,
        flip: section.required("flip", "true")?.boolean()?,
        rand_augment: rand_augment(&section)?,
        mixup: section.optional("mixup").map(|alpha| alpha.positive()).transpose()?,
    }))
}

fn crop(section: &Section) -> Result<Crop, RecipeError> {
    #[derive(Clone, Copy)]
    enum Kind {
        None,
        Inception,
        Padded,
    }
    let field = section.required("crop", "inception")?;
    let kind = field.choice(&[
        ("none", Kind::None),
        ("inception", Kind::Inception),
        ("padded", Kind::Padded),
    ])?;
    section.refuse(
        match kind {
            Kind::None => &["area", "ratio", "padding"][..],
            Kind::Inception => &["padding"],
            Kind::Padded => &["area", "ratio"],
        },
        &field,
    )?;
    Ok(match kind {
        Kind::None => Crop::None,
        Kind::Inception => Crop::Inception {
            area: range(&section.required("area", "[0.08, 1.0]")?, 1.0)?,
            ratio: range(&section.required("ratio", "[0.75, 1.3333]")?, 100.0)?,
        },
        Kind::Padded => {
            Crop::Padded { padding: section.required("padding", "4")?.size(1, MAX_IMAGE_SIZE)? }
        }
    })
}

/// Two ascending numbers above 0.
fn range(field: &Field, most: f64) -> Result<(f64, f64), RecipeError> {
    let expected = format!("two ascending numbers above 0 and at most {most}");
    match &field.list()?[..] {
        [low, high] => {
            let (low, high) = (low.positive()?, high.positive()?);
            if low <= high && high <= most {
                Ok((low, high))
            } else {
                Err(field.must_be(&expected))
            }
        }
        _ => Err(field.must_be(&expected)),
    }
}

fn rand_augment(section: &Section) -> Result<Option<RandAugment>, RecipeError> {
    const MAX_OPERATIONS: usize = 16;
    let strength =
        |field: &Field| field.number_that("from 0 to 10", |value| (0.0..=10.0).contains(&value));
    match (section.optional("operations"), section.optional("magnitude")) {
        (None, None) => Ok(None),
        (Some(operations), Some(magnitude)) => Ok(Some(RandAugment {
            operations: operations.size(1, MAX_OPERATIONS)?,
            magnitude: strength(&magnitude)?,
        })),
        (Some(_), None) => Err(section.missing("magnitude", "5")),
        (None, Some(_)) => Err(section.missing("operations", "2")),
    }
}
