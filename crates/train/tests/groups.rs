//! Groups of runs, and what can stop them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Files, RECIPE, column, cycle, resolve};
use aleator_data::array::Array;
use aleator_data::{ArrayInputs, ArraySplit, Arrays, Sources};
use aleator_metrics::Evaluation;
use aleator_run::recipe::{Link, Recipe};
use aleator_train::group::{self, Group, GroupOutcome, Kind, Member};
use aleator_train::{Event, TrainError, load_run, run_data};

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

fn of(members: &[Member]) -> Result<Group, TrainError> {
    Group::new(Kind::Seeds, members.to_vec())
}

fn start(out: &Path, members: &[Member]) -> Result<GroupOutcome, TrainError> {
    let stop = AtomicBool::new(false);
    start_observed(out, &of(members)?, None, &stop, &mut |_, _| {})
}

/// Trains new runs, and shows the events.
fn start_observed(
    out: &Path,
    group: &Group,
    sources: Option<&Sources>,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Member, Event<'_>),
) -> Result<GroupOutcome, TrainError> {
    group::create(out, group)?;
    group::finish(out, group, sources, stop, observer)
}

fn resume(out: &Path) -> Result<GroupOutcome, TrainError> {
    let stop = AtomicBool::new(false);
    let group = group::open(out)?;
    group::finish(out, &group, None, &stop, &mut |_, _| {})
}

fn evaluated(ended: GroupOutcome) -> Vec<Evaluation> {
    match ended {
        GroupOutcome::Evaluated(evaluations) => evaluations,
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
    let ended = start_observed(&out, &of(&members).unwrap(), None, &stop, &mut |member, event| {
        let now = member.name == "seed-5" && matches!(event, Event::Step { step: 3, .. });
        stop.store(now, Ordering::Relaxed);
    });
    match ended.unwrap() {
        GroupOutcome::Interrupted { name, step } => {
            assert_eq!((name.as_str(), step), ("seed-5", 3))
        }
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
fn settings_that_code_made_impossible_are_refused_before_anything_is_written() {
    let files = Files::new();
    let impossible = |change: fn(&mut Recipe)| {
        let mut members = seeds(&files, &[]);
        change(&mut members[1].recipe);
        members
    };
    for (members, words) in [
        (vec![], "nothing to train"),
        (impossible(|recipe| recipe.training.parts = 0), "training.parts"),
        (impossible(|recipe| recipe.evaluation.batch = 0), "evaluation.batch"),
        (impossible(|recipe| recipe.seeds = vec![]), "seeds"),
    ] {
        let out = files.path().join("group");
        let message = start(&out, &members).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert!(!out.exists());
    }
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
    let before_members = text.split("\"members\"").next().unwrap();
    for (changed, words) in [
        (format!("{before_members}\"members\": []}}"), "members is empty"),
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
    start_observed(&out, &of(&members).unwrap(), None, &stop, &mut |_, event| {
        if let Event::Warning(warning) = event {
            warnings.push(warning.to_string());
        }
    })
    .unwrap();
    let about_classes = warnings.iter().filter(|it| it.contains("2 of the 5 classes")).count();
    assert_eq!(about_classes, 1, "{warnings:?}");
}

/// The folds of an audit of images: `fold-0` to `fold-4`.
fn folds(files: &Files) -> Vec<Member> {
    for at in 0..40_u8 {
        let (class, bytes) = (at % 2, [at, 255 - at, at / 2]);
        let image = [b"P6 1 1 255\n".as_slice(), &bytes].concat();
        let folder = files.path().join("images").join(class.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{at}.ppm")), image).unwrap();
    }
    let images = format!("data.train.images={}", files.path().join("images").display());
    let member = |fold: usize| {
        let fold_set = format!("data.test.fold={fold}");
        let sets = [&images, "data.test.folds=5", "data.test.seed=0", fold_set.as_str()];
        Member { name: format!("fold-{fold}"), recipe: resolve(RECIPE, &sets), seed: 0 }
    };
    (0..5).map(member).collect()
}

#[test]
fn five_folds_open_the_files_and_decode_each_image_once() {
    let files = Files::new();
    let members = folds(&files);
    let (mut opened, mut decoded, mut checking) = (vec![], 0, "");
    let stop = AtomicBool::new(false);
    let out = files.path().join("audit");
    let group = Group::new(Kind::Audit, members.clone()).unwrap();
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let mut last = 0;
    start_observed(&out, &group, None, &stop, &mut |member, event| match event {
        Event::Opened { examples } => opened.push(examples),
        Event::Checking { done, total } => {
            assert_eq!(total, 40);
            checking = names.iter().find(|name| **name == member.name).unwrap();
            decoded += done - last;
            last = done;
        }
        _ => {}
    })
    .unwrap();
    assert_eq!((opened, decoded, checking), (vec![40], 40, "fold-0"));
    // What is given is not opened at all, and gives the same runs.
    let recipe = &members[0].recipe;
    let sources = Sources::open(&recipe.data, recipe.head.link).unwrap();
    let again = files.path().join("again");
    start_observed(&again, &group, Some(&sources), &stop, &mut |_, event| {
        assert!(!matches!(event, Event::Opened { .. }));
    })
    .unwrap();
    for name in names {
        for file in ["run.json", "examples.csv", "evaluation.json"] {
            let read = |out: &Path| fs::read(out.join(&name).join(file)).unwrap();
            assert_eq!(read(&out), read(&again), "{name}/{file}");
        }
    }
}

#[test]
fn arrays_are_trained_on_and_must_be_given_again() {
    let files = Files::new();
    let arrays = |shift: f32| {
        let values: Vec<f32> = (0..40).flat_map(|at| [shift, (at % 3) as f32]).collect();
        let labels = Array::numbers((0..40).map(|at| at % 3));
        let inputs = ArrayInputs::Features { values, width: 2 };
        Sources::in_memory(Arrays::new(ArraySplit::new(inputs, labels)), Link::Softmax).unwrap()
    };
    let sources = arrays(0.0);
    let memory = format!("data.train.memory={}", sources.fingerprint());
    let members = group::members("", &resolve(RECIPE, &[&memory, "seeds=[3, 5]"]));
    let out = files.path().join("group");
    let stop = AtomicBool::new(false);
    let interrupted =
        start_observed(&out, &of(&members).unwrap(), Some(&sources), &stop, &mut |_, event| {
            if let Event::Step { step: 2, .. } = event {
                stop.store(true, Ordering::Relaxed);
            }
        });
    assert!(matches!(interrupted.unwrap(), GroupOutcome::Interrupted { .. }));
    stop.store(false, Ordering::Relaxed);

    let message = resume(&out).unwrap_err().to_string();
    assert!(message.contains("arrays in memory") && message.contains("again"), "{message}");
    let group = group::open(&out).unwrap();
    let resume =
        |sources: &Sources| group::finish(&out, &group, Some(sources), &stop, &mut |_, _| {});
    let message = resume(&arrays(1.0)).unwrap_err().to_string();
    assert!(message.contains("data.train.memory"), "{message}");
    let resumed = evaluated(resume(&sources).unwrap());
    let fresh = files.path().join("fresh");
    let fresh =
        start_observed(&fresh, &of(&members).unwrap(), Some(&sources), &stop, &mut |_, _| {});
    assert_eq!(resumed, evaluated(fresh.unwrap()), "a resumed run has the same bits");

    let (run, recipe) = load_run(&out.join("seed-3")).unwrap();
    assert!(run_data(&run, &recipe, None).is_err());
    let data = run_data(&run, &recipe, Some(&sources)).unwrap();
    assert_eq!(data.fingerprint, run.info().fingerprint);
    let mut sigmoid = recipe.clone();
    sigmoid.head.link = Link::Sigmoid;
    let message = run_data(&run, &sigmoid, Some(&sources)).unwrap_err().to_string();
    assert!(message.contains("head.link"), "{message}");
}
