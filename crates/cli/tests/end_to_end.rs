//! What the program is for: it finds the confusions that are in the labels.

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

#[test]
fn the_demo_compares_the_noise_models_and_names_its_folder() {
    let place = Place::empty();
    let ended = place.succeeds("demo -q");
    let text = &ended.stdout;
    let lines: Vec<&str> = text.lines().collect();
    let row = |name: &str| lines.iter().find(|line| line.starts_with(name)).copied();
    assert!(row("noise").is_some_and(|line| line.contains("test accuracy")), "{text}");
    for noise in ["none", "diagonal", "full"] {
        let row = row(noise).unwrap_or_else(|| panic!("{noise} is not in {text}"));
        let numbers: Vec<f64> =
            row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Mean and deviation of three measures; the first is the accuracy in percent.
        assert_eq!(numbers.len(), 6, "{row}");
        assert!(numbers[0] > 50.0 && numbers[0] <= 100.0, "{row}");
        for seed in 0..3 {
            let run = format!("aleator-demo/{noise}/seed-{seed}/evaluation.json");
            assert!(place.path(&run).exists(), "{run}");
        }
    }
    assert!(text.contains("written to aleator-demo"), "{text}");
    assert!(lines.iter().filter(|line| line.contains('→')).count() >= 6, "{text}");
    // What it finds comes before the comparison.
    assert!(text.find("Which labels are wrong?") < text.find("test accuracy"), "{text}");
}
