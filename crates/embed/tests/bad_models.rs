//! Networks that cannot be used are refused with words that say why.

use crate::support;
use std::fs;
use std::path::Path;

use crate::support::onnx::{FLOAT, Onnx, UINT8, feature_map, mean_colours, tokens_and_mean};
use crate::support::{Place, open};
use aleator_embed::{EmbedError, Extractor, Images, OnnxNetwork, Runtime, onnx_runtime_is_found};

/// Both runtimes where both can be used.
fn runtimes() -> Vec<Runtime> {
    if onnx_runtime_is_found() {
        return vec![Runtime::Rten, Runtime::OnnxRuntime];
    }
    println!("ONNX Runtime is not found here: tested with rten only");
    vec![Runtime::Rten]
}

fn message(result: Result<OnnxNetwork, EmbedError>) -> String {
    result.err().expect("a refusal").to_string()
}

/// Opening is refused with these words by every runtime.
fn refused(file: &[u8], output: Option<&str>, words: &[&str]) {
    let place = Place::new();
    let path = place.write("net.onnx", file);
    for runtime in runtimes() {
        let text = message(open(&path, runtime, output));
        for word in ["net.onnx: "].iter().chain(words) {
            assert!(text.contains(word), "{runtime:?}: {word:?} is not in: {text}");
        }
    }
}

/// Two images of 4 × 4 pixels.
fn two_images(values: &[f32]) -> Images<'_> {
    Images { values, count: 2, height: 4, width: 4 }
}

#[test]
fn a_missing_file() {
    for runtime in runtimes() {
        let text = message(open(Path::new("gone.onnx"), runtime, None));
        assert!(text.contains("gone.onnx: there is no such file"), "{text}");
    }
    let place = Place::new();
    let text = message(open(&place.path(""), Runtime::Rten, None));
    assert!(text.contains("is a directory"), "{text}");
}

#[test]
fn files_that_are_no_networks() {
    refused(b"this is text, and no network\n", None, &["cannot be read as an ONNX network"]);
    refused(b"", None, &["cannot be read as an ONNX network"]);
}

#[test]
fn a_network_that_is_cut_short() {
    let whole = mean_colours(-1, -1).file();
    for part in [whole.len() - 1, whole.len() / 2, whole.len() / 4] {
        let place = Place::new();
        let path = place.write("net.onnx", &whole[..part]);
        for runtime in runtimes() {
            let text = message(open(&path, runtime, None));
            assert!(text.contains("net.onnx: cannot be read"), "{runtime:?}: {text}");
        }
    }
}

/// Whatever a damaged file is taken for, the program goes on.
#[test]
fn damaged_files_never_end_the_program() {
    let whole = mean_colours(-1, 4).file();
    let place = Place::new();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let path = place.write("net.onnx", &damaged);
        if let Ok(mut network) = support::rten(&path)
            && network.input().channels == 3
        {
            let batch = network.input().batch.unwrap_or(2);
            let values = vec![0.5; batch * 48];
            let images = Images { values: &values, count: batch, height: 4, width: 4 };
            drop(network.extract(&images));
        }
    }
}

#[test]
fn two_inputs() {
    let net = Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .input("text", FLOAT, &[-1, 3, -1, -1])
        .output("features", FLOAT, &[-1, 3, -1, -1])
        .node("Add", &["images", "text"], "features");
    refused(&net.file(), None, &["has 2 inputs, expected one", "images (float32", "text (float32"]);
}

#[test]
fn inputs_that_are_no_images() {
    let relu = |shape: &[i64]| {
        Onnx::default()
            .input("x", FLOAT, shape)
            .output("y", FLOAT, shape)
            .node("Relu", &["x"], "y")
            .file()
    };
    refused(&relu(&[-1, 512]), None, &["has 2 dimensions, expected images"]);
    refused(&relu(&[-1, 4, 32, 32]), None, &["4 channels, expected 3 (colour) or 1 (grey)"]);
}

#[test]
fn an_input_of_bytes() {
    let net = Onnx::default()
        .input("images", UINT8, &[-1, 3, -1, -1])
        .output("features", UINT8, &[-1, 3, -1, -1])
        .node("Identity", &["images"], "features");
    refused(&net.file(), None, &["its input images is of uint8, expected float32"]);
}

#[test]
fn outputs_that_are_no_embedding() {
    let net = tokens_and_mean().file();
    refused(&net, None, &["several outputs", "--output NAME", "mean (float32 [?, 3])"]);
    refused(&net, Some("tokens"), &["a vector for each token", "mean (float32 [?, 3])"]);
    refused(&net, Some("other"), &["no output \"other\"", "tokens"]);
}

/// Where the file does not say the shape, the first images do.
#[test]
fn an_output_whose_shape_shows_later() {
    let place = Place::new();
    let net = Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .output("tokens", FLOAT, &[-1, -1])
        .node("Relu", &["images"], "tokens");
    let path = place.write("net.onnx", net.file());
    let mut network = support::rten(&path).unwrap();
    // The file lies: it is a map, which is averaged.
    let features = network.extract(&two_images(&[0.25; 96])).unwrap();
    assert_eq!(features, [0.25; 6]);
}

#[test]
fn a_network_with_an_unknown_operator() {
    let net = Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .output("features", FLOAT, &[-1, 3])
        .node("Frobnicate", &["images"], "features");
    refused(&net.file(), None, &["cannot be read as an ONNX network"]);
}

#[test]
fn a_library_that_is_none() {
    let place = Place::new();
    let model = place.write("net.onnx", feature_map().file());
    let library = place.write("libonnxruntime.so", "text");
    let options = aleator_embed::OnnxOptions {
        runtime: Runtime::OnnxRuntime,
        library: Some(&library),
        output: None,
        threads: 1,
    };
    // Another test may have loaded the real one, which stays loaded.
    if let Err(error) = OnnxNetwork::open(&model, &options, &mut |_| ()) {
        let text = error.to_string();
        assert!(text.contains("is no library of ONNX Runtime"), "{text}");
        assert!(text.contains("pip install onnxruntime"), "{text}");
    }
    fs::remove_file(library).unwrap();
}
