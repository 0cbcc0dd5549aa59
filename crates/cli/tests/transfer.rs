//! A trained network carried over to other tasks.

use crate::support::{Place, last_checkpoint, picture};

/// A run on images of stripes, and two tasks.
fn place() -> Place {
    let place = Place::empty();
    for number in 0..24 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(16, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(16, number, true));
        for split in ["train", "test"] {
            let seed = if split == "train" { number } else { 100 + number };
            place.write(&format!("task/{split}/a/{number}.ppm"), picture(20, seed, false));
            place.write(&format!("task/{split}/b/{number}.ppm"), picture(20, seed, true));
        }
    }
    place.succeeds(
        "train small/ilsvrc12-none --set data.train.images=images --set data.image_size=16 \
         --set data.validation.fraction=0.25 --set schedule.epochs=2 --set schedule.at=[1] \
         --set schedule.warm_up=0 --set evaluation.samples=4 --seed 0 -q --out run",
    );
    place.write(
        "tasks.toml",
        "recipe = \"small/transfer\"\n\n[tasks.stripes]\ndata = \"task\"\n\n[tasks.digits]\n\
         set = [\"data.train.builtin=digits\", \"data.test.fraction=0.1\", \"data.test.seed=0\"]\n",
    );
    place
}

const QUICK: &str = "--set schedule.epochs=2 --set schedule.at=[1] --set schedule.warm_up_steps=0 \
                     --set data.limit=40 --set evaluation.samples=4 -q";

#[test]
fn each_task_has_its_accuracy_and_the_table_their_mean() {
    let place = place();
    let ended = place.succeeds(&format!("transfer run tasks.toml {QUICK} --out out"));
    for word in ["stripes", "digits", "mean"] {
        assert!(ended.stdout.contains(word), "{}", ended.stdout);
    }
    let table = place.json("out/transfer.json");
    let rows = table["tasks"].as_array().unwrap();
    let tests: Vec<f64> = rows.iter().map(|row| row["test_top1"].as_f64().unwrap()).collect();
    let mean = table["mean_test_top1"].as_f64().unwrap();
    assert!((mean - tests.iter().sum::<f64>() / 2.0).abs() < 1e-12, "{table}");

    // 40 examples: 20 to learn from, 20 to watch by; a head of its own, the network of the run. The
    // run saw the central 0.875 of images of 16 pixels; the recipe has whole ones of 32.
    let info = place.json("out/digits/run.json");
    assert_eq!(info["examples"]["train"], 20);
    assert_eq!(info["input_shape"], serde_json::json!([3, 32, 32]));
    assert_eq!(info["noise"]["kind"], "none");
    let recipe = std::fs::read_to_string(place.path("out/stripes/recipe.toml")).unwrap();
    let weights = last_checkpoint(&place.path("run")).join("model.safetensors");
    assert!(recipe.contains(weights.to_str().unwrap()), "{recipe}");
    assert!(!recipe.contains("centre_crop"), "{recipe}");

    // Resumed without its second task, it comes to the same.
    std::fs::remove_dir_all(place.path("out/digits")).unwrap();
    std::fs::remove_file(place.path("out/transfer.json")).unwrap();
    let again = place.succeeds("resume out -q");
    assert_eq!(again.stdout, ended.stdout);
    assert_eq!(place.json("out/transfer.json"), table);
}

/// The columns of a table, a row for each task.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    stdout.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_dry_run_prints_what_each_task_resolves_to_and_writes_nothing() {
    let place = place();
    place.write(
        "mixed.toml",
        "recipe = \"small/transfer\"\n\n[tasks.stripes]\ndata = \"task\"\n\
         set = [\"data.augment.flip=false\", \"data.augment.crop=none\", \
         \"data.augment.area=\", \"data.augment.ratio=\"]\n\n\
         [tasks.large]\nrecipe = \"transfer/vtab-small\"\ndata = \"task\"\n",
    );
    let ended = place.succeeds("transfer run mixed.toml --dry-run -q");
    let found = rows(&ended.stdout);
    // 48 images of two classes; 20 are watched by.
    let [_, stripes, large, ..] = &found[..] else { panic!("{}", ended.stdout) };
    let whole = ["stripes", "small/transfer", "32", "none", "no", "2", "28", "20", "48"];
    assert_eq!(*stripes, whole);
    let cropped = ["large", "transfer/vtab-small", "128", "64", "%", "of", "the", "area", "yes"];
    assert_eq!(large[..9], cropped);
    assert!(ended.stdout.contains("every task begins with"), "{}", ended.stdout);
    assert!(!place.path("out").exists());

    // `--recipe` is that of every task, and a task that cannot be trained does not hide the others.
    place.write(
        "broken.toml",
        "[tasks.good]\nrecipe = \"absent\"\ndata = \"task\"\n[tasks.bad]\ndata = \"nowhere\"\n",
    );
    let ended = place.run("transfer run broken.toml --recipe small/transfer --dry-run -q");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(rows(&ended.stdout)[1][..3], ["good", "small/transfer", "32"]);
    for words in ["1 of 2 tasks cannot be trained", "bad: nowhere"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let ended = place.run("transfer run transfer/vtab-tasks --dry-run -q");
    assert!(ended.stderr.contains("19 of 19 tasks cannot be trained"), "{}", ended.stderr);
    assert!(ended.stderr.contains("vtab/smallnorb-azimuth"), "{}", ended.stderr);
}

#[test]
fn a_recipe_without_a_size_gets_that_of_the_run() {
    let place = place();
    place.write("own.toml", "base = \"small/transfer\"\nwithout = [\"data.image_size\"]\n");
    let ended = place.succeeds("transfer run tasks.toml --recipe own.toml --dry-run -q");
    assert_eq!(rows(&ended.stdout)[1][..3], ["stripes", "own.toml", "16"]);
}

#[test]
fn what_cannot_be_carried_over_is_refused() {
    let place = place();
    place.refuses("transfer run absent.toml --out out", &["absent.toml"]);
    place.refuses("transfer absent tasks.toml --out out", &["absent"]);
    place.write("none.toml", "[tasks.a]\ndata = \"images\"\n");
    place.refuses("transfer run none.toml --out out", &["task a", "no test data"]);
    place.succeeds(
        "train digits-none --set network.kind=none --set network.hidden= --set schedule.epochs=1 \
         --set schedule.warm_up=0 -q --seed 0 --out linear",
    );
    place.refuses("transfer linear tasks.toml --out out", &["linear", "no network"]);
    assert!(!place.path("out").exists());
}
