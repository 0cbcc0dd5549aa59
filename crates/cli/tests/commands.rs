//! The program as a user meets it: help, presets, noise.

use crate::support;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::{Place, npy_i64, read_npy_i64};

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
fn bad_flags_are_named_with_what_was_expected() {
    for (arguments, words) in [
        ("demo --threads 0", vec!["--threads", "from 1 to 1024"]),
        ("demo --threads many", vec!["--threads", "whole number"]),
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
    for example in ["aleator demo", "aleator train", "aleator resume", "aleator predict"] {
        assert!(text.contains(example), "{text}");
    }
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = listed.take_while(|line| !line.is_empty()).map(|line| line.trim().split(' '));
    let commands: Vec<&str> = commands.filter_map(|mut words| words.next()).collect();
    assert!(commands.len() > 15 && commands.contains(&"audit"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let help = stdout(&aleator(&format!("{command} --help")));
        assert!(help.contains("Usage"), "{help}");
    }
    let version = concat!("aleator ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(stdout(&aleator("--version")), version);
    assert!(
        stdout(&aleator("-h")).starts_with("Train classifiers on labels that are partly wrong")
    );
}

/// It takes 20 ms at most on a quiet machine, and tests run on busy ones.
#[test]
fn help_comes_at_once() {
    let time = |_| {
        let start = Instant::now();
        stdout(&aleator("--help"));
        start.elapsed()
    };
    let best = (0..15).map(time).min().unwrap_or_default();
    println!("help in {:.1} ms", best.as_secs_f64() * 1e3);
    assert!(best < Duration::from_millis(60), "{best:?}");
}

#[test]
fn presets_are_listed_and_what_is_shown_loads_again() {
    let list = stdout(&aleator("recipes"));
    let place = Place::empty();
    for family in ["features", "multilabel", "images", "digits"] {
        for noise in ["none", "diagonal", "full", "shared"] {
            let name = format!("{family}-{noise}");
            assert!(list.lines().any(|line| line.starts_with(&format!("{name} "))), "{list}");
            let shown = stdout(&aleator(&format!("recipes show {name}")));
            place.write("shown.toml", &shown);
            let path = place.path("shown.toml");
            // What a family leaves open.
            let sets: &[&str] = match family {
                "digits" => &[],
                "images" => &["data.train.images=i"],
                _ => &["data.train.features=x.npy", "data.train.labels=y.npy"],
            };
            let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
            let from_file = aleator::run::load(path.to_str().unwrap(), &sets, None).unwrap();
            let preset = aleator::run::load(&name, &sets, None).unwrap();
            assert_eq!(from_file.recipe, preset.recipe, "{name}");
        }
    }
}

#[test]
fn the_papers_recipes_follow_the_presets_and_are_shown_with_their_results() {
    let list = stdout(&aleator("recipes"));
    let at = |text: &str| list.find(text).unwrap_or_else(|| panic!("{text} is not in {list}"));
    assert!(at("\ndigits-shared ") < at("\nThe paper's experiments"));
    assert!(at("\nThe paper's experiments") < at("\nilsvrc12/full "));
    assert!(at("\nilsvrc12/full ") < at("\nWebVision 1.0\nwebvision/none "));
    assert!(at("\ntransfer/vtab ") < at("\nsmall/ilsvrc12-none "));
    let shown = stdout(&aleator("recipes show ilsvrc12/full"));
    assert!(shown.contains("# Paper: top-1 79.3") && shown.contains("\nrank = 15\n"), "{shown}");
}

/// Labels 0, 1, 2, 3, 0, … and inputs of no interest.
fn with_labels(examples: usize) -> Place {
    let place = Place::empty();
    support::Toy { examples, seed: 5 }.write_single(&place, "x.npy", "y.npy");
    place.write("y.npy", npy_i64(&[examples], clean(examples)));
    place
}

fn clean(examples: usize) -> Vec<i64> {
    (0..examples).map(|row| row as i64 % 4).collect()
}

/// Whether one class may become another.
type Allowed = fn(i64, i64) -> bool;

#[test]
fn noise_changes_the_share_that_it_is_told_and_keeps_the_clean_labels() {
    const EXAMPLES: usize = 400;
    let place = with_labels(EXAMPLES);
    place.write("law.csv", "0.5,0.5,0,0\n0,1,0,0\n0,0,1,0\n0,0,0,1\n");
    // u₀ = √2 z and u₂ = −√2 z, and 1 more for the true class: of the classes 0 and 2 the share
    // P(z > 1/√8) = 0.3618 changes, of the others P(∣z∣ > 1/√2) = 0.4795.
    let latent = "latent --margin 1 --scale 0 --law normal --covariances 0:2:-2";
    let cases: [(&str, f64, Allowed); 5] = [
        ("symmetric --rate 0.3", 0.3, |from, to| from != to),
        ("pairwise --rate 0.4 --pairs 0:2,2:0", 0.2, |from, to| from % 2 == 0 && to == 2 - from),
        ("matrix --matrix law.csv", 0.125, |from, to| (from, to) == (0, 1)),
        ("instance --rate 0.3", 0.3, |from, to| from != to),
        (latent, 0.42065, |_, to| to % 2 == 0),
    ];
    for (kind, share, allowed) in cases {
        let name = kind.split(' ').next().unwrap_or_default();
        place.succeeds(&format!(
            "noise --labels y.npy --features x.npy --kind {kind} --seed 3 --out {name}.npy"
        ));
        let noisy = read_npy_i64(&place.read(&format!("{name}.npy")));
        if name != "instance" {
            let alone = format!("noise --labels y.npy --kind {kind} --seed 3 --out {name}2.npy");
            place.succeeds(&alone);
            let same = read_npy_i64(&place.read(&format!("{name}2.npy")));
            assert_eq!(same, noisy, "{kind}: only instance noise looks at the inputs");
        }
        let kept = read_npy_i64(&place.read(&format!("{name}_clean.npy")));
        assert_eq!(kept, clean(EXAMPLES), "{kind}");
        assert_eq!(noisy.len(), EXAMPLES);
        let changed: Vec<(i64, i64)> =
            clean(EXAMPLES).into_iter().zip(noisy).filter(|(from, to)| from != to).collect();
        // Four standard deviations of a binomial share.
        let tolerance = 4.0 * (share * (1.0 - share) / EXAMPLES as f64).sqrt();
        let found = changed.len() as f64 / EXAMPLES as f64;
        assert!((found - share).abs() < tolerance, "{kind}: {found}");
        assert!(changed.iter().all(|(from, to)| allowed(*from, *to)), "{kind}: {changed:?}");
    }
}

#[test]
fn noise_in_a_table_has_both_labels_and_is_the_same_for_the_same_seed() {
    let place = with_labels(80);
    let command = |seed: u64, out: &str| {
        format!(
            "noise --labels y.npy --features x.npy --kind symmetric --rate 0.4 --seed {seed} \
             --out {out}"
        )
    };
    let ended = place.succeeds(&command(1, "n.csv"));
    let text = String::from_utf8(place.read("n.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("id,label,clean_label"));
    let rows: Vec<Vec<i64>> =
        lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.iter().map(|row| row[2]).collect::<Vec<_>>(), clean(80));
    let wrong = rows.iter().filter(|row| row[1] != row[2]).count();
    assert!(ended.stdout.contains(&format!("{wrong} of 80")), "{}", ended.stdout);
    place.succeeds(&command(1, "n.npy"));
    let labels: Vec<i64> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(read_npy_i64(&place.read("n.npy")), labels);
    place.refuses(&command(2, "n.npy"), &["exists", "--out"]);
    assert_eq!(read_npy_i64(&place.read("n.npy")), labels);
    place.succeeds(&command(2, "other.npy"));
    assert_ne!(read_npy_i64(&place.read("other.npy")), labels);
}

#[test]
fn noise_without_a_rate_names_the_flag() {
    let place = with_labels(20);
    place.refuses("noise --labels y.npy --kind symmetric --out n.npy", &["--rate is missing"]);
}
