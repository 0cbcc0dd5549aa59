//! From images to a file of embeddings, as fast as the network, with resuming.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aleator_data::inputs::{CarriedLabels, Opened};

use crate::batches::{self, ImageBatch};
use crate::error::EmbedError;
use crate::extractor::{Extractor, Images};
use crate::file::{self, Companions, Metadata, PartialFile, Plan, Precision};
use crate::prepare::Preprocessing;
use crate::record::Record;

/// Default batch size. Larger batches do not fit in the caches: on two cores EfficientNet-Lite0
/// takes 4.8 ms of processor time per image with 16, and 6.0 ms with 64.
pub const DEFAULT_BATCH: usize = 16;

/// The interval of saves; a killed process loses about this much work.
const BETWEEN_RECORDS: Duration = Duration::from_secs(5);

/// At most one image in this many may be damaged; more means broken data.
const ONE_DAMAGED_IN: usize = 100;

/// Most damaged images that a message names.
const NAMED: usize = 10;

/// The images to embed and the file to write.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The images, with labels and ids if they are known.
    pub source: &'a Opened,
    /// How images are prepared for the extractor.
    pub preprocessing: Preprocessing,
    /// How the features are stored.
    pub precision: Precision,
    /// Images per batch.
    pub batch: usize,
    /// The file to write.
    pub out: &'a Path,
}

/// What happens during the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An earlier run is resumed.
    Resumed {
        /// Number of finished images.
        done: usize,
    },
    /// An earlier run left a file that cannot be resumed.
    StartedOver {
        /// The reason.
        why: &'a str,
    },
    /// A batch is finished.
    Progress {
        /// Number of finished images.
        done: usize,
        /// Number of all images.
        total: usize,
    },
}

/// How the work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is complete.
    Finished {
        /// N.
        rows: usize,
        /// D.
        width: usize,
        /// Images that could not be decoded: id and error.
        set_aside: Vec<(String, String)>,
    },
    /// The file exists already, from the same images and settings.
    AlreadyThere,
    /// It was interrupted; the same call resumes it.
    Stopped {
        /// Number of finished images.
        done: usize,
        /// Number of all images.
        total: usize,
    },
}

/// Writes a file of embeddings: a tensor `features` `[N, D]`, and `labels`, ids and class names
/// if they are known.
///
/// Rows are written as they are computed, to `out` with `.partial` appended to its name. After
/// `stop` becomes true, or the process ends in any other way, the same call resumes the work and
/// produces the same bytes.
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
/// When something cannot be read, computed or written, `out` holds something else, or more than
/// one percent of the images cannot be decoded.
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
        file::remove_leftovers(job.out)?;
        return Ok(Outcome::AlreadyThere);
    }
    let mut work = Work::start(job, identity, watch)?;
    let (first, total) = (work.record.done, job.source.inputs.len());
    watch(Event::Progress { done: first, total });
    let ended = batches::each(job, first, job.batch(extractor), |prepared| {
        work.add(prepared, extractor)?;
        let done = work.record.done;
        watch(Event::Progress { done, total });
        let stop = stop.load(Ordering::Relaxed) && done < total;
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if ended.is_break() {
        work.save()?;
        return Ok(Outcome::Stopped { done: work.record.done, total });
    }
    work.finish()
}

/// Whether the file exists with the same settings; any other file is not overwritten.
fn is_there(out: &Path, identity: &Metadata) -> Result<bool, EmbedError> {
    if !out.exists() {
        return Ok(false);
    }
    let holds = match file::metadata(out) {
        Some(found) if identity.iter().all(|(name, value)| found.get(name) == Some(value)) => {
            return Ok(true);
        }
        Some(_) => "embeddings of other images or with other settings",
        None => "something else",
    };
    Err(EmbedError::Exists { path: out.to_path_buf(), holds: holds.into() })
}

/// The rows that are not among the damaged ones, which are sorted.
fn kept(rows: Range<usize>, damaged: &[(usize, String)]) -> Vec<usize> {
    rows.filter(|row| damaged.binary_search_by_key(row, |(at, _)| *at).is_err()).collect()
}

impl Job<'_> {
    /// The batch size, rounded up to a multiple of the extractor's fixed one.
    fn batch(&self, extractor: &dyn Extractor) -> usize {
        let batch = self.batch.max(1);
        extractor
            .input()
            .batch
            .map_or(batch, |fixed| batch.checked_next_multiple_of(fixed).unwrap_or(batch))
    }

    /// Everything that determines the content of the file.
    fn identity(&self, extractor: &dyn Extractor) -> Result<Metadata, EmbedError> {
        let mut hasher = blake3::Hasher::new();
        self.source.inputs.fingerprint_into(&mut hasher)?;
        let labels = self.source.labels.as_ref().and_then(CarriedLabels::classes);
        let companions = (labels, &self.source.class_names, &self.source.ids);
        hasher.update(&serde_json::to_vec(&companions).expect("labels and names are plain data"));
        let mut identity = extractor.identity();
        identity.insert("input_fingerprint", hasher.finalize().to_string());
        identity.insert("preprocessing", self.preprocessing.describe());
        identity.insert("type", self.precision.name().into());
        // Sums over another batch size may round differently.
        identity.insert("batch", self.batch(extractor).to_string());
        Ok(identity.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    fn id(&self, row: usize) -> String {
        self.source.ids.as_ref().map_or_else(|| row.to_string(), |ids| ids[row].clone())
    }

    fn most_set_aside(&self) -> usize {
        self.source.inputs.len() / ONE_DAMAGED_IN
    }
}

/// A file in progress.
struct Work<'a> {
    job: &'a Job<'a>,
    record: Record,
    /// Created with the first features, which determine D.
    file: Option<PartialFile>,
    saved: Option<Instant>,
}

impl<'a> Work<'a> {
    fn start(
        job: &'a Job<'a>,
        identity: Metadata,
        watch: &mut dyn FnMut(Event),
    ) -> Result<Self, EmbedError> {
        let previous = Record::read(job.out, &identity, job.source.inputs.len());
        let (set_aside, checksum) = (vec![], String::new());
        let record = Record { identity, width: 0, room: 0, done: 0, set_aside, checksum };
        let mut work = Self { job, record, file: None, saved: None };
        match previous {
            Ok(None) => {}
            Err(why) => watch(Event::StartedOver { why: &why }),
            Ok(Some(record)) => {
                let plan = work.plan(record.width)?;
                if record.room != plan.room || !plan.is_held(job.out, record.rows()) {
                    watch(Event::StartedOver { why: "some of its rows are missing" });
                    return Ok(work);
                }
                let file = PartialFile::open(job.out, plan, record.rows())?;
                if record.is_of(&file.hasher) {
                    work.file = Some(file);
                    watch(Event::Resumed { done: record.done });
                    work.record = record;
                } else {
                    watch(Event::StartedOver { why: "its rows or its record are damaged" });
                }
            }
        }
        Ok(work)
    }

    fn add(
        &mut self,
        prepared: &mut ImageBatch,
        extractor: &mut dyn Extractor,
    ) -> Result<(), EmbedError> {
        let count = prepared.rows.len() - prepared.damaged.len();
        if count > 0 {
            let (width, height) = self.job.preprocessing.size();
            let images = Images { values: &prepared.values, count, height, width };
            let features = extractor.extract(&images)?;
            self.check(&features, &kept(prepared.rows.clone(), &prepared.damaged))?;
            self.file(features.len() / count)?.append(&features)?;
        }
        self.record.done = prepared.rows.end;
        self.record.set_aside.append(&mut prepared.damaged);
        if self.record.set_aside.len() > self.job.most_set_aside() {
            return Err(self.too_many_damaged());
        }
        if self.saved.is_none_or(|saved| saved.elapsed() >= BETWEEN_RECORDS) {
            self.save()?;
        }
        Ok(())
    }

    /// Refuses numbers that are not finite or do not fit the precision.
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
            "the largest float16 is 65504: leave out --half"
        } else {
            "is --preprocess the one that the network was trained with?"
        };
        let column = at % width;
        Err(self.refuse(format!("feature {column} of image {id} is {value}; {advice}")))
    }

    /// The network returns what cannot be written.
    fn refuse(&self, message: String) -> EmbedError {
        EmbedError::model(self.record.identity.get("model").map_or("", String::as_str), message)
    }

    /// The file, created for features of this width if it does not exist yet.
    fn file(&mut self, width: usize) -> Result<&mut PartialFile, EmbedError> {
        if self.file.is_none() {
            let plan = self.plan(width)?;
            self.file = Some(PartialFile::open(self.job.out, plan, 0)?);
            // The old record describes other rows. It may belong to another process until the file
            // is ours.
            Record::remove(self.job.out)?;
            (self.record.width, self.record.room) = (plan.width, plan.room);
        }
        let expected = self.record.width;
        if width != expected {
            let message = format!("returns {width} features now, and {expected} before");
            return Err(self.refuse(message));
        }
        Ok(self.file.as_mut().expect("it was made above"))
    }

    fn plan(&self, width: usize) -> Result<Plan, EmbedError> {
        let (rows, most) = (self.job.source.inputs.len(), self.job.most_set_aside());
        let all: Vec<usize> = (0..rows).collect();
        let companions = self.companions(&all, true);
        Plan::new(width, self.job.precision, &companions, rows, most)
            .map_err(|what| EmbedError::write(self.job.out)(std::io::Error::other(what)))
    }

    /// Labels, ids and metadata of these rows.
    fn companions(&self, rows: &[usize], with_ids: bool) -> Companions {
        let source = self.job.source;
        let mut metadata = self.record.identity.clone();
        if let Some(names) = &source.class_names {
            let names = serde_json::to_string(names).expect("names are plain data");
            metadata.insert("class_names".into(), names);
        }
        let pick = |labels: &[u32]| rows.iter().map(|&row| labels[row]).collect();
        Companions {
            labels: source.labels.as_ref().and_then(CarriedLabels::classes).map(pick),
            ids: with_ids.then(|| rows.iter().map(|&row| self.job.id(row)).collect()),
            set_aside: vec![],
            metadata,
        }
    }

    /// Syncs all rows to disk, then writes the record of them.
    fn save(&mut self) -> Result<(), EmbedError> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync()?;
        self.record.save(self.job.out, &file.hasher)?;
        self.saved = Some(Instant::now());
        Ok(())
    }

    fn finish(self) -> Result<Outcome, EmbedError> {
        let damaged = &self.record.set_aside;
        let set_aside: Vec<(String, String)> =
            damaged.iter().map(|(row, what)| (self.job.id(*row), what.clone())).collect();
        let kept = kept(0..self.record.done, damaged);
        // Images that are named by their row need no ids, unless some are missing.
        let with_ids = self.job.source.ids.is_some() || !set_aside.is_empty();
        let mut companions = self.companions(&kept, with_ids);
        companions.set_aside = set_aside.iter().map(|(id, _)| id.clone()).collect();
        let (out, width) = (self.job.out, self.record.width);
        let file = self.file.expect("at least 99 % of the images were kept");
        let rows = file.rows;
        file.finish(out, &companions)?;
        Record::remove(out)?;
        Ok(Outcome::Finished { rows, width, set_aside })
    }

    /// Removes the unfinished file, which is of no use with other images.
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
        // If this fails, the next run overwrites the rest.
        let _ = Record::remove(self.job.out);
        let _ = std::fs::remove_file(file::partial_path(self.job.out));
        EmbedError::TooManyDamaged(format!(
            "{count} of the first {done} images (of {total}) cannot be decoded; at most 1 % \
             of all may be left out: replace or remove them:{}{more}",
            named.concat()
        ))
    }
}
