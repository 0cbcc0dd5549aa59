//! Training on images from the command line: networks, augmentation, weights, files that are bad.

use std::fs;

use crate::support::{Outcome, Place, last_checkpoint, picture, sgd};
use serde_json::Value;

/// Two classes that differ in what is where, in a folder for each.
fn place() -> Place {
    let place = Place::empty();
    for number in 0..24 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(16, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(16, number, true));
    }
    place
}

/// A ResNet-20 on images of 16 pixels, varied by everything that there is.
fn resnet(out: &str) -> String {
    format!(
        "train images-full --set data.train.images=images --set data.image_size=16 \
         --set data.validation.fraction=0.25 --set network.kind=resnet-20 --set network.channels= \
         --set network.norm_momentum=0.5 --set network.norm_epsilon=1e-5 \
         --set network.normalize=none --set data.augment= --set data.augment.crop=inception \
         --set data.augment.area=[0.5,1.0] --set data.augment.ratio=[0.75,1.3333] \
         --set data.augment.flip=true --set data.augment.operations=1 \
         --set data.augment.magnitude=3 --set data.augment.mixup=0.2 --set head.rank=1 \
         --set head.samples=8 --set evaluation.samples=16 --set schedule.epochs=2 \
         --set schedule.warm_up=0 --set training.min_steps= --set training.batch=8 --set training.parts=2 \
         --set checkpoint.every_steps=2 {} -q --out {out}",
        sgd("0.02", "0.9", true)
    )
}

#[test]
fn a_residual_network_that_is_killed_comes_to_the_same_bits() {
    let place = place();
    place.succeeds(&format!("{} --threads 2", resnet("whole")));
    let whole = Outcome::of(&place.path("whole"));
    let mut started = place.start(&format!("{} --threads 1", resnet("killed")));
    started.wait_until(|| place.lines("killed/metrics.jsonl") >= 4);
    assert!(started.kill(), "it ended before it could be killed");
    place.succeeds("resume killed -q --threads 2");
    Outcome::of(&place.path("killed")).assert_same(&whole, "killed, then other threads");

    // Running statistics are learned beside the weights, and are no parameters.
    let weights =
        fs::read(last_checkpoint(&place.path("whole")).join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&weights).unwrap();
    let names = tensors.names();
    let running = names.iter().find(|name| name.ends_with("running_mean")).unwrap();
    let moved = tensors.tensor(running).unwrap().data().iter().any(|byte| *byte != 0);
    assert!(moved, "{running} stayed at zero");
}

#[test]
fn a_frozen_network_keeps_the_weights_that_it_began_with() {
    let place = place();
    place.succeeds(&resnet("first"));
    let first = last_checkpoint(&place.path("first")).join("model.safetensors");
    let frozen = format!(
        "{} --set network.pretrained={} --set network.frozen=true --seed 5",
        resnet("second"),
        first.display()
    );
    place.succeeds(&frozen);
    let second = last_checkpoint(&place.path("second")).join("model.safetensors");
    let (before, after) = (fs::read(&first).unwrap(), fs::read(second).unwrap());
    let before = safetensors::SafeTensors::deserialize(&before).unwrap();
    let after = safetensors::SafeTensors::deserialize(&after).unwrap();
    for (name, tensor) in before.tensors() {
        let same = tensor.data() == after.tensor(&name).unwrap().data();
        assert_eq!(same, !name.starts_with("output."), "{name}");
    }
    let info = place.json("second/run.json");
    assert_eq!(info["pretrained"].as_str().map(str::len), Some(64), "{info}");
}

#[test]
fn weights_that_do_not_fit_are_refused_with_what_to_do() {
    let place = place();
    place.write("text.safetensors", "not weights at all");
    let with = |file: &str| format!("{} --set network.pretrained={file}", resnet("run"));
    place.refuses(&with("absent.safetensors"), &["absent.safetensors"]);
    place.refuses(&with("text.safetensors"), &["text.safetensors"]);
    place.succeeds(&resnet("small"));
    let weights = last_checkpoint(&place.path("small")).join("model.safetensors");
    let other = with(&weights.display().to_string()).replace("resnet-20", "resnet-56");
    place.refuses(&other, &["model.safetensors"]);
    assert!(!place.path("run").exists(), "nothing is written before the weights are seen to fit");
}

#[test]
fn an_image_that_is_too_small_for_a_network_is_said_before_anything_is_written() {
    let place = place();
    let command = resnet("run").replace("resnet-20", "inception-resnet-v2");
    place.refuses(&command, &["network.kind", "75"]);
    assert!(!place.path("run").exists());
}

#[test]
fn files_that_cannot_be_decoded_are_set_aside_by_name() {
    let place = Place::empty();
    for number in 0..120 {
        let class = if number % 2 == 0 { "even" } else { "odd" };
        place.write(&format!("images/{class}/{number}.ppm"), picture(8, number, number % 2 == 0));
    }
    place.write("images/odd/broken.jpg", "I am a text");
    let command = "train images-none --set data.train.images=images --set data.image_size=8 \
                   --set network.channels=[4] --set schedule.epochs=1 --set schedule.warm_up=0 \
                   --set evaluation.samples=16 --out run";
    let ended = place.succeeds(command);
    assert!(ended.stderr.contains("odd/broken.jpg"), "{}", ended.stderr);
    assert!(ended.stdout.contains("1 image that cannot be decoded was left out"), "{ended:?}");
    let info = place.json("run/run.json");
    let set_aside = info["set_aside"].as_array().unwrap();
    assert_eq!((set_aside.len(), &set_aside[0]["id"]), (1, &Value::from("odd/broken.jpg")));
    let examples = fs::read_to_string(place.path("run/examples.csv")).unwrap();
    assert_eq!(examples.lines().count(), 1 + 120);
    assert!(!examples.contains("broken"));
    // The run is evaluated again without what was set aside.
    let first = place.json("run/evaluation.json");
    place.succeeds("eval run -q");
    assert_eq!(place.json("run/evaluation.json"), first);

    // The labels of an audit of the run do not name it, and are trained on all the same.
    place.succeeds("audit run -q --accept 0.9 --out audit");
    for file in ["corrected", "pruned", "weights"] {
        let labels = format!("--set data.train.labels=audit/{file}.csv --out {file}");
        let ended = place.succeeds(&command.replace("--out run", &labels));
        assert!(ended.stderr.contains("of the 121 examples"), "{file}: {}", ended.stderr);
        assert!(place.path(&format!("{file}/evaluation.json")).exists(), "{file}");
    }

    for number in 0..3 {
        place.write(&format!("images/even/bad-{number}.png"), "no picture");
    }
    let many = command.replace("--out run", "--out many");
    place.refuses(&many, &["bad-0.png", "%"]);
    assert!(!place.path("many").exists());
}

#[test]
fn the_doctor_says_what_is_in_a_folder() {
    let place = place();
    place.write("images/stripes/same.ppm", picture(16, 3, true));
    place.write("images/stripes/text.png", "no picture");
    let ended = place.succeeds("doctor images -q");
    for words in ["stripes", "columns", "text.png", "same.ppm"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    let printed = place.succeeds("doctor images --json -q").stdout;
    let json: Value = serde_json::from_str(&printed).unwrap();
    assert!(json.is_object(), "{printed}");
    place.refuses("doctor nowhere", &["nowhere"]);
}

/// The embeddings in a file, and their shape.
fn embeddings(place: &Place, name: &str) -> (Vec<usize>, Vec<f32>) {
    let bytes = fs::read(place.path(name)).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let features = tensors.tensor("features").unwrap();
    let (numbers, _) = features.data().as_chunks::<4>();
    let values = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (features.shape().to_vec(), values)
}

#[test]
fn a_trained_network_makes_embeddings_that_do_not_depend_on_the_batch() {
    let place = place();
    place.succeeds(&resnet("run"));
    place.succeeds("embed images --backbone run --out all.safetensors -q");
    place.succeeds("embed images --backbone run --batch 5 --out few.safetensors -q");
    let (shape, all) = embeddings(&place, "all.safetensors");
    assert_eq!(shape, [48, 64]);
    let (first, rest) = all.split_at(64);
    assert!(rest.chunks_exact(64).any(|other| other != first), "all images have one embedding");
    let (_, few) = embeddings(&place, "few.safetensors");
    for (a, b) in all.iter().zip(&few) {
        // Statistics of the run, not of the batch: only rounding may differ.
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{a} in one batch, {b} in another");
    }
    place.refuses("embed images --backbone images --out x.safetensors", &["run.json"]);
    assert!(!place.path("x.safetensors").exists());
}

/// Writes the network of a run's last checkpoint as others would publish it.
fn publish(place: &Place, run: &str, name: &str) {
    let bytes = fs::read(last_checkpoint(&place.path(run)).join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let published = tensors.iter().filter_map(|(key, view)| {
        let key = key.strip_prefix("network.Image.trunk.Residual.")?;
        let key = key.replace(".scale", ".weight").replace(".shift", ".bias");
        Some((key.replace("running_variance", "running_var"), view))
    });
    let bytes = safetensors::serialize(published, None).unwrap();
    place.write(name, bytes);
}

const FEW: &str = "--set schedule.epochs=1 --set schedule.warm_up=0 --set head.rank=1 --set \
                   head.samples=8 --set evaluation.samples=16 --set training.min_steps=2 -q";

#[test]
fn fine_tuning_needs_the_data_and_a_file_of_weights_and_nothing_else() {
    let place = place();
    place.succeeds(&resnet("first"));
    publish(&place, "first", "small.safetensors");
    place.succeeds(&format!("train --data images --weights small.safetensors {FEW} --out tuned"));
    let recipe = fs::read_to_string(place.path("tuned/recipe.toml")).unwrap();
    // The images have 16 pixels, and the network was made for 32.
    for line in [
        "kind = \"resnet-20\"",
        "norm_epsilon = 1e-5",
        "image_size = 32",
        "channels = 3",
        "pixel_values = \"imagenet\"",
        "noise = \"full\"",
    ] {
        assert!(recipe.contains(line), "{line} is not in\n{recipe}");
    }
    // A name means the file of this name.
    fs::copy(place.path("small.safetensors"), place.path("resnet_20.safetensors")).unwrap();
    let named = "train finetune-none --data images --weights resnet-20 --set network.frozen=true";
    place.succeeds(&format!("{named} {} --out named", FEW.replace("--set head.rank=1", "")));

    place.refuses("train finetune-full --data images", &["--weights", "docs/weights.md"]);
    place.refuses("train finetune-full --set data.train.images=images", &["--weights"]);
    place.refuses("train --data images --weights resnet-50", &["resnet_50.safetensors"]);
    place.refuses("train --data images --weights none.safetensors", &["none.safetensors"]);
    place.refuses("train --data images --weights images/stripes/1.ppm", &["1.ppm", "safetensors"]);
    let other = "train images-none --data images --weights small.safetensors";
    place.refuses(other, &["images-none", "finetune-none"]);
}

#[test]
fn photographs_lead_to_advice_with_the_command_to_type() {
    let place = Place::empty();
    for number in 0..6 {
        place.write(&format!("photos/a/{number}.ppm"), picture(80, number, false));
        place.write(&format!("photos/b/{number}.ppm"), picture(80, number, true));
    }
    let command = "aleator train finetune-full --data photos --weights";
    let doctor = place.succeeds("doctor photos -q").stdout;
    assert!(doctor.contains(command) && doctor.contains("aleator embed photos"), "{doctor}");
    let few = FEW.replace(" -q", "");
    let train = place.succeeds(&format!("train --data photos {few} --set network.channels=[2]"));
    assert!(train.stderr.contains(command), "{}", train.stderr);
}

#[test]
fn an_image_that_cannot_be_decoded_is_left_out_of_a_prediction() {
    let place = place();
    place.succeeds(&format!(
        "train images-full --set data.train.images=images --set data.image_size=16 \
         --set network.channels=[2] {FEW} --out run"
    ));
    for number in 0..3 {
        place.write(&format!("new/{number}.ppm"), picture(16, number, false));
    }
    let whole = place.succeeds("predict run new").stdout;
    place.write("new/1.ppm", "P6 16 16 255 and no more");
    let ended = place.succeeds("predict run new");
    assert!(ended.stderr.contains("warning: 1.ppm: "), "{}", ended.stderr);
    let expected: Vec<&str> = whole.lines().filter(|line| !line.starts_with("1.ppm")).collect();
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), expected);

    let ended = place.succeeds("predict run new --out p.csv");
    assert!(ended.stdout.contains("2 examples, 2 classes"), "{}", ended.stdout);
    assert!(ended.stderr.contains("1.ppm"), "{}", ended.stderr);
    assert_eq!(place.lines("p.csv"), 1 + 2);
    // Rows of a matrix stay in their places.
    place.succeeds("predict run new --out p.npy");
    let bytes = place.read("p.npy");
    let (words, _) = bytes[bytes.len() - 24..].as_chunks();
    let missing: Vec<bool> = words.iter().map(|word| f32::from_le_bytes(*word).is_nan()).collect();
    assert_eq!(missing, [false, false, true, true, false, false]);
    assert_eq!(place.json("p.json")["ids"].as_array().unwrap().len(), 3);

    for number in [0, 2] {
        place.write(&format!("new/{number}.ppm"), "P6 16 16 255 and no more");
    }
    place.refuses("predict run new", &["0.ppm", "none of the 3 images can be decoded"]);
    place.refuses("predict run new --out q.csv", &["none of the 3 images"]);
    assert!(!place.path("q.csv").exists());
}
