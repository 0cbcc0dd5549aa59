//! What the machine refuses ends in a message and exit code 1, never in a signal.

use crate::onnx::{FLOAT, Onnx, message};
use crate::support::{FILES, Place, SMALL};

#[test]
fn more_threads_than_any_machine_uses_are_refused_at_once() {
    let place = Place::empty();
    for threads in ["1025", "20000", "18446744073709551615", "0"] {
        let ended = place.run(&format!("recipes --threads {threads}"));
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("from 1 to 1024"), "{}", ended.stderr);
    }
}

/// A thread needs two megabytes of address space for its stack.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_named() {
    let place = Place::empty();
    let ended = place.shell("ulimit -v 1000000; exec $ALEATOR recipes --threads 1000");
    ended.check_refusal("recipes", &["the 1000 threads of --threads", "smaller number"]);
}

#[cfg(unix)]
#[test]
fn a_limit_of_file_sizes_is_told() {
    let place = Place::with_features();
    let train = format!("train features-none {FILES} --out run {SMALL}");
    let ended = place.shell(&format!("ulimit -f 1; exec $ALEATOR {train}"));
    ended.check_refusal("train", &["too large"]);
}

/// Ten thousand million numbers, from a file of a few hundred bytes.
#[cfg(target_os = "linux")]
#[test]
fn a_network_that_wants_all_memory_is_told_so() {
    let place = Place::empty();
    place.write("photos/a.ppm", b"P6 1 1 255\n\x00\x7f\xff");
    let size = message(9, &10_000_000_000_i64.to_le_bytes());
    let net = Onnx::default()
        .input("images", FLOAT, &[-1, 3, -1, -1])
        .output("features", FLOAT, &[-1, 3, -1, -1])
        .tensor("size", 7, &[1], &size)
        .node("ConstantOfShape", &["size"], "huge")
        .node("Add", &["images", "huge"], "features");
    place.write("net.onnx", net.file());
    let ended =
        place.run("embed photos --model net.onnx --runtime rten --size 8 --out x.safetensors");
    ended.check_refusal("embed", &["out of memory"]);
}
