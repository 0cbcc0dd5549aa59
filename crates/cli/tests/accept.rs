//! From an audit to labels to train on, without a click.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::support::{Place, npy_f32, npy_i64};

/// The rows of a CSV file without quotes, and without its header.
fn rows(place: &Place, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}

/// The cells of a column, by id.
fn column(place: &Place, name: &str, column: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    let at = text.lines().next().unwrap().split(',').position(|it| it == column).unwrap();
    rows(place, name).into_iter().map(|row| (row[0].clone(), row[at].clone())).collect()
}

fn probability(cell: &str) -> f64 {
    cell.parse().unwrap()
}

const FEATURES: &str = "--set data.train.features=x.npy";
const TEST: &str = "--set data.test.features=tx.npy --set data.test.labels=ty.npy";

#[test]
fn an_audit_accepts_prunes_and_weighs_and_each_file_is_trained_on() {
    let place = Place::with_features();
    let ended = place.succeeds(&format!(
        "audit features-full -q --folds 4 {FEATURES} --set data.train.labels=y.npy --out audit \
         --accept 0.9"
    ));
    let given = column(&place, "audit/issues.csv", "given");
    let suggested = column(&place, "audit/issues.csv", "suggested");
    let sure = column(&place, "audit/issues.csv", "suggested_probability");
    let score = column(&place, "audit/issues.csv", "score");
    let right = column(&place, "audit/issues.csv", "given_probability");

    let corrected = column(&place, "audit/corrected.csv", "label");
    let pruned = column(&place, "audit/pruned.csv", "label");
    let weights = column(&place, "audit/weights.csv", "weight");
    assert_eq!((corrected.len(), weights.len()), (160, 160));
    assert_eq!(column(&place, "audit/weights.csv", "label"), given);
    let (mut changed, mut left_out) = (0, 0);
    for (id, label) in &given {
        let accepted = probability(&sure[id]) >= 0.9;
        assert_eq!(&corrected[id], if accepted { &suggested[id] } else { label }, "{id}");
        let kept = probability(&score[id]) < 0.9;
        assert_eq!(pruned.get(id), kept.then_some(label), "{id}");
        assert_eq!(probability(&weights[id]), probability(&right[id]).max(1e-6), "{id}");
        (changed, left_out) = (changed + usize::from(accepted), left_out + usize::from(!kept));
    }
    assert!(0 < changed && changed <= left_out && left_out < 80, "{changed}, {left_out}");
    let accept = &place.json("audit/review.json")["accept"];
    assert_eq!(accept["threshold"], 0.9);
    assert_eq!((&accept["accepted"], &accept["pruned"]), (&changed.into(), &left_out.into()));
    for words in [
        format!("{changed} suggestions with a probability of at least 0.9 accepted"),
        format!("{left_out} of 160 examples left out"),
    ] {
        assert!(ended.stdout.contains(&words), "{words}: {}", ended.stdout);
    }
    place.succeeds("report audit -q");
    let page = String::from_utf8(place.read("audit/report.html")).unwrap();
    assert!(page.contains("suggestions of at least 0.9 in corrected.csv"));

    let mut losses = BTreeSet::new();
    for (file, examples) in [("corrected", 160), ("pruned", 160 - left_out), ("weights", 160)] {
        let labels = format!("--set data.train.labels=audit/{file}.csv");
        let ended =
            place.succeeds(&format!("train features-full {FEATURES} {labels} {TEST} --out {file}"));
        let counts = &place.json(&format!("{file}/run.json"))["examples"];
        let all = counts["train"].as_u64().unwrap() + counts["validation"].as_u64().unwrap();
        assert_eq!(all as usize, examples, "{file}: {counts}");
        let note = format!("name {examples} of the 160 examples");
        assert_eq!(ended.stderr.contains(&note), file == "pruned", "{}", ended.stderr);
        losses.insert(place.read(&format!("{file}/evaluation.json")));
        place.succeeds(&format!("eval {file} -q"));
    }
    assert_eq!(losses.len(), 3, "each file makes another model");
}

#[test]
fn another_threshold_and_decisions_take_the_place_of_the_first() {
    let place = Place::empty();
    write_probabilities(&place);
    place.succeeds("audit --probabilities p.npy --labels y.npy -q --out audit --accept 0.5");
    let first = column(&place, "audit/issues.csv", "suggested");
    let accepted = || place.json("audit/review.json")["accept"]["accepted"].as_u64().unwrap();
    let all = accepted();
    assert!(all >= 2, "{all}");
    // Both wrong labels are among the accepted ones.
    for id in ["3", "7"] {
        assert_eq!(column(&place, "audit/corrected.csv", "label")[id], first[id]);
    }
    // What a person decided stays, whatever is accepted.
    let journal = String::from_utf8(place.read("audit/decisions.jsonl")).unwrap();
    let kept = r#"{"id":"3","decision":"keep","label":"2"}"#;
    place.write("audit/decisions.jsonl", format!("{journal}{kept}\n"));
    let ended = place.succeeds("review audit --export");
    assert!(ended.stderr.contains("at least 0.5 are accepted"), "{}", ended.stderr);
    assert_eq!(accepted(), all - 1);
    assert_eq!(column(&place, "audit/corrected.csv", "label")["3"], "2");
    assert_eq!(column(&place, "audit/pruned.csv", "label")["3"], "2");
    assert_eq!(column(&place, "audit/weights.csv", "weight")["3"], "1.0");
    place.succeeds("review audit --accept 1");
    assert_eq!((accepted(), rows(&place, "audit/pruned.csv").len()), (0, 30));
    place.succeeds("review audit --accept 0.5");
    assert_eq!(accepted(), all - 1);
}

#[test]
fn annotators_become_single_labels_and_classes_on_or_off_have_no_weights() {
    let place = Place::empty();
    write_probabilities(&place);
    let votes: String = (0..30)
        .map(|it| format!("{it},ann,{}\n{it},bob,{}\n", it % 3, (it + it / 20) % 3))
        .collect();
    place.write("votes.csv", format!("example,annotator,label\n{votes}"));
    place.succeeds("audit --probabilities p.npy --labels votes.csv -q --out votes --accept 0.6");
    for file in ["corrected", "pruned", "weights"] {
        let labels = format!("--set data.train.labels=votes/{file}.csv");
        place.succeeds(&format!("train features-none -q --set data.train.features=p.npy {labels}"));
    }
    let on = |example: i64| [0, 1, 2].map(|class| i64::from(class == example % 3));
    let mut rows_on: Vec<i64> = (0..30).flat_map(on).collect();
    // An entry that the probabilities contradict.
    (rows_on[27 * 3], rows_on[27 * 3 + 1]) = (0, 1);
    place.write("on.npy", npy_i64(&[30, 3], rows_on));
    let ended = place.succeeds(
        "audit --probabilities p.npy --labels on.npy --multilabel -q --out multi --accept 0.7",
    );
    assert!(ended.stdout.contains("no weights.csv"), "{}", ended.stdout);
    assert!(!place.path("multi/weights.csv").exists());
    let score = rows(&place, "multi/issues.csv");
    let wrong: BTreeSet<&String> =
        score.iter().filter(|row| probability(&row[7]) >= 0.7).map(|row| &row[0]).collect();
    let pruned = column(&place, "multi/pruned.csv", "0");
    assert!(!wrong.is_empty() && wrong.iter().all(|id| !pruned.contains_key(*id)), "{wrong:?}");
    assert_eq!(pruned.len(), 30 - wrong.len());
    for file in ["corrected", "pruned"] {
        let labels = format!("--set data.train.labels=multi/{file}.csv");
        place.succeeds(&format!(
            "train multilabel-none -q --set data.train.features=p.npy {labels}"
        ));
    }
}

#[test]
fn what_cannot_be_accepted_is_refused_with_what_to_do() {
    let place = Place::empty();
    write_probabilities(&place);
    for threshold in ["0.49", "1.01", "NaN", "x"] {
        let usage = place.run(&format!("review audit --accept {threshold}"));
        assert_eq!(usage.code, Some(2), "{threshold}: {}", usage.stderr);
        assert!(usage.stderr.contains("from 0.5 to 1"), "{}", usage.stderr);
    }
    place.refuses("review nowhere --accept 0.9", &["nowhere", "does not exist"]);
    place.write("empty/file", "x");
    place.refuses("review empty --accept 0.9", &["empty", "no finished audit"]);
    place.succeeds("audit --probabilities p.npy --labels y.npy -q --out audit --accept 0.6");
    let issues = place.read("audit/issues.csv");
    place.write("audit/issues.csv", String::from_utf8_lossy(&issues).replace("\n7,", "\nseven,"));
    place.refuses("review audit --accept 0.9", &["issues.csv", "\"seven\""]);
    place.write("audit/issues.csv", issues);
    place.write("audit/review.json", "{");
    place.refuses("review audit --accept 0.9", &["review.json"]);
    place.refuses("report audit -q", &["review.json"]);
    place.write(
        "audit/review.json",
        r#"{"decided":0,"corrected":0,"kept":0,"ambiguous":0,
           "accept":{"threshold":7,"accepted":0,"pruned":0}}"#,
    );
    place.refuses("review audit --export", &["review.json", "accept.threshold", "found 7"]);
    fs::remove_file(place.path("audit/review.json")).unwrap();
    place.succeeds("review audit --accept 0.6");
    let weights = String::from_utf8(place.read("audit/weights.csv")).unwrap();
    place.write("damaged.csv", weights.replacen(",1,", ",1,-", 1));
    let train = "train features-none -q --set data.train.features=p.npy";
    place.refuses(
        &format!("{train} --set data.train.labels=damaged.csv"),
        &["damaged.csv", "row 1 (counted from 0)", "above 0"],
    );
    place.refuses(
        &format!("{train} --set data.train.labels=audit/prunedd.csv"),
        &["audit/prunedd.csv"],
    );
    // Labels of other data.
    place.write("other.csv", "id,label\n0,1\n99,2\n");
    place.refuses(&format!("{train} --set data.train.labels=other.csv"), &["row 1", "\"99\""]);
}

/// Probabilities of another model for thirty examples of three classes; the labels of examples 3
/// and 7 are wrong.
fn write_probabilities(place: &Place) {
    let row = |example: usize| {
        let own = 0.8 + 0.005 * example as f32;
        (0..3).map(move |class| if class == example % 3 { own } else { (1.0 - own) / 2.0 })
    };
    let mut labels: Vec<i64> = (0..30).map(|example| example % 3).collect();
    (labels[3], labels[7]) = (2, 0);
    place.write("y.npy", npy_i64(&[30], labels));
    place.write("p.npy", npy_f32(&[30, 3], (0..30).flat_map(row).collect()));
}
