//! Rows at the last epoch and at the best: each is compared with rows of the same epoch.

use crate::compare::close;
use crate::runs_on_disk::{DEFAULT, Made, Place, summary};
use aleator_metrics::{OtherScores, OtherWeights, SplitEvaluation};
use aleator_report::compare::{Settings, ShownWeights, compare};
use aleator_report::table::Cell;
use aleator_run::EnsembleFile;

/// Scores of the last epoch beside those of the best, which are written first.
fn with_last(made: &mut Made, top1: f64) {
    let test = SplitEvaluation { given: summary(top1, 1.5), clean: None, calibrated: None };
    made.evaluation.other_weights = Some(OtherWeights {
        weights: "last".to_string(),
        step: 20,
        scores: Some(OtherScores {
            calibration: None,
            validation: made.evaluation.validation.clone(),
            test: Some(test),
        }),
    });
}

#[test]
fn the_last_epoch_and_the_best_are_each_compared_by_themselves() {
    let place = Place::new();
    // At its best epoch plain training is ahead; in the end it has memorised the labels.
    place.seeds_with("plain", &[(0.90, 1.0), (0.91, 0.9)], |made| with_last(made, 0.60));
    place.seeds_with("elr", &[(0.80, 1.0), (0.83, 0.9)], |made| {
        let top1 = made.test().given.top1;
        with_last(made, top1 - 0.01);
    });
    // Never evaluated at another epoch than the last.
    place.seeds_with("refitted", &[(0.70, 1.0), (0.72, 0.9)], |made| {
        made.evaluation.weights = "last".to_string();
    });
    let rows = place.rows(&["plain", "elr", "refitted"]).unwrap();
    let shown = |weights| compare(&rows, &Settings { weights, ..DEFAULT }).unwrap();
    let both = shown(None);
    assert_eq!(both, shown(Some(ShownWeights::Both)));
    let found: Vec<(Option<&str>, Vec<&str>)> = both
        .sections
        .iter()
        .map(|it| (it.name.as_deref(), it.rows.iter().map(|row| row.name.as_str()).collect()))
        .collect();
    let best = "best validation NLL";
    let expected = [
        (Some("last epoch"), vec!["plain", "elr", "refitted"]),
        (Some(best), vec!["plain", "elr"]),
    ];
    assert_eq!(found, expected);
    let top1 = |section: usize, row: usize| match &both.sections[section].rows[row].cells[0] {
        Cell::Score(score) => *score,
        other => panic!("{other:?}"),
    };
    close(top1(0, 0).mean, 0.60);
    close(top1(1, 0).mean, 0.905);
    assert!(top1(0, 1).best && top1(1, 0).best && !top1(0, 0).best && !top1(1, 1).best);
    // Tested against the best of its own epoch, which the best of the other would not give.
    let alone = [ShownWeights::Last, ShownWeights::Best].map(|weights| shown(Some(weights)));
    for (section, alone) in alone.iter().enumerate() {
        assert_eq!(alone.sections.len(), 1);
        let same = &alone.sections[0].rows[..2];
        assert_eq!(same[0].cells[0], both.sections[section].rows[0].cells[0]);
        assert_eq!(same[1].cells[0], both.sections[section].rows[1].cells[0]);
    }
    for table in alone.iter().chain([&both]) {
        let notes = table.notes.join(" ");
        let lacking = notes.contains("One set of weights is recorded of refitted; ");
        assert_eq!(lacking, *table != alone[0], "{notes}");
    }
    assert!(alone[1].notes.join(" ").contains("the epoch with the lowest validation NLL."));
}

#[test]
fn weights_that_make_no_difference_are_shown_once() {
    let place = Place::new();
    let same = |made: &mut Made| {
        let weights = "last".to_string();
        made.evaluation.other_weights = Some(OtherWeights { weights, step: 10, scores: None });
    };
    place.seeds_with("full", &[(0.7, 1.0), (0.72, 0.9)], same);
    place.seeds("none", &[(0.6, 1.0), (0.62, 0.9)]);
    let table = place.compare(&["full", "none"]).unwrap();
    assert_eq!(table.sections.len(), 1);
    assert!(table.sections[0].name.is_none() && !table.notes.join(" ").contains("epoch"));
    let last = Settings { weights: Some(ShownWeights::Last), ..DEFAULT };
    let table = compare(&place.rows(&["full"]).unwrap(), &last).unwrap();
    assert!(!table.notes.join(" ").contains("One set"), "{:?}", table.notes);
}

#[test]
fn an_ensemble_is_at_the_epoch_of_its_members() {
    let place = Place::new();
    place.seeds_with("full", &[(0.7, 1.0), (0.72, 0.9)], |made| with_last(made, 0.5));
    let mut made = Made::new(0, 0.8, 0.5);
    made.evaluation.weights = "ensemble".to_string();
    made.write(&place.path("full/ensemble"));
    let members = ["seed-0", "seed-1"].map(|seed| place.path("full").join(seed));
    let ensemble = place.path("full/ensemble");
    EnsembleFile::of(&members, &ensemble).unwrap().save(&ensemble).unwrap();
    let table = place.compare(&["single=full", "ensemble=full/ensemble"]).unwrap();
    let rows = |at: usize| table.sections[at].rows.iter().map(|row| row.name.clone());
    assert_eq!(rows(0).collect::<Vec<_>>(), ["single"]);
    assert_eq!(rows(1).collect::<Vec<_>>(), ["single", "ensemble"]);
}
