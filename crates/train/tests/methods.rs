//! Training methods in whole runs: what is plain training, what survives a kill, what learns.

use std::fs;

use crate::checkpoints::{FILES, rich};
use crate::support::{DIGITS, Files, Tensors, Trial, adam, column, cycle, resolve, tensors};
use aleator_data::DataSet;
use aleator_run::recipe::Link;
use aleator_train::create_run;

/// Settings that do something from the first or the second epoch on.
const ACTIVE: &[&[&str]] = &[
    &["method=label-smoothing", "label_smoothing.share=0.2"],
    &["method=gce", "gce.exponent=0.7", "gce.truncate=0.3", "gce.burn_in=1"],
    &[
        "method=forward-correction",
        "forward_correction.transitions=estimated",
        "forward_correction.after=1",
        "forward_correction.quantile=0.9",
    ],
    &[
        "method=data-parameters",
        "data_parameters.momentum=0.9",
        "data_parameters.bound=20.0",
        "data_parameters.classes.start=1.0",
        "data_parameters.classes.rate=0.1",
        "data_parameters.classes.decay=1e-3",
        "data_parameters.instances.start=0.1",
        "data_parameters.instances.rate=0.2",
        "data_parameters.instances.decay=1e-3",
    ],
    &["method=elr", "elr.momentum=0.7", "elr.strength=3.0"],
    &["method=sop", "sop.rate_u=0.5", "sop.rate_v=0.5"],
    &[
        "method=cores",
        "cores.strength=2.0",
        "cores.burn_in=0",
        "cores.ramp=2",
        "cores.sieve_after=1",
    ],
    &[
        "method=har",
        "har.strength=1.0",
        "har.error_power=0.6",
        "har.count_power=0.4",
        "har.errors=validation",
        "har.after=1",
    ],
    &["method=mixup", "mixup.alpha=1.0"],
    &[
        "method=mentornet",
        "mentornet.curriculum=predefined",
        "mentornet.width=1.0",
        "mentornet.linear_after=1",
        "mentornet.quantile=0.75",
        "mentornet.decay=0.5",
        "mentornet.burn_in=0",
    ],
    &[
        "method=mentormix",
        "mentormix.alpha=2.0",
        "mentormix.quantile=0.5",
        "mentormix.decay=0.5",
        "mentormix.burn_in=0",
        "mentormix.weigh_mixed=true",
    ],
    &["method=co-teaching", "co_teaching.ramp=1", "co_teaching.exponent=1.0"],
    &[
        "method=dividemix",
        "dividemix.warm_up=1",
        "dividemix.threshold=0.5",
        "dividemix.sharpness=0.5",
        "dividemix.alpha=4.0",
        "dividemix.unlabelled_weight=5.0",
        "dividemix.ramp=0",
        "dividemix.balance=1.0",
    ],
    &[
        "method=dividemix",
        "dividemix.warm_up=1",
        "dividemix.threshold=0.5",
        "dividemix.sharpness=0.5",
        "dividemix.alpha=4.0",
        "dividemix.unlabelled_weight=5.0",
        "dividemix.ramp=0",
        "dividemix.balance=1.0",
        "dividemix.views.kind=noise",
        "dividemix.views.strength=0.5",
        "evaluation.networks=all",
    ],
    &[
        "method=curriculumnet",
        "curriculumnet.after=1",
        "curriculumnet.noisy_after=1",
        "curriculumnet.all_after=2",
        "curriculumnet.quantile=0.6",
        "curriculumnet.weights=[1.0,0.5,0.5]",
    ],
];

/// Settings that do nothing.
const NEUTRAL: &[&[&str]] = &[
    &["method=label-smoothing", "label_smoothing.share=0"],
    &["method=gce", "gce.exponent=0", "gce.burn_in=0"],
    &[
        "method=data-parameters",
        "data_parameters.momentum=0.9",
        "data_parameters.bound=20.0",
        "data_parameters.classes.start=1.0",
        "data_parameters.classes.rate=0.0",
        "data_parameters.classes.decay=1e-3",
    ],
    &["method=elr", "elr.momentum=0.7", "elr.strength=0"],
    &["method=sop", "sop.rate_u=0", "sop.rate_v=0"],
    &["method=cores", "cores.strength=0", "cores.burn_in=0", "cores.ramp=0"],
    &[
        "method=har",
        "har.strength=0",
        "har.error_power=0.6",
        "har.count_power=0.4",
        "har.errors=validation",
        "har.after=1",
    ],
    &["method=mixup", "mixup.alpha=1e-300"],
    &[
        "method=mentornet",
        "mentornet.curriculum=self-paced",
        "mentornet.quantile=0.75",
        "mentornet.decay=0.5",
        "mentornet.burn_in=2",
    ],
    &[
        "method=mentormix",
        "mentormix.alpha=1e-300",
        "mentormix.quantile=0.5",
        "mentormix.decay=0.5",
        "mentormix.burn_in=2",
        "mentormix.weigh_mixed=true",
    ],
    &[
        "method=co-teaching",
        "co_teaching.noise_rate=0",
        "co_teaching.ramp=0",
        "co_teaching.exponent=1.0",
    ],
    &[
        "method=curriculumnet",
        "curriculumnet.after=1",
        "curriculumnet.noisy_after=1",
        "curriculumnet.all_after=1",
        "curriculumnet.quantile=0.6",
        "curriculumnet.weights=[1.0,1.0,1.0]",
    ],
];

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
    for settings in NEUTRAL.iter().copied().chain([&forward[..]]) {
        let sets: Vec<&str> = base.iter().chain(settings).copied().collect();
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
    for settings in ACTIVE {
        let sets: Vec<&str> = base.iter().chain(*settings).copied().collect();
        let whole = rich(&sets);
        whole.train();
        let weights = |trial: &Trial| trial.bytes(10, "model.safetensors");
        assert!(weights(&whole) != weights(&plain), "{settings:?} does nothing");
        let mut files = FILES.to_vec();
        let further = ["method.safetensors", "model-2.safetensors", "optimizer-2.safetensors"];
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
    for noise in ["none", "diagonal", "shared", "xl"].map(|noise| format!("head.noise={noise}")) {
        for settings in ACTIVE {
            let mut sets = vec![&noise, "data.label_kind=soft", "training.parts=2"];
            if noise.ends_with("shared") || noise.ends_with("xl") {
                sets.push("head.rank=2");
            }
            sets.extend(*settings);
            let events = Trial::on(&adam(), &source, &sets).train();
            assert!(events.steps.iter().all(|step| step.loss.is_finite()), "{settings:?}");
        }
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

/// A run on digits of which two in five labels are wrong, long enough to memorise them.
fn on_wrong_digits(settings: &[&str]) -> Trial {
    let mut sets = vec![DIGITS, "network.normalize=global", "network.kind=mlp"];
    sets.extend(["network.hidden=[128]", "optimizer.learning_rate=0.003", "training.batch=64"]);
    sets.extend(["data.noise.kind=symmetric", "data.noise.rate=0.4", "data.noise.seed=0"]);
    sets.extend(["schedule.epochs=40", "evaluation.weights=last", "checkpoint.keep=1"]);
    sets.extend(settings);
    Trial::new(&adam(), &sets)
}

/// Which training labels of a run are right, and what its method remembers after the last step.
fn remembered(settings: &[&str]) -> (Vec<bool>, Tensors) {
    let trial = on_wrong_digits(settings);
    let steps = trial.train().steps.len();
    let train = &trial.data.train;
    let labels = train.labels.hard(0, &train.ids).unwrap();
    let clean = train.clean_labels.as_ref().unwrap();
    let right = labels.iter().zip(clean).map(|(label, clean)| label == clean).collect();
    (right, tensors(&trial.bytes(steps, "method.safetensors")))
}

/// Among pairs of a right and a wrong label, how often the right one has the larger number.
fn auroc(right: &[bool], numbers: &[f32]) -> f64 {
    let of = |kind: bool| {
        let pairs = right.iter().zip(numbers);
        pairs.filter(|(right, _)| **right == kind).map(|(_, number)| *number).collect::<Vec<_>>()
    };
    let (high, low) = (of(true), of(false));
    let wins = |a: &f32| {
        let one = |b: &f32| if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
        low.iter().map(one).sum::<f64>()
    };
    high.iter().map(wins).sum::<f64>() / (high.len() * low.len()) as f64
}

const CO_TEACHING: [&str; 4] = [
    "method=co-teaching",
    "co_teaching.noise_rate=0.4",
    "co_teaching.ramp=5",
    "co_teaching.exponent=1.0",
];
const MENTORNET: [&str; 6] = [
    "method=mentornet",
    "mentornet.curriculum=self-paced",
    "mentornet.quantile=0.6",
    "mentornet.decay=0.5",
    "mentornet.burn_in=3",
    "head.noise=none",
];
const ELR: [&str; 3] = ["method=elr", "elr.momentum=0.7", "elr.strength=3.0"];
const SOP: [&str; 3] = ["method=sop", "sop.rate_u=0.1", "sop.rate_v=0.1"];
const GCE: [&str; 3] = ["method=gce", "gce.exponent=0.7", "gce.burn_in=0"];
const CORES: [&str; 5] = [
    "method=cores",
    "cores.strength=2.0",
    "cores.burn_in=3",
    "cores.ramp=5",
    "cores.sieve_after=8",
];
const DIVIDEMIX: [&str; 8] = [
    "method=dividemix",
    "dividemix.warm_up=3",
    "dividemix.threshold=0.5",
    "dividemix.sharpness=0.5",
    "dividemix.alpha=4.0",
    "dividemix.unlabelled_weight=1.0",
    "dividemix.ramp=5",
    "dividemix.balance=1.0",
];

#[test]
fn what_methods_keep_is_purer_than_the_labels() {
    // Three in five labels are right. The sieve leaves out only what is quite improbable.
    for (settings, name, every, least) in [
        (&CO_TEACHING[..], "co_teaching.kept", 2, 0.85),
        (&MENTORNET, "mentornet.weights", 1, 0.85),
        (&CORES, "cores.kept", 1, 0.65),
    ] {
        let (right, memory) = remembered(settings);
        let weights: Vec<f32> = memory[name].1.iter().step_by(every).copied().collect();
        let kept = right.iter().zip(&weights).filter(|(_, weight)| **weight > 0.5);
        let kept: Vec<bool> = kept.map(|(right, _)| *right).collect();
        let share = kept.len() as f64 / right.len() as f64;
        let purity = kept.iter().filter(|right| **right).count() as f64 / kept.len() as f64;
        assert!(share > 0.4 && purity > least, "{name}: {purity} of {share}");
    }
}

#[test]
fn what_methods_remember_tells_right_labels_from_wrong_ones() {
    let found = |settings: &[&str], name: &str, numbers: fn(&[f32]) -> Vec<f32>| {
        let (right, memory) = remembered(settings);
        auroc(&right, &numbers(&memory[name].1))
    };
    let first_of_two = |all: &[f32]| all.iter().step_by(2).copied().collect::<Vec<_>>();
    let clean = found(&DIVIDEMIX, "dividemix.clean", first_of_two);
    assert!(clean > 0.9, "w of DivideMix: {clean}");
    let error = |all: &[f32]| all.iter().step_by(11).map(|u| -u * u).collect::<Vec<_>>();
    let error = found(&SOP, "sop.errors", error);
    assert!(error > 0.9, "u of SOP: {error}");
    let settings = [
        "method=data-parameters",
        "data_parameters.momentum=0.9",
        "data_parameters.bound=20.0",
        "data_parameters.instances.start=1.0",
        "data_parameters.instances.rate=0.05",
        "data_parameters.instances.decay=0.0",
    ];
    let negative = |all: &[f32]| all.iter().map(|s| -s).collect::<Vec<_>>();
    let temperature = found(&settings, "data_parameters.instances", negative);
    assert!(temperature > 0.9, "s of Data Parameters: {temperature}");
}

/// The clean validation accuracy at the last epoch, which memorised labels spoil.
#[test]
fn robust_methods_memorise_less_than_plain_training() {
    let accuracy =
        |settings: &[&str]| on_wrong_digits(settings).finish().validation.clean.unwrap().top1;
    let plain = accuracy(&[]);
    for settings in [&CO_TEACHING[..], &MENTORNET, &ELR, &SOP, &GCE, &CORES, &DIVIDEMIX] {
        let robust = accuracy(settings);
        assert!(robust > plain + 0.05, "{settings:?}: {robust}, plain {plain}");
    }
}
