//! Names with control characters: no command lets one through to a terminal.

use std::fs;

use crate::support::{Ended, Place, SMALL, Toy, picture};

/// Sets the title, clears the screen, turns the direction of text, goes back to the line's start.
const CAT: &str = "cat\u{1b}]0;pwned\u{7}";
const DOG: &str = "dog\u{202e}\r\u{9b}2J";

/// Nothing of what the program said could command a terminal.
#[track_caller]
fn check(what: &str, ended: &Ended) {
    let hidden = |it: char| {
        (it.is_control() && !matches!(it, '\n' | '\t'))
            || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains(hidden), "{what}: {text:?}");
    }
}

/// A table whose ids, features and classes have such names.
fn table() -> String {
    let mut rows = format!("id,\"width{CAT}\",\"{DOG}\",label\n");
    for at in 0..80 {
        let (label, side) = if at % 2 == 0 { (CAT, 1) } else { (DOG, -1) };
        let (x, y) = (side * 10 + at % 7, side * 5 + at % 5);
        rows += &format!("\"{at}\u{1b}[2J\",{x},{y},\"{label}\"\n");
    }
    rows
}

#[test]
fn names_of_classes_examples_and_features_are_shown_escaped() {
    let place = Place::empty();
    place.write("table.csv", table());
    let small = SMALL.replace(" -q", "");
    for command in [
        "doctor table.csv",
        "doctor table.csv --json",
        &format!("train features-full --data table.csv --out run --set head.rank=1 {small}"),
        "eval run --calibrate",
        "predict run table.csv",
        "predict run table.csv --json",
        "analyse run",
        "compare run",
        "compare run --format csv",
        "audit --data table.csv --out audit",
        "report run",
        "report audit",
        "review audit --accept 0.9",
        "resume run",
    ] {
        check(command, &place.succeeds(command));
    }
    let ended = place.succeeds("predict run table.csv");
    assert!(ended.stdout.contains("\\u001b[2J\tcat\\u001b]0;pwned\\u0007\t"), "{}", ended.stdout);
    let ended = place.succeeds("predict run table.csv --json");
    let first: serde_json::Value =
        serde_json::from_str(ended.stdout.lines().nth(1).unwrap()).expect("still JSON");
    let found = (&first["id"], &first["classes"][0]["class"]);
    assert_eq!(found, (&"1\u{1b}[2J".into(), &DOG.into()));
}

#[test]
fn names_of_files_in_warnings_and_errors_are_shown_escaped() {
    let place = Place::empty();
    for at in 0..6 {
        place.write(&format!("photos/{CAT}/{at}\u{7}.ppm"), picture(8, at, true));
        place.write(&format!("photos/{DOG}/{at}.ppm"), picture(8, at, false));
    }
    place.write(&format!("photos/{CAT}/bad\u{1b}[31m.png"), "no picture");
    let ended = place.succeeds("doctor photos");
    check("doctor", &ended);
    assert!(ended.stdout.contains("bad\\u001b[31m.png"), "{}", ended.stdout);
    Toy { examples: 40, seed: 1 }.write_single(&place, "x.npy", "y.npy");
    fs::rename(place.path("x.npy"), place.path(&format!("{CAT}.npy"))).unwrap();
    for command in [
        format!("doctor 'photos/{CAT}/bad\u{1b}[31m.png'"),
        format!("train --data '{CAT}.npy' --out run"),
        format!("train features-none --out run --set '{CAT}=1'"),
        format!("report '{CAT}'"),
        format!("embed photos --model '{CAT}' --out x.safetensors"),
    ] {
        let ended = place.run(&command);
        check(&command, &ended);
        assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("cat\\u") || ended.stderr.contains("bad\\u"), "{ended:?}");
    }
    // A pattern of the shell can put any name on the command line.
    let ended = place.run(&format!("doctor photos '{CAT}'"));
    check("usage", &ended);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("unexpected argument"), "{}", ended.stderr);
}
