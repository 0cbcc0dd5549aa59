//! What the settings of training methods must satisfy.

use crate::check::{Conflict, require};
use crate::document::Document;
use crate::recipe::{
    ClassErrors, CurriculumNet, DataParameters, Link, Method, Recipe, Transitions, ViewKind,
};
use crate::recipe_error::RecipeError;

/// The sections of methods, and the methods.
const SECTIONS: [(&str, &str); 17] = [
    ("bootstrapping", "bootstrapping"),
    ("dynamics", "dynamics"),
    ("label_smoothing", "label-smoothing"),
    ("gce", "gce"),
    ("forward_correction", "forward-correction"),
    ("data_parameters", "data-parameters"),
    ("elr", "elr"),
    ("sop", "sop"),
    ("cores", "cores"),
    ("har", "har"),
    ("mixup", "mixup"),
    ("mentornet", "mentornet"),
    ("mentormix", "mentormix"),
    ("co_teaching", "co-teaching"),
    ("dividemix", "dividemix"),
    ("curriculumnet", "curriculumnet"),
    ("cleannet", "cleannet"),
];

/// Removes the settings of methods that the recipe does not take: they may wait there.
///
/// # Errors
/// When there are settings and no method.
pub(crate) fn forget_other_methods(document: &mut Document) -> Result<(), RecipeError> {
    for (section, method) in SECTIONS {
        match document.get("method") {
            None => {
                if let Some(node) = document.get(section) {
                    let message = format!("[{section}] is for method = {method:?}: set method");
                    return Err(node.origin.refuse(message));
                }
            }
            Some(chosen) if chosen.value.is_text(method) => {}
            Some(_) => drop(document.remove(section)),
        }
    }
    Ok(())
}

/// What the settings of a method must satisfy together with each other and with the other keys.
pub(crate) fn check_method(recipe: &Recipe) -> Result<(), Conflict> {
    let method = &recipe.method;
    let single = *method != Method::Plain;
    require(!(single && recipe.head.link == Link::Sigmoid), "method", || {
        let name = method.name();
        format!("method = {name:?} is for labels of one class: it needs head.link = \"softmax\"")
    })?;
    if let Some((key, after)) = first_use(method) {
        let epochs = recipe.schedule.epochs;
        require(after < epochs, key, || {
            format!(
                "{key} must be below schedule.epochs = {epochs}, found {after}: the method would \
                 never begin"
            )
        })?;
    }
    match method {
        Method::DataParameters { data_parameters } => check_data_parameters(data_parameters),
        Method::CurriculumNet { curriculumnet } => check_stages(curriculumnet),
        Method::DivideMix { dividemix } => {
            let varied = dividemix.views.map(|views| views.kind) == Some(ViewKind::Augmentation);
            require(!varied || recipe.data.augment.is_some(), "dividemix.views.kind", || {
                "dividemix.views.kind = \"augmentation\" needs [data.augment], by which the two \
                 views of an image differ; for embeddings take \"noise\" or \"dropout\""
                    .to_string()
            })
        }
        _ => Ok(()),
    }
}

/// The epoch before which a method only waits, and the key that says so.
fn first_use(method: &Method) -> Option<(&'static str, usize)> {
    match method {
        Method::ForwardCorrection { forward_correction } => match forward_correction.transitions {
            Transitions::Estimated { after, .. } => Some(("forward_correction.after", after)),
            Transitions::File { .. } => None,
        },
        Method::Har { har } => match har.errors {
            ClassErrors::Validation { after } | ClassErrors::Folds { after } => {
                Some(("har.after", after))
            }
            ClassErrors::File { .. } => None,
        },
        Method::CurriculumNet { curriculumnet } => {
            Some(("curriculumnet.after", curriculumnet.after))
        }
        Method::CleanNet { cleannet } => Some(("cleannet.after", cleannet.after)),
        Method::DivideMix { dividemix } => Some(("dividemix.warm_up", dividemix.warm_up)),
        _ => None,
    }
}

fn check_stages(settings: &CurriculumNet) -> Result<(), Conflict> {
    let CurriculumNet { after, noisy_after, all_after, .. } = *settings;
    require(after <= noisy_after, "curriculumnet.noisy_after", || {
        format!(
            "curriculumnet.noisy_after must be at least curriculumnet.after = {after}, found \
             {noisy_after}"
        )
    })?;
    require(noisy_after <= all_after, "curriculumnet.all_after", || {
        format!(
            "curriculumnet.all_after must be at least curriculumnet.noisy_after = {noisy_after}, \
             found {all_after}"
        )
    })
}

fn check_data_parameters(settings: &DataParameters) -> Result<(), Conflict> {
    let DataParameters { classes, instances, bound, .. } = *settings;
    require(classes.is_some() || instances.is_some(), "data_parameters", || {
        "data_parameters needs a section [data_parameters.classes] or [data_parameters.instances]"
            .to_string()
    })?;
    require(bound >= 1.0, "data_parameters.bound", || {
        format!("data_parameters.bound must be at least 1, found {bound:?}")
    })?;
    for (key, parameter) in [("classes", classes), ("instances", instances)] {
        let key = format!("data_parameters.{key}.start");
        let start = parameter.map_or(1.0, |parameter| parameter.start);
        require((1.0 / bound..=bound).contains(&start), &key, || {
            format!(
                "{key} must be from 1 over data_parameters.bound to data_parameters.bound = \
                 {bound}, found {start:?}"
            )
        })?;
    }
    Ok(())
}
