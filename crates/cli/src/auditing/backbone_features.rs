//! Embeddings of the audited examples by the network of a trained run, made once for all folds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use aleator_data::write::features_to_npy;
use aleator_data::{DataSet, Labels, Split};
use aleator_report::spreadsheet::guarded;
use aleator_run::recipe::{
    DataOverlay, HeadTemperature, InputSource, Link, Noise, Overlay, Source,
};
use aleator_run::{Resolved, RunDir, write_file};
use aleator_train::{FeatureExtractor, group, load_run, without};
use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::AuditArgs;
use crate::progress::{Counter, tell};
use crate::recipe_args::with_absolute_paths;
use crate::{interrupt, training};

/// The folder of the embeddings, in that of the audit.
const FOLDER: &str = "embeddings";
const SOURCE: &str = "backbone.json";
const FEATURES: &str = "features.npy";
const LABELS: &str = "labels.csv";
const TRUTH: &str = "true_labels.csv";
const IDS: &str = "ids.csv";
const CLASSES: &str = "classes.txt";

/// `backbone.json`: whose network makes the embeddings.
#[derive(Serialize, Deserialize)]
struct Backbone {
    run: PathBuf,
}

/// Trains a head for every part on embeddings of the run's network.
pub fn start(args: &AuditArgs, run: &RunDir, resolved: &Resolved) -> Result<()> {
    let [seed] = resolved.recipe.seeds[..] else {
        bail!("an audit wants one seed, and {} has several: add --seed 0", resolved.name);
    };
    let place = std::path::absolute(&args.out).context("the current folder cannot be read")?;
    let folder = place.join(FOLDER);
    let data = opened(run, resolved)?;
    refuse_soft(&data)?;
    let truth = data.train.clean_labels.is_some();
    let head = with_absolute_paths(head_recipe(resolved, &folder, seed, truth)?)?;
    let group = super::group(&head, args.folds)?;
    group::create(&args.out, &group)?;
    let backbone = Backbone { run: std::path::absolute(run.path())? };
    let text = serde_json::to_string_pretty(&backbone)?;
    write_file(&args.out.join(SOURCE), (text + "\n").as_bytes())?;
    if !args.quiet {
        tell("embedding the examples with the network of the run; heads are trained on that");
    }
    training::go_on(&args.out, &group, args.quiet)
}

/// Makes what is missing of the embeddings of an audit; nothing for other audits.
pub fn finish(out: &Path, quiet: bool) -> Result<()> {
    let source = out.join(SOURCE);
    if !source.exists() || out.join(FOLDER).join(FEATURES).exists() {
        return Ok(());
    }
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let backbone: Backbone =
        serde_json::from_str(&text).with_context(|| source.display().to_string())?;
    let (run, resolved) = load_run(&backbone.run)?;
    let data = opened(&run, &resolved)?;
    let examples = super::source::in_order(&resolved.recipe, &data);
    let folder = out.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    write_labels(&folder, &data, &examples)?;
    // Last, so that where it is all is.
    write_features(&folder.join(FEATURES), &run, &resolved, &examples, quiet)
}

/// The preset of the run's noise model for embeddings, with the run's head.
fn head_recipe(resolved: &Resolved, folder: &Path, seed: u64, has_truth: bool) -> Result<Resolved> {
    let head = &resolved.recipe.head;
    let family = match head.link {
        Link::Softmax => "features",
        Link::Sigmoid => "multilabel",
    };
    let noise = match head.noise {
        Noise::None => "none",
        Noise::Diagonal => "diagonal",
        Noise::LowRank { .. } => "full",
        Noise::SharedLowRank { .. } => "shared",
    };
    let path = |name: &str| folder.join(name).display().to_string();
    let train = Source {
        inputs: InputSource::Features(path(FEATURES)),
        labels: Some(path(LABELS)),
        clean_labels: has_truth.then(|| path(TRUTH)),
        ids: Some(path(IDS)),
    };
    let class_names = Some(folder.join(CLASSES));
    let data = DataOverlay { train: Some(train), class_names, ..DataOverlay::default() };
    let overlay = Overlay { origin: "the audit".to_string(), data, network: None };
    let name = format!("{family}-{noise}");
    let mut made = aleator_run::load_over(&name, &overlay, &[], Some(seed))?;
    made.recipe.head.noise = head.noise;
    if let HeadTemperature::Fixed(_) = head.temperature {
        made.recipe.head.temperature = head.temperature;
    }
    Ok(made)
}

/// The data of the run, without the images that it set aside.
fn opened(run: &RunDir, resolved: &Resolved) -> Result<DataSet> {
    let data = DataSet::open(&resolved.recipe.data, resolved.recipe.head.link)?;
    Ok(without(data, &run.info().set_aside)?)
}

fn refuse_soft(data: &DataSet) -> Result<()> {
    match &data.train.labels {
        Labels::Soft(_) => bail!(
            "soft labels cannot be audited with the network of a run: give --whole, or the recipe \
             in place of the run"
        ),
        _ => Ok(()),
    }
}

/// Ids, labels, true labels and class names, as the recipe of the heads names them.
fn write_labels(folder: &Path, data: &DataSet, examples: &[(&Split, usize)]) -> Result<()> {
    let names = &data.class_names;
    let name = |class: u32| guarded(&names[class as usize]).into_owned();
    write_file(&folder.join(CLASSES), (names.join("\n") + "\n").as_bytes())?;
    let ids = examples.iter().map(|(split, at)| vec![split.ids.name(*at).into_owned()]);
    write_table(&folder.join(IDS), &["id"], ids)?;
    if data.train.clean_labels.is_some() {
        let clean = examples.iter().filter_map(|(split, at)| {
            split.clean_labels.as_ref().map(|labels| vec![name(labels[*at])])
        });
        write_table(&folder.join(TRUTH), &["label"], clean)?;
    }
    let id = |(split, at): &(&Split, usize)| guarded(&split.ids.name(*at)).into_owned();
    let path = folder.join(LABELS);
    match &data.train.labels {
        Labels::Annotations(_) => {
            let votes = examples.iter().flat_map(|example| {
                let Labels::Annotations(votes) = &example.0.labels else { return vec![] };
                let said = super::source::votes(example.0, example.1);
                let annotator =
                    |who: u32| guarded(&votes.annotator_names[who as usize]).into_owned();
                let row = |(who, class): (u32, u32)| vec![id(example), annotator(who), name(class)];
                said.into_iter().map(row).collect()
            });
            write_table(&path, &["example", "annotator", "label"], votes)
        }
        Labels::MultiHot(_) => {
            let header: Vec<String> =
                std::iter::once("id".into()).chain((0..names.len() as u32).map(name)).collect();
            let rows = examples.iter().map(|example| {
                let Labels::MultiHot(rows) = &example.0.labels else { return vec![] };
                let on = rows.row(example.1);
                let cell = |class: u32| if on.contains(&class) { "1" } else { "0" }.to_string();
                std::iter::once(id(example)).chain((0..names.len() as u32).map(cell)).collect()
            });
            write_table(&path, &header, rows)
        }
        Labels::Single(_) | Labels::Soft(_) => {
            let rows = examples.iter().map(|example| {
                let Labels::Single(labels) = &example.0.labels else { return vec![] };
                vec![id(example), name(labels[example.1])]
            });
            write_table(&path, &["id", "label"], rows)
        }
    }
}

fn write_table(
    path: &Path,
    header: &[impl AsRef<[u8]>],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<()> {
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(write_file(path, &bytes)?)
}

/// Embeds the examples, batch by batch.
fn write_features(
    path: &Path,
    run: &RunDir,
    resolved: &Resolved,
    examples: &[(&Split, usize)],
    quiet: bool,
) -> Result<()> {
    let network = FeatureExtractor::new(run, &resolved.recipe, &mut |_| {})?;
    let stop = interrupt::flag()?;
    let counter = Counter::new("images embedded", quiet);
    let (size, batch) = (network.shape().len(), resolved.recipe.evaluation.batch);
    let mut features = Vec::with_capacity(examples.len() * network.width());
    for (number, batch_examples) in examples.chunks(batch).enumerate() {
        if stop.load(Ordering::Relaxed) {
            counter.finish();
            let message = "stopped while embedding; `aleator resume` begins that again";
            return Err(interrupt::Interrupted(message.to_string()).into());
        }
        let mut inputs = vec![0.0; batch_examples.len() * size];
        inputs
            .par_chunks_exact_mut(size)
            .zip(batch_examples)
            .try_for_each(|(input, (split, at))| split.inputs.read(split.rows[*at], input))?;
        features.extend(network.extract(inputs));
        counter.show((number * batch + batch_examples.len()).min(examples.len()), examples.len());
    }
    counter.finish();
    Ok(write_file(path, &features_to_npy(&features, network.width()))?)
}
