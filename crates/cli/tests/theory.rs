//! `aleator theory`, `analyse --pair` and `eval --sampling-free` as a user meets them.

use crate::support::Place;
use serde_json::Value;

fn json(place: &Place, command: &str) -> Value {
    serde_json::from_str(&place.succeeds(command).stdout).unwrap()
}

fn text(place: &Place, name: &str) -> String {
    String::from_utf8(place.read(name)).unwrap()
}

#[test]
fn normals_that_are_made_up_show_the_trade_off() {
    let place = Place::empty();
    let study = json(
        &place,
        "theory temperature --classes 2 --rank 1 --examples 10 --samples 20 --keys 20 \
         --temperatures 2,0.1,0.5 --out figures --json -q",
    );
    assert_eq!((&study["exact"], &study["own_temperature"]), (&Value::Bool(true), &Value::Null));
    let column = |key: &str| -> Vec<f64> {
        study["points"].as_array().unwrap().iter().map(|it| it[key].as_f64().unwrap()).collect()
    };
    assert!(column("temperature").is_sorted() && column("bias").is_sorted(), "{study}");
    let variance = column("gradient_variance");
    assert!(variance[0] > variance[2], "{study}");
    assert_eq!(text(&place, "figures/temperature.csv").lines().count(), 4);
    for name in ["temperature-bias", "temperature-variance"] {
        assert!(text(&place, &format!("figures/{name}.svg")).ends_with("</svg>\n"));
    }
    place.refuses("theory temperature --temperatures 1,0", &["temperature", "0"]);
    place.refuses("theory temperature --scale=-1", &["scale", "-1"]);
    let both = place.run("theory temperature run --classes 3");
    assert_eq!(both.code, Some(2), "{}", both.stderr);
    assert!(both.stderr.contains("cannot be used with '--classes"), "{}", both.stderr);
}

#[test]
fn a_run_is_studied_and_two_of_its_classes_are_looked_up() {
    let place = Place::empty();
    place.succeeds(
        "train digits-full --seed 0 --set schedule.epochs=3 --set head.samples=16 \
         --set evaluation.samples=64 -q --out run",
    );
    let told = place.succeeds(
        "theory temperature run --examples 12 --keys 3 --temperatures 0.5,2 --out figures -q",
    );
    for words in ["10 classes; bias simulated; gradient by μ of 16 samples", "the run has τ = 1"]
    {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    place.succeeds("theory expansion run --examples 30 --out figures -q");
    place.succeeds("theory expansion --out plain -q");
    let circles = |name: &str| text(&place, name).matches("<circle").count();
    let examples = circles("figures/coefficients-of-covariances.svg");
    assert!((20..=30).contains(&examples), "{examples}");
    assert_eq!(circles("figures/coefficients-of-variances.svg"), 2 * examples);
    assert_eq!(circles("plain/coefficients-of-variances.svg"), 0);
    assert!(text(&place, "plain/coefficients.csv").contains("\n0.5,0,"));

    // The pair has the numbers that the list of all pairs has.
    let all = json(&place, "analyse run --top 45 --json -q");
    let list = all["pairs"]["by_covariance"].as_array().unwrap();
    let listed = list.iter().find(|it| it["class_a"] == "3" && it["class_b"] == "8").unwrap();
    let pair = json(&place, "analyse run --pair 8 3 --top 4 --json -q");
    for key in ["covariance", "centred_covariance", "correlation", "flip_a_to_b", "flip_b_to_a"] {
        let (found, expected) = (pair[key].as_f64(), listed[key].as_f64());
        // The list adds up in another order.
        assert!((found.unwrap() - expected.unwrap()).abs() < 1e-5, "{key}: {pair} {listed}");
    }
    assert_eq!(
        (&pair["relation"], pair["examples"].as_array().unwrap().len()),
        (&listed["relation"], 4)
    );
    let told = place.succeeds("analyse run --pair 3 8 -q").stdout;
    assert!(told.starts_with("3 and 8: test split") && told.contains("tied most"), "{told}");
    place.refuses("analyse run --pair 3 eight", &["\"eight\"", "classes are 0, 1"]);
    place.refuses("analyse run --pair 3 3", &["two classes", "3"]);

    let told = place.succeeds("eval run --sampling-free -q").stdout;
    for words in ["own", "sampled", "expansion", "probit", "mean field", "mean error"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let free = json(&place, "eval run --sampling-free --json -q");
    let scores = free["sampling_free"]["scores"].as_array().unwrap();
    assert_eq!((scores.len(), &scores[0]["error"]), (5, &Value::from(0.0)));
    let top1 = free["test"]["given"]["top1"].as_f64().or(free["test"]["top1"].as_f64());
    assert!(top1.is_some(), "{free}");
}

#[test]
fn runs_without_noise_have_nothing_to_approximate() {
    let place = Place::empty();
    place.succeeds(
        "train digits-none --seed 0 --set schedule.epochs=1 --set evaluation.samples=8 -q --out run",
    );
    for command in [
        "eval run --sampling-free -q",
        "theory temperature run",
        "theory expansion run --out figures",
        "analyse run --pair 0 1",
    ] {
        place.refuses(command, &["head.noise = \"none\""]);
    }
}
