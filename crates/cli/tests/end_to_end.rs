//! What the program is for: it finds the confusions that are in the labels.

use std::collections::BTreeSet;

use crate::support::Place;
use aleator::report::confusion::Confusions;
use aleator::run::Predictions;

/// Threes and eights, fours and nines are taken for each other, and nothing else is.
#[test]
fn injected_confusions_are_the_first_that_the_noise_model_learns() {
    let place = Place::empty();
    place.succeeds(
        "train digits-full --set data.noise= --set data.noise.kind=pairwise \
         --set data.noise.pairs=[[3,8],[8,3],[4,9],[9,4]] --set data.noise.rate=0.3 \
         --set data.noise.seed=0 --seed 0 -q --out run",
    );
    let predictions = Predictions::load(&place.path("run/predictions/test.safetensors")).unwrap();
    assert!(predictions.loadings.is_some() && predictions.diag_scale.is_some());
    let injected = [(3, 8), (8, 3), (4, 9), (9, 4)];
    for (what, confusions) in [
        ("the noise alone", Confusions::by_noise(&predictions)),
        ("the probabilities", Confusions::expected(&predictions)),
    ] {
        let pairs = confusions.pairs();
        let first = pairs.iter().take(6);
        let shown: Vec<String> =
            first.map(|it| format!("{}→{} {:.3}", it.from, it.to, it.rate)).collect();
        assert!(injected.contains(&(pairs[0].from, pairs[0].to)), "{what}: {shown:?}");
        // All four are there, before most of the 90 pairs.
        for pair in injected {
            let rank = pairs.iter().position(|it| (it.from, it.to) == pair).unwrap();
            assert!(rank < 10, "{what}: {pair:?} has rank {}: {shown:?}", rank + 1);
        }
    }
    // The true labels of the test split are known, and most are found in spite of the noise.
    let top1 = place.json("run/evaluation.json")["test"]["top1"].as_f64().unwrap();
    assert!(top1 > 0.8, "{top1}");
}

/// Labels are drawn from a latent model with a known covariance. With its signs exchanged, so are
/// those that the noise model learns.
#[test]
fn the_signs_of_planted_covariances_are_recovered() {
    let place = Place::empty();
    let learned = |name: &str, covariances: &str| {
        place.succeeds(&format!(
            "train digits-full --set data.noise= --set data.noise.kind=latent \
             --set data.noise.margin=2 --set data.noise.scale=0.5 --set data.noise.law=normal \
             --set data.noise.covariances={covariances} --set data.noise.seed=0 --seed 0 -q \
             --out {name}"
        ));
        ["3 8", "4 9"].map(|pair| {
            let found = place.succeeds(&format!("analyse {name} --pair {pair} --json -q")).stdout;
            let found: serde_json::Value = serde_json::from_str(&found).unwrap();
            found["correlation"].as_f64().unwrap()
        })
    };
    // Independent noise of equal size has −0.11.
    let [first, second] = learned("one", "[[3,8,-2.0],[4,9,2.0]]");
    assert!(first < -0.2 && second > 0.05, "{first} {second}");
    let [first, second] = learned("other", "[[3,8,2.0],[4,9,-2.0]]");
    assert!(first > 0.05 && second < -0.2, "{first} {second}");
}

#[test]
fn the_demo_corrects_labels_and_compares_noise_models_on_examples_that_it_never_saw() {
    let place = Place::empty();
    let ended = place.succeeds("demo -q");
    let text = &ended.stdout;
    let lines: Vec<&str> = text.lines().collect();
    let row = |name: &str| lines.iter().find(|line| line.starts_with(name)).copied();
    assert!(row("noise model").is_some_and(|line| line.contains("accuracy")), "{text}");
    for noise in ["none", "diagonal", "full"] {
        let row = row(noise).unwrap_or_else(|| panic!("{noise} is not in {text}"));
        let numbers: Vec<f64> =
            row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Mean and deviation of three measures; the first is the accuracy in percent.
        assert_eq!(numbers.len(), 6, "{row}");
        assert!(numbers[0] > 50.0 && numbers[0] <= 100.0, "{row}");
    }
    assert!(text.contains("written to aleator-demo"), "{text}");
    assert!(lines.iter().filter(|line| line.contains('→')).count() >= 4, "{text}");
    // What it finds comes first, then what that gains, then the noise models.
    let questions = ["Which labels are wrong?", "What do corrections gain?", "Which noise model?"];
    let places =
        questions.map(|words| text.find(words).unwrap_or_else(|| panic!("{words}: {text}")));
    assert!(places.is_sorted(), "{text}");
    for words in ["aleator-demo/report.html", "aleator review aleator-demo/audit"] {
        assert!(text.contains(words), "{words}: {text}");
    }

    // The test examples are the same in all runs, and not among those that were audited.
    let ids = |file: &str, kept: &str| -> BTreeSet<String> {
        let text = String::from_utf8(place.read(file)).unwrap();
        let kept = text.lines().skip(1).filter(|line| line.contains(kept));
        kept.map(|line| line.split(',').next().unwrap().to_string()).collect()
    };
    let tested = ids("aleator-demo/full/seed-0/examples.csv", ",test,");
    assert_eq!(tested.len(), 359);
    let audited = ids("aleator-demo/audit/issues.csv", ",");
    assert_eq!(audited.len(), 1797 - 359);
    assert!(tested.is_disjoint(&audited));
    let mut losses = vec![];
    for setting in ["full", "corrected-labels", "true-labels"] {
        let mut sum = 0.0;
        for seed in 0..3 {
            let run = format!("aleator-demo/{setting}/seed-{seed}");
            assert_eq!(ids(&format!("{run}/examples.csv"), ",test,"), tested, "{run}");
            sum += place.json(&format!("{run}/evaluation.json"))["test"]["nll"].as_f64().unwrap();
        }
        losses.push(sum / 3.0);
    }
    // Corrections help, and true labels help most.
    assert!(losses[0] > losses[1] && losses[1] > losses[2], "{losses:?}");
}
