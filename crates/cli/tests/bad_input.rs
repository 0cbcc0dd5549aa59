//! One test for each kind of thing that a user can get wrong: a message in words, never a panic.

use std::fs;

use crate::support::{FILES, Place, SMALL, Toy, npy, npy_f32, npy_i64, ppm};

/// A command that trains on `features` and `labels`.
fn train(features: &str, labels: &str) -> String {
    format!(
        "train features-full --set data.train.features={features} \
         --set data.train.labels={labels} {SMALL} --out run"
    )
}

/// Refused with these words, and nothing is left where the run would have been.
fn refused(place: &Place, command: &str, words: &[&str]) {
    place.refuses(command, words);
    assert!(!place.path("run").exists(), "{command}: a run was begun");
}

/// A finished run in `run`.
fn trained() -> Place {
    let place = Place::with_features();
    place.succeeds(&format!("train features-full {FILES} --set head.rank=2 {SMALL} --out run"));
    place
}

#[test]
fn files_that_are_not_there_are_named() {
    let place = Place::with_features();
    refused(&place, &train("nope.npy", "y.npy"), &["nope.npy", "no such file"]);
    refused(&place, &train("x.npy", "nope.npy"), &["nope.npy", "no such file"]);
    refused(&place, "train --data nowhere --out run", &["nowhere", "no such file or folder"]);
    refused(&place, "train nope.toml --out run", &["nope.toml", "neither a file nor a preset"]);
}

#[test]
fn data_where_a_recipe_is_expected_lead_to_the_flag() {
    let place = Place::with_features();
    for name in ["photos", "features-full"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    refused(&place, "train x.npy", &["x.npy holds data", "did you mean --data x.npy?"]);
    refused(&place, "train photos", &["photos holds data", "did you mean --data photos?"]);
    refused(&place, "train nope.npy", &["nope.npy does not exist", "--data nope.npy?"]);
    refused(&place, "train features-full", &["preset features-full", "data.train"]);
}

#[test]
fn numbers_that_are_not_finite_are_named_by_row_and_column() {
    let place = Place::with_features();
    let mut values = vec![0.5; 160 * 6];
    values[7 * 6 + 3] = f32::NAN;
    place.write("nan.npy", npy_f32(&[160, 6], values));
    refused(&place, &train("nan.npy", "y.npy"), &["nan.npy", "row 7, column 3", "NaN"]);
}

#[test]
fn labels_that_do_not_fit_are_named_by_row() {
    let place = Place::with_features();
    let write = |name: &str, at: usize, label: i64| {
        let mut labels: Vec<i64> = (0..160).map(|row| row % 4).collect();
        labels[at] = label;
        place.write(name, npy_i64(&[160], labels));
    };
    write("negative.npy", 5, -2);
    write("large.npy", 9, 7);
    place.write("short.npy", npy_i64(&[157], (0..157).map(|row| row % 4).collect()));
    place.write("alike.npy", npy_i64(&[160], vec![0; 160]));
    let four = train("x.npy", "negative.npy") + " --set data.classes=4";
    refused(&place, &four, &["negative.npy", "row 5", "-2"]);
    let four = train("x.npy", "large.npy") + " --set data.classes=4";
    refused(&place, &four, &["large.npy", "row 9", "7", "4 classes"]);
    refused(&place, &train("x.npy", "short.npy"), &["short.npy", "157", "160"]);
    refused(&place, &train("x.npy", "alike.npy"), &["1 class", "at least two"]);
}

#[test]
fn arrays_that_are_no_embeddings_are_refused() {
    let place = Place::with_features();
    let whole = place.read("x.npy");
    place.write("cut.npy", &whole[..whole.len() - 10]);
    place.write("head.npy", &whole[..20]);
    place.write("cube.npy", npy_f32(&[160, 2, 3], vec![0.0; 960]));
    place.write("none.npy", npy_f32(&[0, 6], vec![]));
    place.write("huge.npy", npy("<f4", &[usize::MAX, 6], vec![0; 64]));
    place.write("notes.doc", "hello");
    for (file, words) in [
        ("cut.npy", vec!["cut.npy", "cut short"]),
        ("head.npy", vec!["head.npy", "header"]),
        ("cube.npy", vec!["cube.npy", "2-dimensional"]),
        ("none.npy", vec!["none.npy", "no rows"]),
        ("huge.npy", vec!["huge.npy"]),
        ("notes.doc", vec!["notes.doc", "unknown format", ".npy"]),
        (".", vec!["directory"]),
    ] {
        refused(&place, &train(file, "y.npy"), &words);
    }
}

#[test]
fn misspelt_keys_and_presets_are_answered_with_the_nearest() {
    let place = Place::with_features();
    let key = train("x.npy", "y.npy") + " --set head.rnak=6";
    refused(&place, &key, &["head.rnak", "did you mean head.rank?"]);
    place.write("mine.toml", "base = \"features-full\"\n\n[head]\nrnak = 3\n");
    refused(&place, "train mine.toml --out run", &["mine.toml:4", "did you mean head.rank?"]);
    refused(&place, "train features-ful --out run", &["did you mean features-full?"]);
    place.write("broken.toml", "base = \"features-full\"\nseed = = 3\n");
    refused(&place, "train broken.toml --out run", &["broken.toml:2"]);
}

#[test]
fn impossible_values_are_named_with_what_is_possible() {
    let place = Place::with_features();
    for (setting, words) in [
        ("head.temperature=-1", vec!["head.temperature", "above 0", "-1"]),
        ("head.rank=0", vec!["head.rank", "from 1", "found 0"]),
        ("head.rank=six", vec!["head.rank", "integer", "six"]),
        ("head.samples=0", vec!["head.samples", "1"]),
        ("optimizer.learning_rate=nan", vec!["optimizer.learning_rate", "finite"]),
        ("schedule.epochs=0", vec!["schedule.epochs", "1"]),
        ("training.ema=1.0", vec!["training.ema", "below 1"]),
        ("training.batch=99999999999999999999", vec!["training.batch"]),
        ("head.link=tanh", vec!["head.link", "softmax", "sigmoid"]),
        ("data.validation.fraction=1", vec!["data.validation.fraction", "below 1"]),
        ("data.noise.kind=symmetric", vec!["data.noise", "missing"]),
        (
            "optimizer.kind=adam --set optimizer.momentum=0.9",
            vec!["optimizer.momentum", "no meaning", "adam"],
        ),
    ] {
        // The last setting wins, so it follows those that make the run small.
        let command = format!("{} --set {setting}", train("x.npy", "y.npy"));
        refused(&place, &command, &words);
    }
}

#[test]
fn data_and_network_that_do_not_fit_each_other_are_refused() {
    let place = Place::with_features();
    let conv = "--set network= --set network.kind=conv --set network.channels=[4] \
                --set network.normalize=global";
    let command = format!("train features-none {FILES} {conv} --out run");
    refused(&place, &command, &["conv", "images", "mlp"]);
    let other = Place::with_multi_hot();
    let command = format!("train features-full {FILES} {SMALL} --out run");
    refused(&other, &command, &["y.npy", "zeros and ones", "multilabel preset"]);
    Toy { examples: 60, seed: 3 }.write_single(&place, "narrow.npy", "ty.npy");
    place.write("narrow.npy", npy_f32(&[60, 5], vec![0.5; 300]));
    let command = train("x.npy", "y.npy")
        + " --set data.test.features=narrow.npy --set data.test.labels=ty.npy";
    refused(&place, &command, &["narrow.npy", "5", "6"]);
}

#[test]
fn an_output_folder_that_exists_is_left_alone() {
    let place = Place::with_features();
    place.write("run/letters.txt", "important");
    let command = train("x.npy", "y.npy");
    place.refuses(&command, &["run exists", "--out"]);
    place.refuses(&(command + " --set seeds=[0,1]"), &["run exists", "--out"]);
    assert_eq!(place.read("run/letters.txt"), b"important");
    assert_eq!(fs::read_dir(place.path("run")).unwrap().count(), 1);
    let onto_file = train("x.npy", "y.npy").replace("--out run", "--out y.npy");
    place.refuses(&onto_file, &["y.npy exists"]);
}

#[cfg(unix)]
#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::with_features();
    let below_file = train("x.npy", "y.npy").replace("--out run", "--out y.npy/run");
    place.refuses(&below_file, &["cannot", "y.npy"]);
    fs::create_dir(place.path("closed")).unwrap();
    fs::set_permissions(place.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write everywhere.
    if fs::create_dir(place.path("closed/probe")).is_err() {
        let command = train("x.npy", "y.npy").replace("--out run", "--out closed/run");
        place.refuses(&command, &["cannot create", "closed", "ermission denied"]);
    }
}

#[test]
fn folders_that_are_no_runs_are_refused() {
    let place = Place::with_features();
    for command in ["resume .", "eval .", "predict . x.npy"] {
        place.refuses(command, &["not a run directory", "run.json"]);
    }
    for command in ["resume nope", "eval nope", "predict nope x.npy", "report nope"] {
        place.refuses(command, &["nope does not exist"]);
    }
}

#[test]
fn runs_of_another_format_are_refused_with_both_versions() {
    let place = trained();
    let info = String::from_utf8(place.read("run/run.json")).unwrap();
    place.write("run/run.json", info.replace("\"format\": 1", "\"format\": 2"));
    for command in ["resume run", "eval run", "predict run x.npy", "ensemble run run --out e"] {
        let words = ["run.json", "format 2", "format 1", env!("CARGO_PKG_VERSION")];
        place.refuses(command, &words);
    }
    place.write("run/run.json", "{");
    place.refuses("resume run", &["run.json"]);
}

#[test]
fn damaged_recipes_of_runs_are_refused() {
    let place = trained();
    let recipe = String::from_utf8(place.read("run/recipe.toml")).unwrap();
    place.write("run/recipe.toml", recipe.replace("[head]", "[haed]"));
    place.refuses("resume run", &["recipe.toml", "haed"]);
    fs::remove_file(place.path("run/recipe.toml")).unwrap();
    place.refuses("resume run", &["recipe.toml"]);
}

#[test]
fn data_that_changed_since_the_run_began_are_refused() {
    let place = trained();
    fs::remove_file(place.path("run/evaluation.json")).unwrap();
    Toy { examples: 160, seed: 9 }.write_single(&place, "x.npy", "y.npy");
    for command in ["resume run", "eval run"] {
        place.refuses(command, &["data have changed", "fingerprint", "new run"]);
    }
}

#[test]
fn inputs_of_another_width_cannot_be_predicted() {
    let place = trained();
    place.write("wide.npy", npy_f32(&[3, 7], vec![0.5; 21]));
    place.refuses("predict run wide.npy", &["wide.npy", "6 numbers", "7 numbers"]);
    place.refuses("predict run nope.npy", &["nope.npy", "no such file"]);
    let mut values = vec![0.5; 12];
    values[8] = f32::INFINITY;
    place.write("infinite.npy", npy_f32(&[2, 6], values));
    place.refuses("predict run infinite.npy", &["infinite.npy", "row 1, column 2"]);
}

#[test]
fn a_run_that_is_not_trained_can_be_neither_evaluated_nor_used() {
    let place = trained();
    fs::remove_dir_all(place.path("run/checkpoints")).unwrap();
    for command in ["eval run", "predict run tx.npy"] {
        place.refuses(command, &["no checkpoint", "aleator resume"]);
    }
}

#[test]
fn runs_of_different_tasks_make_no_ensemble() {
    let place = trained();
    place.write("y2.npy", npy_i64(&[160], (0..160).map(|row| row % 3).collect()));
    place.succeeds(&train("x.npy", "y2.npy").replace("--out run", "--out three"));
    place.refuses("ensemble run three --out e", &["run", "three", "classes", "4 and 3"]);
    place.refuses("ensemble run --out e", &["at least two"]);
    fs::remove_dir_all(place.path("three/predictions")).unwrap();
    place.refuses("ensemble three three --out e", &["no predictions", "aleator eval"]);
    assert!(!place.path("e").exists());
}

#[test]
fn nothing_is_tuned_where_there_is_no_noise() {
    let place = Place::with_features();
    let tune = |rest: &str| format!("tune features-none {FILES} {SMALL} --out run {rest}");
    refused(&place, &tune(""), &["head.noise = \"none\"", "features-full"]);
    let seeds = tune("--set head.noise=diagonal --set seeds=[0,1]");
    refused(&place, &seeds, &["one seed", "--seed 0"]);
    let negative = tune("--set head.noise=diagonal --temperatures=-1");
    refused(&place, &negative, &["--temperatures", "above 0"]);
}

#[test]
fn sweeps_are_checked_before_the_first_run() {
    let place = Place::with_features();
    let sweep = "base = \"features-full\"\n[data.train]\nfeatures = \"x.npy\"\n\
                 labels = \"y.npy\"\n[axes]\n\"head.rank\" = [2, 0]\n";
    place.write("sweep.toml", sweep);
    refused(&place, "sweep sweep.toml --out run", &["sweep.toml:6", "head.rank"]);
    refused(&place, "train sweep.toml --out run", &["aleator sweep"]);
    place.write("plain.toml", "base = \"features-full\"\n");
    refused(&place, "sweep plain.toml --out run", &["[axes]"]);
}

/// A folder of two classes with `each` images in both.
fn with_images(each: u8) -> Place {
    let place = Place::empty();
    for number in 0..each {
        place.write(&format!("images/dark/{number}.ppm"), ppm(8, 10 + number));
        place.write(&format!("images/light/{number}.ppm"), ppm(8, 210 + number));
    }
    place
}

#[test]
fn images_that_cannot_be_read_are_named() {
    let place = with_images(6);
    let whole = place.read("images/dark/3.ppm");
    place.write("images/dark/3.ppm", &whole[..40]);
    let words = ["dark/3.ppm", "cannot be decoded", "remove"];
    place.refuses("train --data images --out run", &words);
    let named = "train images-none --set data.train.images=images";
    place.refuses(&format!("{named} --out other"), &words);
}

#[test]
fn a_folder_of_a_class_without_images_is_named_and_left_out() {
    let place = with_images(4);
    fs::create_dir(place.path("images/empty")).unwrap();
    place.write("images/empty/notes.txt", "none yet");
    let command = "train images-none --data images --set schedule.epochs=1 --out run";
    let ended = place.succeeds(command);
    assert!(ended.stderr.contains("empty has no images"), "{}", ended.stderr);
    let names = place.json("run/run.json")["class_names"].clone();
    assert!(!names.to_string().contains("empty"), "{names}");
}

#[test]
fn noise_that_cannot_be_made_is_refused() {
    let place = Place::with_features();
    let noise = |rest: &str| format!("noise --labels y.npy --features x.npy --out n.npy {rest}");
    place.write("m.csv", "0.5,0.5\n0.5,0.5\n");
    for (rest, words) in [
        ("--kind symmetric", vec!["rate", "missing"]),
        ("--kind symmetric --rate 1.5", vec!["rate", "below 1"]),
        ("--kind symmetric --rate nan", vec!["rate"]),
        ("--kind pairwise --rate 0.3 --pairs 0:9", vec!["(0, 9)", "0 to 3"]),
        ("--kind pairwise --rate 0.3 --pairs 0-1", vec!["0-1", "FROM:TO"]),
        ("--kind matrix --matrix m.csv", vec!["m.csv", "4"]),
        ("--kind latent --scale 1 --law normal", vec!["--margin", "missing"]),
        ("--kind latent --margin 1 --scale 1 --law normal --rate 0.1", vec!["--rate", "remove"]),
        (
            "--kind latent --margin 1 --scale 1 --law normal --covariances 0:9:1",
            vec!["(0, 9, 1)", "0 to 3"],
        ),
        (
            "--kind latent --margin 1 --scale 1 --law normal --covariances 0:1",
            vec!["0:1", "CLASS:CLASS:NUMBER"],
        ),
        ("--kind symmetric --rate 0.1 --law gumbel", vec!["--law", "remove"]),
        ("--kind matrix --matrix nope.csv", vec!["nope.csv", "no such file"]),
    ] {
        place.refuses(&noise(rest), &words);
        assert!(!place.path("n.npy").exists() && !place.path("n_clean.npy").exists(), "{rest}");
    }
    let ending = noise("--kind symmetric --rate 0.2").replace("n.npy", "n.doc");
    place.refuses(&ending, &["n.doc", ".npy or .csv"]);
    let alone = "noise --labels y.npy --kind instance --rate 0.2 --out n.npy";
    place.refuses(alone, &["--features", "--images"]);
    place.write("words.csv", "label\ncat\ndog\n");
    let words = "noise --labels words.csv --kind symmetric --rate 0.2 --out n.npy";
    place.refuses(words, &["words.csv", "class numbers", "--features"]);
    place.write("far.csv", "label\n0\n4000000000\n");
    let far = "noise --labels far.csv --kind symmetric --rate 0.2 --out n.npy";
    place.refuses(far, &["far.csv", "4000000000", "from 0"]);
}

#[cfg(unix)]
#[test]
fn a_run_at_work_is_not_touched_by_a_second_process() {
    let place = Place::with_features();
    let command = format!(
        "train features-full {FILES} --set schedule.epochs=5000 \
         --set head.samples=200 -q --out run"
    );
    let mut first = place.start(&command);
    first.wait_until(|| place.lines("run/metrics.jsonl") >= 2);
    for command in ["resume run", "eval run"] {
        place.refuses(command, &["run is in use by process", "wait"]);
    }
    assert!(first.kill(), "the first process ended by itself");
}

#[test]
fn arguments_that_the_program_does_not_have_end_with_code_2() {
    let place = Place::with_features();
    for (command, words) in [
        ("train features-full --sed 3 --out run", vec!["--sed", "--seed"]),
        ("train features-full --seed -3 --out run", vec!["-3"]),
        ("train features-full --seed 1.5 --out run", vec!["--seed"]),
        ("train features-full --threads 0 --out run", vec!["--threads"]),
        ("resume", vec!["<DIR>"]),
        ("predict run", vec!["<FILES>"]),
        ("eval run --weights first", vec!["best", "last"]),
        ("eval run --samples 0", vec!["--samples"]),
        ("noise --kind wild --out n.npy", vec!["symmetric", "instance"]),
        ("tune features-full --out run --temperatures warm", vec!["--temperatures", "warm"]),
    ] {
        let ended = place.run(command);
        assert_eq!(ended.code, Some(2), "{command}: {}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{command}: {word:?} is not in {}", ended.stderr);
        }
    }
    place.refuses("train --out run", &["no recipe", "aleator recipes", "--data"]);
    place.refuses("recipes show nope", &["nope", "presets"]);
}
