//! `embed`: images to files of embeddings, by a pretrained network.

mod trained;

use std::path::{Path, PathBuf};

use aleator_embed::{
    Event as EmbedEvent, Extractor, Job, OnnxNetwork, OnnxOptions, Outcome, Precision,
    Preprocessing, Reading, SizeFrom, open_sources,
};
use aleator_run::recipe::Framing;

use crate::{Error, Event, Watch};
pub(crate) use trained::TrainedNetwork;

/// The network that computes embeddings.
#[derive(Clone, Debug)]
pub enum EmbeddingNetwork<'a> {
    /// An ONNX file that maps images to one vector each.
    Onnx {
        /// The file.
        file: &'a Path,
        /// How it is run.
        options: OnnxOptions<'a>,
        /// How images are prepared; without a size, the network's own or the usual one is taken.
        framing: Framing,
    },
    /// The layers before the head of a trained run; images are prepared as the run saw them.
    Run {
        /// The run directory.
        dir: &'a Path,
        /// The step of the checkpoint, in place of the one that was evaluated; the file then names
        /// it.
        checkpoint: Option<usize>,
    },
}

/// How embeddings are computed and stored.
#[derive(Clone, Debug)]
pub struct EmbedSettings<'a> {
    /// The network.
    pub network: EmbeddingNetwork<'a>,
    /// The precision of the stored numbers.
    pub precision: Precision,
    /// Images computed at once.
    pub batch: usize,
}

/// A file of embeddings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// A safetensors file with `features`, and labels, ids and class names where they are known.
    pub path: PathBuf,
    /// N and D; `None` where the complete file existed before.
    pub shape: Option<[usize; 2]>,
    /// Whether the images have labels.
    pub labelled: bool,
    /// The number of classes, where their names are known.
    pub classes: Option<usize>,
    /// Images that cannot be decoded: id and reason.
    pub set_aside: Vec<(String, String)>,
}

/// Computes the embeddings of images: one file for each split of the data, `out` for the only or
/// the training split.
///
/// Interrupted at any point and called again, it continues where it stopped, to the same bytes.
///
/// # Errors
/// When images or network cannot be opened, more than one image in a hundred cannot be decoded, or
/// `out` exists with other content.
pub fn embed(
    images: &[PathBuf],
    settings: &EmbedSettings<'_>,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Vec<EmbeddedFile>, Error> {
    check(settings, out)?;
    let (path, mut network, framing): (_, Box<dyn Extractor>, _) = match &settings.network {
        EmbeddingNetwork::Run { dir, checkpoint } => {
            let network = TrainedNetwork::open(dir, *checkpoint)?;
            let framing = Framing { size: None, ..network.framing };
            (dir, Box::new(network), framing)
        }
        EmbeddingNetwork::Onnx { file, options, framing } => {
            let network = OnnxNetwork::open(file, options, &mut |line| watch.note(line))?;
            (file, Box::new(network), *framing)
        }
    };
    let (preprocessing, size_from) = Preprocessing::new(&framing, network.input())
        .map_err(|reason| Error::invalid(reason).at(path.display().to_string()))?;
    let why = match size_from {
        SizeFrom::Caller => "",
        SizeFrom::Network => "; the size is the network's",
        SizeFrom::Usual => "; the size is the usual one (--size sets another)",
    };
    watch.note(&format!("preprocessing: {}{why}", preprocessing.describe()));
    let (width, height) = preprocessing.size();
    let framing = Framing { size: Some(width.max(height)), ..framing };
    let sources = open_sources(images, &framing)?;
    if sources.len() > 1 {
        let files: Vec<String> =
            sources.iter().map(|source| source.file(out).display().to_string()).collect();
        watch.note(&format!(
            "the data have {} splits, and each gets a file: {}",
            files.len(),
            files.join(", ")
        ));
    }
    let EmbedSettings { precision, batch, .. } = *settings;
    let mut files = vec![];
    for source in &sources {
        let out = &source.file(out);
        let job = Job { source: &source.opened, preprocessing, precision, batch, out };
        files.push(embed_split(&job, network.as_mut(), watch)?);
    }
    Ok(files)
}

fn check(settings: &EmbedSettings<'_>, out: &Path) -> Result<(), Error> {
    let is_safetensors =
        out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("safetensors"));
    if !is_safetensors || out.file_stem().is_none() {
        let message = format!("{}: the file to write must end in .safetensors", out.display());
        return Err(Error::invalid(message));
    }
    match &settings.network {
        EmbeddingNetwork::Onnx { framing: Framing { centre_crop: Some(share), .. }, .. }
            if !(*share > 0.0 && *share <= 1.0) =>
        {
            let message = "must be above 0 and at most 1, as in 0.875";
            Err(Error::invalid(format!("centre crop {share}: {message}")))
        }
        _ => Ok(()),
    }
}

fn embed_split(
    job: &Job<'_>,
    network: &mut dyn Extractor,
    watch: &mut Watch<'_>,
) -> Result<EmbeddedFile, Error> {
    let Job { source, out, .. } = *job;
    let name = out.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stop = watch.stop();
    let outcome = aleator_embed::embed(job, network, stop, &mut |event| match event {
        EmbedEvent::Progress { done, total } => {
            watch.event(Event::Progress { what: "images", done, total });
        }
        EmbedEvent::Resumed { done } => {
            watch.note(&format!("{name}: resuming after {done} images"));
        }
        EmbedEvent::StartedOver { why } => watch.note(&format!(
            "{name}: starting over, an earlier unfinished file cannot be resumed: {why}"
        )),
    })?;
    let (shape, set_aside) = match outcome {
        Outcome::AlreadyThere => {
            watch.note(&format!("{} exists already, made in the same way", out.display()));
            (None, vec![])
        }
        Outcome::Stopped { done, total } => {
            return Err(Error::Interrupted(format!(
                "stopped after {done} of {total} images; the same command resumes there"
            )));
        }
        Outcome::Finished { rows, width, set_aside } => (Some([rows, width]), set_aside),
    };
    if let (Some(_), Some(Reading::Pooled { places, .. })) = (shape, network.reading()) {
        watch.note(&format!("the output is a map of {places} places; its mean is taken"));
    }
    Ok(EmbeddedFile {
        path: out.to_path_buf(),
        shape,
        labelled: source.labels.is_some(),
        classes: source.class_names.as_ref().map(Vec::len),
        set_aside,
    })
}
