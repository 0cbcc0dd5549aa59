//! From images to a file of embeddings, as fast as the network, and from where it stopped.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aleator_data::inputs::{CarriedLabels, Opened};

use crate::batches::{self, Batches, Prepared};
use crate::error::EmbedError;
use crate::extractor::{Extractor, Identity, Images};
use crate::file::{self, Beside, PartialFile, Plan, Precision};
use crate::prepare::Preprocessing;
use crate::record::{Earlier, Record};

/// Images that a network sees at once where nobody says. Larger batches leave the caches: on two
/// cores EfficientNet-Lite0 takes 4.8 ms of processor time an image at 16, and 6.0 at 64.
pub const USUAL_BATCH: usize = 16;

/// A killed process loses about this much work.
const BETWEEN_RECORDS: Duration = Duration::from_secs(5);

/// One image in so many may be damaged; with more, something else is wrong.
const ONE_DAMAGED_IN: usize = 100;

/// Damaged images that a message names.
const NAMED: usize = 10;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The images, with labels and ids where they are known.
    pub source: &'a Opened,
    /// What is done to an image before the extractor sees it.
    pub preprocessing: Preprocessing,
    /// How the features are stored.
    pub precision: Precision,
    /// Images at once.
    pub batch: usize,
    /// The file to make.
    pub out: &'a Path,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An earlier run got so far, and this one goes on there.
    Resumed {
        /// Images that are done.
        done: usize,
    },
    /// An earlier run left something that cannot be gone on with.
    StartedOver {
        /// Why.
        why: &'a str,
    },
    /// So many images are done.
    Progress {
        /// Of which
        done: usize,
        /// are all.
        total: usize,
    },
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is there.
    Finished {
        /// N.
        rows: usize,
        /// D.
        width: usize,
        /// Images that could not be decoded: id, and what is wrong.
        set_aside: Vec<(String, String)>,
    },
    /// The file was there already, made from the same images in the same way.
    AlreadyThere,
    /// It was asked to stop, and the same call goes on from here.
    Stopped {
        /// Images that are done.
        done: usize,
        /// Of so many.
        total: usize,
    },
}

/// Makes a file of embeddings: a tensor `features` `[N, D]`, and `labels`, ids and class names
/// where they are known.
///
/// Rows are written as they are made, to `out` with `.partial` behind its name. When `stop`
/// becomes true, or the process ends in any other way, the same call goes on with what is there,
/// to the same bytes.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use aleator_data::Inputs;
/// use aleator_embed::{Extractor, Identity, Images, InputSpec, Job, Outcome, Precision, Preprocessing};
/// use aleator_run::recipe::{Framing, InputSource};
/// # use aleator_embed::EmbedError;
/// # struct MeanColour;
/// # impl Extractor for MeanColour {
/// #     fn identity(&self) -> Identity { Identity::from([("model", "mean colour".into())]) }
/// #     fn input(&self) -> InputSpec { InputSpec::OPEN }
/// #     fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
/// #         let plane = images.height * images.width;
/// #         let mean = |plane: &[f32]| plane.iter().sum::<f32>() / plane.len() as f32;
/// #         Ok(images.values.chunks_exact(plane).map(mean).collect())
/// #     }
/// # }
/// # let folder = tempfile::tempdir()?;
/// # let photos = folder.path().join("photos");
/// # for class in ["cat", "dog"] {
/// #     std::fs::create_dir_all(photos.join(class))?;
/// #     std::fs::write(photos.join(class).join("1.ppm"), b"P6 1 1 255\n\x00\x7f\xff")?;
/// # }
/// # let out = folder.path().join("photos.safetensors");
/// let framing = Framing::sized(8);
/// let source = Inputs::open(&InputSource::images(&photos), &framing)?;
/// let (preprocessing, _) = Preprocessing::new(&framing, MeanColour.input())?;
/// let job =
///     Job { source: &source, preprocessing, precision: Precision::Single, batch: 32, out: &out };
/// let outcome = aleator_embed::embed(&job, &mut MeanColour, &AtomicBool::new(false), &mut |_| ())?;
/// assert_eq!(outcome, Outcome::Finished { rows: 2, width: 3, set_aside: vec![] });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When something cannot be read, computed or written, `out` holds something else already, or
/// more than one image in a hundred cannot be decoded.
pub fn embed(
    job: &Job,
    extractor: &mut dyn Extractor,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<Outcome, EmbedError> {
    if !job.out.exists() {
        file::check_writable(job.out)?;
    }
    let identity = job.identity(extractor)?;
    if is_there(job.out, &identity)? {
        return Ok(Outcome::AlreadyThere);
    }
    let mut work = Work::start(job, identity, watch)?;
    let first = work.record.done;
    let (inputs, preprocessing, batch) =
        (&job.source.inputs, job.preprocessing, job.batch(extractor));
    let total = inputs.len();
    watch(Event::Progress { done: first, total });
    let plan = batches::Plan { inputs, preprocessing, first, batch };
    let stopped = Batches::with(plan, |batches| -> Result<bool, EmbedError> {
        while let Some(prepared) = batches.next() {
            work.add(prepared?, extractor, |memory| batches.give_back(memory))?;
            watch(Event::Progress { done: work.record.done, total });
            if stop.load(Ordering::Relaxed) && work.record.done < total {
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    if stopped {
        work.save()?;
        return Ok(Outcome::Stopped { done: work.record.done, total });
    }
    work.finish()
}

/// Whether the file is there and made in the same way; another one is not written over.
fn is_there(out: &Path, identity: &Identity) -> Result<bool, EmbedError> {
    if !out.exists() {
        return Ok(false);
    }
    let holds = match file::metadata(out) {
        Some(found) => {
            let same = |(name, value): (&&str, &String)| {
                found.get(*name).and_then(|found| found.as_str()) == Some(value)
            };
            if identity.iter().all(same) {
                return Ok(true);
            }
            "embeddings made from other images or in another way"
        }
        None => "something else",
    };
    Err(EmbedError::Exists { path: out.to_path_buf(), holds: holds.into() })
}

impl Job<'_> {
    /// Whole batches of an extractor that fixes their size.
    fn batch(&self, extractor: &dyn Extractor) -> usize {
        let batch = self.batch.max(1);
        extractor.input().batch.map_or(batch, |fixed| batch.next_multiple_of(fixed))
    }

    /// All that decides the numbers of the file.
    fn identity(&self, extractor: &dyn Extractor) -> Result<Identity, EmbedError> {
        let mut hasher = blake3::Hasher::new();
        self.source.inputs.fingerprint_into(&mut hasher)?;
        let labels = self.source.labels.as_ref().and_then(CarriedLabels::classes);
        let beside = (labels, &self.source.class_names, &self.source.ids);
        hasher.update(&serde_json::to_vec(&beside).expect("labels and names are plain data"));
        let mut identity = extractor.identity();
        identity.insert("input_fingerprint", hasher.finalize().to_string());
        identity.insert("preprocessing", self.preprocessing.describe());
        identity.insert("type", self.precision.name().into());
        // Sums of another batch may round differently.
        identity.insert("batch", self.batch(extractor).to_string());
        Ok(identity)
    }

    fn id(&self, row: usize) -> String {
        self.source.ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[row].clone())
    }

    fn most_set_aside(&self) -> usize {
        self.source.inputs.len() / ONE_DAMAGED_IN
    }
}

/// A file that is being made.
struct Work<'a> {
    job: &'a Job<'a>,
    identity: Identity,
    record: Record,
    /// Made when the first features are there, which tell D.
    file: Option<PartialFile>,
    saved: Option<Instant>,
}

impl<'a> Work<'a> {
    fn start(
        job: &'a Job<'a>,
        identity: Identity,
        watch: &mut dyn FnMut(Event),
    ) -> Result<Self, EmbedError> {
        let owned = identity.iter().map(|(name, value)| (name.to_string(), value.clone()));
        let record =
            Record { identity: owned.collect(), width: 0, room: 0, done: 0, set_aside: vec![] };
        let mut work = Self { job, identity, record, file: None, saved: None };
        match Record::read(job.out, &work.identity, job.source.inputs.len()) {
            Earlier::None => {}
            Earlier::Other(why) => watch(Event::StartedOver { why: &why }),
            Earlier::Same(record) => {
                let plan = work.plan(record.width)?;
                if record.fits(&plan) && PartialFile::holds(job.out, &plan, record.rows()) {
                    work.file = Some(PartialFile::open(job.out, plan, record.rows())?);
                    watch(Event::Resumed { done: record.done });
                    work.record = record;
                } else {
                    watch(Event::StartedOver { why: "its rows are not all there" });
                }
            }
        }
        Ok(work)
    }

    fn add(
        &mut self,
        prepared: Prepared,
        extractor: &mut dyn Extractor,
        give_back: impl FnOnce(Vec<f32>),
    ) -> Result<(), EmbedError> {
        let count = prepared.rows.len() - prepared.damaged.len();
        if count > 0 {
            let (width, height) = self.job.preprocessing.size();
            let images = Images { values: &prepared.values, count, height, width };
            let features = extractor.extract(&images)?;
            give_back(prepared.values);
            let kept: Vec<usize> = prepared
                .rows
                .clone()
                .filter(|row| prepared.damaged.iter().all(|damaged| damaged.0 != *row))
                .collect();
            self.check(&features, &kept)?;
            self.file(features.len() / count)?.append(&features)?;
        }
        self.record.done = prepared.rows.end;
        self.record.set_aside.extend(prepared.damaged);
        if self.record.set_aside.len() > self.job.most_set_aside() {
            return Err(self.too_many_damaged());
        }
        if self.saved.is_none_or(|saved| saved.elapsed() >= BETWEEN_RECORDS) {
            self.save()?;
        }
        Ok(())
    }

    /// Every number must be one that can be trained on.
    fn check(&self, features: &[f32], rows: &[usize]) -> Result<(), EmbedError> {
        let largest = match self.job.precision {
            Precision::Single => f32::MAX,
            Precision::Half => half::f16::MAX.to_f32(),
        };
        let Some(at) = features.iter().position(|value| value.is_nan() || value.abs() > largest)
        else {
            return Ok(());
        };
        let width = features.len() / rows.len();
        let (id, value) = (self.job.id(rows[at / width]), features[at]);
        let advice = if value.is_finite() {
            "float16 goes to 65504: leave out --half"
        } else {
            "is --preprocess the one that the network was trained with?"
        };
        let model = self.identity.get("model").cloned().unwrap_or_default();
        let column = at % width;
        let message = format!("feature {column} of image {id} is {value}; {advice}");
        Err(EmbedError::model(model, message))
    }

    /// The file, which is made for features of this width if there is none yet.
    fn file(&mut self, width: usize) -> Result<&mut PartialFile, EmbedError> {
        if self.file.is_none() {
            let plan = self.plan(width)?;
            self.file = Some(PartialFile::create(self.job.out, plan)?);
            // A record of other rows must not outlive them; it may be another process's until the
            // file is ours.
            Record::remove(self.job.out)?;
            (self.record.width, self.record.room) = (plan.width, plan.room);
        }
        let expected = self.record.width;
        if width != expected {
            let model = self.identity.get("model").cloned().unwrap_or_default();
            let message = format!("makes {width} features now, and {expected} before");
            return Err(EmbedError::model(model, message));
        }
        Ok(self.file.as_mut().expect("it was made above"))
    }

    fn plan(&self, width: usize) -> Result<Plan, EmbedError> {
        let (rows, most) = (self.job.source.inputs.len(), self.job.most_set_aside());
        let all: Vec<usize> = (0..rows).collect();
        let beside = self.beside(&all, true);
        Plan::new(width, self.job.precision, &beside, rows, most)
            .map_err(|what| EmbedError::write(self.job.out)(std::io::Error::other(what)))
    }

    /// What stands beside the features of these rows.
    fn beside(&self, rows: &[usize], with_ids: bool) -> Beside {
        let source = self.job.source;
        let mut metadata: Vec<(String, String)> =
            self.identity.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        if let Some(names) = &source.class_names {
            let names = serde_json::to_string(names).expect("names are plain data");
            metadata.push(("class_names".into(), names));
        }
        let pick = |labels: &[u32]| rows.iter().map(|&row| labels[row]).collect();
        Beside {
            labels: source.labels.as_ref().and_then(CarriedLabels::classes).map(pick),
            ids: with_ids.then(|| rows.iter().map(|&row| self.job.id(row)).collect()),
            set_aside: vec![],
            metadata,
        }
    }

    /// Brings all rows to the disk, then the record that says so.
    fn save(&mut self) -> Result<(), EmbedError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync()?;
        self.record.save(self.job.out)?;
        self.saved = Some(Instant::now());
        Ok(())
    }

    fn finish(self) -> Result<Outcome, EmbedError> {
        let set_aside: Vec<(String, String)> = self
            .record
            .set_aside
            .iter()
            .map(|(row, what)| (self.job.id(*row), what.clone()))
            .collect();
        let damaged: Vec<usize> = self.record.set_aside.iter().map(|(row, _)| *row).collect();
        let kept: Vec<usize> =
            (0..self.record.done).filter(|row| damaged.binary_search(row).is_err()).collect();
        // Rows that are their own names need no ids, unless some are missing.
        let with_ids = self.job.source.ids.is_some() || !set_aside.is_empty();
        let mut beside = self.beside(&kept, with_ids);
        beside.set_aside = set_aside.iter().map(|(id, _)| id.clone()).collect();
        let (out, width) = (self.job.out, self.record.width);
        let file = self.file.expect("some image was kept: all but one in a hundred are");
        let rows = file.rows();
        file.finish(out, &beside)?;
        Record::remove(out)?;
        Ok(Outcome::Finished { rows, width, set_aside })
    }

    /// Nothing is kept: with other images, all is done anew.
    fn too_many_damaged(&self) -> EmbedError {
        let damaged = &self.record.set_aside;
        let named: Vec<String> =
            damaged.iter().take(NAMED).map(|(_, what)| format!("\n  {what}")).collect();
        let more = match damaged.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        let (count, done) = (damaged.len(), self.record.done);
        let total = self.job.source.inputs.len();
        // What stays of it is written over by the next run.
        let _ = Record::remove(self.job.out);
        let _ = std::fs::remove_file(file::partial_path(self.job.out));
        EmbedError::TooManyDamaged(format!(
            "{count} of the first {done} images (of {total}) cannot be decoded, and more than 1 % \
             of all may not be left out; replace or remove them:{}{more}",
            named.concat()
        ))
    }
}
