//! Finding wrong labels from the command line.

use crate::support;
use std::fs;

use crate::support::{Place, npy_f32, npy_i64, picture};

/// The cells of a CSV file without quotes, header first.
fn table(place: &Place, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    text.lines().map(|line| line.split(',').map(String::from).collect()).collect()
}

#[test]
fn wrong_labels_of_the_built_in_digits_are_found() {
    let place = Place::empty();
    let digits = "--set data.train.builtin=digits --set data.noise.kind=instance \
                  --set data.noise.rate=0.3 --set data.noise.seed=0";
    let ended = place.succeeds(&format!("audit features-audit -q {digits} --out audit"));
    assert!(ended.stdout.contains("1797 labels of 1797 examples"), "{}", ended.stdout);
    assert!(ended.stdout.contains("aleator review audit"), "{}", ended.stdout);
    let summary = place.json("audit/audit.json");
    assert_eq!(summary["folds"], 0);
    let (known, wrong) = (&summary["known"], &summary["wrong"]);
    assert!(known["auroc"].as_f64() > Some(0.95), "{known}");
    let [count, low, high] = ["count", "low", "high"].map(|it| wrong[it].as_f64().unwrap());
    let truth = known["wrong"].as_f64().unwrap();
    // Errors that follow the shapes of the digits teach the model themselves: the number itself comes
    // out at a fifth of the truth. The interval holds it, and ends near it.
    assert!((0.1..0.4).contains(&(count / truth)), "{summary}");
    assert!(low <= truth && truth <= high && high < 1.2 * truth, "{summary}");
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

/// Two clusters in five dimensions; 1 is a copy of 0 with the other label, and 2 is far away.
#[test]
fn near_duplicates_and_outliers_of_features_are_listed() {
    let place = Place::empty();
    // SplitMix64.
    let uniform = |at: usize| {
        let z = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    };
    let noise = |at: usize| (0..4).map(|part| 2.0 * uniform(4 * at + part)).sum::<f32>();
    let mut x: Vec<f32> =
        (0..300 * 5).map(|at| noise(at) + if at / 5 % 2 == 0 { 6.0 } else { 0.0 }).collect();
    x.copy_within(0..5, 5);
    x[10..15].fill(-40.0);
    let y: Vec<i64> = (0..300).map(|at| at % 2).collect();
    fs::write(place.path("x.npy"), npy_f32(&[300, 5], x)).unwrap();
    fs::write(place.path("y.npy"), npy_i64(&[300], y)).unwrap();
    let data = "--set data.train.features=x.npy --set data.train.labels=y.npy";
    let ended = place.succeeds(&format!("audit features-none -q --folds 2 {data} --out audit"));
    for words in ["Also worth a look", "1 with different labels", "far from all others"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    let pairs = table(&place, "audit/near_duplicates.csv");
    assert_eq!((pairs[1][1].as_str(), pairs[2][1].as_str()), ("0", "1"));
    assert_eq!((pairs[1][4].as_str(), pairs[1][5].as_str()), ("yes", "0.0"));
    assert_eq!(table(&place, "audit/outliers.csv")[1][0], "2");
    assert_eq!(place.json("audit/neighbours.json")["compared"], 300);
    place.succeeds("report audit --out report.html");
    let page = fs::read_to_string(place.path("report.html")).unwrap();
    assert!(page.contains("id=\"near-duplicates\"") && page.contains("id=\"outliers\""));
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
    // Ann and Cid outvote Bob, so the consensus is what they say, and training takes the file.
    let consensus = table(&place, "audit/consensus.csv");
    assert_eq!(consensus[0], ["id", "label", "probability", "majority", "annotations"]);
    let right = |(row, label): (&Vec<String>, &i64)| row[1] == label.to_string() && row[4] == "3";
    let agreed = consensus[1..].iter().zip(&labels).filter(|it| right(*it)).count();
    assert!(consensus.len() == labels.len() + 1 && agreed * 20 >= labels.len() * 19, "{agreed}");
    place.succeeds(
        "train features-none -q --set data.train.features=x.npy \
         --set data.train.labels=audit/consensus.csv --out run",
    );
}

#[test]
fn a_run_on_images_lends_its_network() {
    let place = Place::empty();
    for number in 0..24 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(16, number, false));
        // A spreadsheet would take such a name for a formula.
        place.write(&format!("images/-columns/{number}.ppm"), picture(16, number, true));
    }
    place.succeeds(
        "train images-full -q --set data.train.images=images --set data.image_size=16 \
         --set data.validation.fraction=0.25 --set head.rank=1 --set schedule.epochs=2 \
         --set schedule.warm_up=0 --set data.noise.kind=symmetric --set data.noise.rate=0.1 \
         --set data.noise.seed=0 --out run",
    );
    place.refuses(
        "audit run --folds 2 --set data.centre_crop=0.5 --out audit",
        &["data.centre_crop=0.5", "whole network"],
    );
    place.succeeds("audit run -q --set schedule.epochs=7 --out audit");
    let embeddings = place.path("audit/embeddings");
    assert!(embeddings.join("features.safetensors").exists());
    let issues = table(&place, "audit/issues.csv");
    assert_eq!(issues.len(), 1 + 48);
    assert!(issues[1][0].contains(".ppm"), "ids are those of the images: {:?}", issues[1]);
    let path = place.path("images").join(issues[1][0].trim_start_matches('\''));
    assert_eq!(issues[1][1], path.display().to_string(), "the image of each label is named");
    place.succeeds("report audit -q");
    let page = fs::read_to_string(place.path("audit/report.html")).unwrap();
    assert!(page.contains("<img"), "the page has the images behind the embeddings");
    let recipe = fs::read_to_string(place.path("audit/recipe.toml")).unwrap();
    assert!(recipe.contains("features.safetensors") && !recipe.contains("folds"), "{recipe}");
    assert!(recipe.contains("true_labels.csv") && recipe.contains("epochs = 7"), "{recipe}");
    // Embeddings that were not finished are made again.
    fs::remove_file(embeddings.join("features.safetensors")).unwrap();
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
    place.refuses("audit empty", &["run.json"]);
    assert!(!place.path("audits").exists());
    place.refuses("audit --out a", &["--data PATH"]);
    assert!(!place.path("a").exists());
}

/// Probabilities of another model for thirty examples of three classes; the labels of examples 3
/// and 7 are wrong.
fn write_probabilities(place: &Place) {
    let truth: Vec<usize> = (0..30).map(|example| example % 3).collect();
    let row = |example: usize| {
        let own = 0.6 + 0.01 * example as f32;
        (0..3).map(move |class| if class == example % 3 { own } else { (1.0 - own) / 2.0 })
    };
    let mut labels: Vec<i64> = truth.iter().map(|class| *class as i64).collect();
    place.write("true.npy", npy_i64(&[30], labels.clone()));
    (labels[3], labels[7]) = (2, 0);
    place.write("y.npy", npy_i64(&[30], labels));
    place.write("p.npy", npy_f32(&[30, 3], (0..30).flat_map(row).collect()));
    place.write("names.txt", "ant\nbee\ncat\n");
    let ids: String = (0..30).map(|example| format!("photo-{example}\n")).collect();
    place.write("ids.txt", ids);
}

const PROBABILITIES: &str = "audit --probabilities p.npy --labels y.npy -q";

#[test]
fn probabilities_of_another_model_are_audited_reported_and_reviewed() {
    let place = Place::empty();
    write_probabilities(&place);
    let files = "--names names.txt --ids ids.txt --clean true.npy";
    let ended = place.succeeds(&format!("{PROBABILITIES} {files} --out audit"));
    assert!(ended.stdout.contains("judged by the given probabilities"), "{}", ended.stdout);
    let issues = table(&place, "audit/issues.csv");
    let first: Vec<&[String]> = issues[1..3].iter().map(|row| &row[..4]).collect();
    assert_eq!(first[0], ["photo-7", "", "ant", "bee"], "{issues:?}");
    assert_eq!(first[1], ["photo-3", "", "cat", "ant"], "{issues:?}");
    let summary = place.json("audit/audit.json");
    assert_eq!((&summary["folds"], &summary["known"]["wrong"]), (&0.into(), &2.into()));
    assert_eq!(summary["settings"]["sharpness"], 2.0);
    assert_eq!(summary["self_confidence"].as_array().unwrap().len(), 3);
    for file in ["classes.csv", "pairs.csv", "examples.csv"] {
        assert!(place.path(&format!("audit/{file}")).is_file(), "{file}");
    }
    place.succeeds("report audit -q");
    let page = String::from_utf8(place.read("audit/report.html")).unwrap();
    assert!(page.contains("photo-7") && page.contains("by given probabilities"), "{page}");
    assert!(page.contains("p.npy --labels") && page.contains("--out again"), "{page}");
    place.succeeds("review audit --export");
    assert_eq!(table(&place, "audit/corrected.csv").len(), 1 + 30);
    // The same files make the same findings, whatever the number of threads.
    place.succeeds(&format!("{PROBABILITIES} {files} --out again --threads 1"));
    for file in ["issues.csv", "classes.csv", "pairs.csv", "audit.json"] {
        let read = |dir: &str| place.read(&format!("{dir}/{file}"));
        assert_eq!(read("audit"), read("again"), "{file}");
    }
}

#[test]
fn probabilities_come_from_tables_and_logarithms_too() {
    let place = Place::empty();
    write_probabilities(&place);
    place.succeeds(&format!("{PROBABILITIES} --out plain"));
    // Scores have all their digits, of which the last depend on how probabilities are written.
    let issues = |dir: &str| -> Vec<String> {
        let text = String::from_utf8(place.read(&format!("{dir}/issues.csv"))).unwrap();
        let cell = |cell: &str| match cell.parse::<f64>() {
            Ok(number) => format!("{number:.5}"),
            Err(_) => cell.to_string(),
        };
        text.split([',', '\n']).map(cell).collect()
    };
    let plain = issues("plain");
    let values: Vec<f32> = place.read("p.npy")[128..]
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let row = |row: &[f32]| format!("{},{},{}\n", row[0], row[1], row[2]);
    let text: String = values.chunks_exact(3).map(row).collect();
    place.write("p.csv", format!("ant,bee,cat\n{text}"));
    place.succeeds("audit --probabilities p.csv --labels y.npy -q --out csv");
    assert_eq!(plain, issues("csv"));
    place.write("log.npy", npy_f32(&[30, 3], values.iter().map(|p| p.ln()).collect()));
    place.succeeds("audit --probabilities log.npy --log-probabilities --labels y.npy -q --out log");
    assert_eq!(plain, issues("log"));
    let on = |example: i64| [0, 1, 2].map(|class| i64::from(class == example % 3));
    place.write("on.npy", npy_i64(&[30, 3], (0..30).flat_map(on).collect()));
    place.succeeds("audit --probabilities p.npy --labels on.npy --multilabel -q --out multi");
    assert_eq!(table(&place, "multi/issues.csv").len(), 1 + 90);
    let votes: String = (0..30)
        .map(|it| format!("{it},ann,{}\n{it},bob,{}\n", it % 3, (it + it / 20) % 3))
        .collect();
    place.write("votes.csv", format!("example,annotator,label\n{votes}"));
    place.succeeds("audit --probabilities p.npy --labels votes.csv -q --out votes");
    assert_eq!(table(&place, "votes/annotators.csv")[1][0], "bob");
}

#[test]
fn bad_probabilities_are_refused_with_what_to_do() {
    let place = Place::empty();
    write_probabilities(&place);
    let refuses = |arguments: &str, words: &[&str]| {
        place.refuses(&format!("audit -q --out a {arguments}"), words);
        assert!(!place.path("a").exists());
    };
    place.write("logits.npy", npy_f32(&[30, 3], vec![2.0; 90]));
    refuses("--probabilities logits.npy --labels y.npy", &["logits.npy", "row 0", "softmax"]);
    place.write("minus.npy", npy_f32(&[30, 3], vec![-1.0; 90]));
    refuses("--probabilities minus.npy --labels y.npy", &["row 0", "--log-probabilities"]);
    place.write("nan.npy", npy_f32(&[30, 3], vec![f32::NAN; 90]));
    refuses("--probabilities nan.npy --labels y.npy", &["nan.npy: row 0, class 0", "NaN"]);
    place.write("flat.npy", npy_f32(&[90], vec![0.5; 90]));
    refuses("--probabilities flat.npy --labels y.npy", &["[N, K]", "[90]"]);
    place.write("few.npy", npy_i64(&[2], vec![0, 1]));
    refuses("--probabilities p.npy --labels few.npy", &["few.npy", "2 rows", "30 examples"]);
    place.write("high.npy", npy_i64(&[30], vec![3; 30]));
    refuses("--probabilities p.npy --labels high.npy", &["high.npy", "row 0", "3 classes"]);
    place.write("two.txt", "ant\nbee\n");
    refuses("--probabilities p.npy --labels y.npy --names two.txt", &["2 names", "3 classes"]);
    place.write("words.txt", "ant\n".repeat(30));
    refuses("--probabilities p.npy --labels words.txt", &["1 classes", "3 classes", "per line"]);
    let on = npy_i64(&[30, 3], vec![1; 90]);
    place.write("on.npy", on);
    refuses("--probabilities p.npy --labels on.npy", &["zeros and ones", "--multilabel"]);
    place.write("taken/file", "x");
    let taken = place.run(&format!("{PROBABILITIES} --out taken"));
    assert!(taken.code == Some(1) && taken.stderr.contains("taken exists"), "{}", taken.stderr);
    let usage = place.run("audit features-full --probabilities p.npy --labels y.npy --out a");
    assert!(usage.code == Some(2) && usage.stderr.contains("cannot be used"), "{}", usage.stderr);
}
