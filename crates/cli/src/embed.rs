//! `aleator embed`: images → embeddings, by a pretrained network.

use std::path::{Path, PathBuf};

use aleator::embeddings::{DEFAULT_BATCH, OnnxOptions, Precision, Runtime};
use aleator::run::recipe::{Filter, Framing, PixelValues};
use aleator::{EmbedSettings, EmbeddingNetwork};
use anyhow::{Result, bail};
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::output::line;
use crate::progress::{tell, watched};
use crate::values::{Choice, choice, whole};

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
    #[command(flatten)]
    checkpoint: CheckpointArg,
    /// The .safetensors file to write; other splits are written next to it, as
    /// NAME-test.safetensors
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How pixel values are scaled; choose what the network was trained with
    #[arg(long, default_value = "imagenet", value_parser = choice(&PIXEL_VALUES))]
    preprocess: PixelValues,
    /// The side of the images that the network sees, in pixels [default: the network's own, or 224]
    #[arg(long, value_name = "PIXELS")]
    size: Option<usize>,
    /// Only the central square, its side this share of the shorter side, as in 0.875; without it
    /// the whole image is seen, stretched to a square
    #[arg(long, value_name = "SHARE")]
    centre_crop: Option<f64>,
    /// The filter for resizing
    #[arg(long, default_value = "bicubic", value_parser = choice(&FILTERS))]
    filter: Filter,
    /// The output of the network, if it has several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Store 16-bit floats: half the size
    #[arg(long)]
    half: bool,
    /// Images at once
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BATCH, value_parser = whole(1..=usize::MAX))]
    batch: usize,
    /// What computes the network
    #[arg(long, default_value = "auto", value_parser = choice(&RUNTIMES))]
    runtime: Runtime,
    /// The library of ONNX Runtime, as in libonnxruntime.so [default: that of ORT_DYLIB_PATH, of
    /// the Python package onnxruntime, or of the system]
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
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

After Ctrl-C, a kill or a power cut, the same command resumes where it stopped.";

const PIXEL_VALUES: [Choice<PixelValues>; 4] = [
    (
        "imagenet",
        PixelValues::ImageNet,
        "0 to 1, then centred and scaled by channel, as networks from PyTorch and timm mostly want",
    ),
    (
        "symmetric",
        PixelValues::Symmetric,
        "−1 to 1, as many vision transformers and networks from Keras want",
    ),
    ("unit", PixelValues::Unit, "0 to 1"),
    ("lite", PixelValues::Lite, "(byte − 127) / 128, as EfficientNet-Lite wants"),
];

const FILTERS: [Choice<Filter>; 2] =
    [("bicubic", Filter::Bicubic, "Sharper"), ("bilinear", Filter::Bilinear, "Softer")];

const RUNTIMES: [Choice<Runtime>; 3] = [
    ("auto", Runtime::Auto, "ONNX Runtime where its library is found, otherwise rten"),
    ("onnxruntime", Runtime::OnnxRuntime, "ONNX Runtime"),
    ("rten", Runtime::Rten, "rten, which is part of this program"),
];

/// `aleator embed`.
pub fn embed(args: &EmbedArgs, quiet: bool) -> Result<()> {
    if args.onnxruntime.is_some() && args.runtime == Runtime::Rten {
        bail!("--onnxruntime names a library, and --runtime rten uses none; leave out one");
    }
    if args.checkpoint.step.is_some() && args.backbone.is_none() {
        bail!("--checkpoint is of a trained run: give the run by --backbone");
    }
    let by = match args.checkpoint.step {
        Some(step) => format!(", by the checkpoint of step {step}"),
        None => String::new(),
    };
    let precision = if args.half { Precision::Half } else { Precision::Single };
    let settings = EmbedSettings { network: args.network(), precision, batch: args.batch };
    let files = watched(quiet, |watch| aleator::embed(&args.data, &settings, &args.out, watch))?;
    for file in &files {
        if !file.set_aside.is_empty() {
            let count = file.set_aside.len();
            tell(&format!("warning: {count} images could not be decoded and are left out:"));
            file.set_aside.iter().for_each(|(_, reason)| tell(&format!("  {reason}")));
        }
        let Some([rows, width]) = file.shape else { continue };
        let labels = match (file.labelled, file.classes) {
            (true, Some(classes)) => format!(", with labels of {classes} classes"),
            (true, None) => ", with labels".to_string(),
            (false, _) => ", without labels".to_string(),
        };
        let path = file.path.display();
        line(format_args!("{path}: {rows} embeddings of {width} numbers{labels}{by}"))?;
    }
    Ok(())
}

impl EmbedArgs {
    /// One of the two is always given.
    fn network(&self) -> EmbeddingNetwork<'_> {
        match &self.backbone {
            Some(dir) => EmbeddingNetwork::Run { dir, checkpoint: self.checkpoint.step },
            None => EmbeddingNetwork::Onnx {
                file: self.model.as_deref().unwrap_or(Path::new("")),
                options: OnnxOptions {
                    runtime: self
                        .onnxruntime
                        .as_ref()
                        .map_or(self.runtime, |_| Runtime::OnnxRuntime),
                    library: self.onnxruntime.as_deref(),
                    output: self.output.as_deref(),
                    threads: rayon::current_num_threads(),
                },
                framing: Framing {
                    channels: None,
                    size: self.size,
                    centre_crop: self.centre_crop,
                    filter: self.filter,
                    values: self.preprocess,
                },
            },
        }
    }
}
