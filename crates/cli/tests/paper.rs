//! The paper's recipes start and take steps, at their full network and number of classes.
//!
//! Of each folder one recipe is tried; `ALEATOR_SLOW=1` tries all of them.

use std::env;

use crate::support::{Place, picture};
use serde_json::Value;

/// Enough for two steps of two images, and two to hold out.
const EXAMPLES: usize = 6;

/// A folder for each class, with an image in it.
fn place(classes: usize) -> Place {
    let place = Place::empty();
    for class in 0..classes {
        place.write(&format!("images/{class:05}/one.ppm"), picture(12, class, class % 2 == 0));
    }
    place
}

/// What makes any of the recipes end after two steps; network, head and optimizer are the paper's.
fn quick(recipe: &str) -> String {
    format!(
        "train {recipe} --set data.train.images=images --set data.limit={EXAMPLES} \
         --set data.validation= --set data.test= --set data.validation.fraction=0.34 \
         --set data.validation.seed=0 --set schedule= --set schedule.kind=constant \
         --set schedule.epochs=1 --set schedule.warm_up_steps=1000 --set training.batch=2 \
         --set training.parts=1 --set checkpoint.every_steps= --set checkpoint.keep=1 \
         --set evaluation.samples=8 --set evaluation.batch=2 --set evaluation.loadings_mib=0 \
         --seed 0 -q --out run"
    )
}

fn takes_steps(recipe: &str, classes: usize, parameters: usize) {
    let place = place(classes);
    let ended = place.run(&quick(recipe).replace(" -q", ""));
    assert_eq!(ended.code, Some(0), "{recipe}: {}", ended.stderr);
    let learned = format!("{parameters} parameters, 1 epochs of 2 steps");
    assert!(ended.stderr.contains(&learned), "{recipe}: no {learned:?} in {}", ended.stderr);
    let log = String::from_utf8(place.read("run/metrics.jsonl")).unwrap();
    let losses: Vec<f64> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line["loss"].as_f64())
        .collect();
    assert!(
        losses.len() >= 2 && losses.iter().all(|loss| loss.is_finite()),
        "{recipe}: {losses:?}"
    );
    assert_eq!(place.json("run/run.json")["class_names"].as_array().unwrap().len(), classes);
}

/// Parameters of ResNet-152 and ResNet-50 of the second version, and of Inception-ResNet-v2,
/// before the head.
const RESNET_152: usize = 58_136_128;
const RESNET_50: usize = 23_500_352;
const INCEPTION: usize = 54_276_192;

/// Of a head on D features: μ, and as the noise wants d, v and V.
fn head(width: usize, classes: usize, noise: &str, rank: usize) -> usize {
    let dense = |outputs: usize| (width + 1) * outputs;
    match noise {
        "none" => dense(classes),
        "diagonal" => 2 * dense(classes),
        "full" => 2 * dense(classes) + dense(classes * rank),
        _ => 3 * dense(classes) + classes * rank,
    }
}

#[test]
fn ilsvrc12_takes_steps_with_all_its_parameters() {
    assert_eq!(RESNET_152 + head(2048, 1000, "full", 15), 92_969_128);
    takes_steps("ilsvrc12/full", 1000, 92_969_128);
}

#[test]
fn webvision_takes_steps_with_all_its_parameters() {
    takes_steps("webvision/diagonal", 1000, INCEPTION + head(1536, 1000, "diagonal", 0));
}

#[test]
fn a_task_of_transfer_takes_steps() {
    takes_steps("transfer/vtab-small", 10, RESNET_50 + head(2048, 10, "none", 0));
}

/// JFT has over 17,000 classes.
#[test]
fn jft_takes_steps_at_its_number_of_classes() {
    takes_steps("jft/none", 17_000, RESNET_50 + head(2048, 17_000, "none", 0));
}

#[test]
fn every_other_recipe_takes_steps_where_time_allows() {
    if env::var_os("ALEATOR_SLOW").is_none() {
        return;
    }
    for (recipe, classes, parameters) in [
        ("ilsvrc12/none", 1000, 60_185_128),
        ("ilsvrc12/none-equal-parameters", 1000, 93_200_628),
        ("ilsvrc12/none-sigmoid", 1000, 60_185_128),
        ("ilsvrc12/full-sigmoid", 1000, 92_969_128),
        ("ilsvrc12/diagonal", 1000, RESNET_152 + head(2048, 1000, "diagonal", 0)),
        ("webvision/none", 1000, INCEPTION + head(1536, 1000, "none", 0)),
        ("webvision/full", 1000, INCEPTION + head(1536, 1000, "full", 15)),
        ("imagenet21k/none", 21_843, RESNET_152 + head(2048, 21_843, "none", 0)),
        ("imagenet21k/diagonal", 21_843, RESNET_152 + head(2048, 21_843, "diagonal", 0)),
        ("imagenet21k/shared", 21_843, RESNET_152 + head(2048, 21_843, "shared", 50)),
        ("jft/diagonal", 17_000, RESNET_50 + head(2048, 17_000, "diagonal", 0)),
        ("jft/shared", 17_000, RESNET_50 + head(2048, 17_000, "shared", 50)),
        ("ensembles/none", 1000, RESNET_50 + head(2048, 1000, "none", 0)),
        ("ensembles/full", 1000, RESNET_50 + head(2048, 1000, "full", 15)),
        ("transfer/vtab", 10, RESNET_50 + head(2048, 10, "none", 0)),
    ] {
        takes_steps(recipe, classes, parameters);
    }
}
