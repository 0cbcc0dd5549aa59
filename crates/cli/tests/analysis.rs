//! `aleator analyse` as a user meets it.

use std::fs;

use crate::support::Place;
use serde_json::Value;

/// Trains a preset on the built-in digits, briefly.
fn train(place: &Place, noise: &str, out: &str, more: &str) {
    place.succeeds(&format!(
        "train digits-{noise} --seed 0 --set schedule.epochs=3 --set head.samples=16 \
         --set evaluation.samples=32 {more} -q --out {out}"
    ));
}

fn lines(place: &Place, name: &str) -> Vec<String> {
    String::from_utf8(place.read(name)).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn pairs_examples_and_mistakes_are_told_and_written() {
    let place = Place::empty();
    train(&place, "full", "run", "");
    train(&place, "none", "plain", "");
    let told = place.succeeds("analyse run --against plain --top 5 --out found/digits -q");
    for words in [
        "run: test split, ",
        "noise full, rank 6",
        "Pairs by average covariance, as in the paper",
        "Pairs by centred covariance, in units of τ²",
        "Pairs by correlation",
        "Examples whose prediction is tied most",
        "Against plain",
        "written to found/digits",
    ] {
        assert!(told.stdout.contains(words), "{words:?} is not in\n{}", told.stdout);
    }
    assert_eq!(told.stderr, "");
    let pairs = lines(&place, "found/digits/pairs.csv");
    assert_eq!(pairs.len(), 1 + 3 * 5);
    assert_eq!(
        pairs[0],
        "ranked_by,position,class_a,class_b,covariance,centred_covariance,correlation,\
         flip_a_to_b,flip_b_to_a,relation"
    );
    let analysis = place.json("found/digits/analysis.json");
    let examples = analysis["examples"].as_u64().unwrap() as usize;
    assert_eq!(lines(&place, "found/digits/examples.csv").len(), 1 + 5 * examples);
    let against = &analysis["against"];
    let count = |key: &str| against[key].as_u64().unwrap() as usize;
    let all = ["both_right", "only_this_right", "only_other_right", "both_wrong"].map(count);
    assert_eq!(all.iter().sum::<usize>(), examples);
    assert_eq!(lines(&place, "found/digits/against.csv").len(), 1 + count("only_this_right"));
    assert_eq!(lines(&place, "found/digits/ranks.csv").len(), 1 + 9);

    // The same numbers with one thread, and as JSON on standard output.
    let json = place.succeeds("analyse run --against plain --top 5 --threads 1 --json");
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap(), analysis);
    // Without the other run its files of the time before go; the ties are by another measure.
    place.succeeds("analyse run --split validation --by centred --top 2 --out found/digits -q");
    assert!(!place.path("found/digits/against.csv").exists());
    let analysis = place.json("found/digits/analysis.json");
    assert_eq!((&analysis["split"], &analysis["against"]), (&"validation".into(), &Value::Null));
    assert_eq!(analysis["compared_by"], "centred");
    // A reader that has seen enough is no mistake.
    let piped = place.shell("\"$ALEATOR\" analyse run -q | head -1; exit ${PIPESTATUS[0]}");
    assert_eq!((piped.code, piped.stderr.as_str()), (Some(0), ""));
}

/// Threes and eights are taken for each other, and nothing else is.
#[test]
fn an_injected_confusion_is_the_first_pair() {
    let place = Place::empty();
    place.succeeds(
        "train digits-full --set data.noise= --set data.noise.kind=pairwise \
         --set data.noise.pairs=[[3,8],[8,3]] --set data.noise.rate=0.4 \
         --set data.noise.seed=0 --seed 0 -q --out run",
    );
    let found = place.succeeds("analyse run --json -q");
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    for ranking in ["by_covariance", "by_centred_covariance", "by_correlation"] {
        let first = &found["pairs"][ranking][0];
        let classes = (first["class_a"].as_str(), first["class_b"].as_str());
        assert_eq!(classes, (Some("3"), Some("8")), "{ranking}: {first}");
        assert_eq!(first["relation"], "substitutes", "{ranking}: {first}");
    }
}

#[test]
fn diagonal_noise_is_explained() {
    let place = Place::empty();
    train(&place, "diagonal", "run", "");
    let told = place.succeeds("analyse run -q --out found").stdout;
    assert!(told.contains("no two classes share any"), "{told}");
    assert!(!told.contains("as in the paper") && told.contains("unrelated"), "{told}");
    assert_eq!(lines(&place, "found/examples.csv").len(), 1);
    place.refuses("analyse run --against run", &["\"diagonal\"", "head.noise"]);
}

#[test]
fn shared_noise_is_analysed() {
    let place = Place::empty();
    train(&place, "shared", "run", "");
    let told = place.succeeds("analyse run -q --by correlation").stdout;
    assert!(told.contains("noise shared, rank") && told.contains("by correlation"), "{told}");
}

#[test]
fn noise_on_the_features_is_analysed_as_noise_on_the_classes() {
    let place = Place::empty();
    train(&place, "full", "run", "--set head.noise=xl");
    let told = place.succeeds("analyse run -q --by correlation").stdout;
    assert!(told.contains("noise on the features, rank 6"), "{told}");
    assert!(told.contains("substitutes"), "{told}");
    place.succeeds("eval run --sampling-free -q");
}

#[test]
fn runs_that_have_nothing_to_analyse_say_so() {
    let place = Place::empty();
    train(&place, "none", "plain", "");
    place.refuses("analyse plain", &["plain has no covariance", "head.noise = \"none\""]);
    place.refuses("analyse nowhere", &["nowhere does not exist"]);
    place.write("notes/readme.txt", "x");
    place.refuses("analyse notes", &["notes is not a run directory"]);
    let none = place.run("analyse plain --top 0");
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("from 1 to 10000"), "{}", none.stderr);
}

/// Without stored loadings the evaluation has left what all tables need: those of the paper's
/// Tables 4 and 5 and of its Figure 2.
#[test]
fn loadings_need_not_be_kept_for_the_tables_of_the_paper() {
    let place = Place::empty();
    train(&place, "full", "run", "");
    train(&place, "none", "plain", "");
    let analyse = |more: &str| -> Value {
        let command = format!("analyse run --against plain --top 9 --json -q {more}");
        serde_json::from_str(&place.succeeds(&command).stdout).unwrap()
    };
    let stored = analyse("");
    let pair = place.succeeds("analyse run --pair 3 8 -q").stdout;
    assert!(pair.contains("Examples in which they are tied most"), "{pair}");
    let recipe = String::from_utf8(place.read("run/recipe.toml")).unwrap();
    let keep = |line: &str| {
        place.write("run/recipe.toml", recipe.replace("loadings_mib = 256", line));
        place.succeeds("eval run -q");
    };
    keep("loadings_mib = 0");
    let sums = "run/predictions/test.covariance.safetensors";
    let whole = place.read(sums);
    let summed = analyse("");
    // The averages have the same bits, the numbers of examples those of 32-bit floats.
    assert_eq!(summed["pairs"], stored["pairs"]);
    assert_eq!(summed["against"]["ranks"], stored["against"]["ranks"]);
    assert!(stored["against"]["only_this_right"].as_u64().unwrap() > 0);
    for list in [&["examples_most_tied"][..], &["against", "largest_covariance"]] {
        let [stored, summed] = [&stored, &summed]
            .map(|found| list.iter().fold(found, |found, key| &found[*key]).as_array().unwrap());
        assert_eq!(stored.len(), summed.len());
        for (stored, summed) in stored.iter().zip(summed) {
            assert_eq!((&stored["id"], &stored["class"]), (&summed["id"], &summed["class"]));
            let [a, b] = [stored, summed].map(|it| it["covariance"].as_f64().unwrap());
            assert!((a - b).abs() <= 6e-8 * a.abs(), "{stored} {summed}");
        }
    }
    let pair = place.succeeds("analyse run --pair 3 8 -q").stdout;
    assert!(pair.contains("loadings of single examples were not kept"), "{pair}");
    place.succeeds("analyse run --out found -q");
    place.succeeds("report run --out page.html -q");
    place.refuses("theory temperature run", &["no loadings of single examples", "loadings_mib to"]);
    // What a kill between two files leaves, and what a full disk would.
    place.write(sums, &whole[..whole.len() - 8]);
    place.refuses("analyse run", &["test.covariance.safetensors", "not a complete"]);
    fs::remove_file(place.path(sums)).unwrap();
    place.refuses("analyse run", &["neither loadings nor sums", "aleator eval run"]);
    // With no predictions at all there are still the averages.
    keep("loadings_mib = 256\npredictions = \"none\"");
    let averages = place.succeeds("analyse run --json -q --top 9 --out none");
    let averages: Value = serde_json::from_str(&averages.stdout).unwrap();
    assert_eq!(averages["pairs"], stored["pairs"]);
    assert_eq!(averages["examples_most_tied"], Value::Null);
    assert_eq!(lines(&place, "none/examples.csv").len(), 1);
    let told = place.succeeds("analyse run -q").stdout;
    assert!(told.contains("Pairs by average") && told.contains("single examples"), "{told}");
    place.refuses("analyse run --against plain", &["no complete predictions", "\"all\""]);
    keep("loadings_mib = 256");
    assert!(!place.path(sums).exists());
    assert_eq!(analyse(""), stored);
}

#[test]
fn seeds_are_analysed_together_and_ensembles_name_their_members() {
    let place = Place::empty();
    place.write("two.toml", "base = \"digits-full\"\n[axes]\n\"head.rank\" = [1, 2]\n");
    place.succeeds(
        "train digits-full --set seeds=[0,1] --set schedule.epochs=1 --set schedule.warm_up=0.5 \
         --set head.samples=8 --set evaluation.samples=8 -q --out group",
    );
    let told = place.succeeds("analyse group -q --top 45 --out found").stdout;
    for words in ["group: 2 runs, test split, 10 classes", "of 45 pairs", "±", "seeds agree"] {
        assert!(told.contains(words), "{words:?} is not in\n{told}");
    }
    let analysis = place.json("found/analysis.json");
    let pairs = analysis["pairs"].as_array().unwrap();
    let consistent = analysis["pairs_consistent"].as_u64().unwrap() as usize;
    for (at, pair) in pairs.iter().enumerate() {
        let named = ["substitutes", "co-occurring"].contains(&pair["relation"].as_str().unwrap());
        assert_eq!(named, pair["seeds_agree"] == 2, "{pair}");
        assert_eq!(named, at < consistent, "those that agree come first: {pair}");
    }
    assert_eq!(lines(&place, "found/pairs.csv").len(), 1 + 45);
    place.refuses("analyse group --against group/seed-0", &["name one seed"]);
    place.succeeds(
        "sweep two.toml --set schedule.epochs=1 --set schedule.warm_up=0.5 \
         --set head.samples=8 --set evaluation.samples=8 -q --out two",
    );
    place.refuses("analyse two", &["more than their seeds", "head.rank=2", "two/head.rank=1"]);
    place.refuses("analyse group/ensemble", &["an ensemble", "seed-1"]);
    place.succeeds("analyse group/seed-0 -q");
}

#[test]
fn damaged_and_foreign_files_are_named() {
    let place = Place::empty();
    train(&place, "full", "run", "");
    place.refuses("analyse run --out run", &["run.json", "choose another directory"]);
    assert!(lines(&place, "run/examples.csv")[0].starts_with("id,split"));

    let file = "run/predictions/test.safetensors";
    let whole = place.read(file);
    place.write(file, &whole[..whole.len() / 2]);
    place.refuses("analyse run", &["test.safetensors", "not a complete safetensors file"]);
    let mut spoiled = whole.clone();
    let end = spoiled.len();
    spoiled[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    place.write(file, &spoiled);
    place.refuses("analyse run", &["test.safetensors", "row", "NaN"]);
    fs::remove_file(place.path(file)).unwrap();
    place.refuses("analyse run", &["no predictions of the test split", "aleator eval run"]);
    place.write(file, &whole);

    // The same run with another class is another task.
    place.succeeds("analyse run -q");
    let renamed =
        "cp -r run other && cd other && sed -i 's/\"7\"/\"seven\"/' run.json evaluation.json";
    let copied = place.shell(renamed);
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    place.refuses("analyse run --against other", &["class 7 is \"7\" and \"seven\""]);
    let copied = place
        .shell("cp -r run third && sed -i '0,/,test,/s/^[^,]*,test/x,test/' third/examples.csv");
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    place
        .refuses("analyse run --against third", &["not of the same examples", "in the first only"]);
}
