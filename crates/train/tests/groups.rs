//! Groups of runs, and what can stop them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Files, RECIPE, column, cycle, resolve};
use aleator_metrics::Evaluation;
use aleator_train::group::{self, Group, GroupEnded, Kind, Member};
use aleator_train::{Event, TrainError};

fn seeds(files: &Files, sets: &[&str]) -> Vec<Member> {
    let source = files.source(&cycle(40), &column(&cycle(40)));
    let sets: Vec<&str> = source
        .iter()
        .map(String::as_str)
        .chain(sets.iter().copied())
        .chain(["seeds=[3, 5]"])
        .collect();
    group::members("", &resolve(RECIPE, &sets))
}

fn of(members: &[Member]) -> Group {
    Group { kind: Kind::Seeds, members: members.to_vec() }
}

fn start(out: &Path, members: &[Member]) -> Result<GroupEnded, TrainError> {
    let stop = AtomicBool::new(false);
    group::start(out, &of(members), &stop, &mut |_, _| {})
}

fn resume(out: &Path) -> Result<GroupEnded, TrainError> {
    let stop = AtomicBool::new(false);
    let group = group::open(out)?;
    group::resume(out, &group, &stop, &mut |_, _| {})
}

fn evaluated(outcome: GroupEnded) -> Vec<Evaluation> {
    match outcome {
        GroupEnded::Evaluated(evaluations) => evaluations,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_seed_is_a_run_of_its_own() {
    let files = Files::new();
    let members = seeds(&files, &[]);
    let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["seed-3", "seed-5"]);
    let out = files.path().join("runs").join("group");
    let evaluations = evaluated(start(&out, &members).unwrap());
    assert_eq!(evaluations.len(), 2);
    assert_ne!(evaluations[0], evaluations[1]);
    assert_eq!(evaluated(resume(&out).unwrap()), evaluations, "what is finished is left alone");
}

#[test]
fn a_group_goes_on_where_it_was_interrupted() {
    let files = Files::new();
    let members = seeds(&files, &[]);
    let whole = evaluated(start(&files.path().join("whole"), &members).unwrap());
    let out = files.path().join("parts");
    let stop = AtomicBool::new(false);
    let outcome = group::start(&out, &of(&members), &stop, &mut |member, event| {
        let now = member.name == "seed-5" && matches!(event, Event::Step { step: 3, .. });
        stop.store(now, Ordering::Relaxed);
    });
    match outcome.unwrap() {
        GroupEnded::Interrupted { name, step } => assert_eq!((name.as_str(), step), ("seed-5", 3)),
        other => panic!("{other:?}"),
    }
    assert_eq!(evaluated(resume(&out).unwrap()), whole);
}

#[test]
fn a_group_goes_on_where_a_member_was_not_begun_or_only_its_folder_was_made() {
    let files = Files::new();
    let members = seeds(&files, &[]);
    let out = files.path().join("group");
    let whole = evaluated(start(&out, &members).unwrap());
    fs::remove_dir_all(out.join("seed-5")).unwrap();
    assert_eq!(evaluated(resume(&out).unwrap()), whole);
    fs::remove_dir_all(out.join("seed-5")).unwrap();
    fs::create_dir(out.join("seed-5")).unwrap();
    assert_eq!(evaluated(resume(&out).unwrap()), whole);
}

#[test]
fn a_member_s_place_that_holds_something_else_is_refused() {
    let files = Files::new();
    let out = files.path().join("group");
    start(&out, &seeds(&files, &[])).unwrap();
    fs::remove_dir_all(out.join("seed-5")).unwrap();
    fs::create_dir(out.join("seed-5")).unwrap();
    fs::write(out.join("seed-5").join("notes.txt"), "mine").unwrap();
    let message = resume(&out).unwrap_err().to_string();
    assert!(message.contains("seed-5 exists"), "{message}");
    assert!(out.join("seed-5").join("notes.txt").exists());
}

#[test]
fn a_file_or_a_folder_in_the_group_s_place_is_left_alone() {
    let files = Files::new();
    let members = seeds(&files, &[]);
    let file = files.path().join("thesis.txt");
    fs::write(&file, "years of work").unwrap();
    let message = start(&file, &members).unwrap_err().to_string();
    assert!(message.contains("thesis.txt exists"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "years of work");
    let message = start(files.path(), &members).unwrap_err().to_string();
    assert!(message.contains("exists"), "{message}");
    let empty = files.path().join("empty");
    fs::create_dir(&empty).unwrap();
    start(&empty, &members).unwrap();
}

#[test]
fn two_members_of_one_name_are_refused_before_any_is_trained() {
    let files = Files::new();
    let mut members = seeds(&files, &[]);
    members[1].name = members[0].name.clone();
    let out = files.path().join("group");
    let message = start(&out, &members).unwrap_err().to_string();
    assert!(message.contains("two runs would be written to seed-3"), "{message}");
    assert!(!out.exists());
}

#[test]
fn a_damaged_or_newer_group_file_is_named() {
    let files = Files::new();
    let out = files.path().join("group");
    start(&out, &seeds(&files, &[])).unwrap();
    let path = out.join("group.json");
    let text = fs::read_to_string(&path).unwrap();
    for (changed, words) in [
        (text.replace("\"format\": 1", "\"format\": 9"), "format 9"),
        (text.replace("[schedule]", "[shedule]"), "shedule"),
        (text[..text.len() / 2].to_string(), "group.json"),
    ] {
        fs::write(&path, changed).unwrap();
        let message = resume(&out).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_run_that_another_process_writes_is_refused() {
    let files = Files::new();
    let out = files.path().join("group");
    start(&out, &seeds(&files, &[])).unwrap();
    let run = aleator_run::RunDir::open(&out.join("seed-3")).unwrap();
    let _lock = run.lock().unwrap();
    let message = resume(&out).unwrap_err().to_string();
    assert!(message.contains("in use"), "{message}");
}

#[test]
fn classes_that_no_example_has_are_warned_of_once() {
    let files = Files::new();
    let out = files.path().join("group");
    let members = seeds(&files, &["data.classes=5"]);
    let mut warnings = vec![];
    let stop = AtomicBool::new(false);
    group::start(&out, &of(&members), &stop, &mut |_, event| {
        if let Event::Warning(warning) = event {
            warnings.push(warning.to_string());
        }
    })
    .unwrap();
    let about_classes = warnings.iter().filter(|it| it.contains("2 of the 5 classes")).count();
    assert_eq!(about_classes, 1, "{warnings:?}");
}
