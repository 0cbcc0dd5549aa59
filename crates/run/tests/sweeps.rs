//! Sweeps: which runs they make, what these are called, and what is refused.

use std::fs;
use std::path::Path;

use aleator_run::{Noise, RecipeError, Resolved, load, load_sweep};

fn sweep_with(text: &str, sets: &[&str]) -> Result<Vec<Resolved>, RecipeError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.toml");
    fs::write(&path, text).unwrap();
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    load_sweep(&path, &sets)
}

fn sweep(text: &str) -> Result<Vec<Resolved>, RecipeError> {
    sweep_with(text, &[])
}

fn names(points: &[Resolved]) -> Vec<&str> {
    points.iter().map(|point| point.name.as_str()).collect()
}

#[track_caller]
fn refused(result: Result<Vec<Resolved>, RecipeError>, words: &[&str]) {
    let message = result.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word:?}");
    }
}

#[test]
fn every_combination_is_a_run_with_a_name_of_its_own() {
    let points = sweep(
        "base = \"digits-full\"\n[training]\nbatch = 64\n[axes]\n\"head.temperature\" = [0.5, 1]\n\
         \"head.rank\" = [2, 6, 9]\n",
    )
    .unwrap();
    assert_eq!(
        names(&points),
        [
            "head.temperature=0.5,head.rank=2",
            "head.temperature=0.5,head.rank=6",
            "head.temperature=0.5,head.rank=9",
            "head.temperature=1,head.rank=2",
            "head.temperature=1,head.rank=6",
            "head.temperature=1,head.rank=9",
        ]
    );
    let last = &points[5];
    assert_eq!(last.recipe.head.noise, Noise::LowRank { rank: 9 });
    assert_eq!(last.recipe.training.batch, 64);
    assert_eq!(last.name, points[5].name);
}

#[test]
fn the_example_of_the_documents_takes_every_method_that_has_a_preset() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/methods.toml");
    let sets = ["data.train.features=x.npy", "data.train.labels=y.npy"].map(String::from);
    let points = load_sweep(Path::new(path), &sets).unwrap();
    let all = aleator_run::presets().into_iter();
    let on_features = all.filter(|preset| preset.name.starts_with("features-"));
    // Some need examples whose true class is known.
    let others = ["features-audit", "features-mentornet-learned", "features-cleannet"];
    let with_method = on_features
        .filter(|preset| preset.text.contains("\nmethod = ") && !others.contains(&preset.name));
    let mut expected: Vec<String> = with_method.map(|preset| preset.name.to_string()).collect();
    let mut found: Vec<String> =
        points.iter().map(|point| point.name.trim_start_matches("base=").to_string()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(points.iter().all(|point| point.recipe.seeds == [0, 1, 2, 3, 4]));
}

#[test]
fn the_base_can_be_an_axis() {
    let points =
        sweep("[axes]\nbase = [\"digits-none\", \"digits-diagonal\"]\nseed = [0, 1]\n").unwrap();
    assert_eq!(
        names(&points),
        [
            "base=digits-none,seed=0",
            "base=digits-none,seed=1",
            "base=digits-diagonal,seed=0",
            "base=digits-diagonal,seed=1",
        ]
    );
    assert_eq!(points[2].recipe.head.noise, Noise::Diagonal);
    assert_eq!(points[3].recipe.seeds, [1]);
}

#[test]
fn keys_need_no_quotes_and_values_may_be_lists_tables_and_paths() {
    let points = sweep(
        "base = \"features-full\"\n[data.train]\nlabels = \"y.npy\"\n[network]\n\
         kind = \"mlp\"\n[axes]\nnetwork.hidden = [[64], [64, 64]]\n\
         head.temperature = [{ low = 0.3, high = 3.0 }]\n\
         data.train.features = [\"my data/a:b.npy\"]\n",
    );
    let points = points.unwrap();
    assert_eq!(
        names(&points),
        [
            "network.hidden=64,head.temperature=high=3.0+low=0.3,data.train.features=my-data-a-b.npy",
            "network.hidden=64+64,head.temperature=high=3.0+low=0.3,\
         data.train.features=my-data-a-b.npy",
        ]
    );
}

#[test]
fn a_table_sets_its_keys_together_and_leaves_the_others() {
    let points = sweep(
        "base = \"digits-diagonal\"\n[head]\nsamples = 7\n[axes]\n\
         head = [{ noise = \"diagonal\" }, { noise = \"full\", rank = 4 }]\n",
    )
    .unwrap();
    assert_eq!(names(&points), ["head=noise=diagonal", "head=noise=full+rank=4"]);
    assert_eq!(points[0].recipe.head.noise, Noise::Diagonal);
    assert_eq!(points[1].recipe.head.noise, Noise::LowRank { rank: 4 });
    assert!(points.iter().all(|point| point.recipe.head.samples == 7));
}

#[test]
fn long_names_are_cut_and_stay_apart() {
    let long = "x".repeat(300);
    let text = format!(
        "base = \"features-full\"\n[data.train]\nlabels = \"y.npy\"\n[axes]\n\
         data.train.features = [\"{long}1\", \"{long}2\"]\n"
    );
    let points = sweep(&text).unwrap();
    let names = names(&points);
    assert!(names.iter().all(|name| name.len() < 200), "{names:?}");
    assert_ne!(names[0], names[1]);
}

#[test]
fn settings_hold_for_every_run_unless_an_axis_varies_them() {
    let text = "base = \"digits-full\"\n[axes]\n\"head.rank\" = [2, 6]\n";
    let points = sweep_with(text, &["training.batch=32", "seed=5"]).unwrap();
    assert!(points.iter().all(|point| point.recipe.training.batch == 32));
    assert!(points.iter().all(|point| point.recipe.seeds == [5]));
    for set in ["head.rank=3", "head=", "head={rank=3}"] {
        let refusal = sweep_with(text, &[set]);
        refused(refusal, &[&format!("--set {set}: "), "the sweep varies head.rank"]);
    }
    let text = "base = \"digits-full\"\n[axes]\nseed = [2, 6]\n";
    refused(sweep_with(text, &["seeds=[1]"]), &["--set seeds=[1]: ", "the sweep varies seed"]);
}

#[test]
fn sweeps_without_values_are_refused() {
    let message = load_sweep(Path::new("nowhere.toml"), &[]).unwrap_err().to_string();
    assert!(message.contains("cannot read nowhere.toml"), "{message}");
    refused(sweep("base = \"digits-full\"\n"), &["ranks.toml", "a sweep needs a section [axes]"]);
    refused(sweep("base = \"digits-full\"\n[axes]\n"), &["at least one key"]);
    refused(sweep("axes = 3\nbase = \"digits-full\"\n"), &["axes must be a section"]);
    let empty = "base = \"digits-full\"\n[axes]\n\"head.rank\" = []\n";
    refused(sweep(empty), &["ranks.toml:3", "axes.head.rank must be a list", "found a list of 0"]);
    let single = "base = \"digits-full\"\n[axes]\n\"head.rank\" = 6\n";
    refused(sweep(single), &["axes.head.rank must be a list", "found the integer 6"]);
}

#[test]
fn a_value_that_makes_no_recipe_is_named_with_its_line() {
    let zero = "base = \"digits-full\"\n[axes]\n\"head.rank\" = [\n  6,\n  0,\n]\n";
    refused(sweep(zero), &["ranks.toml:5: head.rank must be"]);
    let unknown = "base = \"digits-full\"\n[axes]\n\"head.rnak\" = [6]\n";
    refused(sweep(unknown), &["ranks.toml:3: unknown key head.rnak; did you mean head.rank?"]);
    let below = "base = \"digits-full\"\nseed = 1\n[axes]\n\"seed.x\" = [6]\n";
    refused(sweep(below), &["ranks.toml:4: seed must be an integer, found a section"]);
}

#[test]
fn runs_of_the_same_name_are_refused() {
    for values in ["[6, 6]", "[6, 7, 6]"] {
        let text = format!("base = \"digits-full\"\n[axes]\n\"head.rank\" = {values}\n");
        refused(sweep(&text), &["two runs have the name head.rank=6"]);
    }
    let paths = "base = \"features-full\"\n[data.train]\nlabels = \"y\"\n[axes]\n\
                 data.train.features = [\"a/B\", \"a:b\"]\n";
    refused(sweep(paths), &["two runs have the name data.train.features=a-b"]);
}

#[test]
fn axes_that_set_the_same_key_are_refused() {
    let text = "base = \"digits-full\"\n[axes]\n\"head\" = [{ rank = 6 }]\n\"head.rank\" = [6]\n";
    refused(sweep(text), &["the axes head (", "and head.rank set the same key"]);
    let text = "base = \"digits-full\"\n[axes]\n\"head.temperature\" = [1.0]\n\
                \"head.temperature.low\" = [0.5]\n";
    refused(sweep(text), &["head.temperature (", "set the same key"]);
    let text = "base = \"digits-full\"\n[axes]\nseed = [1]\nseeds = [[2]]\n";
    refused(sweep(text), &["set the same key"]);
}

#[test]
fn too_many_runs_are_refused_before_they_are_made() {
    let values: Vec<String> = (1..=200).map(|value| value.to_string()).collect();
    let values = values.join(", ");
    let text = format!(
        "base = \"digits-full\"\n[axes]\n\"head.rank\" = [{values}]\nseed = [{values}]\n\
         \"training.batch\" = [{values}]\n"
    );
    refused(sweep(&text), &["200 × 200 × 200 runs", "at most 10000"]);
}

#[test]
fn a_sweep_is_no_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ranks.toml");
    fs::write(&path, "base = \"digits-full\"\n[axes]\nseed = [1]\n").unwrap();
    let message = load(path.to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("ranks.toml: this is a sweep"), "{message}");
}
