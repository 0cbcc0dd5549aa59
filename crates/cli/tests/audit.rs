//! Finding wrong labels from the command line.

use crate::support;
use std::fs;

use crate::support::{Place, picture};

const DIGITS: &str = "audit digits-full -q --folds 3";

/// The cells of a CSV file without quotes, header first.
fn table(place: &Place, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    text.lines().map(|line| line.split(',').map(String::from).collect()).collect()
}

#[test]
fn wrong_labels_of_the_built_in_digits_are_found() {
    let place = Place::empty();
    let ended = place.succeeds(&format!("{DIGITS} --out audit"));
    assert!(ended.stdout.contains("1797 labels of 1797 examples"), "{}", ended.stdout);
    assert!(ended.stdout.contains("aleator review audit"), "{}", ended.stdout);
    let summary = place.json("audit/audit.json");
    assert_eq!(summary["folds"], 3);
    let (known, wrong) = (&summary["known"], &summary["wrong"]);
    assert!(known["auroc"].as_f64() > Some(0.9), "{known}");
    let share = wrong["count"].as_f64().unwrap() / known["wrong"].as_f64().unwrap();
    // Of 64 pixels no more can be seen; with better features the number is closer.
    assert!((0.5..1.2).contains(&share), "{summary}");
    let issues = table(&place, "audit/issues.csv");
    assert_eq!(issues.len(), 1 + 1797);
    let [given, suggested, truth] = ["given", "suggested", "true"]
        .map(|name| issues[0].iter().position(|it| it == name).unwrap());
    let right = issues[1..51].iter().filter(|row| row[suggested] == row[truth]).count();
    assert!(right > 40, "{right} of the surest 50 suggestions are right");
    assert!(issues[1..51].iter().all(|row| row[given] != row[suggested]));
    assert_eq!(table(&place, "audit/classes.csv").len(), 11);
    assert_eq!(table(&place, "audit/pairs.csv").len(), 101);
    assert!(!place.path("audit/annotators.csv").exists());
}

#[test]
fn an_audit_that_is_killed_goes_on_to_the_same_findings() {
    let place = Place::empty();
    place.succeeds(&format!("{DIGITS} --out whole"));
    let mut started = place.start(&format!("{DIGITS} --out killed"));
    started.wait_until(|| place.path("killed/fold-1/metrics.jsonl").exists());
    assert!(started.kill(), "it ended before it could be killed");
    assert!(!place.path("killed/audit.json").exists());
    place.succeeds("resume killed -q --threads 1");
    for file in ["issues.csv", "classes.csv", "pairs.csv", "audit.json"] {
        let read = |dir: &str| fs::read(place.path(&format!("{dir}/{file}"))).unwrap();
        assert_eq!(read("whole"), read("killed"), "{file}");
    }
}

#[test]
fn entries_of_multi_hot_rows_are_ranked() {
    let place = Place::with_multi_hot();
    // Class 0 of the first eight rows is turned.
    let labels = fs::read(place.path("y.npy")).unwrap();
    let start = labels.len() - 160 * 4 * 8;
    let mut turned = labels.clone();
    for row in 0..8 {
        let at = start + row * 4 * 8;
        turned[at] = 1 - turned[at];
    }
    fs::write(place.path("y.npy"), &turned).unwrap();
    place.succeeds(
        "audit multilabel-full -q --folds 4 --set data.train.features=x.npy \
         --set data.train.labels=y.npy --out audit",
    );
    let issues = table(&place, "audit/issues.csv");
    assert_eq!(issues.len(), 1 + 160 * 4);
    let row_of = |cells: &Vec<String>| cells[0].parse::<usize>().unwrap();
    let found = issues[1..25].iter().filter(|cells| row_of(cells) < 8 && cells[2] == "0").count();
    assert!(found >= 4, "{found} of 8 turned entries among the first 24: {:?}", &issues[..12]);
    assert!(issues[1..].iter().all(|cells| cells[3] != cells[4]), "on is suggested for off");
}

#[test]
fn annotators_are_judged_too() {
    let place = Place::with_features();
    let labels = support::read_npy_i64(&fs::read(place.path("y.npy")).unwrap());
    // Ann is always right, Bob says the next class for every third example.
    let bob = |at: usize, label: i64| if at.is_multiple_of(3) { (label + 1) % 4 } else { label };
    let rows = labels.iter().enumerate().map(|(at, label)| {
        format!("{at},ann,{label}\n{at},bob,{}\n{at},cid,{label}\n", bob(at, *label))
    });
    let text: String =
        std::iter::once("example,annotator,label\n".to_string()).chain(rows).collect();
    place.write("votes.csv", text);
    place.succeeds(
        "audit features-full -q --folds 4 --set data.train.features=x.npy \
         --set data.train.labels=votes.csv --out audit",
    );
    let annotators = table(&place, "audit/annotators.csv");
    assert_eq!(annotators[1][0], "bob", "{annotators:?}");
    let rate: f64 = annotators[1][2].parse().unwrap();
    assert!((0.2..0.45).contains(&rate), "{annotators:?}");
}

#[test]
fn a_run_on_images_lends_its_network() {
    let place = Place::empty();
    for number in 0..24 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(16, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(16, number, true));
    }
    place.succeeds(
        "train images-full -q --set data.train.images=images --set data.image_size=16 \
         --set data.validation.fraction=0.25 --set head.rank=1 --set schedule.epochs=2 \
         --set schedule.warm_up=0 --out run",
    );
    place.succeeds("audit run -q --folds 2 --out audit");
    let embeddings = place.path("audit/embeddings");
    assert!(embeddings.join("features.safetensors").exists());
    let issues = table(&place, "audit/issues.csv");
    assert_eq!(issues.len(), 1 + 48);
    assert!(issues[1][0].contains(".ppm"), "ids are those of the images: {:?}", issues[1]);
    let recipe = fs::read_to_string(place.path("audit/recipe.toml")).unwrap();
    assert!(recipe.contains("features.safetensors") && !recipe.contains("folds"), "{recipe}");
    // Embeddings that were not finished are made again.
    fs::remove_file(embeddings.join("features.safetensors")).unwrap();
    fs::remove_dir_all(place.path("audit/fold-1")).unwrap();
    fs::remove_file(place.path("audit/audit.json")).unwrap();
    let before = fs::read(place.path("audit/issues.csv")).unwrap();
    place.succeeds("resume audit -q");
    assert_eq!(before, fs::read(place.path("audit/issues.csv")).unwrap());
}

#[test]
fn bad_audits_are_refused_with_what_to_do() {
    let place = Place::with_features();
    let features = "--set data.train.features=x.npy --set data.train.labels=y.npy";
    place.refuses(&format!("audit features-full {features} --folds 1 --out a"), &["at least 2"]);
    place.refuses(
        &format!("audit features-full {features} --folds 900 --out a"),
        &["160 examples", "folds"],
    );
    let seeds = "--set seeds=[0,1]";
    place.refuses(
        &format!("audit features-full {features} {seeds} --out a"),
        &["one seed", "--seed 0"],
    );
    place.write("taken/file", "x");
    place.refuses(&format!("audit features-full {features} --out taken"), &["taken exists"]);
    place.write("empty/file", "x");
    place.refuses("audit empty --out a", &["run.json"]);
    place.refuses("audit --out a", &["--data PATH"]);
    assert!(!place.path("a").exists());
}
