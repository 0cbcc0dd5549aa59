//! Damaged files of every format: an answer or an error, never a panic, and no more memory than
//! the file warrants.

use std::path::Path;

use crate::format_support::*;
use crate::fuzz::{Case, Form, Seed, fuzz_test};
use aleator_data::array::Array;
use aleator_data::inputs::Inputs;
use aleator_data::inputs::recognise::recognise;
use aleator_data::{DataSet, examine};
use aleator_run::recipe::{Data, Framing, HeldOut, InputSource, LabelKind, Link, Source};
use image::{ImageFormat, Rgb, RgbImage};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::properties::{WriterProperties, WriterVersion};

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

fn as_array(case: &Case) {
    let _ = Array::load(case.write().to_str().unwrap());
}

fn as_features_and_array(case: &Case) {
    let path = case.write();
    as_features(&path);
    let _ = Array::load(path.to_str().unwrap());
}

fn as_images(path: &Path) {
    use_inputs(InputSource::images(path), None);
}

/// All that a look at unknown data does.
fn as_anything(path: &Path) {
    let _ = examine(path, &|_, _| {}).map(|found| found.to_string());
}

fn numbers() -> Vec<f32> {
    (0..60).map(|at| at as f32).collect()
}

fn npy_seeds() -> Vec<Seed> {
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (12, 5), }";
    let doubles: Vec<u8> = numbers().iter().flat_map(|it| f64::from(*it).to_be_bytes()).collect();
    let files = [
        npy_f32("(12, 5)", &numbers()),
        npy_with(fortran, &floats(&numbers())),
        npy(">f8", "(60,)", &doubles),
        npy("|b1", "(12, 5)", &[1; 60]),
        npy("<U3", "(5,)", &[0; 60]),
        object_labels(),
    ];
    files.into_iter().map(|file| Seed::new("x.npy", Form::Bytes, file)).collect()
}

fuzz_test!(damaged_npy_files, 2400, npy_seeds(), as_features_and_array);

/// `numpy.savez` and `numpy.savez_compressed` of features and labels.
fn zipped(content: &[u8], deflate: bool) -> Vec<u8> {
    let y = object_labels();
    let x = Zipped { name: "X.npy", content, deflate, zip64: false };
    let y = Zipped { name: "y.npy", content: &y, deflate, zip64: true };
    zip_file(&[zip_member(&x), zip_member(&y)], deflate)
}

fn npz_seeds() -> Vec<Seed> {
    let x = npy_f32("(12, 5)", &numbers());
    vec![
        Seed::new("a.npz", Form::Bytes, zipped(&x, false)),
        Seed::new("a.npz", Form::Bytes, zipped(&x, true)),
        // The damage inside, so that the checksums are right.
        Seed::new("a.npz", Form::Bytes, x.clone()).inside(|x| zipped(x, false)),
        Seed::new("a.npz", Form::Bytes, x).inside(|x| zipped(x, true)),
    ]
}

fuzz_test!(damaged_npz_files, 1200, npz_seeds(), |case| {
    let path = case.write();
    as_features(&path);
    let _ = Array::load(&format!("{}#y", path.display()));
    let _ = recognise(&path);
});

fn safetensors_seeds() -> Vec<Seed> {
    let one = r#"{"x":{"dtype":"F32","shape":[12,5],"data_offsets":[0,240]}}"#;
    let embeddings = r#"{"__metadata__":{"class_names":"[\"a\",\"b\"]"},
        "features":{"dtype":"F16","shape":[10,6],"data_offsets":[0,120]},
        "labels":{"dtype":"I64","shape":[10],"data_offsets":[120,200]},
        "ids":{"dtype":"U8","shape":[8],"data_offsets":[200,208]},
        "id_offsets":{"dtype":"I64","shape":[4],"data_offsets":[208,240]}}"#;
    [one, embeddings]
        .map(|header| {
            let file = safetensors(header, &floats(&numbers()));
            Seed::new("x.safetensors", Form::Safetensors, file)
        })
        .into()
}

fuzz_test!(damaged_safetensors_files, 1000, safetensors_seeds(), |case| {
    as_features_and_array(case);
    as_anything(&case.write());
});

fn parquet_seeds() -> Vec<Seed> {
    let (definition, repetition) = full_levels(12, 5);
    let lists = |properties| {
        let levels =
            Levels { values: &numbers(), definition: &definition, repetition: &repetition };
        parquet_file::<FloatType>(&list_of("emb", "float element;"), properties, &[levels])
    };
    let mut files = vec![];
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
        files.push(lists(properties));
    }
    let words: Vec<ByteArray> = ["cat", "dog", "cat"].iter().map(|&word| word.into()).collect();
    let levels = Levels { values: &words, definition: &[1, 0, 1, 1], repetition: &[] };
    files.push(parquet_file::<ByteArrayType>("optional binary y (UTF8);", plain(), &[levels]));
    files.into_iter().map(|file| Seed::new("x.parquet", Form::Bytes, file)).collect()
}

fuzz_test!(damaged_parquet_files, 2400, parquet_seeds(), as_features_and_array);

fn parquet_image_seeds() -> Vec<Seed> {
    let image = plain_png(2, 2, [7; 3]);
    let images = [image.clone(), image.clone(), image];
    let note = r#"{"info":{"features":{"label":{"names":["a","b"]}}}}"#;
    let numbers = parquet_images(&images, &LabelColumn::Numbers(&[0, 1, 0]), Some(note));
    let words = parquet_images(&images, &LabelColumn::Words(&["a", "b", "a"]), None);
    [numbers, words].map(|file| Seed::new("x.parquet", Form::Bytes, file)).into()
}

fuzz_test!(damaged_parquet_images, 600, parquet_image_seeds(), |case| {
    let path = case.write();
    as_images(&path);
    as_anything(&path);
});

fn idx_seeds() -> Vec<Seed> {
    let file = idx(0x0803, &[5, 3, 4], &[7; 60]);
    vec![
        Seed::new("images", Form::Bytes, file.clone()),
        Seed::new("images.gz", Form::Bytes, gzip(&file)),
        // The damage inside the stream, so that the checksums are right.
        Seed::new("images.gz", Form::Bytes, file).inside(gzip),
    ]
}

fuzz_test!(damaged_idx_images, 900, idx_seeds(), |case| as_images(&case.write()));

fn idx_label_seeds() -> Vec<Seed> {
    let file = idx(0x0801, &[60], &[7; 60]);
    let packed = Seed::new("labels.gz", Form::Bytes, gzip(&file));
    vec![packed, Seed::new("labels.gz", Form::Bytes, file).inside(gzip)]
}

fuzz_test!(damaged_idx_labels, 400, idx_label_seeds(), as_array);

fn cifar_seeds() -> Vec<Seed> {
    vec![Seed::new("x.bin", Form::Bytes, cifar10(&[1, 2]))]
}

fuzz_test!(damaged_cifar_files, 200, cifar_seeds(), |case| {
    let path = case.write();
    as_images(&path);
    as_anything(&path);
});

fn table_seeds() -> Vec<Seed> {
    let table = "image,label\na.png,3\nb.png,\"1\"\n\"c,d\",2.5\n";
    vec![
        Seed::new("y.csv", Form::Table(','), table),
        Seed::new("y.tsv", Form::Table('\t'), table.replace(',', "\t")),
        Seed::new("y.txt", Form::Table(' '), "ant\nbee\n0\n"),
    ]
}

fuzz_test!(damaged_tables, 1200, table_seeds(), as_array);

const WINE: &str = "id,alcohol,ash,grape,split\na,12.5,2.1,barolo,train\nb,13.5,2.2,barbera,train\n\
                    c,14.5,-2.3e1,barolo,test\nd,,2.4,barbera,train\n";

fn wide_seeds() -> Vec<Seed> {
    let tabs = WINE.replace(',', "\t");
    vec![
        Seed::new("wine.csv", Form::Table(','), WINE),
        Seed::new("wine.tsv", Form::Table('\t'), tabs),
    ]
}

fuzz_test!(damaged_wide_tables, 800, wide_seeds(), |case| as_anything(&case.write()));

fn label_seeds() -> Vec<Seed> {
    let texts = [
        "0\n1\n2\n0\n1\n2\n0\n1\n",
        "label\ndog\ncat\ndog\nant\ncat\ncat\nant\ndog\n",
        "a;b\n-\nb\na\na;b\n-\nb\na\n",
        "example,annotator,label\n0,x,1\n0,y,0\n1,x,1\n2,x,0\n3,y,1\n4,x,0\n5,x,1\n6,x,0\n7,x,1\n",
        "id,label,weight\n7,1,0.5\n6,0,1\n5,1,1\n4,0,1\n3,1,2\n2,0,1\n1,1,1\n0,0,1e-6\n",
        "0.5,0.5\n1,0\n0,1\n0.25,0.75\n0.5,0.5\n1,0\n0,1\n0.25,0.75\n",
    ];
    let mut seeds: Vec<Seed> =
        texts.iter().map(|text| Seed::new("labels.csv", Form::Table(','), *text)).collect();
    seeds.push(Seed::new("labels.npy", Form::Bytes, npy_i64("(8,)", &[0, 1, 2, 0, 1, 2, 0, 1])));
    seeds.push(Seed::new("labels.npy", Form::Bytes, npy_i64("(8, 2)", &[0, 1].repeat(8))));
    seeds
}

fuzz_test!(damaged_labels, 1600, label_seeds(), |case| {
    let path = case.write();
    let features: Vec<f32> = (0..16).map(|at| at as f32).collect();
    let inputs = path.with_file_name("x.npy");
    std::fs::write(&inputs, npy_f32("(8, 2)", &features)).unwrap();
    let source = Source {
        inputs: InputSource::Features(inputs.to_str().unwrap().into()),
        labels: Some(path.to_str().unwrap().into()),
        clean_labels: None,
        ids: None,
    };
    let data = Data::of(source, HeldOut::Fraction { fraction: 0.25, seed: 0 });
    for (label_kind, link) in [
        (LabelKind::Auto, Link::Softmax),
        (LabelKind::Auto, Link::Sigmoid),
        (LabelKind::Soft, Link::Softmax),
    ] {
        let _ = DataSet::open(&Data { label_kind, ..data.clone() }, link);
    }
    let good = path.with_file_name("good.csv");
    std::fs::write(&good, "label\n0\n1\n2\n0\n1\n2\n0\n1\n").unwrap();
    let labels = Some(good.to_str().unwrap().into());
    let data = Data { train: Source { labels, ..data.train.clone() }, ..data };
    let _ = DataSet::open(&data, Link::Softmax).unwrap().verified(path.to_str().unwrap());
});

fn manifest_seeds() -> Vec<Seed> {
    let csv =
        "path,label,weight,annotator,split,id\na.png,cat,1,x,train,1\na.png,dog,1,y,train,1\n";
    let json = "{\"path\":\"a.png\",\"label\":\"cat\",\"weight\":2,\"clean_label\":3}\n\
                {\"path\":\"a.png\",\"label\":\"dog\",\"weight\":2,\"clean_label\":3}\n";
    vec![
        Seed::new("m.csv", Form::Table(','), csv),
        Seed::new("m.tsv", Form::Table('\t'), csv.replace(',', "\t")),
        Seed::new("m.jsonl", Form::JsonLines, json),
    ]
}

fuzz_test!(damaged_manifests, 1200, manifest_seeds(), |case| {
    let path = case.write();
    std::fs::write(path.with_file_name("a.png"), plain_png(2, 2, [7; 3])).unwrap();
    as_images(&path);
    as_images(Path::new(&format!("{}#train", path.display())));
    as_anything(&path);
});

fn shard_seeds() -> Vec<Seed> {
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
    vec![
        Seed::new("x.tar", Form::Tar, file.clone()),
        Seed::new("x.tar.gz", Form::Bytes, gzip(&file)),
        Seed::new("x.tar.gz", Form::Tar, file).inside(gzip),
    ]
}

fuzz_test!(damaged_shards, 900, shard_seeds(), |case| {
    let path = case.write();
    as_images(&path);
    as_anything(&path);
});

fn image_seeds() -> Vec<Seed> {
    let colours = |x: u32, y: u32| Rgb([40 * x as u8, 50 * y as u8, (9 * x * y) as u8]);
    let colour = RgbImage::from_fn(6, 5, colours);
    let grey = image::DynamicImage::ImageRgb8(colour.clone()).into_luma8();
    let mut seeds = vec![];
    for (name, format, form) in [
        ("a/1.png", ImageFormat::Png, Form::Png),
        ("a/1.jpg", ImageFormat::Jpeg, Form::Bytes),
        ("a/1.webp", ImageFormat::WebP, Form::Bytes),
        ("a/1.bmp", ImageFormat::Bmp, Form::Bytes),
        ("a/1.gif", ImageFormat::Gif, Form::Bytes),
        ("a/1.tiff", ImageFormat::Tiff, Form::Bytes),
        ("a/1.ppm", ImageFormat::Pnm, Form::Bytes),
    ] {
        let mut file = std::io::Cursor::new(vec![]);
        colour.write_to(&mut file, format).unwrap();
        seeds.push(Seed::new(name, form, file.into_inner()));
    }
    for (name, format, form) in
        [("a/1.png", ImageFormat::Png, Form::Png), ("a/1.jpg", ImageFormat::Jpeg, Form::Bytes)]
    {
        let mut file = std::io::Cursor::new(vec![]);
        grey.write_to(&mut file, format).unwrap();
        seeds.push(Seed::new(name, form, file.into_inner()));
    }
    seeds
}

fuzz_test!(damaged_images, 3600, image_seeds(), |case| {
    let path = case.write();
    let folder = path.parent().unwrap();
    // Others of this folder are of other cases.
    for entry in std::fs::read_dir(folder).unwrap() {
        let other = entry.unwrap().path();
        if other != path {
            std::fs::remove_file(other).unwrap();
        }
    }
    use_inputs(InputSource::images(folder.parent().unwrap()), Some(4));
});
