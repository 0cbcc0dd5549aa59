//! The program as a user meets it.

use std::process::{Command, Output};

fn aleator(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aleator"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn demo_shows_exact_and_sampled_probabilities_that_agree() {
    let text = stdout(&aleator("demo"));
    let numbers = |name: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (exact, sampled) = (numbers("exact"), numbers("sampled"));
    assert_eq!(exact.len(), 4);
    for (exact, sampled) in exact.iter().zip(&sampled) {
        // Five standard errors of 10,000 samples of a probability.
        assert!((exact - sampled).abs() < 5.0 * 0.5 / 100.0, "{exact} {sampled}");
    }
    assert_eq!(text.lines().count(), stdout(&aleator("demo")).lines().count());
    assert!(text.contains("ms"));
}

#[test]
fn bench_prints_one_line_of_json_with_the_peers_keys_for_every_model() {
    let models = "softmax_full softmax_diag softmax_pe sigmoid_full sigmoid_diag sigmoid_pe \
                  homo_softmax homo_sigmoid";
    for model in models.split_whitespace() {
        for part in ["full", "likelihood"] {
            let text = stdout(&aleator(&format!(
                "bench head --model {model} --part {part} --batch 3 --features 7 --classes 5 \
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
        }
    }
}

/// A hundred times the samples, and 4 × 40,000 × 300 floats (183 MiB) if they were kept.
#[test]
fn memory_does_not_depend_on_the_samples() {
    let peak = |samples: usize| {
        let text = stdout(&aleator(&format!(
            "bench head --batch 4 --features 8 --classes 300 --rank 3 --samples {samples} \
             --repetitions 1 --json"
        )));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        line["peak_rss_mib"].as_u64()
    };
    // Where the system does not tell, there is nothing to compare.
    if let (Some(few), Some(many)) = (peak(400), peak(40_000)) {
        assert!(many <= few + 2, "{few} MiB with 400 samples, {many} MiB with 40,000");
    }
}

#[test]
fn limits_compare_the_likelihood_with_its_parts() {
    let text = stdout(&aleator(
        "bench limits --batch 2 --features 4 --classes 40 --rank 3 --samples 50 --repetitions 2",
    ));
    for name in ["normals", "exponentials", "multiply-adds", "sum of the limits", "likelihood"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn bad_flags_are_named_with_what_was_expected() {
    for (arguments, words) in [
        ("bench head --classes 0", vec!["--classes", "at least 1"]),
        ("bench head --rank 0", vec!["--rank", "at least 1"]),
        ("bench head --samples 0", vec!["--samples", "at least 1"]),
        ("bench head --batch -3", vec!["-3"]),
        ("bench head --temperature 0", vec!["--temperature", "above 0"]),
        ("bench head --temperature nan", vec!["--temperature", "above 0"]),
        ("bench head --temperature warm", vec!["--temperature", "number above 0"]),
        ("bench head --model softmax", vec!["softmax_full", "homo_sigmoid"]),
        ("bench head --threads 0", vec!["--threads", "at least 1"]),
        ("bench head --classes 99999999999", vec!["--classes", "MiB", "smaller"]),
        ("bench head --model softmax_pe --rank 99999999999", vec!["--rank", "MiB", "smaller"]),
        ("bench head --model sigmoid_pe --rank 99999999999", vec!["--rank", "MiB", "smaller"]),
        ("bench head --features 99999999999 --classes 99999999999", vec!["--features", "MiB"]),
        ("bench head --batch 99999999999", vec!["--batch", "MiB", "smaller"]),
        (
            "bench head --rank 18446744073709551614 --classes 9223372036854775808 --features 1",
            vec!["MiB", "smaller"],
        ),
        ("bench limits --model sigmoid_full", vec!["sigmoid_full", "samples"]),
        ("bench limits --model homo_softmax", vec!["homo_softmax", "samples"]),
        ("bench head --samples 99999999999", vec!["--samples", "2^32"]),
        ("bench", vec!["head", "limits"]),
        ("trian", vec!["trian"]),
    ] {
        let output = aleator(arguments);
        assert!(!output.status.success(), "{arguments} was accepted");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked"), "{arguments}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments}: {word:?} is not in: {text}");
        }
    }
}

#[test]
fn help_teaches_with_examples() {
    let text = stdout(&aleator("--help"));
    assert!(text.contains("aleator demo") && text.contains("bench head"), "{text}");
    assert!(stdout(&aleator("bench head --help")).contains("--draws"));
}
