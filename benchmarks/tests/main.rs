//! The benchmark program as its user meets it.

use std::process::{Command, Output};

fn bench(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aleator-bench"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn head_prints_one_line_of_json_with_the_peers_keys_for_every_model() {
    let models = "softmax_full softmax_diag softmax_pe sigmoid_full sigmoid_diag sigmoid_pe \
                  homo_softmax homo_sigmoid";
    for model in models.split_whitespace() {
        let losses = ["full", "likelihood"].map(|part| {
            let text = stdout(&bench(&format!(
                "head --model {model} --part {part} --batch 3 --features 7 --classes 5 \
                 --rank 2 --samples 20 --threads 2 --repetitions 2 --json"
            )));
            assert_eq!(text.lines().count(), 1);
            let line: serde_json::Value = serde_json::from_str(&text).unwrap();
            for key in ["impl", "variant", "model", "B", "D", "K", "R", "S", "tau", "threads"] {
                assert!(!line[key].is_null(), "{key} in {line}");
            }
            for key in ["median_ms", "min_ms", "first_ms", "n", "loss"] {
                let value = line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"));
                assert!(value.is_finite() && value > 0.0, "{key} in {line}");
            }
            assert!(line.get("peak_rss_mib").is_some() && line.get("base_rss_mib").is_some());
            assert_eq!(line["model"], model);
            line["loss"].as_f64().unwrap_or_default()
        });
        // The two print five digits. Their noise differs, and 20 samples leave some of it.
        let tolerance = if model.starts_with("softmax") { 0.5 } else { 2e-5 };
        assert!((losses[0] - losses[1]).abs() <= tolerance, "{model}: {losses:?}");
    }
}

/// A hundred times the samples, and 4 × 40,000 × 300 floats (183 MiB) if they were kept.
#[test]
fn memory_does_not_depend_on_the_samples() {
    let peak = |samples: usize| {
        let text = stdout(&bench(&format!(
            "head --batch 4 --features 8 --classes 300 --rank 3 --samples {samples} \
             --repetitions 1 --json"
        )));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        line["peak_rss_mib"].as_u64()
    };
    // Without /proc there is nothing to compare.
    if let (Some(few), Some(many)) = (peak(400), peak(40_000)) {
        assert!(many <= few + 2, "{few} MiB with 400 samples, {many} MiB with 40,000");
    }
}

#[test]
fn limits_compare_the_likelihood_with_its_parts() {
    let text = stdout(&bench(
        "limits --batch 2 --features 4 --classes 40 --rank 3 --samples 50 --repetitions 2",
    ));
    for name in ["normals", "exponentials", "multiply-adds", "sum of the limits", "likelihood"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn bad_flags_are_named_with_what_was_expected() {
    for (arguments, words) in [
        ("head --classes 0", vec!["--classes", "at least 1"]),
        ("head --rank 0", vec!["--rank", "at least 1"]),
        ("head --samples 0", vec!["--samples", "at least 1"]),
        ("head --batch -3", vec!["-3"]),
        ("head --temperature 0", vec!["--temperature", "above 0"]),
        ("head --temperature nan", vec!["--temperature", "above 0"]),
        ("head --temperature warm", vec!["--temperature", "number above 0"]),
        ("head --model softmax", vec!["softmax_full", "homo_sigmoid"]),
        ("head --threads 0", vec!["--threads", "at least 1"]),
        ("head --classes 99999999999", vec!["--classes", "MiB", "smaller"]),
        ("head --model softmax_pe --rank 99999999999", vec!["--rank", "MiB", "smaller"]),
        ("head --model sigmoid_pe --rank 99999999999", vec!["--rank", "MiB", "smaller"]),
        ("head --features 99999999999 --classes 99999999999", vec!["--features", "MiB"]),
        ("head --batch 99999999999", vec!["--batch", "MiB", "smaller"]),
        (
            "head --rank 18446744073709551614 --classes 9223372036854775808 --features 1",
            vec!["MiB", "smaller"],
        ),
        ("head --samples 99999999999", vec!["--samples", "2^32"]),
        ("limits --model sigmoid_full", vec!["sigmoid_full", "samples"]),
        ("limits --model homo_softmax", vec!["homo_softmax", "samples"]),
        ("step resnet 32 1 1", vec!["resnet", "resnet-50"]),
        ("step resnet-50 8 1 1", vec!["32 × 32"]),
        ("", vec!["head", "limits", "convolution"]),
    ] {
        let output = bench(arguments);
        assert!(!output.status.success(), "{arguments} was accepted");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{arguments}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments}: {word:?} is not in: {text}");
        }
    }
}
