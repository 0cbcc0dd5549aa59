//! `aleator embed`: images → embeddings, by a pretrained network.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aleator_embed::{
    Event, Extractor, Job, OnnxNetwork, OnnxOptions, Outcome, Precision, Preprocessing, Reading,
    Runtime, SizeFrom, Source, USUAL_BATCH, embed as embed_source, open_sources,
};
use aleator_run::recipe::{Filter, Framing, PixelValues};
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::at_least_one;
use crate::backbone::TrainedNetwork;
use crate::interrupt::{self, Interrupted};
use crate::progress::tell;

/// Arguments of `aleator embed`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct EmbedArgs {
    /// Images: a folder for each class, any folder of images, a manifest, WebDataset shards,
    /// Parquet, CIFAR or IDX files
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    /// The network, an ONNX file that takes images and gives one vector for each
    #[arg(long, value_name = "FILE", required_unless_present = "backbone")]
    model: Option<PathBuf>,
    /// The network of a trained run, in place of an ONNX file; images are seen as the run saw them
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["model", "preprocess", "size", "centre_crop", "filter", "output",
                              "runtime", "onnxruntime"]
    )]
    backbone: Option<PathBuf>,
    /// Where the embeddings go, a .safetensors file; those of other splits go beside it, as
    /// NAME-test.safetensors
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What the bytes of a pixel become: what the network was trained with
    #[arg(long, value_enum, default_value_t = Preset::Imagenet)]
    preprocess: Preset,
    /// The side of the images that the network sees, in pixels [default: the network's own, or 224]
    #[arg(long, value_name = "PIXELS")]
    size: Option<usize>,
    /// Only the central square, its side this share of the shorter side, as in 0.875; without it
    /// the whole image is seen, stretched to a square
    #[arg(long, value_name = "SHARE")]
    centre_crop: Option<f64>,
    /// How pixels are made from those of another size
    #[arg(long, value_enum, default_value_t = FilterName::Bicubic)]
    filter: FilterName,
    /// The output of the network, if it has several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Store 16-bit floats: half the size
    #[arg(long)]
    half: bool,
    /// Images at once
    #[arg(long, value_name = "N", default_value_t = USUAL_BATCH, value_parser = at_least_one)]
    batch: usize,
    /// What computes the network
    #[arg(long, value_enum, default_value_t = RuntimeName::Auto)]
    runtime: RuntimeName,
    /// The library of ONNX Runtime, as in libonnxruntime.so [default: that of ORT_DYLIB_PATH, of
    /// the Python package onnxruntime, or of the system]
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    /// Say nothing but warnings
    #[arg(short, long)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
Examples:
  aleator embed photos --model resnet50.onnx --out photos.safetensors
  aleator train --data photos.safetensors
  aleator embed cifar-10-batches-bin --model efficientnet_lite0.onnx --preprocess lite --size 128 \\
      --out cifar10.safetensors            also writes cifar10-test.safetensors
  aleator embed photos --model vit.onnx --output pooler_output --preprocess symmetric --half \\
      --out photos.safetensors

  aleator embed photos --backbone runs/my-network --out photos.safetensors

After Ctrl-C, a kill or a power cut, the same command goes on where it was.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// 0 to 1, then centred and scaled by channel, as networks from PyTorch and timm mostly want
    Imagenet,
    /// −1 to 1, as many vision transformers and networks from Keras want
    Symmetric,
    /// 0 to 1
    Unit,
    /// (byte − 127) / 128, as EfficientNet-Lite wants
    Lite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FilterName {
    /// Sharper
    Bicubic,
    /// Softer
    Bilinear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RuntimeName {
    /// ONNX Runtime where its library is found, otherwise rten
    Auto,
    /// ONNX Runtime
    Onnxruntime,
    /// rten, which is part of this program
    Rten,
}

/// `aleator embed`.
pub fn embed(args: &EmbedArgs) -> Result<()> {
    args.check()?;
    let stop = interrupt::flag()?;
    let say = |line: &str| {
        if !args.quiet {
            tell(line);
        }
    };
    let (mut network, framing) = Network::open(args, &say)?;
    let spec = network.extractor().input();
    let (preprocessing, size_from) = Preprocessing::new(&framing, spec)
        .map_err(|what| anyhow!("{}: {what}", args.network().display()))?;
    let (width, height) = preprocessing.size();
    let why = match size_from {
        SizeFrom::Caller => "",
        SizeFrom::Network => "; the size is the network's",
        SizeFrom::Usual => "; the size is the usual one, set another with --size",
    };
    say(&format!("preprocessing: {}{why}", preprocessing.describe()));
    let framing = Framing { size: Some(width.max(height)), ..framing };
    let sources = open_sources(&args.data, &framing)?;
    if sources.len() > 1 {
        let files: Vec<String> =
            sources.iter().map(|source| source.file(&args.out).display().to_string()).collect();
        say(&format!(
            "the data has {} splits, and each gets a file: {}",
            files.len(),
            files.join(", ")
        ));
    }
    for source in &sources {
        let out = source.file(&args.out);
        let precision = if args.half { Precision::Half } else { Precision::Single };
        let opened = &source.opened;
        let job = Job { source: opened, preprocessing, precision, batch: args.batch, out: &out };
        let mut progress = Progress::new(&out, args.quiet);
        let outcome =
            embed_source(&job, network.extractor(), stop, &mut |event| progress.show(event));
        progress.finish();
        conclude(source, &out, outcome?, network.reading(), &say)?;
    }
    Ok(())
}

/// Says how one split ended.
fn conclude(
    source: &Source,
    out: &Path,
    outcome: Outcome,
    reading: Option<Reading>,
    say: &dyn Fn(&str),
) -> Result<()> {
    let file = out.display();
    match outcome {
        Outcome::AlreadyThere => say(&format!("{file} is there already, made in the same way")),
        Outcome::Stopped { done, total } => {
            return Err(Interrupted(format!(
                "stopped after {done} of {total} images; the same command goes on from there"
            ))
            .into());
        }
        Outcome::Finished { rows, width, set_aside } => {
            if let Some(Reading::Pooled { places, .. }) = reading {
                say(&format!("the output is a map of {places} places; its mean was taken"));
            }
            if !set_aside.is_empty() {
                let count = set_aside.len();
                tell(&format!("warning: {count} images could not be decoded and are left out:"));
                set_aside.iter().for_each(|(_, what)| tell(&format!("  {what}")));
            }
            let labels = match (&source.opened.labels, &source.opened.class_names) {
                (Some(_), Some(names)) => format!(", with labels of {} classes", names.len()),
                (Some(_), None) => ", with labels".into(),
                (None, _) => ", without labels".into(),
            };
            writeln!(io::stdout(), "{file}: {rows} embeddings of {width} numbers{labels}")?;
        }
    }
    Ok(())
}

/// What computes the features.
enum Network {
    Onnx(Box<OnnxNetwork>),
    Trained(Box<TrainedNetwork>),
}

impl Network {
    /// The network that was asked for, and how it wants its images.
    fn open(args: &EmbedArgs, say: &dyn Fn(&str)) -> Result<(Self, Framing)> {
        if let Some(run) = &args.backbone {
            let network = TrainedNetwork::open(run)?;
            let framing = Framing { size: None, ..network.framing };
            return Ok((Self::Trained(Box::new(network)), framing));
        }
        let network = OnnxNetwork::open(args.network(), &args.options(), &mut |line| say(line))?;
        Ok((Self::Onnx(Box::new(network)), args.framing(args.size)))
    }

    fn extractor(&mut self) -> &mut dyn Extractor {
        match self {
            Self::Onnx(network) => network.as_mut(),
            Self::Trained(network) => network.as_mut(),
        }
    }

    fn reading(&self) -> Option<Reading> {
        match self {
            Self::Onnx(network) => network.reading(),
            Self::Trained(_) => None,
        }
    }
}

impl EmbedArgs {
    /// The file or folder of the network; one of the two is always given.
    fn network(&self) -> &Path {
        self.backbone.as_deref().or(self.model.as_deref()).unwrap_or(Path::new(""))
    }

    fn check(&self) -> Result<()> {
        let is_safetensors =
            self.out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("safetensors"));
        if !is_safetensors || self.out.file_stem().is_none() {
            bail!("{}: --out must end in .safetensors", self.out.display());
        }
        if let Some(share) = self.centre_crop.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            bail!("--centre-crop {share}: must be above 0 and at most 1, as in 0.875");
        }
        if self.onnxruntime.is_some() && self.runtime == RuntimeName::Rten {
            bail!("--onnxruntime names a library, and --runtime rten uses none; leave out one");
        }
        Ok(())
    }

    fn options(&self) -> OnnxOptions<'_> {
        let runtime = match (self.runtime, &self.onnxruntime) {
            (RuntimeName::Rten, _) => Runtime::Rten,
            (RuntimeName::Onnxruntime, _) | (RuntimeName::Auto, Some(_)) => Runtime::OnnxRuntime,
            (RuntimeName::Auto, None) => Runtime::Auto,
        };
        OnnxOptions {
            runtime,
            library: self.onnxruntime.as_deref(),
            output: self.output.as_deref(),
            threads: rayon::current_num_threads(),
        }
    }

    fn framing(&self, size: Option<usize>) -> Framing {
        Framing {
            channels: None,
            size,
            centre_crop: self.centre_crop,
            filter: match self.filter {
                FilterName::Bicubic => Filter::Bicubic,
                FilterName::Bilinear => Filter::Bilinear,
            },
            values: match self.preprocess {
                Preset::Imagenet => PixelValues::ImageNet,
                Preset::Symmetric => PixelValues::Symmetric,
                Preset::Unit => PixelValues::Unit,
                Preset::Lite => PixelValues::Lite,
            },
        }
    }
}

/// A bar in a terminal, plain lines in a pipe.
struct Progress {
    name: String,
    style: Style,
}

enum Style {
    Bar(ProgressBar),
    Lines { first: Option<(Instant, usize)>, last: Instant },
    Silent,
}

/// Plain lines come at most this often.
const PAUSE: Duration = Duration::from_secs(10);

impl Progress {
    fn new(out: &Path, quiet: bool) -> Self {
        let style = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Style::Silent,
            (false, true) => Style::Bar(ProgressBar::new(0)),
            (false, false) => Style::Lines { first: None, last: Instant::now() },
        };
        let name = out.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, style }
    }

    fn show(&mut self, event: Event) {
        match event {
            Event::Resumed { done } => self.say(&format!("going on after {done} images")),
            Event::StartedOver { why } => {
                self.say(&format!("starting over what an earlier run left unfinished: {why}"));
            }
            Event::Progress { done, total } => self.advance(done, total),
        }
    }

    fn advance(&mut self, done: usize, total: usize) {
        match &mut self.style {
            Style::Bar(bar) if bar.length() != Some(total as u64) => {
                let style = "{prefix}: {bar:30} {percent:>3} %  {pos}/{len}  {msg}  {eta} left";
                let style = ProgressStyle::with_template(style);
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_prefix(self.name.clone());
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.reset_eta();
            }
            Style::Bar(bar) => {
                bar.set_position(done as u64);
                bar.set_message(format!("{:.0} images/s", bar.per_sec()));
            }
            Style::Lines { first, last } => {
                let (started, before) = *first.get_or_insert((Instant::now(), done));
                if done == before || (last.elapsed() < PAUSE && done < total) {
                    return;
                }
                *last = Instant::now();
                let rate = (done - before) as f64 / started.elapsed().as_secs_f64();
                let left = (total - done) as f64 / rate;
                self.say(&format!("{done}/{total} images  {rate:.0} images/s  {left:.0} s left"));
            }
            Style::Silent => {}
        }
    }

    fn say(&self, line: &str) {
        let line = format!("{}: {line}", self.name);
        match &self.style {
            Style::Bar(bar) => bar.suspend(|| tell(&line)),
            Style::Lines { .. } => tell(&line),
            Style::Silent => {}
        }
    }

    fn finish(self) {
        if let Style::Bar(bar) = self.style {
            bar.finish_and_clear();
        }
    }
}
