//! Damaged files of every format: an answer or an error, never a panic, and no more memory than
//! the file warrants.

use std::path::Path;

use crate::format_support::*;
use aleator_data::array::Array;
use aleator_data::inputs::Inputs;
use aleator_data::inputs::recognise::recognise;
use aleator_run::recipe::{Framing, InputSource};
use image::{ImageFormat, Rgb, RgbImage};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::properties::{WriterProperties, WriterVersion};

const MUTATIONS: u64 = 400;

/// All the files here together are a few kilobytes. A gigabyte that a damaged size promises would
/// show; what the decoders need for themselves does not come near.
#[cfg(target_os = "linux")]
const MOST_MEMORY_KIB: u64 = 512 << 10;

/// SplitMix64: the same damage in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One to three of: a byte changed, a large number written, a piece cut out, doubled, or the end
/// cut off.
fn damaged(file: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut file = file.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(file.len());
        let len = (1 + random.below(16)).min(file.len() - at);
        match random.below(6) {
            0 if at < file.len() => file[at] = random.next() as u8,
            1 if at < file.len() => file[at] ^= 1 << random.below(8),
            2 => {
                let number = [0_u64, u64::MAX, i64::MAX as u64, u32::MAX.into()][random.below(4)];
                file[at..at + len.min(8)].copy_from_slice(&number.to_le_bytes()[..len.min(8)]);
            }
            3 => drop(file.drain(at..at + len)),
            4 => {
                let piece = file[at..at + len].to_vec();
                file.splice(at..at, piece);
            }
            _ => file.truncate(at),
        }
    }
    file
}

fn use_inputs(source: InputSource, size: Option<usize>) {
    let framing = Framing { size, ..Framing::PLAIN };
    if let Ok(opened) = Inputs::open(&source, &framing) {
        // Reading everything in debug mode takes long if a header became large and true.
        let mut out = vec![0.0; opened.inputs.shape().len()];
        for row in 0..opened.inputs.len().min(1000) {
            let _ = opened.inputs.read(row, &mut out);
        }
        let _ = fingerprint(&opened.inputs);
        let _ = opened.inputs.describe();
    }
}

fn as_features(path: &Path) {
    use_inputs(InputSource::Features(path.to_str().unwrap().into()), None);
}

fn as_array(path: &Path) {
    let _ = Array::load(path.to_str().unwrap());
}

fn as_features_and_array(path: &Path) {
    as_features(path);
    as_array(path);
}

fn as_images(path: &Path) {
    use_inputs(InputSource::images(path), None);
}

#[track_caller]
fn survives(name: &str, file: &[u8], mut attempt: impl FnMut(&Path)) {
    let folder = Folder::new();
    attempt(&folder.write(name, file));
    #[cfg(target_os = "linux")]
    let before = peak_memory_kib();
    for seed in 0..MUTATIONS {
        attempt(&folder.write(name, damaged(file, seed)));
    }
    #[cfg(target_os = "linux")]
    {
        let after = peak_memory_kib();
        assert!(
            after.saturating_sub(before) < MOST_MEMORY_KIB,
            "{name}: {before} KiB became {after} KiB"
        );
    }
}

/// The most memory that the process ever used.
#[cfg(target_os = "linux")]
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn numbers() -> Vec<f32> {
    (0..60).map(|at| at as f32).collect()
}

#[test]
fn damaged_npy_files() {
    survives("x.npy", &npy_f32("(12, 5)", &numbers()), as_features_and_array);
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (12, 5), }";
    survives("x.npy", &npy_with(fortran, &floats(&numbers())), as_features_and_array);
    survives("y.npy", &npy("<U3", "(5,)", &[0; 60]), as_array);
    survives("y.npy", &object_labels(), as_array);
}

#[test]
fn damaged_npz_files() {
    let x = npy_f32("(12, 5)", &numbers());
    for (deflate, zip64) in [(false, false), (true, false), (false, true), (true, true)] {
        let y = object_labels();
        let x = Zipped { name: "X.npy", content: &x, deflate, zip64 };
        let y = Zipped { name: "y.npy", content: &y, deflate, zip64 };
        let file = zip_file(&[zip_member(&x), zip_member(&y)], zip64);
        survives("a.npz", &file, |path| {
            as_features(path);
            as_array(Path::new(&format!("{}#y", path.display())));
            let _ = recognise(path);
        });
    }
}

#[test]
fn damaged_safetensors_files() {
    let header = r#"{"x":{"dtype":"F32","shape":[12,5],"data_offsets":[0,240]}}"#;
    let file = safetensors(header, &floats(&numbers()));
    survives("x.safetensors", &file, as_features_and_array);
}

#[test]
fn damaged_parquet_files() {
    let (definition, repetition) = full_levels(12, 5);
    let lists = |properties| {
        let levels =
            Levels { values: &numbers(), definition: &definition, repetition: &repetition };
        parquet_file::<FloatType>(&list_of("emb", "float element;"), properties, &[levels])
    };
    for (version, dictionary, codec) in [
        (WriterVersion::PARQUET_1_0, true, Compression::SNAPPY),
        (WriterVersion::PARQUET_2_0, true, Compression::ZSTD(Default::default())),
        (WriterVersion::PARQUET_1_0, false, Compression::UNCOMPRESSED),
        (WriterVersion::PARQUET_2_0, false, Compression::UNCOMPRESSED),
        (WriterVersion::PARQUET_2_0, false, Compression::LZ4_RAW),
    ] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(dictionary)
            .set_compression(codec);
        survives("x.parquet", &lists(properties), as_features_and_array);
    }
    let words: Vec<ByteArray> = ["cat", "dog", "cat"].iter().map(|&word| word.into()).collect();
    let levels = Levels { values: &words, definition: &[1, 0, 1, 1], repetition: &[] };
    let file = parquet_file::<ByteArrayType>("optional binary y (UTF8);", plain(), &[levels]);
    survives("y.parquet", &file, as_array);
}

#[test]
fn damaged_idx_files() {
    let file = idx(0x0803, &[5, 3, 4], &[7; 60]);
    survives("images", &file, as_images);
    survives("images.gz", &gzip(&file), as_images);
    survives("labels.gz", &gzip(&idx(0x0801, &[60], &[7; 60])), as_array);
    // The damage inside the stream, so that the checksums are right.
    let folder = Folder::new();
    for seed in 0..MUTATIONS {
        as_images(&folder.write("images.gz", gzip(&damaged(&file, seed))));
    }
}

#[test]
fn damaged_cifar_files() {
    survives("x.bin", &cifar10(&[1, 2]), as_images);
}

#[test]
fn damaged_tables() {
    let table = b"image,label\na.png,3\nb.png,\"1\"\n\"c,d\",2.5\n";
    for name in ["y.csv", "y.tsv", "y.txt"] {
        survives(name, table, as_array);
    }
}

#[test]
fn damaged_manifests() {
    let folder = Folder::new();
    let image = folder.write("a.png", plain_png(2, 2, [7; 3]));
    let image = image.display();
    let csv = format!(
        "path,label,weight,annotator,split,id\n{image},cat,1,x,train,1\n{image},dog,1,y,train,1\n"
    );
    let json =
        format!("{{\"path\":\"{image}\",\"label\":\"cat\",\"weight\":2,\"clean_label\":3}}\n");
    for (name, text) in [("m.csv", &csv), ("m.tsv", &csv.replace(',', "\t")), ("m.jsonl", &json)] {
        survives(name, text.as_bytes(), |path| {
            as_images(path);
            as_images(Path::new(&format!("{}#train", path.display())));
            let _ = recognise(path);
        });
    }
}

#[test]
fn damaged_shards() {
    let image = plain_png(2, 2, [7; 3]);
    let long = "d".repeat(120) + "/k.png";
    let file = tar_file(&[
        ("0.png", &image),
        ("0.cls", b"1"),
        ("1.png", &image),
        ("1.json", br#"{"label": 1, "weight": 2}"#),
        (&long, &image),
        ("d/k.txt", b"word"),
    ]);
    survives("x.tar", &file, |path| {
        as_images(path);
        let _ = recognise(path);
    });
    survives("x.tar.gz", &gzip(&file), as_images);
    // The damage inside the stream, so that the checksums are right.
    let folder = Folder::new();
    for seed in 0..MUTATIONS {
        as_images(&folder.write("x.tar.gz", gzip(&damaged(&file, seed))));
    }
}

#[test]
fn damaged_parquet_images() {
    let image = plain_png(2, 2, [7; 3]);
    let images = [image.clone(), image.clone(), image];
    let note = r#"{"info":{"features":{"label":{"names":["a","b"]}}}}"#;
    let numbers = parquet_images(&images, &LabelColumn::Numbers(&[0, 1, 0]), Some(note));
    let words = parquet_images(&images, &LabelColumn::Words(&["a", "b", "a"]), None);
    for file in [numbers, words] {
        survives("x.parquet", &file, |path| {
            as_images(path);
            let _ = recognise(path);
        });
    }
}

#[test]
fn damaged_images() {
    let image =
        RgbImage::from_fn(6, 5, |x, y| Rgb([40 * x as u8, 50 * y as u8, (9 * x * y) as u8]));
    for (name, format) in [
        ("a/1.png", ImageFormat::Png),
        ("a/1.jpg", ImageFormat::Jpeg),
        ("a/1.webp", ImageFormat::WebP),
        ("a/1.bmp", ImageFormat::Bmp),
        ("a/1.gif", ImageFormat::Gif),
        ("a/1.tiff", ImageFormat::Tiff),
        ("a/1.ppm", ImageFormat::Pnm),
    ] {
        let mut file = std::io::Cursor::new(vec![]);
        image.write_to(&mut file, format).unwrap();
        survives(name, &file.into_inner(), |path| {
            let folder = path.parent().unwrap().parent().unwrap();
            use_inputs(InputSource::images(folder), Some(4));
        });
    }
}
