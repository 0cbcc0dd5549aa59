//! Every recipe that ships loads, and means the same after it was written out.

use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use aleator_run::recipe::{
    DataOverlay, Draws, HeadTemperature, HeldOut, ImageNetwork, InputSource, Layers,
    NetworkOverlay, Normalize, Overlay, Pretraining, Rule, Source,
};
use aleator_run::{Link, Noise, Recipe, RecipeError, Resolved, load, load_over, presets};

pub fn strings(sets: &[&str]) -> Vec<String> {
    sets.iter().map(ToString::to_string).collect()
}

/// What each family needs to be told.
pub fn needed(name: &str) -> Vec<String> {
    let verified = match name {
        "features-cleannet" | "images-cleannet" => Some("cleannet.verified=v.csv"),
        "features-mentornet-learned" | "images-mentornet-learned" => {
            Some("mentornet.verified=v.csv")
        }
        _ => None,
    };
    let own = match name.split('-').next().unwrap() {
        "digits" => vec![],
        "images" => strings(&["data.train.images=folder"]),
        "finetune" => strings(&[
            "data.train.images=folder",
            "network.kind=efficientnet-lite0",
            "network.norm_epsilon=1e-3",
            "network.pretrained=weights.safetensors",
        ]),
        _ => strings(&["data.train.features=x.npy", "data.train.labels=y.npy"]),
    };
    own.into_iter().chain(verified.map(String::from)).collect()
}

fn with(name: &str, sets: &[&str]) -> Result<Resolved, RecipeError> {
    load(name, &[needed(name), strings(sets)].concat(), None)
}

pub fn recipe(name: &str, sets: &[&str]) -> Recipe {
    with(name, sets).unwrap_or_else(|error| panic!("{name}: {error}")).recipe
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn every_file_in_recipes_is_a_preset() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_string();
    let mut found: Vec<String> = files.iter().map(stem).collect();
    found.sort();
    let mut names: Vec<String> = presets().iter().map(|preset| preset.name.to_string()).collect();
    names.sort();
    assert_eq!(found, names);
}

#[test]
fn every_preset_means_the_same_after_it_was_written_out() {
    let folder = tempfile::tempdir().unwrap();
    for preset in presets() {
        let first = with(preset.name, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(first.name, preset.name);
        let written = first.recipe.to_toml();
        let path = write(folder.path(), "recipe.toml", &written);
        let again = load(&path, &[], None).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(again.recipe, first.recipe, "{}", preset.name);
        assert_eq!(again.recipe.to_toml(), written, "{}", preset.name);
        assert_eq!(again.name, "recipe");
        assert!(!written.contains("base"), "{written}");
    }
}

#[test]
fn the_presets_of_a_family_differ_in_their_noise_and_its_decay_alone() {
    for family in ["features", "multilabel", "images", "finetune", "digits"] {
        let none = recipe(&format!("{family}-none"), &[]);
        assert_eq!(none.head.noise, Noise::None);
        for (ending, noise) in [
            ("diagonal", Noise::Diagonal),
            ("full", Noise::LowRank { rank: 6 }),
            ("shared", Noise::SharedLowRank { rank: 6 }),
            ("xl", Noise::OnFeatures { rank: 6 }),
        ] {
            if ending == "xl" && !["features", "images"].contains(&family) {
                continue;
            }
            let mut other = recipe(&format!("{family}-{ending}"), &[]);
            // A rank may be tuned for a family.
            let kinds = [other.head.noise, noise].map(|noise| discriminant(&noise));
            assert_eq!(kinds[0], kinds[1], "{family}-{ending}");
            other.head.noise = Noise::None;
            other.optimizer.l2.covariance = none.optimizer.l2.covariance;
            other.summary.clone_from(&none.summary);
            assert_eq!(other, none, "{family}-{ending}");
        }
    }
}

#[test]
fn families_take_their_inputs_and_links() {
    let features = recipe("features-full", &[]);
    assert_eq!(features.data.train.inputs, InputSource::Features("x.npy".to_string()));
    assert_eq!(features.data.test, None);
    assert_eq!(features.head.link, Link::Softmax);
    assert_eq!(recipe("multilabel-full", &[]).head.link, Link::Sigmoid);
    let images = recipe("images-full", &[]);
    assert_eq!(images.data.train.inputs, InputSource::images("folder"));
    assert!(matches!(images.network.layers, Layers::Conv { .. }));
    let digits = recipe("digits-full", &[]);
    assert_eq!(digits.data.train.inputs, InputSource::Digits);
    assert!(digits.data.noise.is_some());
}

#[test]
fn the_command_line_sets_any_key() {
    let recipe = recipe(
        "features-full",
        &[
            "head.rank=15",
            "head.temperature={low=0.3,high=3}",
            "head.draws=sobol",
            "network.normalize=per-feature",
            "seeds=[0,1,2]",
            "training.patience=3",
            "data.classes=10",
            "data.test.features=t.npy",
            "data.test.labels=t.csv#label",
            "data.validation=",
            "data.validation.features=v.npy",
            "data.validation.labels=w.npy",
        ],
    );
    assert_eq!(recipe.head.noise, Noise::LowRank { rank: 15 });
    assert_eq!(
        recipe.head.temperature,
        HeadTemperature::Learned { low: 0.3.try_into().unwrap(), high: 3.0.try_into().unwrap() }
    );
    assert_eq!(recipe.head.draws, Draws::Sobol);
    assert_eq!(recipe.network.normalize, Normalize::PerFeature);
    assert_eq!(recipe.seeds, [0, 1, 2]);
    assert_eq!(recipe.training.patience, Some(3));
    assert_eq!(recipe.data.classes, Some(10));
    let Some(HeldOut::Source(test)) = recipe.data.test else { panic!() };
    assert_eq!(test.labels.as_deref(), Some("t.csv#label"));
    let HeldOut::Source(validation) = recipe.data.validation else { panic!() };
    assert_eq!(validation.inputs, InputSource::Features("v.npy".to_string()));
}

#[test]
fn the_seed_argument_replaces_all_seeds() {
    for sets in [&["seeds=[1,2]"][..], &["seed=3"], &[]] {
        let resolved = load("digits-none", &strings(sets), Some(u64::MAX)).unwrap();
        assert_eq!(resolved.recipe.seeds, [u64::MAX]);
        let again = Recipe::from_toml(&resolved.recipe.to_toml(), "again").unwrap();
        assert_eq!(again, resolved.recipe);
    }
}

#[test]
fn noise_none_switches_the_noise_of_any_preset_off() {
    for name in ["features-diagonal", "features-full", "features-shared", "features-xl"] {
        let mut off = recipe(name, &["head.noise=none"]);
        let none = recipe("features-none", &[]);
        off.summary.clone_from(&none.summary);
        // Without noise there are no covariance layers to decay.
        off.optimizer.l2.covariance = none.optimizer.l2.covariance;
        assert_eq!(off, none, "{name}");
    }
}

#[test]
fn another_optimizer_can_be_taken_once_the_keys_of_the_old_one_are_removed() {
    let sets = [
        "optimizer.kind=sgd",
        "optimizer.momentum=0.9",
        "optimizer.nesterov=true",
        "optimizer.beta1=",
        "optimizer.beta2=",
        "optimizer.epsilon=",
    ];
    let rule = recipe("digits-full", &sets).optimizer.rule;
    assert_eq!(rule, Rule::Sgd { momentum: 0.9, nesterov: true });
    let message = with("digits-full", &sets[..4]).unwrap_err().to_string();
    assert!(message.contains("optimizer.beta2, optimizer.epsilon have no meaning"), "{message}");
    assert!(message.contains("--set optimizer.beta2= --set optimizer.epsilon="), "{message}");
}

#[test]
fn a_recipe_stands_on_its_base_and_that_on_its_own() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "shared/middle.toml",
        "base = \"digits-full\"\nsummary = \"middle\"\n[head]\nrank = 4\n",
    );
    let path = write(
        folder.path(),
        "mine.toml",
        "base = \"shared/middle.toml\"\nwithout = [\"data.noise\", \"data.test.fraction\", \
         \"data.test.seed\"]\nseed = 9\n[data.test]\nbuiltin = \"digits\"\n",
    );
    let resolved = load(&path, &[], None).unwrap();
    assert_eq!(resolved.name, "mine");
    assert_eq!(resolved.recipe.summary, "middle");
    assert_eq!(resolved.recipe.seeds, [9]);
    assert_eq!(resolved.recipe.head.noise, Noise::LowRank { rank: 4 });
    assert_eq!(resolved.recipe.data.noise, None);
    assert!(matches!(resolved.recipe.data.test, Some(HeldOut::Source(_))));
    let text = "base = \"digits-full\"\nsummary = \"middle\"\n[head]\nrank = 0\n";
    write(folder.path(), "shared/middle.toml", text);
    let message = load(&path, &[], None).unwrap_err().to_string();
    assert!(message.contains("middle.toml:4: head.rank must be"), "{message}");
}

#[test]
fn a_recipe_based_on_itself_is_refused_with_the_circle() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "b.toml", "\nbase = \"./a.toml\"\n");
    let path = write(folder.path(), "a.toml", "base = \"b.toml\"\n");
    let message = load(&path, &[], None).unwrap_err().to_string();
    assert!(message.contains("b.toml:2: the recipe is based on itself"), "{message}");
    assert_eq!(message.matches("a.toml").count(), 2, "{message}");
    let path = write(folder.path(), "c.toml", "base = \"c.toml\"\n");
    assert!(load(&path, &[], None).unwrap_err().to_string().contains("based on itself"));
}

#[test]
fn a_base_that_is_not_there_is_named_with_its_line_and_the_nearest_preset() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.toml", "\nbase = \"digits-fulll\"\n");
    let message = load(&path, &[], None).unwrap_err().to_string();
    assert!(message.contains("a.toml:2: base \"digits-fulll\""), "{message}");
    assert!(message.contains("did you mean digits-full?"), "{message}");
}

#[test]
fn base_and_without_of_a_wrong_kind_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("base = 3\n", "base must be a text, found the integer 3"),
        ("base = \"digits-full\"\nwithout = \"head.rank\"\n", "without must be a list of keys"),
        ("base = \"digits-full\"\nwithout = [1]\n", "without must be a text"),
        ("base = \"digits-full\"\nwithout = [\"head.rnak\"]\n", "has no key head.rnak"),
        ("without = [\"head.rank\"]\n", "there is no base"),
    ] {
        let path = write(folder.path(), "a.toml", text);
        let message = load(&path, &[], None).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert!(message.contains("a.toml:"), "{message}");
    }
    let message = with("digits-full", &["base=digits-none"]).unwrap_err().to_string();
    assert!(message.contains("base must stand in a recipe file"), "{message}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_preset() {
    let message = load("feature-full", &[], None).unwrap_err().to_string();
    assert!(message.contains("neither a file nor a preset"), "{message}");
    assert!(message.contains("did you mean features-full?"), "{message}");
}

#[test]
fn files_that_cannot_be_recipes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = load(folder.path().to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("cannot read /"), "{message}");
    let path = folder.path().join("latin1.toml");
    fs::write(&path, b"summary = \"caf\xe9\"\n").unwrap();
    let message = load(path.to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("latin1.toml") && message.contains("UTF-8"), "{message}");
    fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
    let message = load(path.to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("longer than 1 MiB"), "{message}");
}

#[test]
fn a_recipe_that_code_changed_is_checked_as_one_that_was_loaded() {
    let mut recipe = recipe("digits-full", &[]);
    recipe.data.test = Some(HeldOut::Fold { fold: 1, folds: 5, seed: 0 });
    recipe.head.noise = Noise::SharedLowRank { rank: 3 };
    recipe.check().unwrap();
    let again = Recipe::from_toml(&recipe.to_toml(), "again").unwrap();
    assert_eq!(again, recipe);
    recipe.data.test = Some(HeldOut::Fold { fold: 5, folds: 5, seed: 0 });
    let message = recipe.check().unwrap_err().to_string();
    assert!(message.contains("data.test.fold must be an integer from 0 to 4"), "{message}");
    recipe.data.test = None;
    recipe.data.validation = HeldOut::Fraction { fraction: 1.5, seed: 0 };
    let message = recipe.check().unwrap_err().to_string();
    assert!(message.contains("data.validation.fraction must be above 0"), "{message}");
}

#[test]
fn every_image_network_has_its_word() {
    let norm = ["network.norm_momentum=0.9", "network.norm_epsilon=1e-5"];
    for network in ImageNetwork::ALL {
        let kind = format!("network.kind={}", network.name());
        let sets = [&["network.channels=", &kind][..], &norm].concat();
        let recipe = recipe("images-full", &sets);
        assert!(
            matches!(recipe.network.layers, Layers::Image { network: found, .. } if found == network)
        );
        assert_eq!(Recipe::from_toml(&recipe.to_toml(), "again").unwrap(), recipe);
    }
}

#[test]
fn an_overlay_goes_over_the_preset_and_under_the_command_line() {
    let source = |inputs| Source { inputs, labels: None, clean_labels: None, ids: None };
    let overlay = Overlay {
        origin: "--data photos".to_string(),
        data: DataOverlay {
            image_size: Some(Some(48)),
            train: Some(source(InputSource::images("photos/train"))),
            validation: Some(HeldOut::Source(source(InputSource::images("photos/val")))),
            ..DataOverlay::default()
        },
        network: None,
    };
    let recipe = load_over("images-full", &overlay, &[], None).unwrap().recipe;
    assert_eq!(recipe.data.train.inputs, InputSource::images("photos/train"));
    assert!(matches!(recipe.data.validation, HeldOut::Source(_)));
    assert_eq!(recipe.data.framing.size, Some(48));
    let sets = strings(&["data.image_size=32", "data.train.images=others"]);
    let recipe = load_over("images-full", &overlay, &sets, None).unwrap().recipe;
    assert_eq!(recipe.data.framing.size, Some(32));
    assert_eq!(recipe.data.train.inputs, InputSource::images("others"));
    let wrong = load_over("features-full", &overlay, &[], None).unwrap();
    assert_eq!(wrong.recipe.data.framing.size, Some(48));
    let sets = strings(&["data.validation.fraction=0.1"]);
    let message = load_over("images-full", &overlay, &sets, None).unwrap_err().to_string();
    assert!(message.contains("data.validation.images (--data photos) gives data"), "{message}");
    let raw = DataOverlay { image_size: Some(None), ..overlay.data.clone() };
    let overlay = Overlay { data: raw, ..overlay };
    let sets = strings(&["data.image_size=32"]);
    assert_eq!(
        load_over("images-full", &overlay, &[], None).unwrap().recipe.data.framing.size,
        None
    );
    let sized = load_over("images-full", &overlay, &sets, None).unwrap();
    assert_eq!(sized.recipe.data.framing.size, Some(32));
}

#[test]
fn a_missing_epsilon_is_suggested_as_the_network_needs_it() {
    for (kind, epsilon) in [("efficientnet-lite0", "1e-3"), ("resnet-50", "1e-5")] {
        let kind = format!("network.kind={kind}");
        let sets = [&kind, "network.channels=", "network.norm_momentum=0.9"];
        let message = with("images-full", &sets).unwrap_err().to_string();
        assert!(message.contains(&format!("network.norm_epsilon={epsilon}")), "{message}");
    }
}

#[test]
fn weights_decide_their_network_and_leave_the_other_keys() {
    let kind = ImageNetwork::InceptionResNetV2;
    let pretraining = Pretraining::of(kind);
    let network = NetworkOverlay::Weights {
        kind,
        norm_epsilon: pretraining.norm_epsilon,
        pretrained: Some("weights.safetensors".into()),
    };
    let data = DataOverlay {
        train: Some(Source::of(InputSource::images("folder"))),
        ..pretraining.framing(kind, Some(500))
    };
    let overlay = Overlay { origin: "weights".to_string(), data, network: Some(network) };
    let sets = strings(&["network.frozen=true", "data.image_size=150"]);
    let recipe = load_over("finetune-full", &overlay, &sets, None).unwrap().recipe;
    assert!(recipe.network.frozen);
    assert_eq!(recipe.data.framing.size, Some(150), "--set stands above the weights");
    assert_eq!(recipe.data.framing.centre_crop, Some(0.8975));
    let Layers::Image { network, norm_momentum, norm_epsilon, .. } = recipe.network.layers else {
        panic!("{:?}", recipe.network.layers)
    };
    assert_eq!((network, norm_momentum, norm_epsilon), (kind, 0.9, 1e-3));
}

#[test]
fn small_images_are_enlarged_fourfold_and_seen_whole() {
    let kind = ImageNetwork::EfficientNetLite0;
    let framing = |side| Pretraining::of(kind).framing(kind, side);
    assert_eq!(framing(Some(28)).image_size, Some(Some(112)));
    assert_eq!(framing(Some(28)).centre_crop, None);
    assert_eq!(framing(Some(2)).image_size, Some(Some(32)), "the network's smallest image");
    for side in [Some(500), None] {
        assert_eq!(framing(side).image_size, Some(Some(224)));
        assert_eq!(framing(side).centre_crop, Some(0.875));
    }
}
