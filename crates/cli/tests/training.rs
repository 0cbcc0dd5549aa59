//! Training, and everything that is done with a trained run, from the command line.

use std::fs;
use std::process::Stdio;

use crate::support::{FILES, Outcome, Place, SMALL, Toy, ppm};
use aleator::run::Predictions;
use serde_json::Value;

/// A finished run with full noise in `run`.
fn trained() -> Place {
    let place = Place::with_features();
    place.succeeds(&format!("train features-full {FILES} --set head.rank=2 {SMALL} --out run"));
    place
}

fn number(value: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(value, |value, key| &value[key]);
    found.as_f64().unwrap_or_else(|| panic!("{path} is {found}"))
}

#[test]
fn embeddings_train_with_every_noise_model_as_the_presets_stand() {
    let place = Place::with_features();
    // The presets are for more examples than other tests need.
    Toy { examples: 1500, seed: 1 }.write_single(&place, "x.npy", "y.npy");
    for noise in ["none", "diagonal", "full", "shared"] {
        let rank = if noise == "diagonal" { "" } else { "--set head.rank=6" };
        let ended = place.succeeds(&format!(
            "train features-{noise} --set data.train.features=x.npy --set data.train.labels=y.npy \
             --set data.test.features=tx.npy --set data.test.labels=ty.npy {rank} --seed 0 \
             --out {noise}"
        ));
        assert!(ended.stdout.contains("top-1") && ended.stdout.contains(noise), "{}", ended.stdout);
        let evaluation = place.json(&format!("{noise}/evaluation.json"));
        assert_eq!(number(&evaluation, "test.examples"), 60.0);
        let (top1, ece) = (number(&evaluation, "test.top1"), number(&evaluation, "test.ece"));
        // The clusters overlap little, and one label in ten is wrong.
        assert!(top1 > 0.6 && top1 <= 1.0, "{noise}: {top1}");
        assert!((0.0..=1.0).contains(&ece), "{noise}: {ece}");
        // A guess has ln 4 = 1.39.
        let nll = number(&evaluation, "test.nll");
        assert!(nll > 0.0 && nll < 1.3, "{noise}: {nll}");
        assert!(evaluation["test"].get("gap").is_none(), "{noise}");
        let info = place.json(&format!("{noise}/run.json"));
        assert_eq!(info["noise"]["kind"], noise);
        assert_eq!(info["class_names"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn sets_of_classes_train_with_every_noise_model_as_the_presets_stand() {
    let place = Place::with_multi_hot();
    for noise in ["none", "diagonal", "full", "shared"] {
        place.succeeds(&format!(
            "train multilabel-{noise} {FILES} --set schedule.epochs=12 --set schedule.warm_up=1 \
             --seed 0 --out {noise}"
        ));
        let evaluation = place.json(&format!("{noise}/evaluation.json"));
        // By chance it is the share of classes that are on: 0.32.
        let gap = number(&evaluation, "test.gap");
        assert!(gap > 0.5 && gap <= 1.0, "{noise}: {gap}");
        assert!(number(&evaluation, "test.nll") > 0.0);
        assert!(number(&evaluation, "test.ece") >= 0.0);
        let predictions =
            Predictions::load(&place.path(&format!("{noise}/predictions/test.safetensors")));
        assert!(predictions.unwrap().log_probs_off.is_some());
    }
}

#[test]
fn sets_of_classes_are_predicted_as_their_likeliest_classes() {
    let place = Place::with_multi_hot();
    place.succeeds(&format!(
        "train multilabel-full {FILES} --set schedule.epochs=12 --set schedule.warm_up=1 -q \
         --out run"
    ));
    let lines = place.succeeds("predict run tx.npy --json").stdout;
    let saved = Predictions::load(&place.path("run/predictions/test.safetensors")).unwrap();
    for (line, row) in lines.lines().zip(saved.log_probs.chunks_exact(4)) {
        let value: Value = serde_json::from_str(line).unwrap();
        let classes = value["classes"].as_array().unwrap();
        let named: Vec<&str> = classes.iter().map(|it| it["class"].as_str().unwrap()).collect();
        let mut ranked: Vec<usize> = (0..4).collect();
        ranked.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        // All that are likelier on than off, and at least three.
        let shown = row.iter().filter(|log_p| log_p.exp() > 0.5).count().max(3);
        let expected: Vec<String> = ranked.iter().take(shown).map(usize::to_string).collect();
        assert_eq!(named, expected, "{line}");
        assert_eq!(value["probabilities"].as_object().unwrap().len(), 4, "{line}");
        assert!(value.get("true_class").is_none(), "{line}");
        // Four coins have at most 4 ln 2.
        assert!((0.0..=2.8).contains(&number(&value, "entropy")), "{line}");
    }
    assert_eq!(place.succeeds("predict run tx.npy").stdout.lines().count(), 61);
}

#[test]
fn data_alone_choose_the_recipe() {
    let place = Place::with_features();
    let ended = place.succeeds(&format!("train --data x.npy {SMALL} --out run").replace(" -q", ""));
    assert!(ended.stderr.contains("x.npy") && ended.stderr.contains("y.npy"), "{}", ended.stderr);
    assert_eq!(place.json("run/run.json")["noise"]["kind"], "full");
    assert!(number(&place.json("run/evaluation.json"), "validation.top1") >= 0.0);

    let sets = Place::with_multi_hot();
    sets.succeeds(&format!("train --data x.npy {SMALL} --out run"));
    assert_eq!(sets.json("run/run.json")["link"], "sigmoid");
}

#[test]
fn a_folder_of_images_by_class_trains_and_predicts() {
    let place = Place::empty();
    for number in 0..20 {
        place.write(&format!("images/dark/{number}.ppm"), ppm(8, 10 + number));
        place.write(&format!("images/light/{number}.ppm"), ppm(8, 210 + number));
    }
    let ended = place.succeeds(
        "train --data images --set schedule.epochs=2 --set schedule.warm_up=0 \
         --set network.channels=[4] --set head.samples=16 --set evaluation.samples=32 --set training.batch=8 --out run",
    );
    assert!(ended.stderr.contains("2 folders"), "{}", ended.stderr);
    let info = place.json("run/run.json");
    assert_eq!(info["class_names"], serde_json::json!(["dark", "light"]));
    let ended = place.succeeds("predict run images --json");
    let first: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["id"], "dark/0.ppm");
    assert_eq!(ended.stdout.lines().count(), 40);
}

#[test]
fn a_run_without_out_goes_to_a_free_name_and_into_a_folder_that_is_empty() {
    let place = Place::with_features();
    let command = format!("train features-none {FILES} {SMALL} --seed 4");
    place.succeeds(&command);
    place.succeeds(&command);
    for run in ["runs/features-none-seed4", "runs/features-none-seed4-2"] {
        assert!(place.path(run).join("evaluation.json").exists(), "{run}");
    }
    fs::create_dir(place.path("free")).unwrap();
    place.succeeds(&(command + " --out free"));
}

#[test]
fn the_recipe_of_a_run_repeats_it() {
    let place = trained();
    place.succeeds("train run/recipe.toml -q --out again");
    Outcome::of(&place.path("again")).assert_same(&Outcome::of(&place.path("run")), "again");
}

#[test]
fn predictions_are_a_table_or_lines_of_json() {
    let place = trained();
    let table = place.succeeds("predict run tx.npy").stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 61);
    assert!(rows.iter().all(|row| row.len() == 8), "{table}");
    assert_eq!(rows[0][..3], ["id", "class", "probability"]);

    let lines = place.succeeds("predict run tx.npy --json").stdout;
    assert_eq!(lines.lines().count(), 60);
    for (at, (line, row)) in lines.lines().zip(&rows[1..]).enumerate() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["id"], at.to_string());
        let classes = value["classes"].as_array().unwrap();
        assert_eq!(classes.len(), 1);
        assert_eq!(classes[0]["class"], row[1]);
        let probability = number(&classes[0], "probability");
        // The most probable of four.
        assert!((0.25..=1.0).contains(&probability), "{line}");
        assert!(number(&value, "entropy") >= 0.0, "{line}");
        let confused = value["confused_with"].as_array().unwrap().iter();
        assert!(confused.clone().all(|other| other["class"] != classes[0]["class"]), "{line}");
        assert!(confused.clone().all(|it| (0.0..=1.0).contains(&number(it, "flip_probability"))));
    }
}

#[test]
fn predictions_agree_with_those_of_the_evaluation() {
    let place = trained();
    let lines = place.succeeds("predict run tx.npy --json").stdout;
    let saved = Predictions::load(&place.path("run/predictions/test.safetensors")).unwrap();
    for (line, row) in lines.lines().zip(saved.log_probs.chunks_exact(4)) {
        let value: Value = serde_json::from_str(line).unwrap();
        let class: usize = value["classes"][0]["class"].as_str().unwrap().parse().unwrap();
        let expected = (row[class] as f64).exp();
        // The same samples; only the order of sums may differ.
        assert!((number(&value["classes"][0], "probability") - expected).abs() < 1e-5, "{line}");
    }
}

#[test]
fn a_run_that_was_moved_predicts_the_same() {
    let place = trained();
    let before = place.succeeds("predict run tx.npy --json").stdout;
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::rename(place.path("run"), place.path("elsewhere/moved")).unwrap();
    assert_eq!(place.succeeds("predict elsewhere/moved tx.npy --json").stdout, before);
    let mut from_inside = place.command("predict . ../../tx.npy --json");
    let output = from_inside.current_dir(place.path("elsewhere/moved")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), before);
    place.succeeds("eval elsewhere/moved -q");
    // Where the run is used, the data that it was trained on need not be.
    fs::remove_file(place.path("x.npy")).unwrap();
    fs::remove_file(place.path("y.npy")).unwrap();
    assert_eq!(place.succeeds("predict elsewhere/moved tx.npy --json").stdout, before);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = trained();
    let train = format!("train features-none {FILES} --set seeds=[0,1] {SMALL} --out seeds");
    let tune =
        format!("tune features-full {FILES} {SMALL} --temperatures 1 --ranks 1,2 --out tuned");
    let noise = "noise --labels y.npy --features x.npy --kind symmetric --rate 0.2 --out n.npy";
    let commands = [
        "predict run x.npy",
        "predict run x.npy --json",
        "eval run -q",
        "eval run --json -q",
        "recipes",
        "recipes show digits-full",
        "ensemble run run --out e",
        noise,
        &train,
        &tune,
    ];
    for command in commands {
        let mut child =
            place.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.as_mut().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{command}: {stderr}");
        assert_eq!(stderr, "", "{command}");
    }
    // What is written to files does not depend on who reads along.
    for file in ["seeds/ensemble/evaluation.json", "tuned/best.toml", "tuned/tune.json"] {
        assert!(place.path(file).exists(), "{file}");
    }
}

#[test]
fn a_run_goes_on_when_nobody_reads_its_progress_any_more() {
    let place = Place::with_features();
    let command = format!("train features-none {FILES} {SMALL} --out run").replace(" -q", "");
    let mut child = place.command(&command).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(place.path("run/evaluation.json").exists());
}

#[test]
fn evaluations_are_repeated_calibrated_and_made_of_the_last_weights() {
    let place = trained();
    let first = place.json("run/evaluation.json");
    let printed: Value =
        serde_json::from_str(&place.succeeds("eval run --json -q").stdout).unwrap();
    assert_eq!(printed, first);
    assert_eq!(place.json("run/evaluation.json"), first);

    place.succeeds("eval run --calibrate -q");
    let evaluation = place.json("run/evaluation.json");
    let calibration = evaluation["calibration"].clone();
    let (before, after) = (number(&calibration, "nll_before"), number(&calibration, "nll_after"));
    assert!(after <= before && number(&calibration, "temperature") > 0.0, "{calibration}");
    let calibrated = number(&evaluation, "validation.calibrated.nll");
    assert!((calibrated - after).abs() < 1e-6, "{calibrated} {after}");
    assert!(calibrated <= number(&evaluation, "validation.nll"));
    assert!(evaluation["test"]["calibrated"]["nll"].is_number());

    let ended = place.succeeds("eval run --weights last --samples 64 --json -q");
    let last: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(last["weights"], "last");
    let steps = fs::read_to_string(place.path("run/metrics.jsonl")).unwrap();
    let line: Value = serde_json::from_str(steps.lines().last().unwrap()).unwrap();
    assert_eq!(last["step"], line["step"]);

    // Predictions are as the last evaluation found the run: calibrated, or not.
    let predicted = || place.succeeds("predict run tx.npy").stdout;
    let plain = predicted();
    place.succeeds("eval run --weights last --calibrate -q");
    assert_ne!(predicted(), plain);
}

/// log of the mean of probabilities.
fn log_mean(members: &[&[f32]]) -> Vec<f64> {
    let mean = |at: usize| {
        members.iter().map(|one| (one[at] as f64).exp()).sum::<f64>() / members.len() as f64
    };
    (0..members[0].len()).map(|at| mean(at).ln()).collect()
}

fn check_ensemble(place: &Place, members: &[&str], ensemble: &str) {
    for split in ["validation", "test"] {
        let load = |run: &str| {
            let path = place.path(&format!("{run}/predictions/{split}.safetensors"));
            Predictions::load(&path).unwrap()
        };
        let all: Vec<Predictions> = members.iter().map(|run| load(run)).collect();
        assert_ne!(all[0].log_probs, all[1].log_probs);
        let expected = log_mean(&all.iter().map(|one| &one.log_probs[..]).collect::<Vec<_>>());
        let found = load(ensemble).log_probs;
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            // A few roundings of f32 at numbers of size 5.
            assert!((*found as f64 - expected).abs() < 1e-5, "{found} {expected}");
        }
    }
    let evaluation = place.json(&format!("{ensemble}/evaluation.json"));
    assert_eq!(evaluation["weights"], "ensemble");
    // The logarithm is concave: the mean's NLL is at most the mean of the NLLs.
    let of = |run: &str| number(&place.json(&format!("{run}/evaluation.json")), "test.nll");
    let mean = members.iter().map(|run| of(run)).sum::<f64>() / members.len() as f64;
    assert!(of(ensemble) <= mean + 1e-9, "{} {mean}", of(ensemble));
}

#[test]
fn an_ensemble_averages_probabilities() {
    let place = Place::with_features();
    for seed in ["0", "1"] {
        let command = format!("train features-full {FILES} {SMALL} --seed {seed} --out s{seed}");
        place.succeeds(&command);
    }
    place.succeeds("ensemble s0 s1 --out both");
    check_ensemble(&place, &["s0", "s1"], "both");
}

#[test]
fn several_seeds_make_members_and_their_ensemble() {
    let place = Place::with_features();
    place.write("mine.toml", "base = \"features-diagonal\"\nseeds = [0, 1]\n");
    let ended = place.succeeds(&format!("train mine.toml {FILES} {SMALL} --out run"));
    assert!(ended.stdout.contains("2 runs") && ended.stdout.contains("ensemble"));
    check_ensemble(&place, &["run/seed-0", "run/seed-1"], "run/ensemble");
    // A member is the run that its seed makes by itself.
    place.succeeds(&format!("train features-diagonal {FILES} {SMALL} --seed 1 --out alone"));
    let alone = place.read("alone/predictions/test.safetensors");
    assert!(place.read("run/seed-1/predictions/test.safetensors") == alone);
    place.succeeds("resume run -q");
}

#[test]
fn a_sweep_takes_a_table_and_the_names_of_its_columns() {
    let place = Place::empty();
    let row = |at: usize| format!("{},{},{}\n", at % 7, (at % 2) * 3 + at % 5, ["a", "b"][at % 2]);
    place.write("t.csv", "p,q,kind\n".to_string() + &(0..60).map(row).collect::<String>());
    place.write("sweep.toml", "base = \"features-none\"\n[axes]\nseed = [0, 1]\n");
    place.succeeds("sweep sweep.toml -q --data t.csv --label kind --set tune=off --out run");
    for run in ["run/seed=0", "run/seed=1"] {
        let recipe = String::from_utf8(place.read(&format!("{run}/recipe.toml"))).unwrap();
        assert!(recipe.contains("t.csv"), "{recipe}");
        assert_eq!(place.json(&format!("{run}/run.json"))["class_names"][1], "b");
    }
    let refused = "sweep sweep.toml --label kind --out other";
    place.refuses(refused, &["--label", "--data PATH, which is not given"]);
}

#[test]
fn a_sweep_runs_every_combination_and_can_be_resumed() {
    let place = Place::with_features();
    place.write(
        "sweep.toml",
        "base = \"features-full\"\n[data.train]\nfeatures = \"x.npy\"\nlabels = \"y.npy\"\n\
         [axes]\n\"head.rank\" = [1, 2]\n\"head.temperature\" = [0.5, 1.0]\n",
    );
    let ended = place.succeeds(&format!("sweep sweep.toml {SMALL} --out run"));
    let mut nlls = vec![];
    for rank in ["1", "2"] {
        for temperature in ["0.5", "1.0"] {
            let name = format!("head.rank={rank},head.temperature={temperature}");
            assert!(ended.stdout.contains(&name), "{}", ended.stdout);
            let run = format!("run/{name}");
            let recipe = String::from_utf8(place.read(&format!("{run}/recipe.toml"))).unwrap();
            assert!(recipe.contains(&format!("rank = {rank}\n")), "{recipe}");
            assert!(recipe.contains(&format!("temperature = {temperature}\n")), "{recipe}");
            nlls.push(number(&place.json(&format!("{run}/evaluation.json")), "validation.nll"));
        }
    }
    nlls.sort_by(f64::total_cmp);
    nlls.dedup();
    assert_eq!(nlls.len(), 4, "every combination is another model");
    let gone = "run/head.rank=2,head.temperature=0.5";
    let before = Outcome::of(&place.path(gone));
    fs::remove_dir_all(place.path(gone)).unwrap();
    place.succeeds("resume run -q");
    Outcome::of(&place.path(gone)).assert_same(&before, "made again");
}

#[test]
fn tuning_writes_a_table_and_the_best_recipe_which_trains() {
    let place = Place::with_features();
    let ended = place.succeeds(&format!(
        "tune features-full {FILES} {SMALL} --temperatures 0.5,1.5 --ranks 1,2 --out tuned"
    ));
    assert!(ended.stdout.contains("best.toml"), "{}", ended.stdout);
    let table = place.json("tuned/tune.json");
    let trials = table.as_array().unwrap();
    assert_eq!(trials.len(), 4);
    let nll = |trial: &Value| number(trial, "validation_nll");
    let best = trials.iter().min_by(|a, b| nll(a).total_cmp(&nll(b))).unwrap();
    place.succeeds("train tuned/best.toml -q --out run");
    let evaluation = place.json("run/evaluation.json");
    assert_eq!(number(&evaluation, "validation.nll"), nll(best));
    let info = place.json("run/run.json");
    assert_eq!(info["noise"]["rank"], best["rank"]);
}

#[test]
fn quiet_training_says_nothing_beside_its_results() {
    let place = Place::with_features();
    let ended = place.succeeds(&format!("train --data x.npy {SMALL} --out run"));
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.contains("written to run"), "{}", ended.stdout);
}

#[test]
fn the_files_of_a_run_have_the_permissions_that_any_file_gets() {
    let place = Place::with_features();
    let ended = place.shell(&format!(
        "umask 022 && \"$ALEATOR\" train features-full {FILES} {SMALL} --out run && \
         find run -type f ! -perm 644"
    ));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("written to run\n"), "{}", ended.stdout);
}

#[test]
fn a_sweep_over_seeds_of_data_at_a_path_is_compared_by_its_settings() {
    let place = Place::with_features();
    place.write(
        "ranks.toml",
        "base = \"features-full\"\n[axes]\n\"head.rank\" = [1, 2]\nseed = [0, 1]\n",
    );
    place.succeeds(&format!("sweep ranks.toml --data x.npy {SMALL} --out ranks"));
    let text = place.succeeds("compare ranks").stdout;
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().skip(1).take(2);
        lines.filter_map(|line| line.split_whitespace().next()).map(String::from).collect()
    };
    assert_eq!(names(&text), ["head.rank=1", "head.rank=2"], "{text}");
    assert!(text.contains("over 2 runs"), "{text}");
}
