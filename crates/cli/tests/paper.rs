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

fn takes_steps(recipe: &str, classes: usize, parameters: usize) -> Place {
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
    place
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

/// Section 2: V(x) of Imagenet-21k "requires over 2.2B parameters", in the parameter-efficient
/// version "~44.8M, a ~50× reduction" (D6: v(x) has an entry for each class).
#[test]
fn shared_factors_have_44_8_million_parameters_in_place_of_2_2_billion() {
    let place = Place::empty();
    let counts = |arguments: &str| -> Vec<usize> {
        let ended = place.succeeds(&format!("recipes --parameters {arguments}"));
        let rows = ["network", "mean", "d(x)", "V", "v(x)", "total"].map(|row| {
            let line = ended.stdout.lines().find(|line| line.starts_with(&format!("{row} ")));
            let line = line.unwrap_or_else(|| panic!("no {row}: {}", ended.stdout));
            line.rsplit(' ').next().unwrap().replace(',', "").parse().unwrap()
        });
        rows.to_vec()
    };
    let layer = 44_756_307;
    let shared = counts("imagenet21k/shared --classes 21843");
    assert_eq!(shared, [RESNET_152, layer, layer, 1_092_150, layer, 193_497_199]);
    let full = counts("imagenet21k/shared --set head.noise=full --classes 21843");
    assert_eq!(full[..3], [RESNET_152, layer, layer]);
    assert_eq!((full[3], full[4]), (2_237_815_350, 0));
    assert_eq!(full[5], full[..5].iter().sum::<usize>());
    assert_eq!(full[3] / shared[4], 50);
    // What the recipe does not know is asked for, by the flag that gives it.
    place.refuses("recipes --parameters webvision/full", &["webvision/full", "--classes K"]);
    place.refuses("recipes --parameters features-full", &["--features D", "data.train.features"]);
    assert_eq!(counts("features-none --features 8 --classes 3")[1], 27);
    assert_eq!(counts("features-none --features 8 --set data.classes=3")[1], 27);
    // Data that are there are looked at.
    assert_eq!(counts("digits-none")[5], (64 + 1) * 64 + (64 + 1) * 10);
}

#[test]
fn ilsvrc12_takes_steps_with_all_its_parameters() {
    assert_eq!(RESNET_152 + head(2048, 1000, "full", 15), 92_969_128);
    let place = takes_steps("ilsvrc12/full", 1000, 92_969_128);
    // Tables 4 and 5 and Figure 2 without stored loadings.
    let split =
        if place.path("run/predictions/test.safetensors").exists() { "test" } else { "validation" };
    let shapes =
        aleator_run::tensor_shapes(&place.path(&format!("run/predictions/{split}.safetensors")));
    assert!(!shapes.unwrap().contains_key("loadings"));
    let told = place.succeeds("analyse run --against run --out found -q").stdout;
    for words in ["as in the paper", "Examples whose prediction is tied most", "Against run"] {
        assert!(told.contains(words), "{words:?} is not in\n{told}");
    }
    let ranks = String::from_utf8(place.read("found/ranks.csv")).unwrap();
    assert_eq!(ranks.lines().count(), 1 + 999);
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
