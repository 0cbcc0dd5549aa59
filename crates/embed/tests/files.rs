//! The file of embeddings: what is in it, and what is left when something goes wrong.

use crate::support;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::onnx::mean_colours;
use crate::support::{FRAMING, Place, ppm, read, run, run_through, source};
use aleator_embed::{
    EmbedError, Event, Extractor, FORMAT, Identity, Images, InputSpec, Job, Outcome, Precision,
    Preprocessing, Source, embed, open_sources,
};

/// The mean of each colour, in Rust.
struct MeanColour {
    model: &'static str,
    calls: usize,
}

impl MeanColour {
    fn new() -> Self {
        Self { model: "mean colour", calls: 0 }
    }
}

impl Extractor for MeanColour {
    fn identity(&self) -> Identity {
        Identity::from([("model", self.model.into())])
    }

    fn input(&self) -> InputSpec {
        InputSpec::OPEN
    }

    fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
        self.calls += 1;
        let plane = images.height * images.width;
        let mean = |plane: &[f32]| plane.iter().sum::<f32>() / plane.len() as f32;
        Ok(images.values.chunks_exact(plane).map(mean).collect())
    }
}

#[test]
fn a_file_holds_features_labels_ids_and_how_it_was_made() {
    let place = Place::new();
    let photos = place.photos(5);
    let model = place.write("net.onnx", mean_colours(-1, -1).file());
    let mut network = support::rten(&model).unwrap();
    let out = place.path("photos.safetensors");
    let outcome = run_through(&source(&photos), &mut network, &out);
    assert_eq!(outcome, Outcome::Finished { rows: 10, width: 4, set_aside: vec![] });

    let file = read(&out);
    assert_eq!(file.shape, [10, 4]);
    let close = |a: f32, b: f32| assert!((a - b).abs() < 1e-6, "{a} and {b}");
    close(file.features[4 * 3 + 1], 3.0 / 255.0);
    close(file.features[4 * 5], 100.0 / 255.0);
    assert_eq!(file.labels.unwrap(), [[0; 5], [1; 5]].concat());
    let ids = file.ids.unwrap();
    assert_eq!((ids[0].as_str(), ids[9].as_str()), ("cat/000.ppm", "dog/004.ppm"));
    let said = |name: &str| file.metadata[name].as_str();
    assert_eq!(said("format"), FORMAT);
    assert_eq!(said("class_names"), "[\"cat\",\"dog\"]");
    assert_eq!((said("model"), said("output")), ("net.onnx", "features"));
    assert_eq!(said("model_blake3"), blake3::hash(&fs::read(&model).unwrap()).to_string());
    assert_eq!(said("preprocessing"), "unit, whole image, bicubic to 4 × 4 pixels");
    assert_eq!(said("set_aside"), "[]");
    assert_eq!(said("input_fingerprint").len(), 64);
    assert_eq!(place.names(), ["net.onnx", "photos", "photos.safetensors"]);
}

/// What is trained on comes with its ids and the names of its classes.
#[test]
fn the_file_is_read_back_with_ids_and_class_names() {
    let place = Place::new();
    let out = place.path("photos.safetensors");
    run_through(&source(&place.photos(3)), &mut MeanColour::new(), &out);
    let spec = format!("{}#features", out.display());
    let features = aleator_run::recipe::InputSource::Features(spec);
    let opened = aleator_data::Inputs::open(&features, &FRAMING).unwrap();
    assert_eq!(opened.ids.unwrap()[5], "dog/002.ppm");
    assert_eq!(opened.class_names.unwrap(), ["cat", "dog"]);
}

#[test]
fn images_without_labels_get_none() {
    let place = Place::new();
    for at in 0..3_u8 {
        place.write(&format!("flat/{at}.ppm"), ppm(3, [at; 3]));
    }
    let out = place.path("flat.safetensors");
    run_through(&source(&place.path("flat")), &mut MeanColour::new(), &out);
    let file = read(&out);
    assert_eq!((file.shape, file.labels), (vec![3, 3], None));
    assert_eq!(file.ids.unwrap(), ["0.ppm", "1.ppm", "2.ppm"]);
}

/// IDX images are grey, and networks want colours.
#[test]
fn grey_images_become_coloured_ones() {
    let place = Place::new();
    let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1];
    idx.extend([51, 255]);
    let path = place.write("t-images-idx3-ubyte", idx);
    let out = place.path("t.safetensors");
    run_through(&source(&path), &mut MeanColour::new(), &out);
    let file = read(&out);
    let expected = [0.2, 0.2, 0.2, 1.0, 1.0, 1.0];
    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
    assert!(file.features.iter().zip(&expected).all(close), "{:?}", file.features);
    assert_eq!(file.ids, None);
}

#[test]
fn half_precision_is_half_as_long() {
    let place = Place::new();
    let source = source(&place.photos(3));
    let out = place.path("half.safetensors");
    let (preprocessing, _) = Preprocessing::new(&FRAMING, InputSpec::OPEN).unwrap();
    let job = Job {
        source: &source.opened,
        preprocessing,
        precision: Precision::Half,
        batch: 4,
        out: &out,
    };
    embed(&job, &mut MeanColour::new(), &AtomicBool::new(false), &mut |_| ()).unwrap();
    let file = read(&out);
    assert_eq!(file.metadata["type"], "F16");
    assert!((file.features[9] - 100.0 / 255.0).abs() < 1e-3, "{:?}", file.features);
}

/// Stops after the first batch that reaches this number of images.
fn stop_after(source: &Source, out: &std::path::Path, images: usize) {
    let stop = AtomicBool::new(false);
    let watch = &mut |event: Event| {
        if let Event::Progress { done, .. } = event {
            stop.store(done >= images, Ordering::Relaxed);
        }
    };
    let outcome = run(source, &mut MeanColour::new(), out, &stop, watch).unwrap();
    assert_eq!(outcome, Outcome::Stopped { done: images, total: 22 });
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bytes() {
    let place = Place::new();
    let source = source(&place.photos(11));
    let whole = place.path("whole.safetensors");
    run_through(&source, &mut MeanColour::new(), &whole);
    for images in [4, 12, 20] {
        let out = place.path("stopped.safetensors");
        stop_after(&source, &out, images);
        assert!(!out.exists());
        // What came after the last record is not trusted.
        let partial = place.path("stopped.safetensors.partial");
        let mut bytes = fs::read(&partial).unwrap();
        bytes.extend([7; 5]);
        fs::write(&partial, bytes).unwrap();

        let mut events = vec![];
        let mut extractor = MeanColour::new();
        let stop = AtomicBool::new(false);
        let watch = &mut |event: Event| {
            if let Event::Resumed { done } = event {
                events.push(done);
            }
        };
        run(&source, &mut extractor, &out, &stop, watch).unwrap();
        assert_eq!(events, [images]);
        assert_eq!(extractor.calls, (22 - images).div_ceil(4));
        assert_eq!(fs::read(&out).unwrap(), fs::read(&whole).unwrap());
        fs::remove_file(&out).unwrap();
    }
    assert_eq!(place.names(), ["photos", "whole.safetensors"]);
}

/// Why a run starts over, with what is left of an earlier one.
fn started_over(source: &Source, extractor: &mut MeanColour, out: &std::path::Path) -> String {
    let mut reason = String::new();
    let stop = AtomicBool::new(false);
    let watch = &mut |event: Event| {
        if let Event::StartedOver { why } = event {
            reason = why.to_string();
        }
    };
    run(source, extractor, out, &stop, watch).unwrap();
    reason
}

#[test]
fn what_was_begun_otherwise_is_started_over() {
    let place = Place::new();
    let photos = place.photos(11);
    let out = place.path("x.safetensors");
    let partial = place.path("x.safetensors.partial");

    stop_after(&source(&photos), &out, 8);
    let mut other = MeanColour { model: "other", calls: 0 };
    assert_eq!(
        started_over(&source(&photos), &mut other, &out),
        "it was started with another model"
    );
    assert_eq!(read(&out).metadata["model"], "other");
    fs::remove_file(&out).unwrap();

    stop_after(&source(&photos), &out, 8);
    place.write("photos/cat/003.ppm", ppm(6, [9; 3]));
    let why = started_over(&source(&photos), &mut MeanColour::new(), &out);
    assert_eq!(why, "it was started with other images");
    fs::remove_file(&out).unwrap();

    stop_after(&source(&photos), &out, 8);
    let rows = fs::read(&partial).unwrap();
    fs::write(&partial, &rows[..rows.len() - 1]).unwrap();
    let why = started_over(&source(&photos), &mut MeanColour::new(), &out);
    assert_eq!(why, "some of its rows are missing");
    fs::remove_file(&out).unwrap();

    // Any other damage, in the rows or in the record.
    let progress = place.path("x.safetensors.progress");
    for (file, from_end) in [(&partial, 1), (&partial, 90), (&progress, 100)] {
        stop_after(&source(&photos), &out, 8);
        let mut bytes = fs::read(file).unwrap();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        fs::write(file, bytes).unwrap();
        let why = started_over(&source(&photos), &mut MeanColour::new(), &out);
        assert!(why.contains("damaged"), "{why:?}");
        fs::remove_file(&out).unwrap();
    }

    stop_after(&source(&photos), &out, 8);
    place.write("x.safetensors.progress", "{}");
    let why = started_over(&source(&photos), &mut MeanColour::new(), &out);
    assert_eq!(why, "its record is damaged");
}

#[test]
fn a_finished_file_is_kept_and_another_is_not_written_over() {
    let place = Place::new();
    let source = source(&place.photos(4));
    let out = place.path("x.safetensors");
    run_through(&source, &mut MeanColour::new(), &out);
    let mut again = MeanColour::new();
    assert_eq!(run_through(&source, &mut again, &out), Outcome::AlreadyThere);
    assert_eq!(again.calls, 0);

    let stop = AtomicBool::new(false);
    let mut other = MeanColour { model: "other", calls: 0 };
    let error = run(&source, &mut other, &out, &stop, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("x.safetensors exists and holds embeddings of other images"), "{error}");
    fs::write(&out, "a letter").unwrap();
    let error = run(&source, &mut again, &out, &stop, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("exists and holds something else"), "{error}");
    assert_eq!(fs::read(&out).unwrap(), b"a letter");
}

#[test]
fn a_place_that_cannot_be_written_to_is_refused_before_the_work() {
    let place = Place::new();
    let source = source(&place.photos(4));
    let mut extractor = MeanColour::new();
    let out = place.path("no-such-folder/x.safetensors");
    let stop = AtomicBool::new(false);
    let error = run(&source, &mut extractor, &out, &stop, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("no such directory"), "{error}");
    assert_eq!(extractor.calls, 0);
}

/// One image in a hundred may be damaged; it is left out and named.
#[test]
fn damaged_images_are_set_aside() {
    let place = Place::new();
    let photos = place.photos(100);
    place.write("photos/cat/007.ppm", "P6 six six 255");
    place.write("photos/dog/050.ppm", ppm(6, [1; 3]).split_at(40).0);
    let whole = place.path("whole.safetensors");
    let outcome = run_through(&source(&photos), &mut MeanColour::new(), &whole);
    let Outcome::Finished { rows, set_aside, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(rows, 198);
    let ids: Vec<&str> = set_aside.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["cat/007.ppm", "dog/050.ppm"]);
    assert!(set_aside[0].1.contains("007.ppm: cannot be decoded"), "{set_aside:?}");

    let file = read(&whole);
    assert_eq!((file.shape, file.labels.unwrap().len()), (vec![198, 3], 198));
    let ids = file.ids.unwrap();
    assert_eq!((ids.len(), ids[7].as_str()), (198, "cat/008.ppm"));
    assert_eq!(file.metadata["set_aside"], "[\"cat/007.ppm\",\"dog/050.ppm\"]");
    assert!((file.features[3 * 7 + 1] - 8.0 / 255.0).abs() < 1e-6);
}

#[test]
fn many_damaged_images_stop_the_work_with_a_list() {
    let place = Place::new();
    let photos = place.photos(100);
    for at in [3, 4, 5] {
        place.write(&format!("photos/cat/{at:03}.ppm"), "damaged");
    }
    let out = place.path("x.safetensors");
    let stop = AtomicBool::new(false);
    let result = run(&source(&photos), &mut MeanColour::new(), &out, &stop, &mut |_| ());
    let error = result.unwrap_err().to_string();
    for word in ["3 of the first 8 images (of 200)", "cat/003.ppm", "cat/005.ppm", "1 %"] {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert_eq!(place.names(), ["photos"]);
}

/// A network whose numbers cannot be trained on.
struct NotFinite;

impl Extractor for NotFinite {
    fn identity(&self) -> Identity {
        Identity::from([("model", "net.onnx".into())])
    }

    fn input(&self) -> InputSpec {
        InputSpec::OPEN
    }

    fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
        Ok((0..images.count).flat_map(|at| [1.0, if at == 2 { f32::NAN } else { 0.0 }]).collect())
    }
}

#[test]
fn features_that_are_no_numbers_are_refused_with_the_image() {
    let place = Place::new();
    let out = place.path("x.safetensors");
    let stop = AtomicBool::new(false);
    let result = run(&source(&place.photos(4)), &mut NotFinite, &out, &stop, &mut |_| ());
    let error = result.unwrap_err().to_string();
    assert!(error.contains("net.onnx: feature 1 of image cat/002.ppm is NaN"), "{error}");
}

#[test]
fn splits_are_found_and_number_their_classes_alike() {
    let place = Place::new();
    for class in ["bird", "cat", "dog"] {
        place.write(&format!("set/train/{class}/1.ppm"), ppm(3, [1; 3]));
    }
    for class in ["cat", "dog"] {
        place.write(&format!("set/test/{class}/1.ppm"), ppm(3, [1; 3]));
    }
    let sources = open_sources(&[place.path("set")], &FRAMING).unwrap();
    let splits: Vec<_> = sources.iter().map(|source| source.split).collect();
    assert_eq!(splits, [None, Some("test")]);
    assert_eq!(sources[1].opened.labels.as_ref().unwrap().classes(), Some(&[1, 2][..]));
    assert_eq!(sources[1].file(&place.path("x.safetensors")), place.path("x-test.safetensors"));

    place.write("set/test/eel/1.ppm", ppm(3, [1; 3]));
    let error = open_sources(&[place.path("set")], &FRAMING).unwrap_err().to_string();
    assert!(error.contains("has the class \"eel\""), "{error}");
}

#[test]
fn paths_without_images_are_refused() {
    let place = Place::new();
    place.write("notes/readme.md", "nothing");
    for (path, word) in
        [("notes", "no images"), ("notes/readme.md", "no images"), ("gone", "no such")]
    {
        let error = open_sources(&[place.path(path)], &FRAMING).unwrap_err().to_string();
        assert!(error.contains(word), "{path}: {error}");
    }
}
