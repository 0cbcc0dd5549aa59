//! Small networks and images.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod onnx;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use aleator_embed::{
    EmbedError, Event, Extractor, Job, OnnxNetwork, OnnxOptions, Outcome, Precision, Preprocessing,
    Runtime, Source, embed, open_sources,
};
use aleator_run::recipe::{Framing, PixelValues};
use safetensors::SafeTensors;
use tempfile::TempDir;

/// Bytes 0 to 255 as 0 to 1, images of 4 × 4 pixels.
pub const FRAMING: Framing = Framing { values: PixelValues::Unit, ..Framing::sized(4) };

/// A temporary folder.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Images of two classes, `each` of both, no two alike.
    pub fn photos(&self, each: usize) -> PathBuf {
        for (at, class) in ["cat", "dog"].iter().enumerate() {
            for image in 0..each {
                let colour = [(at * 100) as u8, image as u8, (image / 2) as u8];
                self.write(&format!("photos/{class}/{image:03}.ppm"), ppm(6, colour));
            }
        }
        self.path("photos")
    }

    /// Names of the files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

/// An image in one colour.
pub fn ppm(side: usize, colour: [u8; 3]) -> Vec<u8> {
    let mut out = format!("P6\n{side} {side}\n255\n").into_bytes();
    (0..side * side).for_each(|_| out.extend(colour));
    out
}

/// Opens a network in rten.
pub fn rten(path: &Path) -> Result<OnnxNetwork, EmbedError> {
    open(path, Runtime::Rten, None)
}

pub fn open(
    path: &Path,
    runtime: Runtime,
    output: Option<&str>,
) -> Result<OnnxNetwork, EmbedError> {
    let options = OnnxOptions { runtime, library: None, output, threads: 2 };
    OnnxNetwork::open(path, &options, &AtomicBool::new(false), &mut |_| ())
}

/// The images at a path, in one source.
pub fn source(path: &Path) -> Source {
    open_sources(&[path.to_path_buf()], &FRAMING).expect("images").swap_remove(0)
}

/// Embeds to a file, in batches of 4.
pub fn run(
    source: &Source,
    extractor: &mut dyn Extractor,
    out: &Path,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Event),
) -> Result<Outcome, EmbedError> {
    let (preprocessing, _) = Preprocessing::new(&FRAMING, extractor.input()).expect("a size");
    let precision = Precision::Single;
    let job = Job { source: &source.opened, preprocessing, precision, batch: 4, out };
    embed(&job, extractor, stop, watch)
}

/// Embeds without being stopped.
pub fn run_through(source: &Source, extractor: &mut dyn Extractor, out: &Path) -> Outcome {
    run(source, extractor, out, &AtomicBool::new(false), &mut |_| ()).expect("embeddings")
}

/// What a file holds.
pub struct Read {
    pub shape: Vec<usize>,
    pub features: Vec<f32>,
    pub labels: Option<Vec<i64>>,
    pub ids: Option<Vec<String>>,
    pub metadata: HashMap<String, String>,
}

/// Reads a file of embeddings by the library of the format.
pub fn read(path: &Path) -> Read {
    let bytes = fs::read(path).expect("a file");
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
    let tensors = SafeTensors::deserialize(&bytes).expect("tensors");
    let features = tensors.tensor("features").expect("features");
    let ints = |name: &str| {
        let tensor = tensors.tensor(name).ok()?;
        let (values, _) = tensor.data().as_chunks();
        Some(values.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect::<Vec<_>>())
    };
    let ids = ints("id_offsets").map(|offsets| {
        let text = tensors.tensor("ids").expect("ids").data();
        let id = |pair: &[i64]| {
            String::from_utf8(text[pair[0] as usize..pair[1] as usize].to_vec()).expect("UTF-8")
        };
        offsets.windows(2).map(id).collect()
    });
    let values = match features.dtype() {
        safetensors::Dtype::F16 => {
            let (values, _) = features.data().as_chunks();
            values.iter().map(|bytes| half::f16::from_le_bytes(*bytes).to_f32()).collect()
        }
        _ => {
            let (values, _) = features.data().as_chunks();
            values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
    };
    Read {
        shape: features.shape().to_vec(),
        features: values,
        labels: ints("labels"),
        ids,
        metadata: header.metadata().clone().unwrap_or_default(),
    }
}
