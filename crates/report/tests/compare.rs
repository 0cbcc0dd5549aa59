//! Comparisons of run directories: the statistics, what makes a row, and what is refused.

use std::fs;

use crate::runs_on_disk::{DEFAULT, Made, Place, summary};
use aleator_report::compare::{
    Direction, Labels, Measure, Score, Settings, Test, Values, Wanted, compare, scores,
};
use aleator_report::table::{Cell, Table};
use aleator_run::{GroupKind, Link, Split};

#[track_caller]
fn score(table: &Table, row: &str, heading: &str) -> Score {
    let at = table.columns.iter().position(|column| column.heading == heading).unwrap();
    let rows = &mut table.sections.iter().flat_map(|section| &section.rows);
    match &rows.find(|it| it.name == row).unwrap().cells[at] {
        Cell::Score(score) => *score,
        other => panic!("{other:?}"),
    }
}

fn names(table: &Table) -> Vec<&str> {
    table.sections.iter().flat_map(|section| &section.rows).map(|row| row.name.as_str()).collect()
}

#[track_caller]
pub fn close(found: f64, expected: f64) {
    // Both sum five numbers and take a quantile; a wrong formula is off in the second digit.
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} and {expected}");
}

type Seeds = (&'static str, &'static [f64], &'static [f64]);

const ROWS: [Seeds; 5] = [
    ("none", &[0.7652, 0.7668, 0.7641, 0.7675, 0.7659], &[1.083, 1.071, 1.088, 1.079, 1.076]),
    ("diagonal", &[0.7861, 0.7872, 0.7880, 0.7859, 0.7874], &[0.951, 0.944, 0.962, 0.949, 0.957]),
    ("near", &[0.7919, 0.7931, 0.7925, 0.7916, 0.7927], &[0.923, 0.915, 0.927, 0.918, 0.921]),
    ("full", &[0.7921, 0.7935, 0.7928, 0.7917, 0.7930], &[0.921, 0.912, 0.926, 0.917, 0.919]),
    ("three", &[0.7903, 0.7921, 0.7912], &[0.924, 0.930, 0.921]),
];

/// ```python
/// import numpy as np
/// from scipy import stats  # 1.17.1
///
/// for values in (top1, nll):  # of ROWS, by name
///     for row, x in values.items():
///         best = values["full"]
///         unpaired = stats.ttest_ind(x, best).pvalue
///         paired = stats.ttest_rel(x, best).pvalue if len(x) == len(best) else None
///         print(row, np.mean(x), np.std(x, ddof=1), unpaired, paired)
/// ```
///
/// Row, measure, mean, standard deviation, unpaired and paired p.
#[allow(clippy::type_complexity, reason = "a table reads best as one")]
const SCIPY: [(&str, &str, f64, f64, f64, Option<f64>); 8] = [
    (
        "none",
        "top-1",
        0.7659,
        0.0013322912594474177,
        1.868505715074844e-10,
        Some(3.1966586414795795e-06),
    ),
    (
        "diagonal",
        "top-1",
        0.78692,
        0.0008927485648266182,
        3.825053331775792e-06,
        Some(2.2978937092923955e-05),
    ),
    (
        "near",
        "top-1",
        0.79236,
        0.0006066300355241259,
        0.553758722813832,
        Some(0.006987374665319735),
    ),
    ("three", "top-1", 0.7912, 0.0009000000000000119, 0.04779888049906695, None),
    (
        "none",
        "NLL",
        1.0794000000000001,
        0.0065038450166036675,
        9.023634356650593e-11,
        Some(1.0181839535824246e-08),
    ),
    (
        "diagonal",
        "NLL",
        0.9526,
        0.00702139587261679,
        2.521331679673887e-05,
        Some(2.1686146400986317e-05),
    ),
    (
        "near",
        "NLL",
        0.9208000000000001,
        0.004604345773288539,
        0.5761007313509178,
        Some(0.008580918721924785),
    ),
    ("three", "NLL", 0.9250000000000002, 0.004582575694955844, 0.14916354291296968, None),
];

fn place_of_rows() -> Place {
    let place = Place::new();
    for (name, top1, nll) in ROWS {
        let values: Vec<(f64, f64)> =
            top1.iter().zip(nll).map(|(top1, nll)| (*top1, *nll)).collect();
        place.seeds(name, &values);
    }
    place
}

#[test]
fn means_deviations_and_p_values_are_those_of_scipy() {
    let place = place_of_rows();
    let rows = place.rows(&ROWS.map(|row| row.0)).unwrap();
    let unpaired = compare(&rows, &Settings { test: Test::Unpaired, ..DEFAULT }).unwrap();
    let paired = compare(&rows, &DEFAULT).unwrap();
    for (row, measure, mean, std, unpaired_p, paired_p) in SCIPY {
        let [one, other] = [&unpaired, &paired].map(|table| score(table, row, measure));
        for found in [one, other] {
            close(found.mean, mean);
            close(found.std.unwrap(), std);
            assert!(!found.best);
        }
        let against = one.against_best.unwrap();
        close(against.p_value, unpaired_p);
        assert!(!against.paired);
        let against = other.against_best.unwrap();
        close(against.p_value, paired_p.unwrap_or(unpaired_p));
        assert_eq!(against.paired, paired_p.is_some(), "{row}");
    }
    for measure in ["top-1", "NLL"] {
        let best = score(&paired, "full", measure);
        assert!(best.best && best.against_best.is_none(), "{measure}");
    }
}

/// The paper's † stands on the rows that the best one beats.
#[test]
fn a_dagger_marks_what_the_best_row_beats_by_more_than_chance() {
    let place = place_of_rows();
    let rows = place.rows(&ROWS.map(|row| row.0)).unwrap();
    let marked = |test: Test| -> Vec<String> {
        let table = compare(&rows, &Settings { test, ..DEFAULT }).unwrap();
        let all = names(&table).into_iter();
        all.filter(|name| score(&table, name, "top-1").is_significant())
            .map(str::to_string)
            .collect()
    };
    assert_eq!(marked(Test::Unpaired), ["none", "diagonal", "three"]);
    assert_eq!(marked(Test::PairedBySeed), ["none", "diagonal", "near", "three"]);
    let table = compare(&rows, &DEFAULT).unwrap();
    let said = table.notes.iter().any(|note| note.contains("paired where the seeds are the same"));
    assert!(said, "{:?}", table.notes);
}

#[test]
fn lower_is_better_where_it_is() {
    let row = |values: &[f64]| Values { values: values.to_vec(), seeds: None };
    let rows = [row(&[1.0, 2.0]), row(&[3.0, 4.0])];
    for measure in Measure::ALL {
        let best = scores(&rows, measure.direction(), Test::Unpaired);
        let lower = matches!(measure, Measure::Nll | Measure::Brier | Measure::Ece);
        assert_eq!(best[0].unwrap().best, lower, "{measure:?}");
        assert_eq!(best[1].unwrap().best, !lower, "{measure:?}");
    }
}

#[test]
fn equal_rows_share_the_first_place_and_infinity_has_none() {
    let row = |values: &[f64]| Values { values: values.to_vec(), seeds: None };
    let found = scores(
        &[row(&[1.0, 1.0]), row(&[1.0]), row(&[f64::INFINITY, 2.0]), row(&[])],
        Direction::Lower,
        Test::Unpaired,
    );
    assert!(found[0].unwrap().best && found[1].unwrap().best);
    let infinite = found[2].unwrap();
    assert_eq!((infinite.mean, infinite.std, infinite.against_best), (f64::INFINITY, None, None));
    assert_eq!(found[3], None);
    let hopeless = [row(&[f64::INFINITY]), row(&[f64::INFINITY])];
    let found = scores(&hopeless, Direction::Lower, Test::Unpaired);
    assert!(found.iter().all(|score| !score.unwrap().best));
    // Nothing is best of one.
    assert!(!scores(&[row(&[1.0, 2.0])], Direction::Lower, Test::Unpaired)[0].unwrap().best);
}

#[test]
fn one_run_has_no_deviation_and_no_test_and_a_note_says_so() {
    let place = Place::new();
    place.seeds("none", &[(0.7, 1.0), (0.72, 0.9)]);
    Made::new(0, 0.8, 0.5).write(&place.path("full"));
    let table = place.compare(&["none", "full"]).unwrap();
    let (none, full) = (score(&table, "none", "top-1"), score(&table, "full", "top-1"));
    assert!(full.best && full.std.is_none() && full.runs == 1);
    assert!(none.against_best.is_none() && none.std.is_some());
    let notes = table.notes.join("\n");
    assert!(notes.contains("One run, so no standard deviation and no test: full."), "{notes}");
    assert!(!notes.contains('†'), "{notes}");
}

#[test]
fn runs_without_any_spread_are_not_tested_and_a_note_says_so() {
    let place = Place::new();
    place.seeds("none", &[(0.5, 1.0), (0.5, 1.0)]);
    place.seeds("full", &[(0.75, 0.5), (0.75, 0.5)]);
    let table = place.compare(&["none", "full"]).unwrap();
    assert_eq!(score(&table, "none", "top-1").std, Some(0.0));
    assert!(!score(&table, "none", "top-1").is_significant());
    assert!(table.notes.join("\n").contains("do not vary: none."), "{:?}", table.notes);
}

#[test]
fn a_sweep_a_demo_and_a_folder_of_folders_make_a_row_of_each_point() {
    let place = Place::new();
    let points = ["head.rank=2", "head.rank=10"].map(String::from);
    for (at, point) in points.iter().enumerate() {
        Made::new(0, 0.7 + 0.1 * at as f64, 1.0).write(&place.path("sweep").join(point));
    }
    place.group("sweep", GroupKind::Sweep, &points);
    assert_eq!(names(&place.compare(&["sweep"]).unwrap()), ["head.rank=2", "head.rank=10"]);

    let members = ["none/seed-0", "none/seed-1", "full/seed-0", "full/seed-1"].map(String::from);
    for (at, member) in members.iter().enumerate() {
        Made::new(at as u64 % 2, 0.8, 0.5).write(&place.path("demo").join(member));
    }
    place.group("demo", GroupKind::Demo, &members);
    // `group` counts seeds up, so the second model has others than the first.
    let table = place.compare(&["demo"]).unwrap();
    assert_eq!(names(&table), ["none", "full"]);
    assert_eq!(score(&table, "full", "NLL").runs, 2);
    // A part of it is a folder of seeds without a list.
    let part = place.compare(&["demo/full"]).unwrap();
    assert_eq!((names(&part), score(&part, "full", "NLL").runs), (vec!["full"], 2));

    place.seeds("runs/a", &[(0.7, 1.0), (0.8, 1.1)]);
    Made::new(0, 0.7, 1.0).write(&place.path("runs/b"));
    fs::create_dir_all(place.path("runs/empty")).unwrap();
    fs::create_dir_all(place.path("runs/.tmp-old")).unwrap();
    assert_eq!(names(&place.compare(&["runs"]).unwrap()), ["a", "b"]);
    let both = place.compare(&["sweep", "x=runs"]).unwrap();
    let expected = ["sweep/head.rank=2", "sweep/head.rank=10", "x/a", "x/b"];
    assert_eq!(names(&both), expected);
}

#[test]
fn folders_of_one_name_make_one_row_and_unnamed_ones_keep_their_paths_apart() {
    let place = Place::new();
    for seed in [1, 0] {
        Made::new(seed, 0.7 + 0.01 * seed as f64, 1.0).write(&place.path(&format!("x-seed{seed}")));
        Made::new(seed, 0.7, 1.0).write(&place.path(&format!("{seed}/run")));
    }
    let table = place.compare(&["x=x-seed1", "x=x-seed0"]).unwrap();
    assert_eq!((names(&table), score(&table, "x", "top-1").runs), (vec!["x"], 2));
    let table = place.compare(&["0/run", "1/run"]).unwrap();
    assert!(names(&table)[0].ends_with("0/run") && names(&table)[1].ends_with("1/run"));
    place.refused(&["x=x-seed0", "x=x-seed0"], &DEFAULT, &["x: ", "x-seed0", "same seed"]);
    place.refused(&["x=0/run", "x=x-seed0"], &DEFAULT, &["same seed", "0/run"]);
    place.refused(&["x=x-seed0", "x"], &DEFAULT, &["no such directory"]);
}

#[test]
fn an_ensemble_is_a_row_without_a_seed() {
    let place = Place::new();
    place.seeds("full", &[(0.7, 1.0), (0.72, 0.9)]);
    let mut made = Made::new(0, 0.8, 0.5);
    made.evaluation.weights = "ensemble".to_string();
    made.write(&place.path("full/ensemble"));
    let table = place.compare(&["full"]).unwrap();
    assert_eq!(score(&table, "full", "top-1").runs, 2);
    let table = place.compare(&["single=full", "ensemble=full/ensemble"]).unwrap();
    assert!(score(&table, "ensemble", "top-1").best);
}

#[test]
fn of_a_transfer_the_mean_over_its_tasks_is_compared() {
    let place = Place::new();
    for (model, above) in [("none", 0.0), ("full", 0.1)] {
        for seed in 0..2u64 {
            let dir = format!("{model}/seed-{seed}");
            let tasks = ["birds", "digits"].map(String::from);
            for (at, task) in tasks.iter().enumerate() {
                let top1 = 0.5 + above + 0.2 * at as f64 + 0.01 * seed as f64;
                Made::new(0, top1, 1.0).write(&place.path(&dir).join(task));
            }
            place.group(&dir, GroupKind::Transfer, &tasks);
        }
    }
    let table = place.compare(&["none", "full"]).unwrap();
    let score = score(&table, "full", "top-1");
    assert_eq!(score.runs, 2);
    close(score.mean, 0.705);
    fs::remove_dir_all(place.path("full/seed-1/digits")).unwrap();
    let seed = place.path("full/seed-1").display().to_string();
    place.refused(
        &["none", "full"],
        &DEFAULT,
        &["digits is not finished", &format!("resume {seed}`")],
    );
    place.group("full/seed-1", GroupKind::Transfer, &["birds".to_string()]);
    place.refused(
        &["none", "full"],
        &DEFAULT,
        &["tasks are not the same (birds, digits and birds)"],
    );
    Made::new(0, 0.5, 1.0).write(&place.path("run"));
    place.refused(&["none", "run"], &DEFAULT, &["one is a transfer"]);
}

#[test]
fn the_split_and_the_labels_are_those_that_all_runs_have() {
    let place = Place::new();
    place.seeds("given", &[(0.7, 1.0), (0.72, 0.9)]);
    let clean = |made: &mut Made| made.test().clean = Some(summary(0.9, 0.3));
    place.seeds_with("clean", &[(0.7, 1.0), (0.72, 0.9)], clean);
    place.seeds_with("untested", &[(0.7, 1.0), (0.72, 0.9)], |made| {
        made.evaluation.test = None;
        made.info.examples.test = 0;
    });
    let first = |names: &[&str]| place.compare(names).unwrap().notes[0].clone();
    assert_eq!(
        first(&["given"]),
        "Test split (2 examples), given labels; mean ± standard deviation over 2 runs."
    );
    assert!(first(&["clean"]).contains("clean labels"));
    assert!(first(&["clean", "given"]).contains("given labels"));
    assert!(first(&["untested"]).starts_with("Validation split"));
    place.refused(&["given", "untested"], &DEFAULT, &["untested", "no test split", "--split"]);
    let wanted = |wanted: Wanted| Settings { wanted, ..DEFAULT };
    let validation = wanted(Wanted { split: Some(Split::Validation), ..Wanted::default() });
    let table = compare(&place.rows(&["given", "untested"]).unwrap(), &validation).unwrap();
    close(score(&table, "given", "top-1").mean, 0.61);
    let train = wanted(Wanted { split: Some(Split::Train), ..Wanted::default() });
    place.refused(&["given"], &train, &["train split is not evaluated"]);
    let clean = wanted(Wanted { labels: Some(Labels::Clean), ..Wanted::default() });
    place.refused(&["clean", "given"], &clean, &["given", "no clean labels", "--labels given"]);
}

#[test]
fn calibrated_numbers_are_there_or_asked_for_by_name() {
    let place = Place::new();
    let calibrated = |made: &mut Made| made.test().calibrated = Some(summary(0.7, 0.25));
    place.seeds_with("yes", &[(0.7, 1.0), (0.72, 0.9)], calibrated);
    place.seeds("no", &[(0.7, 1.0), (0.72, 0.9)]);
    let wanted = Wanted { calibrated: true, ..Wanted::default() };
    let settings = Settings { wanted, ..DEFAULT };
    let table = compare(&place.rows(&["yes"]).unwrap(), &settings).unwrap();
    close(score(&table, "yes", "NLL").mean, 0.25);
    assert!(table.notes[0].contains("calibrated"), "{:?}", table.notes);
    place.refused(&["yes", "no"], &settings, &["no/seed-0 is not calibrated", "--calibrate"]);
    let both = Wanted { labels: Some(Labels::Clean), ..wanted };
    place.refused(&["yes"], &Settings { wanted: both, ..DEFAULT }, &["given labels only"]);
}

#[test]
fn what_means_another_thing_with_another_link_has_no_best() {
    let place = Place::new();
    place.seeds("softmax", &[(0.7, 1.0), (0.72, 0.9)]);
    place.seeds_with("sigmoid", &[(0.8, 9.0), (0.82, 9.1)], |made| {
        made.info.link = Link::Sigmoid;
        made.test().given.gap = Some(0.5);
    });
    let table = place.compare(&["softmax", "sigmoid"]).unwrap();
    assert!(score(&table, "sigmoid", "top-1").best);
    assert!(!score(&table, "softmax", "NLL").best && !score(&table, "sigmoid", "NLL").best);
    assert!(table.notes.join(" ").contains("NLL, Brier, ECE of the softmax and of the sigmoid"));
    let at = table.columns.iter().position(|column| column.heading == "gAP").unwrap();
    assert_eq!(table.sections[0].rows[0].cells[at], Cell::Missing);
    let twins = place.compare(&["sigmoid"]).unwrap();
    assert_eq!(twins.columns.len(), 5);
}
