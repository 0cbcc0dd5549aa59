//! `aleator predict` and `aleator eval --data`: what comes out, and what it does not depend on.

use std::fs;

use aleator::data::array::{Array, Values};
use aleator::run::Predictions;
use serde_json::Value;

use crate::support::{FILES, Place, SMALL, Toy, npy_f32, npy_i64};

fn trained() -> Place {
    let place = Place::with_features();
    place.succeeds(&format!("train features-full {FILES} --set head.rank=2 {SMALL} --out run"));
    place
}

/// The rows of a small `.npy` file of floats.
fn rows(bytes: &[u8], width: usize) -> Vec<Vec<f32>> {
    let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let (words, _) = bytes[10 + header..].as_chunks();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    values.chunks_exact(width).map(<[f32]>::to_vec).collect()
}

#[test]
fn a_prediction_depends_on_the_example_alone() {
    let place = trained();
    let inputs = rows(&place.read("tx.npy"), 6);
    let matrix = |name: &str, rows: &[&Vec<f32>]| {
        let values = rows.iter().flat_map(|row| row.iter().copied()).collect();
        place.write(name, npy_f32(&[rows.len(), 6], values));
    };
    let probabilities = |arguments: &str| {
        place.succeeds(&format!("predict run {arguments} --out p.npy"));
        rows(&place.read("p.npy"), 4)
    };
    let forward = probabilities("tx.npy");
    matrix("reversed.npy", &inputs.iter().rev().collect::<Vec<_>>());
    let mut backward = probabilities("reversed.npy --threads 1");
    backward.reverse();
    assert_eq!(backward, forward, "row numbers, file names and threads change nothing");
    matrix("copies.npy", &[&inputs[7]; 5]);
    assert!(probabilities("copies.npy").iter().all(|row| *row == forward[7]));
    let saved = Predictions::load(&place.path("run/predictions/test.safetensors")).unwrap();
    let evaluated = saved.log_probs.iter().map(|log_p| log_p.exp());
    for (predicted, evaluated) in forward.concat().iter().zip(evaluated) {
        assert!((predicted - evaluated).abs() < 1e-6, "{predicted} {evaluated}");
    }
}

#[test]
fn every_format_has_the_same_probabilities() {
    let place = trained();
    for file in ["p.npy", "p.csv", "p.parquet", "p.jsonl"] {
        let ended = place.succeeds(&format!("predict run tx.npy --out {file}"));
        assert!(ended.stdout.contains("60 examples, 4 classes"), "{}", ended.stdout);
    }
    let matrix = rows(&place.read("p.npy"), 4);
    assert_eq!(matrix.len(), 60);
    assert!(matrix.iter().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
    let names = place.json("p.json");
    assert_eq!(names["classes"], serde_json::json!(["0", "1", "2", "3"]));
    assert_eq!(names["probability_of"], "label");
    let third: Vec<f32> = matrix.iter().map(|row| row[2]).collect();
    for file in ["p.csv#p:2", "p.parquet#p:2"] {
        let column = Array::load(place.path(file).to_str().unwrap()).unwrap();
        let Values::Float(found) = column.values else { panic!("{file}: numbers") };
        assert!(found.iter().map(|p| *p as f32).eq(third.iter().copied()), "{file}");
    }
    let text = String::from_utf8(place.read("p.jsonl")).unwrap();
    for (line, row) in text.lines().zip(&matrix) {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["probabilities"]["2"].as_f64().unwrap() as f32, row[2]);
        let best = row.iter().copied().fold(0.0, f32::max);
        assert!((value["classes"][0]["probability"].as_f64().unwrap() as f32 - best).abs() < 1e-6);
    }
    assert_eq!(place.succeeds("predict run tx.npy --json").stdout, text);
}

#[test]
fn the_true_class_has_a_probability_of_its_own() {
    let place = Place::with_features();
    // One label in ten is wrong, and enough are held out to tell that from chance.
    Toy { examples: 3000, seed: 1 }.write_single(&place, "x.npy", "y.npy");
    place.succeeds(&format!(
        "train features-full {FILES} --set head.rank=2 {SMALL} --set schedule.epochs=20 \
         --set data.validation.fraction=0.3 --out run"
    ));
    let law = &place.json("run/evaluation.json")["true_class"];
    let rate = law["noise_rate"].as_f64().unwrap();
    assert!((0.05..0.15).contains(&rate), "{law}");
    assert_eq!(law["confusion"].as_array().unwrap().len(), 4, "{law}");
    place.succeeds("predict run tx.npy --out label.npy");
    place.succeeds("predict run tx.npy --true --out true.npy");
    let (label, truth) = (rows(&place.read("label.npy"), 4), rows(&place.read("true.npy"), 4));
    // With the noise taken out, it is surer: by about the tenth that is wrong where it is sure.
    let surest = |rows: &[Vec<f32>]| {
        let most = rows.iter().map(|row| row.iter().copied().fold(0.0, f32::max));
        most.sum::<f32>() / rows.len() as f32
    };
    let (of_label, of_truth) = (surest(&label), surest(&truth));
    assert!(of_truth > of_label + 0.04, "{of_label} {of_truth}");
    assert!(truth.iter().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
    assert_eq!(place.json("true.json")["probability_of"], "true class");
    let lines = place.succeeds("predict run tx.npy --json --true").stdout;
    for (line, row) in lines.lines().zip(&truth) {
        let value: Value = serde_json::from_str(line).unwrap();
        let class = value["true_class"].as_str().unwrap();
        let best: usize = class.parse().unwrap();
        assert!(row.iter().all(|prob| *prob <= row[best]), "{line}");
        let named = value["true_probabilities"][class].as_f64().unwrap();
        assert!((named - value["true_probability"].as_f64().unwrap()).abs() < 1e-6, "{line}");
    }
}

#[test]
fn the_likeliest_classes_can_be_asked_for() {
    let place = trained();
    let line = place.succeeds("predict run tx.npy --top 3").stdout;
    assert_eq!(line.lines().nth(1).unwrap().split('\t').nth(1).unwrap().split(", ").count(), 3);
    place.succeeds("predict run tx.npy --top 2 --out top.csv");
    let header = String::from_utf8(place.read("top.csv")).unwrap();
    let expected = "id,class_1,probability_1,spread_1,class_2,probability_2,spread_2,entropy,\
                    true_class,true_probability";
    assert_eq!(header.lines().next().unwrap(), expected);
    place.refuses("predict run tx.npy --top 2 --out p.npy", &["--top", ".csv"]);
    place.refuses("predict run tx.npy --out p.xlsx", &["p.xlsx", ".parquet"]);
    assert!(!place.path("p.npy").exists() && !place.path("p.xlsx").exists());
}

#[test]
fn an_ensemble_predicts_the_mean_of_its_members() {
    let place = Place::with_features();
    place.succeeds(&format!(
        "train features-full {FILES} --set head.rank=2 {SMALL} --set seeds=[0,1] --out three"
    ));
    let matrix = |dir: &str| {
        place.succeeds(&format!("predict {dir} tx.npy --out p.npy"));
        rows(&place.read("p.npy"), 4).concat()
    };
    let (mean, a, b) = (matrix("three"), matrix("three/seed-0"), matrix("three/seed-1"));
    for ((mean, a), b) in mean.iter().zip(&a).zip(&b) {
        assert!((mean - (a + b) / 2.0).abs() < 1e-6, "{mean} {a} {b}");
    }
    assert_eq!(matrix("three/ensemble"), mean);
    let saved = Predictions::load(&place.path("three/ensemble/predictions/test.safetensors"));
    for (predicted, log_p) in mean.iter().zip(&saved.unwrap().log_probs) {
        assert!((predicted - log_p.exp()).abs() < 1e-6);
    }
    fs::rename(place.path("three"), place.path("moved")).unwrap();
    assert_eq!(matrix("moved"), mean);
    fs::remove_dir_all(place.path("moved/seed-1")).unwrap();
    place.refuses("predict moved tx.npy", &["member is missing", "seed-1"]);
}

#[test]
fn a_run_is_evaluated_on_other_data() {
    let place = trained();
    let before = place.read("run/evaluation.json");
    let own = place.json("run/evaluation.json");
    for name in ["x.npy", "y.npy"] {
        fs::remove_file(place.path(name)).unwrap();
    }
    let scores = place.succeeds("eval run --data tx.npy --labels ty.npy --json --out s.json");
    let found: Value = serde_json::from_str(&scores.stdout).unwrap();
    assert_eq!(found, place.json("s.json"));
    assert_eq!(found["label"], own["test"]);
    assert!(found["true_class"]["nll"].as_f64().is_some());
    assert!(place.read("run/evaluation.json") == before);
    let table = place.succeeds("eval run --data tx.npy --labels ty.npy").stdout;
    assert!(table.contains("true class") && table.contains("60 examples"), "{table}");
    place.write("other.npy", npy_i64(&[60], vec![7; 60]));
    place.refuses("eval run --data tx.npy --labels other.npy", &["other.npy", "7", "the run"]);
    place.write("words.csv", format!("label\n{}", "cat\n".repeat(60)));
    place.refuses("eval run --data tx.npy --labels words.csv", &["words.csv", "cat"]);
    place.refuses("eval run", &["x.npy", "If the data moved", "aleator resume run --data"]);
    place.refuses("resume nowhere", &["nowhere"]);
}

#[test]
fn a_multilabel_run_has_no_true_class_and_says_so() {
    let place = Place::with_multi_hot();
    place.succeeds(
        "train multilabel-full --set data.train.features=x.npy --set data.train.labels=y.npy \
         --set schedule.epochs=2 --set schedule.warm_up=1 -q --out run",
    );
    let table = place.succeeds("predict run tx.npy").stdout;
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        assert!(cells[1].split(", ").count() >= 3 && cells[1] != "–", "{line}");
        assert_eq!(cells[1].split(", ").count(), cells[2].split(", ").count(), "{line}");
    }
    place.refuses("predict run tx.npy --true", &["multilabel", "true class"]);
    place.succeeds("predict run tx.npy --out p.csv");
    let text = String::from_utf8(place.read("p.csv")).unwrap();
    assert_eq!(text.lines().next().unwrap(), "id,class,probability,spread,entropy,p:0,p:1,p:2,p:3");
}
