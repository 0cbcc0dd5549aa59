//! What the ending of a file's name says about the file: the one place that knows endings.

use std::path::Path;

/// What a file holds by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Npy,
    /// Several arrays, as `numpy.savez` writes them.
    Npz,
    Safetensors,
    Parquet,
    Idx,
    /// A table with commas.
    Csv,
    /// A table with tabs.
    Tsv,
    /// One value a line.
    Lines,
    JsonLines,
    Tar,
    TarGzip,
    /// A binary file of CIFAR.
    Cifar,
    Image,
}

/// Endings of files that are images.
pub(crate) const IMAGES: [&str; 11] =
    ["png", "jpg", "jpeg", "webp", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pnm"];

impl Ending {
    /// In capitals or not; `None` where the name says nothing.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let (stem, ending) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
        Some(match ending {
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "safetensors" => Self::Safetensors,
            "parquet" | "pq" => Self::Parquet,
            "idx" => Self::Idx,
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "txt" => Self::Lines,
            "jsonl" | "ndjson" => Self::JsonLines,
            "tar" => Self::Tar,
            "tgz" => Self::TarGzip,
            "gz" if stem.ends_with(".tar") => Self::TarGzip,
            "bin" => Self::Cifar,
            image if IMAGES.contains(&image) => Self::Image,
            _ => return None,
        })
    }
}
