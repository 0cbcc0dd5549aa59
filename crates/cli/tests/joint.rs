//! Several labels learned together, from training to predictions given some labels.

use aleator::run::Predictions;
use serde_json::Value;

use crate::support::{Place, npy_f32, npy_i64};

const EXAMPLES: usize = 600;

/// Features say where class 2 is on. Classes 0 and 1 are on or off together at random, whatever
/// the features are.
fn write_data(place: &Place, examples: usize, features: &str, labels: &str, seed: u64) {
    let mut state = seed;
    let mut coin = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let (mut x, mut y) = (vec![], vec![]);
    for _ in 0..examples {
        let third = coin() < 0.5;
        let together = coin() < 0.5;
        // One in twenty pairs is torn apart.
        let other = together ^ (coin() < 0.05);
        x.extend([if third { 1.0 } else { -1.0 } + coin() - 0.5, coin() - 0.5]);
        y.extend([together, other, third].map(i64::from));
    }
    place.write(features, npy_f32(&[examples, 2], x));
    place.write(labels, npy_i64(&[examples, 3], y));
}

fn trained() -> Place {
    let place = Place::empty();
    write_data(&place, EXAMPLES, "x.npy", "y.npy", 1);
    write_data(&place, 200, "tx.npy", "ty.npy", 2);
    for preset in ["joint", "full"] {
        place.succeeds(&format!(
            "train multilabel-{preset} -q --set data.train.features=x.npy --set \
             data.train.labels=y.npy --set data.test.features=tx.npy --set \
             data.test.labels=ty.npy --set tune=off --set head.rank=2 --out {preset}"
        ));
    }
    place
}

fn number(value: &Value, path: &str) -> f64 {
    let found = path.split('.').try_fold(value, |value, key| value.get(key));
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn labels_that_go_together_are_learned_together_and_predicted_from_each_other() {
    let place = trained();
    let joint = place.json("joint/evaluation.json");
    let apart = place.json("full/evaluation.json");
    // The entropy of a pair that is torn apart once in twenty is ln 2 + 0.20; of two coins 2 ln 2.
    let (together, each) = (number(&joint, "test.nll"), number(&apart, "test.nll"));
    assert!(together < 1.1 && each > 1.35, "{together} {each}");
    // The most probable set is one of two as probable ones, the most probable classes one of four.
    let (set, classes) =
        (number(&joint, "test.subset_accuracy"), number(&apart, "test.subset_accuracy"));
    assert!(set > 0.38 && set > classes + 0.1, "{set} {classes}");

    let predictions = Predictions::load(&place.path("joint/predictions/test.safetensors")).unwrap();
    let log_probs = predictions.joint_log_probs.unwrap();
    let mean = log_probs.iter().map(|log_prob| -*log_prob as f64).sum::<f64>() / 200.0;
    assert!((mean - together).abs() < 1e-6, "{mean} {together}");

    let first = |arguments: &str| -> Value {
        let out = place.succeeds(&format!("predict joint tx.npy --json {arguments}")).stdout;
        serde_json::from_str(out.lines().next().unwrap()).unwrap()
    };
    let free = first("");
    assert!((0.3..0.7).contains(&number(&free, "probabilities.1")), "{free}");
    assert!(free.get("known_probability").is_none());
    let known = first("--on 0");
    assert!(number(&known, "probabilities.1") > 0.8, "{known}");
    assert_eq!(number(&known, "probabilities.0"), 1.0);
    assert!((number(&known, "known_probability") - 0.5).abs() < 0.1, "{known}");
    let sets: Vec<&str> = known["most_probable_set"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert!(sets.starts_with(&["0", "1"]), "{known}");
    assert!(number(&first("--off 0"), "probabilities.1") < 0.2);

    let table = place.succeeds("predict joint tx.npy --on 0").stdout;
    let heading = table.lines().next().unwrap();
    assert!(heading.contains("most probable set\tits probability\tprobability of the known"));
    let widths: Vec<usize> = table.lines().map(|line| line.split('\t').count()).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    place.succeeds("predict joint tx.npy --on 0 --out p.csv");
    let csv = String::from_utf8(place.read("p.csv")).unwrap();
    let heading = "id,class,probability,spread,entropy,set,set_probability,known_probability,p:0";
    assert!(csv.starts_with(heading), "{csv}");

    // The joint probabilities of all sets of the first example are those of its distribution.
    let of_set = |bits: usize| {
        let flags = (0..3).map(|class| {
            format!("{} {class} ", if bits >> class & 1 == 1 { "--on" } else { "--off" })
        });
        number(&first(&flags.collect::<String>()), "known_probability")
    };
    let total: f64 = (0..8).map(of_set).sum();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
}

#[test]
fn what_a_joint_likelihood_cannot_do_is_said() {
    let place = trained();
    place.refuses("predict full tx.npy --on 0", &["head.likelihood", "multilabel-joint"]);
    place.refuses("predict joint tx.npy --on 7", &["no class is called \"7\"", "0, 1, 2"]);
    place.refuses("predict joint tx.npy --on 0 --off 0", &["\"0\"", "twice"]);
    place.refuses("eval joint --calibrate", &["--calibrate", "joint"]);
    place.refuses("analyse full", &["head.likelihood = \"joint\""]);
    // Its covariances are learned, and may be read.
    let words = place.succeeds("analyse joint").stdout;
    assert!(words.contains("nothing is centred") && !words.contains("Pairs by centred"), "{words}");
    let found = place.succeeds("analyse joint --json").stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let pair = &found["pairs"]["by_covariance"][0];
    assert_eq!((&pair["class_a"], &pair["class_b"]), (&"0".into(), &"1".into()), "{pair}");
    assert_eq!(pair["relation"], "co-occurring", "{pair}");
    // τ is 1.
    assert!((number(pair, "centred_covariance") - number(pair, "covariance")).abs() < 1e-9);
    assert!(number(pair, "correlation") > 0.5 && pair["flip_a_to_b"].is_null(), "{pair}");
    let softmax = "train features-full --set head.likelihood=joint --set data.train.features=x.npy \
                   --set data.train.labels=y.npy";
    place.refuses(softmax, &["head.likelihood", "head.link = \"sigmoid\""]);
    let expanded =
        softmax.replace("features-full", "multilabel-full").replace("=joint", "=expansion");
    place.refuses(&expanded, &["head.likelihood", "head.link = \"softmax\""]);

    // Scores on new data are those of the evaluation, to the bit.
    for run in ["joint", "full"] {
        let evaluation = place.json(&format!("{run}/evaluation.json"));
        let new = place.succeeds(&format!("eval {run} --data tx.npy --labels ty.npy --json"));
        let new: Value = serde_json::from_str(&new.stdout).unwrap();
        assert_eq!(new["label"], evaluation["test"], "{run}");
    }
}

#[test]
fn an_expansion_trains_without_samples() {
    let place = Place::with_features();
    for likelihood in ["expansion", "log-expansion"] {
        place.succeeds(&format!(
            "train features-diagonal -q --set data.train.features=x.npy --set \
             data.train.labels=y.npy --set tune=off --set head.likelihood={likelihood} --seed 0 \
             --out {likelihood}"
        ));
        let evaluation = place.json(&format!("{likelihood}/evaluation.json"));
        // A guess has ln 4 = 1.39.
        let nll = number(&evaluation, "validation.nll");
        assert!(nll > 0.0 && nll < 1.3, "{likelihood}: {nll}");
    }
}
