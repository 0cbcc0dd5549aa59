//! Training methods in whole runs: what is plain training, what survives a kill, what is refused.

mod settings;

use std::fs;

use crate::checkpoints::{FILES, rich};
use crate::support::{Files, Trial, adam, column, cycle, resolve, tensors};
use aleator_data::DataSet;
use aleator_run::recipe::Link;
use aleator_train::create_run;
use settings::{ACTIVE, NEUTRAL};

/// The keys of verified examples, for which [`Verified`] has a file.
pub const VERIFIED_BY_MENTORNET: &str = "mentornet.verified=";
pub const VERIFIED_BY_CLEANNET: &str = "cleannet.verified=";

/// A file of verified examples beside the settings that need one.
pub struct Verified {
    path: String,
    _files: Files,
}

impl Verified {
    /// Of examples in classes that come in turn: every fourth is in truth of the next class.
    fn in_turn(examples: usize) -> Self {
        let classes = cycle(examples);
        let truth =
            |at: usize| if at.is_multiple_of(4) { (classes[at] + 1) % 3 } else { classes[at] };
        Self::of((0..examples).map(|at| (at.to_string(), truth(at).to_string())))
    }

    pub fn of(rows: impl Iterator<Item = (String, String)>) -> Self {
        let files = Files::new();
        let rows = rows
            .fold("id,label\n".to_string(), |text, (id, label)| format!("{text}{id},{label}\n"));
        Self { path: files.write("verified.csv", rows), _files: files }
    }

    pub fn name_in(&self, settings: &[&str]) -> Vec<String> {
        let named = |set: &&str| match *set {
            VERIFIED_BY_MENTORNET | VERIFIED_BY_CLEANNET => format!("{set}{}", self.path),
            set => set.to_string(),
        };
        settings.iter().map(named).collect()
    }
}

fn log(trial: &Trial) -> Vec<u8> {
    fs::read(trial.run.metrics_path()).unwrap()
}

#[test]
fn neutral_settings_are_plain_training_bit_for_bit() {
    let base = ["training.parts=3", "checkpoint.every_steps=2"];
    let plain = rich(&base);
    plain.train();
    let files = Files::new();
    let identity = files.write("identity.csv", "1,0,0\n0,1,0\n0,0,1\n");
    let matrix = format!("forward_correction.matrix={identity}");
    let forward = ["method=forward-correction", "forward_correction.transitions=file", &matrix];
    let verified = Verified::in_turn(40);
    for settings in NEUTRAL.iter().copied().chain([&forward[..]]) {
        let settings = verified.name_in(settings);
        let sets = base.iter().copied().chain(settings.iter().map(String::as_str));
        let sets: Vec<&str> = sets.collect();
        let trial = rich(&sets);
        trial.train();
        assert_eq!(trial.steps(), plain.steps());
        for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
            for step in plain.steps() {
                let same = trial.bytes(step, file) == plain.bytes(step, file);
                assert!(same, "{settings:?} {file} {step}");
            }
        }
        assert!(log(&trial) == log(&plain), "{settings:?}");
    }
}

#[test]
fn every_method_is_killed_and_resumed_to_the_same_memory_and_bits() {
    let base = ["training.parts=3", "checkpoint.every_steps=3"];
    let plain = rich(&base);
    plain.train();
    let verified = Verified::in_turn(40);
    for settings in ACTIVE {
        let settings = verified.name_in(settings);
        let sets = base.iter().copied().chain(settings.iter().map(String::as_str));
        let sets: Vec<&str> = sets.collect();
        let whole = rich(&sets);
        whole.train();
        let weights = |trial: &Trial| trial.bytes(10, "model.safetensors");
        assert!(weights(&whole) != weights(&plain), "{settings:?} does nothing");
        let mut files = FILES.to_vec();
        let further = [
            "method.safetensors",
            "model-2.safetensors",
            "optimizer-2.safetensors",
            "model-3.safetensors",
            "optimizer-3.safetensors",
        ];
        files.extend(further.iter().filter(|file| whole.checkpoint(10).join(file).exists()));
        // Within the second epoch, before it could save; and between the two.
        for (stop, saved) in [(7, 6), (5, 3)] {
            let killed = rich(&sets);
            killed.train_until(stop);
            fs::remove_dir_all(killed.checkpoint(stop)).unwrap();
            assert_eq!(killed.train().steps.len(), 10 - saved);
            for file in &files {
                let same = killed.bytes(10, file) == whole.bytes(10, file);
                assert!(same, "{settings:?} {file} {stop}");
            }
            assert!(log(&killed) == log(&whole), "{settings:?} {stop}");
        }
        let between = rich(&sets);
        between.train_until(5);
        assert_eq!(between.train().steps.len(), 5);
        assert!(files.iter().all(|file| between.bytes(10, file) == whole.bytes(10, file)));
    }
}

#[test]
fn methods_work_with_every_noise_and_with_soft_labels() {
    let files = Files::new();
    let classes = cycle(40);
    let soft = classes.iter().fold("a,b,c\n".to_string(), |text, class| {
        let row = [0, 1, 2].map(|it| if it == *class { "0.8" } else { "0.1" });
        format!("{text}{}\n", row.join(","))
    });
    let source = files.source(&classes, &soft);
    let verified = Verified::in_turn(40);
    for noise in ["none", "diagonal", "shared", "xl"].map(|noise| format!("head.noise={noise}")) {
        for settings in ACTIVE {
            let settings = verified.name_in(settings);
            let mut sets = vec![&noise, "data.label_kind=soft", "training.parts=2"];
            if noise.ends_with("shared") || noise.ends_with("xl") {
                sets.push("head.rank=2");
            }
            sets.extend(settings.iter().map(String::as_str));
            let events = Trial::on(&adam(), &source, &sets).train();
            assert!(events.steps.iter().all(|step| step.loss.is_finite()), "{settings:?}");
        }
    }
}

/// Both begin after some epochs, and have no setting that does nothing at all.
#[test]
fn cleannet_and_dividemix_are_plain_training_until_they_begin() {
    let plain = rich(&[]);
    plain.train();
    let verified = Verified::in_turn(40);
    let weights = |trial: &Trial, step| trial.bytes(step, "model.safetensors");
    let late = |settings: &&&[&str]| {
        ["method=cleannet", "method=dividemix"].iter().any(|name| settings.contains(name))
    };
    for settings in ACTIVE.iter().filter(late) {
        let settings = verified.name_in(settings);
        let found = rich(&settings.iter().map(String::as_str).collect::<Vec<_>>());
        found.train();
        // Of two epochs of five steps.
        assert!(weights(&found, 5) == weights(&plain, 5), "{settings:?}");
        assert!(weights(&found, 10) != weights(&plain, 10), "{settings:?}");
    }
}

#[test]
fn verified_examples_are_refused_by_row_and_by_number() {
    let files = Files::new();
    let classes = cycle(40);
    let source = files.source(&classes, &column(&classes));
    let cleannet = ACTIVE.iter().find(|settings| settings[0] == "method=cleannet").unwrap();
    let refusal = |content: &str| {
        let file = files.write("verified.csv", content);
        let key = format!("{VERIFIED_BY_CLEANNET}{file}");
        let sets = source.iter().map(String::as_str).chain(cleannet.iter().copied());
        let sets: Vec<&str> =
            sets.chain([key.as_str()]).filter(|set| *set != VERIFIED_BY_CLEANNET).collect();
        let recipe = resolve(&adam(), &sets);
        let data = DataSet::open(&recipe.data, Link::Softmax).unwrap();
        let folder = files.path().join("run");
        create_run(&folder, &recipe, 0, &data, &[]).unwrap_err().to_string()
    };
    for (content, words) in [
        ("0,1\n2,2\n", "the columns id and label"),
        ("id,given,truth\n0,1,1\n", "call the one of the true classes label"),
        ("id,label\n0,0\n40,1\n", "row 1 (counted from 0): there is no example \"40\""),
        ("id,label\n0,0\n40,1\n", "0 to 39"),
        ("id,label\n0,0\n1,3\n", "row 1"),
        ("id,label\n0,0\n1,cat\n", "cat"),
        ("id,label\n7,0\n7,0\n", "rows 0 and 1 (counted from 0) both have the example \"7\""),
        ("id,label\n0,0\n1,2\n", "at least 5 of each"),
    ] {
        let found = refusal(content);
        assert!(found.contains(words) && found.contains("verified.csv"), "{found}");
    }
}

/// The state of every example is in the row of the example, whatever the order of training.
#[test]
fn what_is_remembered_of_an_example_is_in_its_row() {
    let trial = rich(&["method=elr", "elr.momentum=0.5", "elr.strength=1.0"]);
    trial.train();
    let memory = tensors(&trial.bytes(10, "method.safetensors"));
    let (shape, targets) = &memory["elr.targets"];
    assert_eq!(*shape, [30, 3]);
    // Two epochs have entered each row: ½ + ¼.
    for row in targets.chunks_exact(3) {
        assert!((row.iter().sum::<f32>() - 0.75).abs() < 1e-5, "{row:?}");
    }
}

#[test]
fn matrices_and_errors_in_files_are_read_and_refused_by_name() {
    let files = Files::new();
    let classes = cycle(40);
    let source = files.source(&classes, &column(&classes));
    let begin = |method: &[String]| {
        let sets: Vec<&str> = source.iter().chain(method).map(String::as_str).collect();
        let recipe = resolve(&adam(), &sets);
        let data = DataSet::open(&recipe.data, Link::Softmax).unwrap();
        let folder =
            files.path().join(format!("run-{}", fs::read_dir(files.path()).unwrap().count()));
        create_run(&folder, &recipe, 0, &data, &[]).map(drop).map_err(|error| error.to_string())
    };
    let forward = |content: &str| {
        let file = files.write("matrix.csv", content);
        let settings = ["method=forward-correction", "forward_correction.transitions=file"];
        let mut sets = settings.map(String::from).to_vec();
        sets.push(format!("forward_correction.matrix={file}"));
        begin(&sets)
    };
    assert_eq!(forward("0.9,0.1,0.0\n0.0,1.0,0.0\n0.2,0.2,0.6\n"), Ok(()));
    let refusal = forward("0.9,0.1\n0.1,0.9\n").unwrap_err();
    assert!(refusal.contains("[3, 3]") && refusal.contains("matrix.csv"), "{refusal}");
    let refusal = forward("0.5,0.5,0.0\n0.0,1.0,0.0\n0.5,0.5,0.0\n").unwrap_err();
    assert!(refusal.contains("column 2 of forward_correction.matrix"), "{refusal}");
    let har = |content: &str| {
        let file = files.write("errors.csv", content);
        let settings =
            ["method=har", "har.strength=1", "har.error_power=0.6", "har.count_power=0.4"];
        let mut sets = settings.map(String::from).to_vec();
        sets.extend(["har.errors=file".to_string(), format!("har.class_errors={file}")]);
        begin(&sets)
    };
    assert_eq!(har("error\n0.1\n0.4\n0.2\n"), Ok(()));
    let refusal = har("error\n0.1\n0.4\n").unwrap_err();
    assert!(refusal.contains("har.class_errors must be one number for each of 3"), "{refusal}");
    let refusal = har("error\n0.1\n0.4\n20\n").unwrap_err();
    assert!(refusal.contains("shares from 0 to 1, found 20"), "{refusal}");
}
