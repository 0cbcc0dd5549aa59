//! The audited examples as the data have them: their order, their images, who labelled them.

use aleator_data::{Labels, Sources, Thumbnails, Votes};
use aleator_report::audit::{Source, SourceExample};
use aleator_run::Recipe;
use aleator_train::label_sets;

use crate::workflow::error::Error;

/// The training source of a recipe; `pictures` are those behind its embeddings.
pub fn of(
    sources: &Sources,
    recipe: &Recipe,
    pictures: Option<&Thumbnails>,
) -> Result<Source, Error> {
    let examples = sources.training_source(&recipe.data)?;
    let annotations = match &examples.labels {
        Labels::Annotations(annotations) => Some(annotations),
        _ => None,
    };
    let example = |(at, label): (usize, Vec<u32>)| {
        let id = examples.ids.name(at).into_owned();
        let file = examples.inputs.file(examples.rows[at]);
        let path = file.or_else(|| pictures.and_then(|pictures| pictures.path(&id)));
        SourceExample { id, path, label, votes: annotations.map_or(vec![], |all| votes(all, at)) }
    };
    Ok(Source {
        examples: label_sets(&examples).into_iter().enumerate().map(example).collect(),
        annotators: annotations.map_or(vec![], |all| all.annotator_names.clone()),
    })
}

/// Annotator and class of each annotation of an example.
pub fn votes(all: &Votes, at: usize) -> Vec<(u32, u32)> {
    let span = all.offsets[at]..all.offsets[at + 1];
    let annotators = all.annotators[span.clone()].iter().copied();
    annotators.zip(all.labels[span].iter().copied()).collect()
}
