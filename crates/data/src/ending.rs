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

/// Formats that are not read as features: their endings, and the Python that turns `FILE` into one
/// that is.
const FOREIGN: [(&[&str], &str); 9] = [
    (&["pt", "pth"], r#"numpy.save("x.npy", torch.load("FILE", weights_only=True).numpy())"#),
    (
        &["pkl", "pickle"],
        r#"pandas.DataFrame(pandas.read_pickle("FILE")).to_csv("x.csv", index=False)"#,
    ),
    (&["joblib"], r#"numpy.save("x.npy", joblib.load("FILE"))"#),
    (&["h5", "hdf5"], r#"f = h5py.File("FILE"); numpy.savez("x.npz", X=f["X"][:], y=f["y"][:])"#),
    (&["mat"], r#"m = scipy.io.loadmat("FILE"); numpy.savez("x.npz", X=m["X"], y=m["y"].ravel())"#),
    (&["xlsx", "xls"], r#"pandas.read_excel("FILE").to_csv("x.csv", index=False)"#),
    (&["feather"], r#"pandas.read_feather("FILE").to_parquet("x.parquet")"#),
    (&["arrow"], r#"datasets.Dataset.from_file("FILE").to_parquet("x.parquet")"#),
    (&["jsonl", "ndjson"], r#"pandas.read_json("FILE", lines=True).to_parquet("x.parquet")"#),
];

/// For a file of such a format, what to do.
pub(crate) fn conversion(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    let (_, line) = FOREIGN.iter().find(|(endings, _)| endings.contains(&ending.as_str()))?;
    let line = line.replace("FILE", &path.display().to_string());
    Some(format!("features are not read from .{ending} files; convert it in Python: {line}"))
}
