//! `aleator audit --data features.npy`: labels judged without folds.

use std::fs;

use crate::support::{Place, Toy, picture};

const EXAMPLES: usize = 240;
const AUDIT: &str = "audit --data features.npy";

/// What must not depend on threads or interruptions.
const FILES: [&str; 8] = [
    "issues.csv",
    "classes.csv",
    "pairs.csv",
    "examples.csv",
    "ambiguous_examples.csv",
    "near_duplicates.csv",
    "audit.json",
    "recipe.toml",
];

/// Four clusters, of which one label in ten is wrong.
fn place() -> Place {
    let place = Place::empty();
    Toy { examples: EXAMPLES, seed: 1 }.write_single(&place, "features.npy", "labels.npy");
    place
}

fn assert_same(place: &Place, one: &str, other: &str) {
    for file in FILES {
        let read = |dir: &str| place.read(&format!("{dir}/{file}"));
        assert!(read(one) == read(other), "{file} differs between {one} and {other}");
    }
}

#[test]
fn features_are_audited_without_folds_then_reported_and_reviewed() {
    let place = place();
    let ended = place.succeeds(&format!("{AUDIT} --out audit"));
    assert!(!ended.stderr.contains("no effect"), "{}", ended.stderr);
    assert!(ended.stderr.contains("features-audit"), "{}", ended.stderr);
    assert!(ended.stderr.contains("features are scaled"), "{}", ended.stderr);
    assert!(ended.stdout.contains("240 labels of 240 examples"), "{}", ended.stdout);
    FILES.iter().for_each(|file| assert!(place.path(&format!("audit/{file}")).is_file(), "{file}"));
    let folders: Vec<_> = fs::read_dir(place.path("audit"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(folders.is_empty(), "no fold is trained: {folders:?}");
    let summary = place.json("audit/audit.json");
    assert_eq!(summary["folds"], 0);
    assert!(summary["comparison"]["dynamics_weight"].is_number(), "{summary}");
    // The label of example n is n mod 4 before the errors.
    let text = String::from_utf8(place.read("audit/issues.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + EXAMPLES);
    let given = rows[0].iter().position(|name| *name == "given").unwrap();
    let is_wrong = |row: &Vec<&str>| {
        row[0].parse::<usize>().unwrap() % 4 != row[given].parse::<usize>().unwrap()
    };
    let wrong = rows[1..].iter().filter(|row| is_wrong(row)).count();
    let first = rows[1..=10].iter().filter(|row| is_wrong(row)).count();
    assert!(wrong > 10 && first >= 8, "{first} of the first ten are wrong, {wrong} in all");
    place.succeeds("report audit -q");
    assert!(place.path("audit/report.html").is_file());
    place.succeeds("review audit --export");
    assert_eq!(place.lines("audit/corrected.csv"), 1 + EXAMPLES);
    place.refuses("compare audit", &["audit is an audit", "aleator report audit"]);
}

#[cfg(unix)]
#[test]
fn an_audit_of_features_that_is_killed_or_stopped_goes_on_to_the_same_bytes() {
    let place = place();
    place.succeeds(&format!("{AUDIT} -q --out whole --threads 2"));
    place.succeeds("review whole --accept 0.9");
    let mut killed = place.start(&format!("{AUDIT} -q --accept 0.9 --out killed --threads 2"));
    killed.wait_until(|| place.path("killed/accept.json").exists());
    assert!(killed.kill(), "it ended before it could be killed");
    assert!(!place.path("killed/audit.json").exists());
    let ended = place.succeeds("resume killed -q --threads 1");
    assert_same(&place, "whole", "killed");
    assert!(ended.stdout.contains("at least 0.9 accepted"), "{}", ended.stdout);
    for file in ["corrected.csv", "pruned.csv", "weights.csv", "review.json"] {
        let [own, other] = ["whole", "killed"].map(|dir| place.read(&format!("{dir}/{file}")));
        assert!(own == other, "{file} is another after resuming");
    }
    // What was accepted since stays.
    place.succeeds("review killed --accept 0.8");
    place.succeeds("resume killed -q");
    assert_eq!(place.json("killed/review.json")["accept"]["threshold"], 0.8);
    let mut stopped = place.start(&format!("{AUDIT} --folds 3 --out stopped --threads 1"));
    stopped.wait_until(|| place.path("stopped/group.json").exists());
    stopped.signal("INT");
    let ended = stopped.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(ended.stderr.contains("3 folds have no effect"), "{}", ended.stderr);
    let message = "`aleator resume stopped` judges them from the beginning";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    assert!(!place.path("stopped/audit.json").exists());
    place.succeeds("resume stopped -q --threads 3");
    assert_same(&place, "whole", "stopped");
}

#[test]
fn large_images_are_refused_with_advice_and_nothing_is_written() {
    let place = Place::empty();
    for number in 0..6 {
        place.write(&format!("images/rows/{number}.ppm"), picture(80, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(80, number, true));
    }
    let command = "audit features-audit --data images --set data.image_size=80 --out a";
    place.refuses(command, &["features-audit", "19200 numbers", "aleator embed"]);
    assert!(!place.path("a").exists(), "a refused audit leaves a directory behind");
}
