//! What the data say of the audited examples: their order, their images, who labelled them.

use std::collections::BTreeMap;

use aleator_data::{DataSet, Labels, Split, Thumbnails};
use aleator_report::audit::{Source, SourceExample};
use aleator_run::Recipe;
use aleator_run::recipe::HeldOut;
use aleator_train::label_sets;
use anyhow::Result;

/// The training source of a recipe whose test split, if any, is a part of it.
pub fn of(recipe: &Recipe) -> Result<Source> {
    let data = DataSet::open(&recipe.data, recipe.head.link)?;
    let pictures = Thumbnails::open(&recipe.data)?;
    let mut annotators = vec![];
    if let Labels::Annotations(votes) = &data.train.labels {
        annotators.clone_from(&votes.annotator_names);
    }
    let splits = [Some(&data.train), Some(&data.validation), data.test.as_ref()];
    let labels: BTreeMap<&str, Vec<Vec<u32>>> =
        splits.into_iter().flatten().map(|split| (split.name, label_sets(split))).collect();
    let example = |(split, at): (&Split, usize)| {
        let id = split.ids.name(at).into_owned();
        let path = pictures.as_ref().and_then(|pictures| pictures.path(&id));
        SourceExample { id, path, label: labels[split.name][at].clone(), votes: votes(split, at) }
    };
    let examples = in_order(recipe, &data).into_iter().map(example).collect();
    Ok(Source { examples, annotators })
}

/// All examples of the training source in its order: the split that each is in, and where.
pub fn in_order<'a>(recipe: &Recipe, data: &'a DataSet) -> Vec<(&'a Split, usize)> {
    let own = |held_out: &HeldOut| !matches!(held_out, HeldOut::Source(_));
    let validation = own(&recipe.data.validation).then_some(&data.validation);
    let test = data.test.as_ref().filter(|_| recipe.data.test.as_ref().is_some_and(own));
    let mut examples: Vec<(usize, &Split, usize)> = [Some(&data.train), validation, test]
        .into_iter()
        .flatten()
        .flat_map(|split| split.rows.iter().enumerate().map(|(at, row)| (*row, &**split, at)))
        .collect();
    examples.sort_by_key(|(row, _, _)| *row);
    examples.into_iter().map(|(_, split, at)| (split, at)).collect()
}

/// Annotator and class of everything that was said of an example.
pub fn votes(split: &Split, at: usize) -> Vec<(u32, u32)> {
    let Labels::Annotations(votes) = &split.labels else { return vec![] };
    let span = votes.offsets[at]..votes.offsets[at + 1];
    let annotators = votes.annotators[span.clone()].iter().copied();
    annotators.zip(votes.labels[span].iter().copied()).collect()
}
