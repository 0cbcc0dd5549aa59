//! The audited examples as the data have them: their order, their images, who labelled them.

use aleator_data::{Labels, Sources, Split};
use aleator_report::audit::{Source, SourceExample};
use aleator_run::Recipe;
use aleator_train::label_sets;

use crate::workflow::error::Error;

/// The training source of a recipe.
pub fn of(sources: &Sources, recipe: &Recipe) -> Result<Source, Error> {
    let examples = sources.training_source(&recipe.data)?;
    let annotators = match &examples.labels {
        Labels::Annotations(votes) => votes.annotator_names.clone(),
        _ => vec![],
    };
    let example = |(at, label): (usize, Vec<u32>)| SourceExample {
        id: examples.ids.name(at).into_owned(),
        path: examples.inputs.file(at),
        label,
        votes: votes(&examples, at),
    };
    let examples = label_sets(&examples).into_iter().enumerate().map(example).collect();
    Ok(Source { examples, annotators })
}

/// Annotator and class of each annotation of an example.
pub fn votes(split: &Split, at: usize) -> Vec<(u32, u32)> {
    let Labels::Annotations(votes) = &split.labels else { return vec![] };
    let span = votes.offsets[at]..votes.offsets[at + 1];
    let annotators = votes.annotators[span.clone()].iter().copied();
    annotators.zip(votes.labels[span].iter().copied()).collect()
}
