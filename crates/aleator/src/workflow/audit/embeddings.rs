//! An audit of a run on images: its network embeds the examples once, and heads are trained on
//! the embeddings for the folds.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_data::inputs::Opened;
use aleator_data::{Inputs, Labels, Sources, Split};
use aleator_embed::{Event as EmbedEvent, Job, Outcome, Precision, Preprocessing, embed};
use aleator_report::spreadsheet::guarded;
use aleator_run::recipe::{
    DataOverlay, Framing, HeadTemperature, InputSource, Link, Noise, Overlay, Source,
};
use aleator_run::{CsvFile, write_file};
use aleator_train::group::{self, Group};
use aleator_train::load_run;
use serde::{Deserialize, Serialize};

use crate::workflow::embed::TrainedNetwork;
use crate::workflow::error::Error;
use crate::workflow::experiment::Experiment;
use crate::workflow::json::write_json;
use crate::workflow::watch::{Event, Watch};

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

/// Computes what is missing of the embeddings of an audit; other audits need none.
pub fn finish_embeddings(out: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
    let (file, folder) = (out.join(BACKBONE), out.join(FOLDER));
    let exists = |name: &&str| folder.join(name).exists();
    if !file.exists() || [FEATURES, LABELS].iter().all(exists) {
        return Ok(());
    }
    let text = fs::read_to_string(&file).map_err(Error::io(&file))?;
    let backbone: Backbone =
        serde_json::from_str(&text).map_err(|error| Error::io(&file)(error.into()))?;
    RunExamples::of(&backbone.run)?.write(out, watch)
}

/// The preset of the run's noise model for embeddings, with the run's head and the user's settings.
fn head_experiment(
    run: &Experiment,
    folder: &Path,
    has_truth: bool,
    sets: &[String],
) -> Result<Experiment, Error> {
    if let Some(set) = sets.iter().find(|set| set.trim_start().starts_with("data.")) {
        return Err(Error::invalid(format!(
            "{set}: heads are trained on embeddings of the data that the run has seen; to change \
             the data, train the whole network for every fold"
        )));
    }
    let head = &run.recipe.head;
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
    let file = |name: &str| folder.join(name).display().to_string();
    let train = Source {
        labels: Some(file(LABELS)),
        clean_labels: has_truth.then(|| file(TRUTH)),
        ..Source::of(InputSource::Features(file(FEATURES)))
    };
    let data = DataOverlay {
        train: Some(train),
        class_names: Some(folder.join(CLASSES)),
        ..DataOverlay::default()
    };
    let overlay = Overlay { origin: "the embeddings".to_string(), data, network: None };
    let seed = run.only_seed("an audit")?;
    let mut made = Experiment::over(&format!("{family}-{noise}"), &overlay, &[], Some(seed))?;
    made.recipe.head.noise = head.noise;
    if let HeadTemperature::Fixed(_) = head.temperature {
        made.recipe.head.temperature = head.temperature;
    }
    made.recipe = made.recipe.with_sets(sets, None)?;
    Ok(made)
}

/// The examples that a run was trained on, and its network.
pub struct RunExamples {
    run: PathBuf,
    network: TrainedNetwork,
    batch: usize,
    all: Split,
    class_names: Vec<String>,
}

impl RunExamples {
    /// Opens the data and the network of a run on images.
    pub fn of(run: &Path) -> Result<Self, Error> {
        let (_, recipe) = load_run(run)?;
        let sources = Sources::open(&recipe.data, recipe.head.link)?;
        Ok(Self {
            run: absolute(run)?,
            network: TrainedNetwork::open(run)?,
            batch: recipe.evaluation.batch,
            all: sources.training_source(&recipe.data)?,
            class_names: sources.class_names().to_vec(),
        })
    }

    /// Creates the directory of an audit that trains a head for every fold on the embeddings;
    /// `experiment` is the run's.
    pub fn create_audit(
        &self,
        experiment: &Experiment,
        sets: &[String],
        folds: usize,
        out: &Path,
    ) -> Result<Group, Error> {
        let has_truth = self.all.clean_labels.is_some();
        let head = head_experiment(experiment, &absolute(out)?.join(FOLDER), has_truth, sets)?;
        let group = super::group(&head, folds)?;
        group::create(out, &group)?;
        write_json(&out.join(BACKBONE), &Backbone { run: self.run.clone() })?;
        Ok(group)
    }

    /// Embeds the examples, from where an earlier process stopped, and writes their labels.
    pub fn write(mut self, out: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
        let folder = out.join(FOLDER);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        write_file(&folder.join(CLASSES), (self.class_names.join("\n") + "\n").as_bytes())?;
        let ids = (0..self.all.len()).map(|at| self.all.ids.name(at).into_owned()).collect();
        let (inputs, features) = (&self.all.inputs, folder.join(FEATURES));
        let job = Job {
            source: &Opened { ids: Some(ids), ..Opened::new(inputs.clone()) },
            preprocessing: Preprocessing::as_framed(&self.network.framing, inputs.shape())
                .ok_or_else(|| Error::invalid("the run was trained on features, not on images"))?,
            precision: Precision::Single,
            batch: self.batch,
            out: &features,
        };
        let stop = watch.stop();
        let outcome = embed(&job, &mut self.network, stop, &mut |event| {
            if let EmbedEvent::Progress { done, total } = event {
                watch.event(Event::Progress { what: "images embedded", done, total });
            }
        })?;
        if let Outcome::Stopped { done, total } = outcome {
            return Err(Error::Interrupted(format!(
                "stopped after embedding {done} of {total} images; continue with `aleator resume \
                 {}`",
                out.display()
            )));
        }
        let kept = kept_rows(&features, &self.all)?;
        if let Some(clean) = &self.all.clean_labels {
            let class = |at: &usize| vec![self.class(clean[*at]).to_string()];
            write_table(&folder.join(TRUTH), &["label".into()], kept.iter().map(class).collect())?;
        }
        let (header, rows) = self.labels(&kept);
        // Last: where it is, all files are.
        write_table(&folder.join(LABELS), &header, rows)
    }

    fn class(&self, class: u32) -> &str {
        &self.class_names[class as usize]
    }

    fn guarded_class(&self, class: u32) -> String {
        guarded(self.class(class)).into_owned()
    }

    /// The labels of some examples, with their ids, as a table with a header. Readers of tables by
    /// id take the guards away again; those of annotations find no guards.
    fn labels(&self, rows: &[usize]) -> (Vec<String>, Vec<Vec<String>>) {
        let id = |at: usize| guarded(&self.all.ids.name(at)).into_owned();
        let classes = || 0..self.class_names.len() as u32;
        let each_class = |cells: &dyn Fn(usize) -> Vec<String>| {
            let header = classes().map(|class| self.guarded_class(class));
            let row = |at: &usize| std::iter::once(id(*at)).chain(cells(*at)).collect();
            let header = std::iter::once("id".to_string()).chain(header).collect();
            (header, rows.iter().map(row).collect())
        };
        match &self.all.labels {
            Labels::Single(labels) => {
                let row = |at: &usize| vec![id(*at), self.guarded_class(labels[*at])];
                (vec!["id".into(), "label".into()], rows.iter().map(row).collect())
            }
            Labels::Annotations(votes) => {
                let of_example = |at: &usize| {
                    let row = |(annotator, class): (u32, u32)| {
                        let annotator = votes.annotator_names[annotator as usize].clone();
                        let example = self.all.ids.name(*at).into_owned();
                        vec![example, annotator, self.class(class).to_string()]
                    };
                    super::examples::votes(&self.all, *at).into_iter().map(row).collect::<Vec<_>>()
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
fn kept_rows(features: &Path, examples: &Split) -> Result<Vec<usize>, Error> {
    let file = InputSource::Features(features.display().to_string());
    let ids = Inputs::open(&file, &Framing::PLAIN)?.ids;
    let ids = ids.ok_or_else(|| Error::invalid("the embeddings have no ids"))?;
    let mut kept = ids.iter().peekable();
    let is_kept = |at: &usize| kept.next_if(|id| **id == examples.ids.name(*at)).is_some();
    Ok((0..examples.len()).filter(is_kept).collect())
}

fn write_table(path: &Path, header: &[String], rows: Vec<Vec<String>>) -> Result<(), Error> {
    CsvFile::write(path, header, |file| Ok(rows.iter().try_for_each(|row| file.row(row))?))
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(Error::io(path))
}
