//! Damaged records of runs, groups and audits, and damaged recipes, given to the program: it ends
//! with an answer or a message, never by a panic or a signal.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::fuzz::{Case, Form, Seed, fuzz_test};
use crate::support::{ADAM, FILES, Place, SMALL, Tree, npy_f32, npy_i64};

/// A command, and what it finds.
#[derive(Clone, Copy)]
enum On {
    /// Everything as it was, but for the damage.
    Finished(&'static str),
    /// Without the files that are written last, so that there is something to do.
    Unfinished(&'static str),
}
use On::{Finished, Unfinished};

const LAST_FILES: [&str; 3] =
    ["run/evaluation.json", "group/seed-4/evaluation.json", "audit/audit.json"];

/// A place with finished work, made once in a process, and how it was.
struct Work {
    place: Place,
    tree: Tree,
}

impl Work {
    fn new(place: Place) -> Self {
        let tree = Tree::of(&place);
        Self { place, tree }
    }

    /// Seeds from its files, of which each has a name.
    fn seeds(&self, files: &[(&str, Form)]) -> Vec<Seed> {
        let seed = |(name, form): &(&str, Form)| Seed::new(*name, *form, self.place.read(name));
        files.iter().map(seed).collect()
    }

    /// Puts a damaged file in its place, and runs one of the commands on it.
    fn try_one_of(&self, case: &Case, commands: &[On]) {
        self.tree.restore(&self.place);
        self.place.write(case.name, &case.bytes);
        if case.name.contains("/checkpoints/") {
            hash_again(self.place.path(case.name).parent().expect("a checkpoint"), case.name);
        }
        // Seeds go round with the numbers, so that commands must not.
        let command = match commands[(case.number as usize / 7) % commands.len()] {
            Finished(command) => command,
            Unfinished(command) => {
                for last in LAST_FILES {
                    // Places have different ones.
                    let _ = fs::remove_file(self.place.path(last));
                }
                command
            }
        };
        let ended = self.place.run(&format!("{command} --threads 1"));
        let what = format!("{} of {command}: {}", case.name, ended.stderr);
        assert!(matches!(ended.code, Some(0..=2)), "exit code {:?}, {what}", ended.code);
        assert!(!ended.stderr.contains("panicked"), "{what}");
    }
}

/// Makes the manifest of a checkpoint say what is there now, so that the damage gets past it.
fn hash_again(checkpoint: &Path, name: &str) {
    if name.ends_with("manifest.json") {
        return;
    }
    let mut files = serde_json::Map::new();
    for entry in fs::read_dir(checkpoint).expect("a checkpoint") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name != "manifest.json" {
            let bytes = fs::read(&path).expect("a file");
            let hash = blake3::hash(&bytes).to_hex().to_string();
            files.insert(name, json!({ "bytes": bytes.len(), "blake3": hash }));
        }
    }
    let manifest = json!({ "format": 1, "files": files });
    fs::write(checkpoint.join("manifest.json"), manifest.to_string()).expect("a manifest");
}

/// A run, and the runs of two seeds.
fn runs() -> &'static Work {
    static WORK: OnceLock<Work> = OnceLock::new();
    WORK.get_or_init(|| {
        let place = Place::with_features();
        let settings = format!(
            "{FILES} {SMALL} {ADAM} --set head.rank=2 --set schedule.epochs=2 \
             --set training.batch=40 --set training.ema=0.9 --set training.min_steps="
        );
        place.succeeds(&format!("train features-full {settings} --seed 3 --calibrate --out run"));
        let sums = "--set evaluation.loadings_mib=0";
        place.succeeds(&format!(
            "train features-full {settings} {sums} --set seeds=[3,4] --out group"
        ));
        let chosen = json!({ "normalize": "per-feature", "mean": 1e-3,
            "noise": { "diagonal": 1e-3, "loadings": 1e-2, "rank": 2 } });
        let mut trial = chosen.clone();
        trial["nll"] = Value::from(1.25);
        let tuning =
            json!({ "trained_on": 100, "folds": 3, "trials": [trial, trial], "chosen": chosen });
        place.write("run/tuning.json", tuning.to_string());
        let recipe = place.read("run/recipe.toml");
        place.write("run/untuned.toml", recipe);
        Work::new(place)
    })
}

const RUN: [On; 16] = [
    Finished("report run --out page.html"),
    Unfinished("resume run"),
    Finished("predict run tx.npy --out p.csv"),
    Finished("eval run"),
    Finished("analyse run"),
    Finished("compare run group"),
    Finished("audit run --folds 2 --out audited"),
    Finished("ensemble run group/seed-4 --out both"),
    Finished("resume run"),
    Finished("predict run tx.npy --top 2 --true"),
    Finished("eval run --calibrate"),
    Unfinished("report run --out page.html"),
    Finished("analyse run --pair 0 1"),
    Finished("theory temperature run --examples 3 --samples 8 --keys 2"),
    Finished("theory expansion run --out figures"),
    Finished("eval run --sampling-free"),
];

fn run_seeds() -> Vec<Seed> {
    runs().seeds(&[
        ("run/run.json", Form::Json),
        ("run/recipe.toml", Form::Toml),
        ("run/evaluation.json", Form::Json),
        ("run/examples.csv", Form::Table(',')),
        ("run/metrics.jsonl", Form::JsonLines),
        ("run/tuning.json", Form::Json),
        ("run/untuned.toml", Form::Toml),
        ("run/predictions/test.safetensors", Form::Safetensors),
        ("run/predictions/validation.safetensors", Form::Safetensors),
        ("run/run.json", Form::Json),
        ("run/tensorboard/events.out.tfevents.0.aleator", Form::Bytes),
    ])
}

fuzz_test!(damaged_runs, 130, run_seeds(), |case| runs().try_one_of(case, &RUN));

fn checkpoint_seeds() -> Vec<Seed> {
    let newest = crate::support::last_checkpoint(&runs().place.path("run"));
    let newest = newest.file_name().expect("a step").to_string_lossy().into_owned();
    let name = |file: &str| format!("run/checkpoints/{newest}/{file}");
    let names = [
        (name("state.json"), Form::Json),
        (name("manifest.json"), Form::Json),
        (name("model.safetensors"), Form::Safetensors),
        (name("average.safetensors"), Form::Safetensors),
        (name("optimizer.safetensors"), Form::Safetensors),
    ];
    let files: Vec<(&str, Form)> =
        names.iter().map(|(name, form)| (name.as_str(), *form)).collect();
    runs().seeds(&files)
}

const CHECKPOINT: [On; 4] = [
    Unfinished("resume run"),
    Finished("eval run"),
    Finished("predict run tx.npy --out p.csv"),
    Finished("resume run"),
];

fuzz_test!(damaged_checkpoints, 50, checkpoint_seeds(), |case| {
    runs().try_one_of(case, &CHECKPOINT);
});

const GROUP: [On; 9] = [
    Finished("analyse group/seed-4 --against run"),
    Finished("analyse group/seed-4 --pair 0 1"),
    Finished("resume group"),
    Finished("report group --out page.html"),
    Unfinished("resume group"),
    Finished("compare group"),
    Finished("predict group tx.npy --out p.csv"),
    Finished("analyse group"),
    Finished("ensemble group --out all"),
];

fn group_seeds() -> Vec<Seed> {
    runs().seeds(&[
        ("group/group.json", Form::Json),
        ("group/ensemble/ensemble.json", Form::Json),
        ("group/ensemble/run.json", Form::Json),
        ("group/ensemble/evaluation.json", Form::Json),
        ("group/seed-4/run.json", Form::Json),
        ("group/seed-4/predictions/test.covariance.safetensors", Form::Safetensors),
    ])
}

fuzz_test!(damaged_groups, 60, group_seeds(), |case| runs().try_one_of(case, &GROUP));

/// An audit with its review.
fn audit() -> &'static Work {
    static WORK: OnceLock<Work> = OnceLock::new();
    WORK.get_or_init(|| {
        let place = Place::with_features();
        place.succeeds(
            "audit features-audit --set data.train.features=tx.npy \
             --set data.train.labels=ty.npy -q --out audit",
        );
        place.succeeds("review audit --accept 0.6");
        let journal = String::from_utf8(place.read("audit/decisions.jsonl")).expect("text");
        let issues = String::from_utf8(place.read("audit/issues.csv")).expect("text");
        let cells: Vec<&str> = issues.lines().nth(1).expect("an issue").split(',').collect();
        let line = json!({ "id": cells[0], "decision": "keep", "label": cells[2] });
        place.write("audit/decisions.jsonl", format!("{journal}{line}\n"));
        Work::new(place)
    })
}

const AUDIT: [On; 6] = [
    Finished("report audit --out page.html"),
    Finished("review audit --export"),
    Finished("review audit --accept 0.7"),
    Finished("resume audit"),
    Finished("report audit"),
    Unfinished("report audit --out page.html"),
];

fn audit_seeds() -> Vec<Seed> {
    audit().seeds(&[
        ("audit/audit.json", Form::Json),
        ("audit/issues.csv", Form::Table(',')),
        ("audit/decisions.jsonl", Form::JsonLines),
        ("audit/review.json", Form::Json),
        ("audit/neighbours.json", Form::Json),
        ("audit/examples.csv", Form::Table(',')),
        ("audit/classes.csv", Form::Table(',')),
        ("audit/pairs.csv", Form::Table(',')),
        ("audit/near_duplicates.csv", Form::Table(',')),
        ("audit/outliers.csv", Form::Table(',')),
        ("audit/ambiguous_examples.csv", Form::Table(',')),
        ("audit/group.json", Form::Json),
        ("audit/recipe.toml", Form::Toml),
    ])
}

fuzz_test!(damaged_audits, 65, audit_seeds(), |case| audit().try_one_of(case, &AUDIT));

/// Every preset and what a user would write.
fn recipe_seeds() -> Vec<Seed> {
    let own = "base = \"features-full\"\nseeds = [0, 1]\n[data]\ntrain.features = \"x.npy\"\n\
               train.labels = \"y.npy\"\n[head]\nrank = 3\ntemperature = 0.5\n";
    let mut seeds = vec![Seed::new("recipe.toml", Form::Toml, own)];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("recipes")
        .map(|entry| entry.expect("a recipe").path())
        .collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.is_file()) {
        seeds.push(Seed::new("recipe.toml", Form::Toml, fs::read(path).expect("a recipe")));
    }
    seeds
}

fuzz_test!(damaged_recipes, 3000, recipe_seeds(), |case| {
    let path = case.write();
    if let Ok(resolved) = aleator_run::load(path.to_str().expect("UTF-8"), &[], None) {
        // What is accepted can be written, and read again to the same.
        let again = path.with_file_name("again.toml");
        fs::write(&again, resolved.recipe.to_toml()).expect("a file");
        let again = aleator_run::load(again.to_str().expect("UTF-8"), &[], None);
        assert_eq!(again.expect("what is written").recipe, resolved.recipe);
    }
    let _ = aleator_run::load_sweep(&path, &[]);
});

/// Arrays that another model made, whose names, ids and labels are tables.
fn probabilities() -> &'static Work {
    static WORK: OnceLock<Work> = OnceLock::new();
    WORK.get_or_init(|| {
        let place = Place::empty();
        let row =
            |example: usize| (0..3).map(move |class| if class == example % 3 { 0.8 } else { 0.1 });
        place.write("p.npy", npy_f32(&[30, 3], (0..30).flat_map(row).collect()));
        place.write("y.npy", npy_i64(&[30], (0..30).map(|at| (at + at / 29) % 3).collect()));
        place.write("names.txt", "ant\nbee\ncat\n");
        let ids: String = (0..30).map(|example| format!("photo-{example}\n")).collect();
        place.write("ids.txt", ids);
        let votes: String = (0..30)
            .map(|at| format!("{at},ann,{}\n{at},bob,{}\n", at % 3, (at + at / 20) % 3))
            .collect();
        place.write("votes.csv", format!("example,annotator,label\n{votes}"));
        Work::new(place)
    })
}

const ARRAYS: [On; 2] = [
    Finished(
        "audit --probabilities p.npy --labels y.npy --names names.txt --ids ids.txt -q --out audit",
    ),
    Finished("audit --probabilities p.npy --labels votes.csv --names names.txt -q --out audit"),
];

fn array_seeds() -> Vec<Seed> {
    probabilities().seeds(&[
        ("p.npy", Form::Bytes),
        ("y.npy", Form::Bytes),
        ("names.txt", Form::Table(' ')),
        ("ids.txt", Form::Table(' ')),
        ("votes.csv", Form::Table(',')),
    ])
}

fuzz_test!(damaged_probabilities, 30, array_seeds(), |case| {
    probabilities().try_one_of(case, &ARRAYS);
});
