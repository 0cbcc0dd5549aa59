//! Near duplicates and outliers of an audit, by the features of its examples.

use std::path::Path;

use aleator_data::{InputShape, Sources, Split};
use aleator_report::audit::Audit;
use aleator_run::Recipe;
use aleator_run::recipe::Normalize;
use aleator_train::{Normalization, Tuning};

use crate::{Error, Watch};

/// The most numbers that are held: 2 GB.
const MOST: usize = 1 << 29;

/// Compares the features of all examples, scaled as the model scales them. Images have no features
/// to compare.
pub fn compare(
    audit: &mut Audit,
    sources: &Sources,
    recipe: &Recipe,
    scale: Normalize,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let all = sources.training_source(&recipe.data)?;
    let InputShape::Features(width) = all.inputs.shape() else { return Ok(()) };
    if all.len().saturating_mul(width) > MOST {
        watch.note(&format!(
            "the features of {} examples, {width} each, do not fit into 2 GB: near duplicates and \
             outliers are not listed",
            all.len()
        ));
        return Ok(());
    }
    let features = scaled(&all, width, scale)?;
    // The labels are judged by now: what cannot be compared must not stop the audit.
    if let Err(error) = audit.compare_features(&features, width, scale.in_words()) {
        watch.note(&format!("near duplicates and outliers are not listed: {error}"));
    }
    let compared = audit.lists.comparison.as_ref().map_or(all.len(), |it| it.compared);
    if compared < all.len() {
        watch.note(&format!(
            "near duplicates and outliers: each of the {} examples is compared with the same \
             {compared}; identical examples are found among all",
            all.len()
        ));
    }
    Ok(())
}

/// How the model of a fold scales features: by its tuning, or else its recipe. One scale for all
/// of them changes no neighbours, so that features as they are get one too.
pub fn scale(recipe: &Recipe, fold: &Path) -> Result<Normalize, Error> {
    let tuned = Tuning::load(fold)?.map(|tuning| tuning.chosen.normalize);
    Ok(match tuned.unwrap_or(recipe.network.normalize) {
        Normalize::None => Normalize::Global,
        scale => scale,
    })
}

/// The features of all examples, `[N, D]`.
fn scaled(all: &Split, width: usize, scale: Normalize) -> Result<Vec<f32>, Error> {
    let mut features = vec![0.0; all.len() * width];
    for (row, out) in all.rows.iter().zip(features.chunks_exact_mut(width.max(1))) {
        all.inputs.read(*row, out)?;
    }
    Normalization::fit(scale, all)?.apply(&mut features);
    Ok(features)
}
