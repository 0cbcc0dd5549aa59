//! An audit of a run on images: its network embeds the examples once, and the labels are judged by
//! the embeddings.

use std::iter;
use std::path::{Path, PathBuf};

use aleator_data::inputs::Opened;
use aleator_data::{Inputs, Labels, Sources, Split};
use aleator_embed::{Event as EmbedEvent, Job, Outcome, Precision, Preprocessing, embed};
use aleator_report::spreadsheet::guarded;
use aleator_run::recipe::{
    DataOverlay, Framing, HeadTemperature, InputSource, Link, Noise, Overlay, Source,
};
use aleator_run::{
    CsvFile, PICTURES, create_own_folder, lock_folder, read_json, remove_leftovers, write_file,
    write_json,
};
use aleator_train::group::{self, Group};
use serde::{Deserialize, Serialize};

use super::AuditOptions;
use super::examples::votes;
use crate::workflow::embed::TrainedNetwork;
use crate::workflow::experiment::TO_AUDIT;
use crate::{Error, Event, Experiment, Watch};

/// The directory of the embeddings, in that of the audit.
const DIR: &str = "embeddings";
const BACKBONE: &str = "backbone.json";
const FEATURES: &str = "features.safetensors";
const LABELS: &str = "labels.csv";
const TRUTH: &str = "true_labels.csv";
const CLASSES: &str = "classes.txt";

/// `backbone.json`: the run whose network makes the embeddings.
#[derive(Serialize, Deserialize)]
struct Backbone {
    run: PathBuf,
    /// The step of its checkpoint, where the user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<usize>,
}

/// Computes what is missing of the embeddings of an audit; other audits need none.
pub fn finish_embeddings(out: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
    let (file, dir) = (out.join(BACKBONE), out.join(DIR));
    let exists = |name: &&str| dir.join(name).exists();
    if !file.exists() || [FEATURES, LABELS].iter().all(exists) {
        return Ok(());
    }
    let Backbone { run, checkpoint } = read_json(&file)?;
    RunExamples::of(&run, None, checkpoint)?.write(out, watch)
}

/// The step of the checkpoint whose network made the embeddings of an audit, where the user named
/// it.
pub fn named_checkpoint(out: &Path) -> Result<Option<usize>, Error> {
    let file = out.join(BACKBONE);
    Ok(if file.exists() { read_json::<Backbone>(&file)?.checkpoint } else { None })
}

/// The examples that a run was trained on, and its network.
pub struct RunExamples {
    run: PathBuf,
    checkpoint: Option<usize>,
    experiment: Experiment,
    network: TrainedNetwork,
    all: Split,
    class_names: Vec<String>,
}

impl RunExamples {
    /// Opens the data and the network of a run on images; `seed` replaces the run's, and
    /// `checkpoint` is the step of other weights than those that were evaluated.
    pub fn of(run: &Path, seed: Option<u64>, checkpoint: Option<usize>) -> Result<Self, Error> {
        let experiment = Experiment::of_run(run, &[], seed)?;
        let recipe = &experiment.recipe;
        let sources = Sources::open(&recipe.data, recipe.head.link)?;
        let all = sources.training_source(&recipe.data)?;
        if all.len() < all.inputs.len() {
            return Err(Error::invalid(format!(
                "the labels of {} leave out examples of its images, so that they cannot be \
                 embedded as a whole; audit it with --whole",
                run.display()
            )));
        }
        Ok(Self {
            run: absolute(run)?,
            checkpoint,
            network: TrainedNetwork::open(run, checkpoint)?,
            all,
            class_names: sources.class_names().to_vec(),
            experiment,
        })
    }

    /// Creates the directory of an audit that trains a head for every fold on the embeddings.
    pub fn create_audit(
        &self,
        sets: &[String],
        options: AuditOptions,
        out: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Group, Error> {
        let head = self.head_experiment(&absolute(out)?.join(DIR), sets)?;
        let group = super::group_of(&head, options, watch)?;
        group::create(out, &group)?;
        let (run, checkpoint) = (self.run.clone(), self.checkpoint);
        write_json(&out.join(BACKBONE), &Backbone { run, checkpoint })?;
        write_file(&out.join(PICTURES), self.experiment.recipe.to_toml().as_bytes())?;
        Ok(group)
    }

    /// How the labels of the embeddings are judged, with the user's settings: without folds, or where
    /// each class is on or off by heads with the run's noise model.
    fn head_experiment(&self, dir: &Path, sets: &[String]) -> Result<Experiment, Error> {
        if let Some(set) = sets.iter().find(|set| set.trim_start().starts_with("data.")) {
            return Err(Error::invalid(format!(
                "{set}: labels are judged by embeddings of the data that the run has seen; to \
                 change the data, train the whole network for every fold"
            )));
        }
        let head = &self.experiment.recipe.head;
        let preset = match (head.link, head.noise) {
            (Link::Softmax, _) => TO_AUDIT,
            (Link::Sigmoid, Noise::None) => "multilabel-none",
            (Link::Sigmoid, Noise::Diagonal) => "multilabel-diagonal",
            (Link::Sigmoid, Noise::LowRank { .. }) => "multilabel-full",
            (Link::Sigmoid, Noise::SharedLowRank { .. } | Noise::OnFeatures { .. }) => {
                "multilabel-shared"
            }
        };
        let file = |name: &str| dir.join(name).display().to_string();
        let train = Source {
            labels: Some(file(LABELS)),
            clean_labels: self.all.clean_labels.as_ref().map(|_| file(TRUTH)),
            ..Source::of(InputSource::Features(file(FEATURES)))
        };
        let data = DataOverlay {
            train: Some(train),
            class_names: Some(dir.join(CLASSES)),
            ..DataOverlay::default()
        };
        let overlay = Overlay { origin: "the embeddings".to_string(), data, network: None };
        let seed = self.experiment.only_seed("an audit")?;
        let mut made = Experiment::over(preset, &overlay, &[], Some(seed))?;
        if head.link == Link::Sigmoid {
            made.recipe.head.noise = head.noise;
            if let HeadTemperature::Fixed(_) = head.temperature {
                made.recipe.head.temperature = head.temperature;
            }
        }
        made.recipe = made.recipe.with_sets(sets, None)?;
        Ok(made)
    }

    /// Embeds the examples, from where an earlier process stopped, and writes their labels.
    pub fn write(mut self, out: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
        let _lock = lock_folder(out)?;
        let dir = create_own_folder(out, DIR)?;
        remove_leftovers(&dir)?;
        write_file(&dir.join(CLASSES), (self.class_names.join("\n") + "\n").as_bytes())?;
        let ids = (0..self.all.len()).map(|at| self.all.ids.name(at).into_owned()).collect();
        let (inputs, features) = (&self.all.inputs, dir.join(FEATURES));
        let job = Job {
            source: &Opened { ids: Some(ids), ..Opened::new(inputs.clone()) },
            preprocessing: Preprocessing::as_framed(&self.network.framing, inputs.shape())
                .ok_or_else(|| Error::invalid("the run was trained on features, not on images"))?,
            precision: Precision::Single,
            batch: self.experiment.recipe.evaluation.batch,
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
            let row = |at: &usize| vec![self.class_names[clean[*at] as usize].clone()];
            let rows = kept.iter().map(row).collect();
            write_table(&dir.join(TRUTH), (vec!["label".into()], rows))?;
        }
        // Last: where it is, all files are.
        write_table(&dir.join(LABELS), self.labels(&kept))
    }

    /// The labels of some examples, with their ids. Readers of tables by id take the guards away
    /// again; those of annotations find no guards.
    fn labels(&self, rows: &[usize]) -> Table {
        let by_id = |columns: Vec<String>, cells: &dyn Fn(usize) -> Vec<String>| {
            let row = |at: &usize| {
                let id = guarded(&self.all.ids.name(*at)).into_owned();
                iter::once(id).chain(cells(*at)).collect()
            };
            let header = iter::once("id".to_string()).chain(columns).collect();
            (header, rows.iter().map(row).collect())
        };
        let classes = || self.class_names.iter().map(|name| guarded(name).into_owned());
        match &self.all.labels {
            Labels::Single(labels) => {
                let names: Vec<String> = classes().collect();
                by_id(vec!["label".into()], &|at| vec![names[labels[at] as usize].clone()])
            }
            Labels::MultiHot(sets) => by_id(classes().collect(), &|at| {
                let on = |class| u8::from(sets.row(at).contains(&class)).to_string();
                (0..self.class_names.len() as u32).map(on).collect()
            }),
            // With a decimal point, so that certain labels are read as probabilities too.
            Labels::Soft(probs) => by_id(classes().collect(), &|at| {
                probs.row(at).iter().map(|prob| format!("{prob:?}")).collect()
            }),
            Labels::Annotations(all) => {
                let of_example = |at: &usize| {
                    let example = self.all.ids.name(*at).into_owned();
                    votes(all, *at).into_iter().map(move |(annotator, class)| {
                        let annotator = all.annotator_names[annotator as usize].clone();
                        vec![example.clone(), annotator, self.class_names[class as usize].clone()]
                    })
                };
                let header = ["example", "annotator", "label"].map(String::from).to_vec();
                (header, rows.iter().flat_map(of_example).collect())
            }
        }
    }
}

/// A header and rows.
type Table = (Vec<String>, Vec<Vec<String>>);

/// The rows of the examples that could be embedded.
fn kept_rows(features: &Path, examples: &Split) -> Result<Vec<usize>, Error> {
    let file = InputSource::Features(features.display().to_string());
    let ids = Inputs::open(&file, &Framing::PLAIN)?.ids;
    let ids = ids.ok_or_else(|| Error::invalid("the embeddings have no ids"))?;
    let mut kept = ids.iter().peekable();
    let is_kept = |at: &usize| kept.next_if(|id| **id == examples.ids.name(*at)).is_some();
    Ok((0..examples.len()).filter(is_kept).collect())
}

fn write_table(path: &Path, (header, rows): Table) -> Result<(), Error> {
    CsvFile::write(path, &header, |file| Ok(rows.iter().try_for_each(|row| file.row(row))?))
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(Error::io(path))
}
