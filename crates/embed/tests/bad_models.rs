//! Networks that cannot be used are refused with words that say why.

use crate::support;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::support::onnx::{
    Attribute, FLOAT, Onnx, UINT8, feature_map, mean_colours, message as field, tokens_and_mean,
};
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
    refused(&relu(&[1 << 40, 3, 32, 32]), None, &["more than 4096 images at once"]);
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
    if let Err(error) = OnnxNetwork::open(&model, &options, &AtomicBool::new(false), &mut |_| ()) {
        let text = error.to_string();
        assert!(text.contains("is no library of ONNX Runtime"), "{text}");
        assert!(text.contains("pip install onnxruntime"), "{text}");
    }
    fs::remove_file(library).unwrap();
}

/// A reader that goes on until such a number ends would never come back.
#[test]
fn numbers_that_do_not_end() {
    let words = ["cannot be read as an ONNX network", "no whole number at byte 0"];
    refused(&[0xff; 11], None, &words);
    refused(&[0x80; 4096], None, &words);
    // In a field of the model, in packed numbers of a tensor and of an attribute.
    let endless = [0xff; 11];
    refused(&mean_colours(-1, -1).file_with(&endless), None, &["no whole number"]);
    let packed = |number| field(number, &endless);
    let tensor = feature_map().tensor("w", 7, &[1], &packed(7));
    refused(&tensor.file(), None, &["no whole number"]);
    let in_graph = feature_map().file_with(&field(7, &field(1, &field(5, &packed(8)))));
    refused(&in_graph, None, &["no whole number"]);
}

#[test]
fn lengths_beyond_what_contains_them() {
    let mut graph = feature_map().graph();
    let inner = graph.len();
    // The last port says that it is one byte longer than the graph around it.
    let at = graph.iter().rposition(|&byte| byte == 12 << 3 | 2).unwrap() + 1;
    graph[at] += 1;
    assert_eq!(at + 1 + usize::from(graph[at]), inner + 1);
    refused(&Onnx::default().file_with(&field(7, &graph)), None, &["do not fit"]);
    refused(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], None, &["do not fit"]);
}

/// A network of `If` in `If`, this deep.
fn nested(depth: usize) -> Vec<u8> {
    let mut net = feature_map();
    for _ in 0..depth {
        let branches = ["then_branch", "else_branch"].map(|name| (name, net.graph()));
        let [then, _] = branches.map(|(name, graph)| (name, Attribute::Graph(graph)));
        net = Onnx::default().output("map", FLOAT, &[-1, 3, -1, -1]).node_with(
            "If",
            &["images"],
            "map",
            &[then],
        );
    }
    net.input("images", FLOAT, &[-1, 3, -1, -1]).file()
}

/// Readers use the stack for each level.
#[test]
fn subgraphs_that_nest_too_deeply() {
    refused(&nested(30), None, &["more than 64 deep"]);
    refused(&nested(2_000), None, &["more than 64 deep"]);
    let place = Place::new();
    let path = place.write("net.onnx", nested(15));
    let text = message(support::rten(&path));
    assert!(!text.contains("deep"), "{text}");
}

/// A network of `nodes` nodes in a row.
fn chain(nodes: usize) -> Onnx {
    let names: Vec<String> = (0..nodes).map(|at| format!("x{at}")).collect();
    let names = ["images"].into_iter().chain(names.iter().map(String::as_str));
    let names: Vec<&str> = names.take(nodes).chain(["map"]).collect();
    let net = Onnx::default().output("map", FLOAT, &[-1, 3, -1, -1]);
    names.windows(2).fold(net, |net, pair| net.node("Relu", &pair[..1], pair[1]))
}

/// Runtimes use the stack for each node of a chain.
#[test]
fn chains_of_too_many_nodes() {
    let input = |net: Onnx| net.input("images", FLOAT, &[-1, 3, -1, -1]);
    refused(&input(chain(50_001)).file(), None, &["50001 nodes; at most 50000 are read"]);
    let branch = [("then_branch", Attribute::Graph(chain(1_001).graph()))];
    let net = input(Onnx::default().output("map", FLOAT, &[-1, 3, -1, -1]));
    let net = net.node_with("If", &["images"], "map", &branch);
    refused(&net.file(), None, &["a subgraph of 1001 nodes"]);

    let place = Place::new();
    let path = place.write("net.onnx", input(chain(50_000)).file());
    let mut network = support::rten(&path).unwrap();
    assert_eq!(network.extract(&two_images(&[0.25; 96])).unwrap(), [0.25; 6]);
}

#[test]
fn operators_that_may_run_for_ever() {
    for operator in ["Loop", "Scan", "SequenceMap"] {
        let body = [("body", Attribute::Graph(feature_map().graph()))];
        let net = Onnx::default()
            .input("images", FLOAT, &[-1, 3, -1, -1])
            .output("features", FLOAT, &[-1, 3])
            .node_with(operator, &["images"], "features", &body);
        refused(&net.file(), None, &[operator, "may run for ever"]);
    }
}

#[test]
fn tensors_larger_than_their_bytes() {
    for shape in [&[1 << 40][..], &[1 << 33, 1 << 33], &[u64::MAX], &[3, 5]] {
        let net = feature_map().weight("w", shape, &[1.0]);
        refused(&net.file(), None, &["has a tensor of shape", "only 5 bytes"]);
    }
}

/// Ten functions of which each calls the next ten times make ten thousand million nodes.
#[test]
fn functions_that_multiply() {
    let call = |name: &str, times: usize| {
        (0..times).fold(Onnx::default(), |net, _| net.node(name, &["x"], "y"))
    };
    let chain: Vec<u8> = (0..10)
        .flat_map(|at| call(&format!("our_{}", at + 1), 10).function(&format!("our_{at}")))
        .collect();
    let net = feature_map().node("our_0", &["map"], "more");
    refused(&net.file_with(&chain), None, &["at most 50000 are read"]);
    let itself = call("our_0", 1).function("our_0");
    refused(&net.file_with(&itself), None, &["call themselves"]);
}

#[test]
fn weights_in_other_files() {
    let net = |file: &str| {
        Onnx::default()
            .input("images", FLOAT, &[-1, 3, -1, -1])
            .output("map", FLOAT, &[-1, 3, -1, -1])
            .external("scale", &[3, 1, 1], file)
            .node("Mul", &["images", "scale"], "map")
            .file()
    };
    let outside = "only files in the directory of the network are read";
    for file in ["/etc/passwd", "../net.data", "a/../../net.data", "./net.data", ""] {
        refused(&net(file), None, &[outside]);
    }
    refused(&net("gone.data"), None, &["gone.data", "no such file"]);

    let place = Place::new();
    let path = place.write("net.onnx", net("net.data"));
    place.write("net.data", []);
    assert!(message(support::rten(&path)).contains("there are 0 bytes"));
    fs::remove_file(place.path("net.data")).unwrap();
    fs::create_dir(place.path("net.data")).unwrap();
    assert!(message(support::rten(&path)).contains("is a directory"));
    fs::remove_dir(place.path("net.data")).unwrap();

    let scale: Vec<u8> = [2.0_f32, 4.0, 8.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    place.write("net.data", &scale);
    for runtime in runtimes() {
        let mut network = open(&path, runtime, None).unwrap();
        let features = network.extract(&two_images(&[0.25; 96])).unwrap();
        assert_eq!(features, [0.5, 1.0, 2.0, 0.5, 1.0, 2.0], "{runtime:?}");
    }
}
