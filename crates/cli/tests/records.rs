//! Records of runs that are damaged, or that contradict what they describe: every command refuses
//! them with a message, and none takes other weights than it says.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Outcome, Place, picture};

/// Images of two classes, a run on them with two checkpoints, and a task.
fn images() -> Place {
    let place = Place::empty();
    for number in 0..20 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(8, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(8, number, true));
    }
    place.succeeds(
        "train images-diagonal --data images --set network.channels=[4,6] --set data.image_size=8 \
         --set schedule.epochs=4 --set training.min_steps=2 --set evaluation.samples=8 \
         --seed 0 -q --out run",
    );
    place.write(
        "tasks.toml",
        "recipe = \"images-none\"\n\n[tasks.a]\ndata = \"images\"\nset = [\"data.test.fraction=0.2\", \
         \"data.test.seed=0\", \"schedule.epochs=2\", \"training.min_steps=1\"]\n",
    );
    place
}

fn flip_a_byte(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(file, bytes).unwrap();
}

/// The steps that have a checkpoint.
fn steps(place: &Place) -> Vec<u64> {
    let entries = fs::read_dir(place.path("run/checkpoints")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_prefix("step-")?.parse().ok()).collect()
}

/// What an evaluation writes.
fn written(place: &Place) -> [Vec<u8>; 2] {
    ["run/evaluation.json", "run/predictions/validation.safetensors"].map(|file| place.read(file))
}

#[test]
fn a_damaged_checkpoint_is_refused_and_another_one_is_named_in_every_output() {
    let place = images();
    let (whole, scores) = (Outcome::of(&place.path("run")), written(&place));
    let predicted = place.succeeds("predict run images -q").stdout;
    let evaluated = place.json("run/evaluation.json")["step"].as_u64().unwrap();
    let other = steps(&place).into_iter().find(|step| *step != evaluated).unwrap();
    flip_a_byte(&place.path(&format!("run/checkpoints/step-{evaluated:08}/model.safetensors")));
    let commands = [
        "predict run images -q",
        "eval run -q",
        "eval run --data images -q",
        "embed images --backbone run --out e.safetensors -q",
        "transfer run tasks.toml --out transferred -q",
        "audit run --out audit -q",
    ];
    let hash = "model.safetensors: does not match its hash";
    for command in commands {
        place.refuses(command, &[hash, "aleator resume run", "--checkpoint", &other.to_string()]);
    }
    assert!(written(&place) == scores, "refused");

    let at = |command: &str| place.succeeds(&format!("{command} --checkpoint {other}")).stdout;
    let named = format!("checkpoint of step {other}");
    let table = at("predict run images -q");
    assert!(table.starts_with("id\tclass"), "{table}");
    assert!(
        table
            .lines()
            .all(|line| line.ends_with(&format!("\t{other}")) || line.ends_with("\tcheckpoint"))
    );
    let line: Value =
        serde_json::from_str(at("predict run images --json -q").lines().next().unwrap())
            .expect("a line of JSON");
    assert_eq!(line["checkpoint"], other);
    assert!(line.get("true_class").is_none(), "the law is that of other weights: {line}");
    assert!(at("predict run images --out p.csv -q").contains(&named));
    let csv = String::from_utf8(place.read("p.csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",checkpoint"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().ends_with(&format!(",{other}")), "{csv}");
    at("predict run images --out p.npy -q");
    assert_eq!(place.json("p.json")["checkpoint"], other);
    assert!(at("eval run -q").contains(&named));
    let evaluation: Value = serde_json::from_str(&at("eval run --json -q")).unwrap();
    assert_eq!(
        (&evaluation["step"], &evaluation["weights"]),
        (&json!(other), &json!("checkpoint"))
    );
    assert!(at("eval run --data images --out s.json -q").contains(&named));
    assert_eq!(place.json("s.json")["checkpoint"], other);
    assert!(at("embed images --backbone run --out e.safetensors -q").contains(&named));
    let embedded = String::from_utf8_lossy(&place.read("e.safetensors")).into_owned();
    assert!(embedded.contains(&format!("\"checkpoint\":\"{other}\"")));
    let folder = format!("step-{other:08}");
    assert!(at("transfer run tasks.toml --out transferred -q").contains(&folder));
    let weights = place.json("transferred/transfer.json")["weights"].to_string();
    assert!(weights.contains(&folder), "{weights}");
    assert!(at("audit run --out audit -q").contains(&named));
    assert_eq!(place.json("audit/audit.json")["checkpoint"], other);
    assert_eq!(place.json("audit/backbone.json")["checkpoint"], other);
    assert!(written(&place) == scores, "another checkpoint was used");

    let ended = place.succeeds("resume run -q");
    assert!(ended.stderr.contains(hash), "{}", ended.stderr);
    Outcome::of(&place.path("run")).assert_same(&whole, "made again");
    assert_eq!(place.succeeds("predict run images -q").stdout, predicted);
}

#[test]
fn a_checkpoint_is_named_only_where_there_is_one() {
    let place = Place::with_features();
    let data = "--set data.train.features=x.npy --set data.train.labels=y.npy";
    place.succeeds(&format!(
        "train features-none {data} --set tune=off --set schedule.epochs=2 --set seeds=[0,1] -q \
         --out two"
    ));
    place.refuses("predict two tx.npy --checkpoint 1", &["two", "several runs"]);
    place.refuses("predict two/ensemble tx.npy --checkpoint 1", &["ensemble", "several runs"]);
    place.refuses(
        "predict two/seed-0 tx.npy --checkpoint 99",
        &["step-00000099", "no such checkpoint"],
    );
    place.refuses("audit two/seed-0 --out audit --checkpoint 1", &["features", "no checkpoint"]);
    place.refuses("audit two/seed-0 --whole --out audit --checkpoint 1", &["--whole"]);
    place.refuses("embed x.npy --model m.onnx --out e.safetensors --checkpoint 1", &["--backbone"]);
}

/// A JSON file of a run, the place of a value in it, and a value that it must not have.
type Change = (&'static str, &'static str, Value);

#[test]
fn records_that_describe_something_else_are_refused_without_much_memory() {
    let place = Place::with_features();
    place.succeeds(
        "train features-full --set data.train.features=x.npy --set data.train.labels=y.npy \
         --set data.test.features=tx.npy --set data.test.labels=ty.npy --set tune=off \
         --set head.rank=2 --set schedule.epochs=4 --set training.validate_every=2 \
         --set evaluation.samples=8 --set evaluation.calibrate=true -q --out run",
    );
    let huge = json!(vec!["a"; 70_000]);
    let changes: Vec<Change> = vec![
        ("run.json", "/class_names", json!(["0", "1", "2"])),
        ("run.json", "/class_names", huge),
        ("run.json", "/input_shape", json!([5])),
        ("run.json", "/input_shape", json!([268_435_456])),
        ("run.json", "/input_shape", json!([3, 4000, 4000])),
        ("run.json", "/feature_names", json!(["a"])),
        ("run.json", "/link", json!("sigmoid")),
        ("run.json", "/noise/rank", json!(1_000_000)),
        ("run.json", "/examples/validation", json!(1)),
        ("evaluation.json", "/class_names", json!(["0"])),
        ("evaluation.json", "/calibration/temperature", json!(-1)),
        ("evaluation.json", "/true_class/sharpness", json!(0)),
        ("evaluation.json", "/true_class/confusion", json!([[1.0]])),
        ("evaluation.json", "/validation/per_class/0", json!([])),
        ("evaluation.json", "/test/per_class/1/class", json!(7)),
        ("evaluation.json", "/test/top1", json!(1e308)),
        ("evaluation.json", "/step", json!(1_u64 << 53)),
    ];
    for (file, pointer, value) in changes {
        let name = format!("run/{file}");
        let original = place.read(&name);
        let mut record = place.json(&name);
        match (record.pointer(pointer), pointer) {
            (None, "/feature_names") => record["feature_names"] = value.clone(),
            _ => *record.pointer_mut(pointer).expect(pointer) = value.clone(),
        }
        place.write(&name, record.to_string());
        let mut refused = 0;
        for command in
            ["predict run tx.npy", "report run --out r.html", "compare run", "resume run"]
        {
            let script = format!("ulimit -v 2097152; exec \"$ALEATOR\" {command} -q --threads 1");
            let ended = place.shell(&script);
            let refusal = ended.stderr.lines().any(|line| line.starts_with("error: "));
            let told = (ended.code == Some(0)) != refusal;
            assert!(told, "{file} {pointer} {command}: {:?} {}", ended.code, ended.stderr);
            refused += usize::from(ended.code == Some(1));
        }
        assert!(refused > 0, "{file} {pointer} was not noticed");
        place.write(&name, original);
    }
    place.succeeds("resume run -q");
}
