//! Every preset for images, trained through all stages of its method, with a step for each epoch.

use std::fs;

use crate::support::{Files, Trial};
use aleator_run::{load, presets};

/// A folder of two classes that differ in which channel is bright.
fn images(files: &Files) -> String {
    let folder = files.path().join("images");
    let mut words = aleator_kernels::split_mix(3);
    for class in ["blue", "red"] {
        fs::create_dir_all(folder.join(class)).unwrap();
        for number in 0..12 {
            let mut picture = b"P6 8 8 255\n".to_vec();
            for at in 0..8 * 8 * 3 {
                let bright = (at % 3 == 0) == (class == "red");
                let grey = if bright { 120 } else { 20 };
                picture.push(grey + (words.next().unwrap() >> 57) as u8);
            }
            fs::write(folder.join(class).join(format!("{number}.ppm")), picture).unwrap();
        }
    }
    // One image in four lies in the folder of the other class.
    let rows = ["blue", "red"].into_iter().flat_map(|class| {
        let other = if class == "red" { "blue" } else { "red" };
        (0..12).map(move |number| {
            format!("{class}/{number}.ppm,{}\n", if number % 4 == 0 { other } else { class })
        })
    });
    fs::write(folder.with_extension("csv"), format!("id,label\n{}", rows.collect::<String>()))
        .unwrap();
    format!("data.train.images={}", folder.to_str().unwrap())
}

/// The table of the true classes of all images.
fn verified(images: &str) -> String {
    format!("{}.csv", images.trim_start_matches("data.train.images="))
}

/// The preset on a few small images, with a network to match.
fn trial(name: &str, images: &str) -> Trial {
    let sets = [
        images,
        "data.image_size=8",
        "data.validation.fraction=0.25",
        "network.channels=[4]",
        "head.samples=8",
        "evaluation.samples=8",
        "training.min_steps=",
        "training.validate_every=20",
    ];
    let key = match name {
        "images-cleannet" => Some("cleannet.verified"),
        "images-mentornet-learned" => Some("mentornet.verified"),
        _ => None,
    };
    let table = key.map(|key| format!("{key}={}", verified(images)));
    let sets: Vec<String> = sets.map(String::from).into_iter().chain(table).collect();
    let recipe = load(name, &sets, None).unwrap_or_else(|error| panic!("{name}: {error}")).recipe;
    Trial::of(recipe)
}

#[test]
fn two_views_of_images_are_killed_and_resumed_to_the_same_bits() {
    let files = Files::new();
    let images = images(&files);
    let sets = ["training.batch=6", "training.parts=2", "schedule.epochs=8"];
    let changed = |sets: &[&str]| {
        let all: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let recipe = trial("images-dividemix", &images).recipe;
        Trial::of(recipe.with_sets(&all, None).unwrap())
    };
    let whole = changed(&sets);
    assert_eq!(whole.train().steps.len(), 24);
    let killed = changed(&sets);
    // After the warm-up, in the middle of an epoch.
    killed.train_until(17);
    assert_eq!(killed.train().steps.len(), 24 - 17);
    let one_view = changed(&[&sets[..], &["dividemix.views="]].concat());
    one_view.train();
    for file in ["model.safetensors", "model-2.safetensors", "method.safetensors", "state.json"] {
        assert!(killed.bytes(24, file) == whole.bytes(24, file), "{file}");
    }
    let weights = |trial: &Trial| trial.bytes(24, "model.safetensors");
    assert!(weights(&one_view) != weights(&whole), "the second view is not learned from");
}

#[test]
fn every_preset_for_images_trains_to_its_end() {
    let files = Files::new();
    let images = images(&files);
    let last = |trial: &Trial| {
        let events = trial.train();
        assert_eq!(events.steps.len(), 20);
        assert!(events.steps.iter().all(|step| step.loss.is_finite()));
        trial.bytes(20, "model.safetensors")
    };
    let plain = last(&trial("images-none", &images));
    let names = presets().into_iter().map(|preset| preset.name);
    let mut methods = 0;
    for name in names.filter(|name| name.starts_with("images-") && *name != "images-none") {
        let trial = trial(name, &images);
        assert!(last(&trial) != plain, "{name} is images-none");
        let evaluation = trial.finish();
        assert!(evaluation.validation.given.nll.is_finite(), "{name}");
        methods += usize::from(trial.recipe.method.name() != "plain");
    }
    assert_eq!(methods, 17, "every method that embeddings have a preset for");
}
