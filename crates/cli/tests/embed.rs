//! `aleator embed`, as a user runs it.

use crate::onnx::{FLOAT, Onnx, mean_colours, tokens_and_mean};
use crate::support::{Place, SMALL};
use safetensors::SafeTensors;

/// A network, and the images of two classes in one folder for each split.
fn place() -> Place {
    let place = Place::empty();
    place.write("net.onnx", mean_colours(-1, -1).file());
    for (split, each) in [("train", 40), ("test", 10)] {
        for image in 0..each {
            let shade = (5 * image) as u8;
            place.write(&format!("set/{split}/cat/{image:02}.ppm"), colour([200, shade, 0]));
            place.write(&format!("set/{split}/dog/{image:02}.ppm"), colour([0, shade, 200]));
        }
    }
    place
}

fn colour(colour: [u8; 3]) -> Vec<u8> {
    let mut out = b"P6\n8 8\n255\n".to_vec();
    (0..64).for_each(|_| out.extend(colour));
    out
}

const EMBED: &str = "embed --model net.onnx --runtime rten --size 8 --out x.safetensors";

fn rows(bytes: &[u8]) -> usize {
    let tensors = SafeTensors::deserialize(bytes).expect("tensors");
    tensors.tensor("features").expect("features").shape()[0]
}

#[test]
fn images_become_embeddings_that_can_be_trained_on() {
    let place = place();
    let ended = place.succeeds(&format!("{EMBED} set"));
    for words in [
        "runtime: rten",
        "preprocessing: imagenet, whole image, bicubic to 8 × 8 pixels",
        "2 splits, and each gets a file: x.safetensors, x-test.safetensors",
    ] {
        assert!(ended.stderr.contains(words), "{words:?} is not in: {}", ended.stderr);
    }
    let (train, test) = (place.read("x.safetensors"), place.read("x-test.safetensors"));
    assert_eq!((rows(&train), rows(&test)), (80, 20));
    assert!(ended.stdout.contains("x.safetensors: 80 embeddings of 4 numbers, with labels of 2"));

    let ended =
        place.succeeds(&format!("train --data x.safetensors --out run {SMALL}").replace(" -q", ""));
    assert!(ended.stderr.contains("Embeddings in x.safetensors#features"), "{}", ended.stderr);
    assert!(ended.stderr.contains("test data in x-test.safetensors#features"), "{}", ended.stderr);
    let examples = String::from_utf8(place.read("run/examples.csv")).unwrap();
    assert!(examples.contains("dog/07.ppm"), "{examples}");
    let run = place.json("run/run.json").to_string();
    assert!(run.contains("\"cat\"") && run.contains("\"dog\""), "{run}");
}

/// The same command finds its work done; another does not write over it.
#[test]
fn what_is_there_is_kept() {
    let place = place();
    place.succeeds(&format!("{EMBED} set/test -q"));
    let before = place.read("x.safetensors");
    let ended = place.succeeds(&format!("{EMBED} set/test"));
    assert!(ended.stderr.contains("exists already"), "{}", ended.stderr);
    place.refuses(&format!("{EMBED} set/test --half"), &["x.safetensors exists", "choose another"]);
    assert_eq!(place.read("x.safetensors"), before);
}

#[test]
fn ctrl_c_saves_and_the_same_command_goes_on() {
    let place = place();
    // Slow enough to be stopped: each image is made large.
    let command = "embed set/train --model net.onnx --runtime rten --size 700 --batch 2 \
                   --out y.safetensors";
    let mut started = place.start(command);
    started.wait_until(|| place.path("y.safetensors.progress").exists());
    started.signal("INT");
    let ended = started.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("the same command resumes"), "{}", ended.stderr);

    let mut again = place.start(command);
    again.wait_until(|| false);
    let ended = again.end();
    assert!(ended.stderr.contains("resuming after"), "{}", ended.stderr);
    let stopped = place.read("y.safetensors");
    std::fs::rename(place.path("y.safetensors"), place.path("z.safetensors")).unwrap();
    place.succeeds(&format!("{command} -q"));
    assert_eq!(place.read("y.safetensors"), stopped);
}

#[test]
fn arguments_that_cannot_be_meant() {
    let place = place();
    place.write("text.onnx", "not a network");
    place.write("tokens.onnx", tokens_and_mean().file());
    place.write("fixed.onnx", mean_colours(-1, 16).file());
    let two = Onnx::default()
        .input("a", FLOAT, &[-1, 3, -1, -1])
        .input("b", FLOAT, &[-1, 3, -1, -1])
        .output("y", FLOAT, &[-1, 3, -1, -1])
        .node("Add", &["a", "b"], "y");
    place.write("two.onnx", two.file());
    place.write("library.so", "not a library");
    place.write("empty/notes.md", "nothing");
    let with = |model: &str, rest: &str| format!("embed --runtime rten --model {model} {rest}");
    for (command, words) in [
        (with("gone.onnx", "set --out x.safetensors"), ["gone.onnx", "no such file"]),
        (with("text.onnx", "set --out x.safetensors"), ["text.onnx", "cannot be read as an ONNX"]),
        (with("two.onnx", "set --out x.safetensors"), ["two.onnx", "has 2 inputs"]),
        (with("tokens.onnx", "set --out x.safetensors"), ["--output NAME", "mean (float32"]),
        (
            with("fixed.onnx", "set --size 32 --out x.safetensors"),
            ["16 × 16 pixels only", "--size"],
        ),
        (with("net.onnx", "empty --out x.safetensors"), ["empty", "holds no images"]),
        (with("net.onnx", "gone --out x.safetensors"), ["gone", "no such file or folder"]),
        (with("net.onnx", "set --out x.npy"), ["x.npy", "must end in .safetensors"]),
        (with("net.onnx", "set --out no/x.safetensors"), ["cannot write", "no such directory"]),
        (with("net.onnx", "set --centre-crop 2 --out x.safetensors"), ["centre crop 2", "0.875"]),
        (with("net.onnx", "set --size 0 --out x.safetensors"), ["0 pixels", "1 to"]),
        (
            "embed --model net.onnx --onnxruntime library.so set --out x.safetensors".into(),
            ["library.so", "is no library of ONNX Runtime"],
        ),
    ] {
        place.refuses(&command, &words);
    }
    assert!(!place.path("x.safetensors").exists());
}

/// The current directory may be a folder of data from somebody else.
#[test]
fn a_folder_called_onnxruntime_is_not_the_library() {
    let place = Place::empty();
    place.write("onnxruntime/__init__.py", "");
    place.write("onnxruntime/capi/libonnxruntime.so.1.99.0", "code of somebody else");
    place.write("net.onnx", mean_colours(-1, -1).file());
    place.write("photos/a.ppm", colour([200, 0, 0]));
    place.write("photos/b.ppm", colour([0, 0, 200]));
    let ended = place.succeeds("embed photos --model net.onnx --size 8 --out x.safetensors");
    assert!(!ended.stderr.contains("1.99.0"), "{}", ended.stderr);
}
