//! The file of embeddings, and how it grows.
//!
//! ```text
//! header, padded │ features [N, D] │ labels [N] │ id_offsets [N + 1] │ ids, UTF-8
//! ```
//!
//! The size of the header is known before the first row, so rows are written to their final
//! positions as they are computed; what follows them is written at the end.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aleator_run::{open_file, open_own};
use half::f16;
use half::slice::HalfFloatSliceExt;
use serde_json::{Map, Value, json};

use crate::error::EmbedError;
use crate::record::Record;

/// The value of `format` in the metadata.
pub use aleator_data::inputs::EMBEDDINGS_FORMAT as FORMAT;

/// Readers of the format refuse larger headers.
const LARGEST_HEADER: usize = 100_000_000;

/// How the numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit floats.
    Single,
    /// 16-bit floats.
    Half,
}

impl Precision {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "F32",
            Self::Half => "F16",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Half => 2,
        }
    }
}

/// What a finished file holds besides its features.
#[derive(Clone, Debug, Default)]
pub(crate) struct Companions {
    /// The labels of the kept rows.
    pub labels: Option<Vec<u32>>,
    /// The ids of the kept rows.
    pub ids: Option<Vec<String>>,
    /// The ids of the other rows.
    pub set_aside: Vec<String>,
    pub metadata: Metadata,
}

/// Names and their values, as the header has them.
pub(crate) type Metadata = BTreeMap<String, String>;

/// The layout of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// D.
    pub width: usize,
    pub precision: Precision,
    /// Bytes before the first row: the header and its length.
    pub room: usize,
}

impl Plan {
    /// The layout for at most `rows` rows with `all` their companions, of which at most
    /// `most_set_aside` are left out.
    pub(crate) fn new(
        width: usize,
        precision: Precision,
        all: &Companions,
        rows: usize,
        most_set_aside: usize,
    ) -> Result<Self, String> {
        let ids = all.ids.as_deref().unwrap_or_default();
        let mut escaped: Vec<usize> = ids.iter().map(|id| escaped_len(id) + 1).collect();
        escaped.sort_unstable();
        let set_aside: usize = escaped.iter().rev().take(most_set_aside).sum();
        let plan = Self { width, precision, room: 0 };
        let largest = plan.header(rows, all).len() + set_aside;
        let room = (8 + largest).next_multiple_of(8);
        if room > LARGEST_HEADER {
            return Err(format!(
                "the header would take {room} bytes, the limit is {LARGEST_HEADER}"
            ));
        }
        Ok(Self { room, ..plan })
    }

    fn row_bytes(&self) -> usize {
        self.width * self.precision.bytes()
    }

    /// The length of a file with this many rows and nothing after them.
    fn end(&self, rows: usize) -> u64 {
        (self.room + rows * self.row_bytes()) as u64
    }

    /// Whether the unfinished file has at least `rows` rows.
    pub(crate) fn is_held(&self, out: &Path, rows: usize) -> bool {
        fs::metadata(partial_path(out)).is_ok_and(|found| found.len() >= self.end(rows))
    }

    /// The JSON of the header for `rows` rows.
    fn header(&self, rows: usize, companions: &Companions) -> String {
        let mut metadata = companions.metadata.clone();
        metadata.insert("format".into(), FORMAT.into());
        metadata.insert("set_aside".into(), json!(companions.set_aside).to_string());
        let mut header = Map::from_iter([("__metadata__".to_string(), json!(metadata))]);
        let mut end = 0;
        let mut add = |name: &str, kind: &str, shape: &[usize], bytes: usize| {
            let offsets = [end, end + bytes];
            end += bytes;
            let tensor = json!({ "dtype": kind, "shape": shape, "data_offsets": offsets });
            header.insert(name.into(), tensor);
        };
        let (kind, width) = (self.precision.name(), self.width);
        add("features", kind, &[rows, width], rows * self.row_bytes());
        if companions.labels.is_some() {
            add("labels", "I64", &[rows], 8 * rows);
        }
        if let Some(ids) = &companions.ids {
            let bytes = ids.iter().map(String::len).sum();
            add("id_offsets", "I64", &[rows + 1], 8 * (rows + 1));
            add("ids", "U8", &[bytes], bytes);
        }
        Value::Object(header).to_string()
    }
}

/// The length of a text as JSON inside JSON.
fn escaped_len(text: &str) -> usize {
    let once = json!(text).to_string();
    json!(once).to_string().len() - 2
}

/// Refuses a path that is not writable, before anything is computed.
pub(crate) fn check_writable(out: &Path) -> Result<(), EmbedError> {
    let path = partial_path(out);
    let opened = open_own(&path, File::options().create(true).append(true));
    let length = opened.and_then(|file| file.metadata()).map_err(EmbedError::write(out))?.len();
    if length == 0 { fs::remove_file(&path).map_err(EmbedError::write(out)) } else { Ok(()) }
}

/// Removes what killed processes left beside a finished file, unless another process writes there.
pub(crate) fn remove_leftovers(out: &Path) -> Result<(), EmbedError> {
    let path = partial_path(out);
    match open_own(&path, File::options().write(true)) {
        Ok(file) if file.try_lock().is_ok() => {
            fs::remove_file(&path).map_err(EmbedError::write(&path))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return Ok(()),
    }
    Record::remove(out)
}

/// The unfinished file, locked for this process.
pub(crate) struct PartialFile {
    file: File,
    path: PathBuf,
    plan: Plan,
    /// The number of written rows.
    pub rows: usize,
    /// Of all of them.
    pub hasher: blake3::Hasher,
}

/// `F.safetensors.partial` for `F.safetensors`.
pub(crate) fn partial_path(out: &Path) -> PathBuf {
    with_suffix(out, ".partial")
}

/// A path with something appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    name.into()
}

impl PartialFile {
    /// Opens the file to continue after `rows` rows; whatever follows them is overwritten.
    pub(crate) fn open(out: &Path, plan: Plan, rows: usize) -> Result<Self, EmbedError> {
        let path = partial_path(out);
        let options = File::options().create(true).truncate(false).read(true).write(true).clone();
        let mut file = open_own(&path, &options).map_err(EmbedError::write(&path))?;
        file.try_lock().map_err(|error| {
            EmbedError::write(&path)(match error {
                TryLockError::WouldBlock => {
                    io::Error::new(io::ErrorKind::ResourceBusy, "another process writes to it")
                }
                TryLockError::Error(error) => error,
            })
        })?;
        let end = plan.end(rows);
        // Rows that a killed process wrote after its last record are computed again.
        file.set_len(end).map_err(EmbedError::write(&path))?;
        let mut hasher = blake3::Hasher::new();
        file.seek(SeekFrom::Start(plan.room as u64)).map_err(EmbedError::write(&path))?;
        hasher.update_reader(&mut file).map_err(EmbedError::write(&path))?;
        Ok(Self { file, path, plan, rows, hasher })
    }

    /// Appends whole rows.
    pub(crate) fn append(&mut self, features: &[f32]) -> Result<(), EmbedError> {
        assert!(features.len().is_multiple_of(self.plan.width), "rows must be whole");
        let bytes: Vec<u8> = match self.plan.precision {
            Precision::Single => features.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Precision::Half => {
                let mut halves = vec![f16::ZERO; features.len()];
                halves.convert_from_f32_slice(features);
                halves.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
        };
        self.file.write_all(&bytes).map_err(EmbedError::write(&self.path))?;
        self.hasher.update(&bytes);
        self.rows += features.len() / self.plan.width;
        Ok(())
    }

    /// Syncs all rows to disk.
    pub(crate) fn sync(&self) -> Result<(), EmbedError> {
        self.file.sync_data().map_err(EmbedError::write(&self.path))
    }

    /// Writes what follows the features and the header, and renames the file.
    pub(crate) fn finish(mut self, out: &Path, companions: &Companions) -> Result<(), EmbedError> {
        let written = self.write_companions(companions).and_then(|()| self.file.sync_all());
        written.map_err(EmbedError::write(&self.path))?;
        fs::rename(&self.path, out).map_err(EmbedError::write(out))?;
        sync_directory(out).map_err(EmbedError::write(out))
    }

    fn write_companions(&mut self, companions: &Companions) -> io::Result<()> {
        let mut to = BufWriter::new(&mut self.file);
        for label in companions.labels.iter().flatten() {
            to.write_all(&i64::from(*label).to_le_bytes())?;
        }
        if let Some(ids) = &companions.ids {
            let mut offset = 0_i64;
            to.write_all(&offset.to_le_bytes())?;
            for id in ids {
                offset += id.len() as i64;
                to.write_all(&offset.to_le_bytes())?;
            }
            ids.iter().try_for_each(|id| to.write_all(id.as_bytes()))?;
        }
        to.seek(SeekFrom::Start(0))?;
        let room = self.plan.room - 8;
        let header = self.plan.header(self.rows, companions);
        assert!(header.len() <= room, "the header fits the room that was made for it");
        to.write_all(&(room as u64).to_le_bytes())?;
        to.write_all(header.as_bytes())?;
        to.write_all(&vec![b' '; room - header.len()])?;
        to.flush()
    }
}

/// Syncs a directory to disk, on systems that support it.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(parent.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

/// The metadata of a finished file; `None` for any other file.
pub(crate) fn metadata(path: &Path) -> Option<Metadata> {
    let mut file = open_file(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    if length > LARGEST_HEADER || length as u64 > file.metadata().ok()?.len() {
        return None;
    }
    let mut header = vec![0; length];
    file.read_exact(&mut header).ok()?;
    let mut header: Map<String, Value> = serde_json::from_slice(&header).ok()?;
    let metadata: Metadata = serde_json::from_value(header.remove("__metadata__")?).ok()?;
    (metadata.get("format")? == FORMAT).then_some(metadata)
}
