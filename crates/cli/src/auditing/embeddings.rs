//! An audit of a run on images: its network embeds the examples once, and heads are trained on
//! the embeddings for the folds.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_data::inputs::Opened;
use aleator_data::{Inputs, Labels, Sources, Split};
use aleator_embed::{Event, Job, Outcome, Precision, Preprocessing, embed};
use aleator_report::spreadsheet::guarded;
use aleator_run::recipe::{Framing, HeadTemperature, InputSource, Link, Noise};
use aleator_run::{Resolved, RunDir, write_file};
use aleator_train::{group, load_run};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::AuditArgs;
use crate::backbone::TrainedNetwork;
use crate::progress::{Counter, tell};
use crate::recipe_args::with_absolute_paths;
use crate::{interrupt, training};

/// The directory of the embeddings, in that of the audit.
const FOLDER: &str = "embeddings";
const BACKBONE: &str = "backbone.json";
const FEATURES: &str = "features.safetensors";
const LABELS: &str = "labels.csv";
const TRUTH: &str = "true_labels.csv";
const CLASSES: &str = "classes.txt";

/// `backbone.json`: the run whose network makes the embeddings.
#[derive(Serialize, Deserialize)]
struct Backbone {
    run: PathBuf,
}

/// Starts an audit that trains a head for every fold on embeddings by the run's network.
pub fn start(args: &AuditArgs, run: &RunDir, resolved: &Resolved) -> Result<()> {
    let place = std::path::absolute(&args.out).context("the current directory cannot be read")?;
    let examples = Examples::of(run.path())?;
    let has_truth = examples.all.clean_labels.is_some();
    let head = head_recipe(resolved, &place.join(FOLDER), has_truth)?;
    let group = super::group(&with_absolute_paths(head)?, args.folds)?;
    group::create(&args.out, &group)?;
    let backbone = Backbone { run: std::path::absolute(run.path())? };
    let text = serde_json::to_string_pretty(&backbone)?;
    write_file(&args.out.join(BACKBONE), (text + "\n").as_bytes())?;
    if !args.quiet {
        tell("embedding the images with the network of the run; heads are trained on that");
    }
    examples.write(&args.out, args.quiet)?;
    training::go_on(&args.out, &group, args.quiet)
}

/// Makes what is missing of the embeddings of an audit; other audits need none.
pub fn finish(out: &Path, quiet: bool) -> Result<()> {
    let (source, folder) = (out.join(BACKBONE), out.join(FOLDER));
    let is_there = |name: &&str| folder.join(name).exists();
    if !source.exists() || [FEATURES, LABELS].iter().all(is_there) {
        return Ok(());
    }
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let backbone: Backbone =
        serde_json::from_str(&text).with_context(|| source.display().to_string())?;
    Examples::of(&backbone.run)?.write(out, quiet)
}

/// The preset of the run's noise model for embeddings, with the run's head.
fn head_recipe(resolved: &Resolved, folder: &Path, has_truth: bool) -> Result<Resolved> {
    let head = &resolved.recipe.head;
    let family = match head.link {
        Link::Softmax => "features",
        Link::Sigmoid => "multilabel",
    };
    let (noise, rank) = match head.noise {
        Noise::None => ("none", None),
        Noise::Diagonal => ("diagonal", None),
        Noise::LowRank { rank } => ("full", Some(rank)),
        Noise::SharedLowRank { rank } => ("shared", Some(rank)),
    };
    let path = |name: &str| folder.join(name).display().to_string();
    let mut sets = vec![
        format!("data.train.features={}", path(FEATURES)),
        format!("data.train.labels={}", path(LABELS)),
        format!("data.class_names={}", path(CLASSES)),
    ];
    if has_truth {
        sets.push(format!("data.train.clean_labels={}", path(TRUTH)));
    }
    sets.extend(rank.map(|rank| format!("head.rank={rank}")));
    if let HeadTemperature::Fixed(temperature) = head.temperature {
        sets.push(format!("head.temperature={}", temperature.get()));
    }
    let seed = super::only_seed(resolved)?;
    Ok(aleator_run::load(&format!("{family}-{noise}"), &sets, Some(seed))?)
}

/// The examples that a run was trained on, and its network.
struct Examples {
    network: TrainedNetwork,
    batch: usize,
    all: Split,
    class_names: Vec<String>,
}

impl Examples {
    fn of(run: &Path) -> Result<Self> {
        let recipe = load_run(run)?.1.recipe;
        let sources = Sources::open(&recipe.data, recipe.head.link)?;
        Ok(Self {
            network: TrainedNetwork::open(run)?,
            batch: recipe.evaluation.batch,
            all: sources.training_source(&recipe.data)?,
            class_names: sources.class_names().to_vec(),
        })
    }

    /// Embeds the examples, from where an earlier process stopped, and writes their labels.
    fn write(mut self, out: &Path, quiet: bool) -> Result<()> {
        let folder = out.join(FOLDER);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        write_file(&folder.join(CLASSES), (self.class_names.join("\n") + "\n").as_bytes())?;
        let ids = (0..self.all.len()).map(|at| self.all.ids.name(at).into_owned()).collect();
        let (inputs, features) = (&self.all.inputs, folder.join(FEATURES));
        let job = Job {
            source: &Opened { ids: Some(ids), ..Opened::new(inputs.clone()) },
            preprocessing: Preprocessing::as_framed(&self.network.framing, inputs.shape())
                .context("the run learned from features, not from images")?,
            precision: Precision::Single,
            batch: self.batch,
            out: &features,
        };
        let counter = Counter::new("images embedded", quiet);
        let outcome = embed(&job, &mut self.network, interrupt::flag()?, &mut |event| {
            if let Event::Progress { done, total } = event {
                counter.show(done, total);
            }
        });
        counter.finish();
        if let Outcome::Stopped { done, total } = outcome? {
            let message = format!(
                "stopped after embedding {done} of {total} images; `aleator resume` continues"
            );
            return Err(interrupt::Interrupted(message).into());
        }
        let kept = kept_rows(&features, &self.all)?;
        if let Some(clean) = &self.all.clean_labels {
            let clean = kept.iter().map(|at| vec![self.class(clean[*at])]).collect();
            write_table(&folder.join(TRUTH), vec!["label".into()], clean)?;
        }
        let (header, rows) = self.labels(&kept);
        // Last: where it is, all files are.
        write_table(&folder.join(LABELS), header, rows)
    }

    fn class(&self, class: u32) -> String {
        guarded(&self.class_names[class as usize]).into_owned()
    }

    /// The labels of some examples, with their ids, as a table with a header.
    fn labels(&self, rows: &[usize]) -> (Vec<String>, Vec<Vec<String>>) {
        let id = |at: usize| guarded(&self.all.ids.name(at)).into_owned();
        let classes = || 0..self.class_names.len() as u32;
        let each_class = |cells: &dyn Fn(usize) -> Vec<String>| {
            let header = classes().map(|class| self.class(class));
            let row = |at: &usize| std::iter::once(id(*at)).chain(cells(*at)).collect();
            let header = std::iter::once("id".to_string()).chain(header).collect();
            (header, rows.iter().map(row).collect())
        };
        match &self.all.labels {
            Labels::Single(labels) => {
                let row = |at: &usize| vec![id(*at), self.class(labels[*at])];
                (vec!["id".into(), "label".into()], rows.iter().map(row).collect())
            }
            Labels::Annotations(votes) => {
                let of_example = |at: &usize| {
                    let row = |(annotator, class): (u32, u32)| {
                        let annotator = guarded(&votes.annotator_names[annotator as usize]);
                        vec![id(*at), annotator.into_owned(), self.class(class)]
                    };
                    super::source::votes(&self.all, *at).into_iter().map(row).collect::<Vec<_>>()
                };
                let header = ["example", "annotator", "label"].map(String::from).to_vec();
                (header, rows.iter().flat_map(of_example).collect())
            }
            Labels::MultiHot(sets) => each_class(&|at| {
                let on = |class| u8::from(sets.row(at).contains(&class)).to_string();
                classes().map(on).collect()
            }),
            // With a decimal point, so that certain labels are read as probabilities too.
            Labels::Soft(probs) => {
                each_class(&|at| probs.row(at).iter().map(|prob| format!("{prob:?}")).collect())
            }
        }
    }
}

/// The rows of the examples that could be embedded.
fn kept_rows(features: &Path, examples: &Split) -> Result<Vec<usize>> {
    let file = InputSource::Features(features.display().to_string());
    let ids = Inputs::open(&file, &Framing::PLAIN)?.ids.context("the embeddings have no ids")?;
    let mut kept = ids.iter().peekable();
    let is_kept = |at: &usize| kept.next_if(|id| **id == examples.ids.name(*at)).is_some();
    Ok((0..examples.len()).filter(is_kept).collect())
}

fn write_table(path: &Path, header: Vec<String>, rows: Vec<Vec<String>>) -> Result<()> {
    let mut writer = csv::Writer::from_writer(vec![]);
    std::iter::once(header).chain(rows).try_for_each(|row| writer.write_record(row))?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(write_file(path, &bytes)?)
}
