//! Data as people have them: tables whose columns are named, `.npz` files, whole numbers.

use crate::support::{Place, SMALL, npy, npy_f32, npy_i64};
use crate::zip::npz;

const ROWS: usize = 120;

/// Four features and an id, a number that gives the label away, the label and the split.
fn row(at: usize) -> [String; 8] {
    let class = at % 3;
    let feature = |column: usize| {
        let noise = (at * 7 + column * 13) % 10;
        format!("{}", noise as f32 / 10.0 + if class == column { 1.5 } else { 0.0 })
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(feature);
    let part = if at % 4 == 3 { "test" } else { "train" };
    let grape = ["barolo", "barbera", "dolcetto"][class];
    [format!("w{at}"), a, b, c, d, class.to_string(), grape.into(), part.into()]
}

const HEADER: [&str; 8] = ["bottle", "alcohol", "ash", "hue", "malic", "leak", "grape", "part"];

/// Some of the columns, in this order.
fn table(columns: &[&str]) -> String {
    let at: Vec<usize> = columns
        .iter()
        .map(|name| HEADER.iter().position(|column| column == name).unwrap())
        .collect();
    let line = |row: usize| {
        let cells = self::row(row);
        at.iter().map(|at| cells[*at].as_str()).collect::<Vec<_>>().join(",")
    };
    let lines: Vec<String> = (0..ROWS).map(line).collect();
    format!("{}\n{}\n", columns.join(","), lines.join("\n"))
}

fn trained_on_a_table() -> Place {
    let place = Place::empty();
    place.write("wine.csv", table(&HEADER));
    let columns = "--label grape --id bottle --split part --ignore leak";
    let settings = SMALL.replace(" -q", "");
    let ended = place.succeeds(&format!("train --data wine.csv {columns} {settings} --out run"));
    let said = ended.stdout + &ended.stderr;
    for words in ["4 features (alcohol, ash, hue, malic)", "labels in column \"grape\"", "\"leak\""]
    {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    place
}

#[test]
fn the_columns_of_a_table_are_named_on_the_command_line() {
    let place = trained_on_a_table();
    let info = place.json("run/run.json");
    assert_eq!(info["feature_names"], serde_json::json!(["alcohol", "ash", "hue", "malic"]));
    assert_eq!(info["class_names"], serde_json::json!(["barbera", "barolo", "dolcetto"]));
    let examples = String::from_utf8(place.read("run/examples.csv")).unwrap();
    let tested: Vec<&str> = examples.lines().filter(|line| line.contains("test")).collect();
    assert_eq!(tested.len(), ROWS / 4);
    assert!(tested.iter().all(|line| line.contains('w')), "{examples}");
    for (options, words) in [
        ("--label grapes", ["\"grapes\"", "bottle, alcohol"]),
        ("--label grape --id nobody", ["\"nobody\"", "bottle, alcohol"]),
        ("--label grape --split leak", ["\"leak\"", "train, validation or test"]),
        ("--label grape --ignore tannin", ["\"tannin\"", "bottle, alcohol"]),
    ] {
        place.refuses(&format!("train --data wine.csv {options} --out other"), &words);
    }
    assert!(!place.path("other").exists());
}

#[test]
fn new_tables_are_predicted_by_the_names_of_their_columns() {
    let place = trained_on_a_table();
    place.write("same.csv", table(&HEADER));
    place.write("shuffled.csv", table(&["malic", "grape", "ash", "bottle", "hue", "alcohol"]));
    place.succeeds("predict run same.csv --out same_p.csv");
    place.succeeds("predict run shuffled.csv --out shuffled_p.csv");
    let predicted = place.read("same_p.csv");
    assert_eq!(String::from_utf8_lossy(&predicted).lines().count(), ROWS + 1);
    assert!(String::from_utf8_lossy(&predicted).contains("\nw7,"));
    assert!(predicted == place.read("shuffled_p.csv"), "the order of columns changes nothing");
    place.write("lacking.csv", table(&["bottle", "ash", "hue"]));
    let words = ["lacking.csv", "lacks 2 of the 4", "alcohol, malic"];
    place.refuses("predict run lacking.csv", &words);
}

/// The settings without `-q`, so that the first line says what was found.
fn train(place: &Place, data: &str, out: &str) -> String {
    let settings = SMALL.replace(" -q", "");
    let ended = place.succeeds(&format!("train --data {data} {settings} --out {out}"));
    ended.stdout + &ended.stderr
}

#[test]
fn an_npz_file_trains_as_its_arrays_in_files_do() {
    let place = Place::with_features();
    let array = |name: &str| place.read(name);
    let both = [("x_train", array("x.npy")), ("y_train", array("y.npy"))];
    let test = [("x_test", array("tx.npy")), ("y_test", array("ty.npy"))];
    let members: Vec<(&str, Vec<u8>)> = both.into_iter().chain(test).collect();
    place.write("npz/arrays.npz", npz(&members, true));
    for (file, name) in [("x.npy", "x"), ("y.npy", "y"), ("tx.npy", "test_x"), ("ty.npy", "test_y")]
    {
        place.write(&format!("npy/{name}.npy"), array(file));
    }
    let said = train(&place, "npz/arrays.npz", "packed");
    for words in ["npz#x_train", "npz#y_train", "test data in arrays.npz#x_test"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    train(&place, "npy", "plain");
    let predictions = |run: &str| place.read(&format!("{run}/predictions/test.safetensors"));
    assert!(predictions("packed") == predictions("plain"), "the same numbers, the same bits");
    place.succeeds("predict packed npz/arrays.npz#x_test --out packed_p.npy");
    place.succeeds("predict plain tx.npy --out plain_p.npy");
    assert!(place.read("packed_p.npy") == place.read("plain_p.npy"));
    let words = ["arrays.npz", "more than one matrix", "#name"];
    place.refuses("predict packed npz/arrays.npz", &words);
}

#[test]
fn whole_numbers_are_features_and_that_is_said() {
    let place = Place::empty();
    let value = |at: usize| ((at % 3 == at / 3 % 3) as u8) * 40 + (at * 7 % 10) as u8;
    let bytes: Vec<u8> = (0..90 * 3).map(value).collect();
    place.write("whole/x.npy", npy("|u1", &[90, 3], bytes.clone()));
    place.write("floats/x.npy", npy_f32(&[90, 3], bytes.iter().map(|it| f32::from(*it)).collect()));
    for folder in ["whole", "floats"] {
        let labels = (0..90).map(|at| at % 3).collect();
        place.write(&format!("{folder}/y.npy"), npy_i64(&[90], labels));
    }
    let said = train(&place, "whole", "of_whole");
    assert!(said.contains("Embeddings in x.npy (uint8, read as float32)"), "{said}");
    train(&place, "floats", "of_floats");
    let predictions = |run: &str| place.read(&format!("{run}/predictions/validation.safetensors"));
    assert!(predictions("of_whole") == predictions("of_floats"));
}

#[test]
fn files_that_are_not_read_say_how_to_convert_them() {
    let place = Place::empty();
    place.write("features.pt", "PK");
    let words = ["features.pt", "torch.load(\"features.pt\", weights_only=True)", "numpy.save"];
    place.refuses("train --data features.pt --out run", &words);
    place.write("cube/x.npy", npy("|u1", &[2, 2, 2], vec![0; 8]));
    place.write("cube/y.npy", npy_i64(&[2], vec![0, 1]));
    place.refuses("train --data cube --out run", &["x.npy", "x.reshape(len(x), -1)"]);
    assert!(!place.path("run").exists());
}
