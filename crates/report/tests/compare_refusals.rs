//! Runs that cannot be compared, and what is said of those that barely can.

use std::fs;

use crate::runs_on_disk::{DEFAULT, Place};
use aleator_run::{ExampleRow, GroupKind};

#[test]
fn runs_that_were_measured_on_other_classes_or_examples_are_refused() {
    let place = Place::new();
    let values = [(0.7, 1.0), (0.72, 0.9)];
    place.seeds("first", &values);
    place.seeds_with("renamed", &values, |made| {
        made.info.class_names[1] = "wolf".to_string();
        made.evaluation.class_names = made.info.class_names.clone();
    });
    place.refused(&["first", "renamed"], &DEFAULT, &["renamed", "class 1 is \"dog\" and \"wolf\""]);
    place.seeds_with("fewer", &values, |made| {
        made.info.class_names.pop();
        made.evaluation.class_names = made.info.class_names.clone();
    });
    place.refused(&["first", "fewer"], &DEFAULT, &["3 and 2 classes"]);
    place.seeds_with("larger", &values, |made| made.info.examples.test = 3);
    place.refused(&["first", "larger"], &DEFAULT, &["test splits have 2 and 3 examples"]);
    // The fingerprint is that of the files: it does not change with the split.
    place.seeds_with("other", &values, |made| made.examples[4].id = "z".to_string());
    place.refused(&["first", "other"], &DEFAULT, &["hold other examples", "\"w1\"", "\"z\""]);
    place.seeds_with("relabelled", &values, |made| made.examples[4].label = Some(vec![2]));
    place.refused(&["first", "relabelled"], &DEFAULT, &["\"w1\"", "another label"]);
}

/// Other training data, the same test: that is what one compares after putting labels right.
#[test]
fn runs_that_learned_from_other_files_may_be_compared_and_a_note_says_so() {
    let place = Place::new();
    place.seeds("first", &[(0.7, 1.0), (0.72, 0.9)]);
    place.seeds_with("cleaned", &[(0.8, 0.5), (0.82, 0.6)], |made| {
        made.info.fingerprint = "other".to_string();
        made.examples[0].label = Some(vec![1]);
        let more = ExampleRow { id: "u".to_string(), ..made.examples[0].clone() };
        made.examples.push(more);
        made.examples.reverse();
    });
    let table = place.compare(&["first", "cleaned"]).unwrap();
    assert!(table.notes.join(" ").contains("did not learn from the same files"));
    assert!(!place.compare(&["first"]).unwrap().notes.join(" ").contains("files"));
}

#[test]
fn unfinished_and_damaged_runs_are_named_with_what_to_do() {
    let place = Place::new();
    place.seeds("full", &[(0.7, 1.0), (0.72, 0.9)]);
    let evaluation = place.path("full/seed-1/evaluation.json");
    let text = fs::read_to_string(&evaluation).unwrap();
    for (damaged, words) in [
        (text[..text.len() / 2].to_string(), "EOF"),
        (text.replace("\"top1\"", "\"top_1\""), "missing field `top1`"),
        (text.replace("\"format\": 1", "\"format\": 7"), "format 7"),
        (text.replace("\"nll\": 0.9", "\"nll\": \"low\""), "expected a number"),
        (text.replace("\"nll\": 0.9", "\"nll\": 1e999"), "out of range"),
        ("[]".to_string(), "invalid"),
        (String::new(), "EOF"),
    ] {
        fs::write(&evaluation, damaged).unwrap();
        place.refused(&["full"], &DEFAULT, &["seed-1/evaluation.json", words]);
    }
    fs::remove_file(&evaluation).unwrap();
    let whole = format!("`aleator resume {}`", place.path("full").display());
    place.refused(&["full"], &DEFAULT, &["seed-1 is not finished", &whole]);
    let single = place.path("full/seed-1").display().to_string();
    place.refused(&["full/seed-1"], &DEFAULT, &[&format!("`aleator resume {single}`")]);
    fs::remove_dir_all(place.path("full/seed-1")).unwrap();
    place.refused(&["full"], &DEFAULT, &["seed-1 is not finished", &whole]);
    fs::create_dir_all(place.path("empty/inner")).unwrap();
    place.refused(&["empty"], &DEFAULT, &["empty holds no runs", "directory of seeds"]);
    place.refused(&["nowhere"], &DEFAULT, &["nowhere: there is no such directory"]);
}

#[test]
fn a_damaged_list_of_runs_is_named() {
    let place = Place::new();
    place.seeds("full", &[(0.7, 1.0), (0.72, 0.9)]);
    let list = place.path("full/group.json");
    let text = fs::read_to_string(&list).unwrap();
    for (damaged, words) in [
        (text.replace("seed-1", "../full"), "members[1].name must be a directory inside"),
        (text.replace("seed-1", "/etc"), "members[1].name must be a directory inside"),
        (text.replace("seed-1", ""), "members[1].name must be a directory inside"),
        (text.replace("seed-1", "seed-0"), "which another member has too"),
        (text.replace("\"seeds\"", "\"party\""), "party"),
        (text.replace("\"format\": 1", "\"format\": 9"), "format 9"),
    ] {
        fs::write(&list, damaged).unwrap();
        place.refused(&["full"], &DEFAULT, &["full/group.json", words]);
    }
    place.group("full", GroupKind::Seeds, &[]);
    place.refused(&["full"], &DEFAULT, &["full/group.json", "members is empty"]);
}
