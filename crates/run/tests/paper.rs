//! The recipes of the paper's experiments say what the paper says, number by number.

use std::collections::BTreeSet;
use std::fs;
use std::mem::discriminant;
use std::path::Path;

use crate::paper_table::{HeldOut, Norm, ROWS, Row, SWEEPS, TASKS, TWINS};
use aleator_run::recipe::{self, Crop, Decay, EvaluatedWeights, HeadTemperature, Layers, Rule};
use aleator_run::{
    Document, Noise, Preset, Recipe, Table, Value, load, load_sweep, paper_recipes, presets,
};

/// What the user gives: the images, and the sets to measure on where nothing is held out.
fn sets(name: &str) -> Vec<String> {
    let open = ["webvision/", "jft/", "ensembles/"];
    let mut sets = vec!["data.train.images=images".to_string()];
    if open.iter().any(|start| name.starts_with(start)) {
        sets.push("data.validation.images=others".to_string());
    }
    sets
}

fn resolved(name: &str) -> aleator_run::Resolved {
    load(name, &sets(name), None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn decoded(name: &str) -> Recipe {
    resolved(name).recipe
}

fn preset(name: &str) -> Preset {
    paper_recipes().into_iter().find(|recipe| recipe.name == name).unwrap()
}

/// The names of all files below `recipes/`, as `folder/name`.
fn files() -> BTreeSet<String> {
    fn walk(folder: &Path, prefix: &str, out: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                walk(&path, &format!("{prefix}{stem}/"), out);
            } else if path.extension().is_some_and(|ending| ending == "toml") {
                assert!(out.insert(format!("{prefix}{stem}")));
            }
        }
    }
    let mut out = BTreeSet::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes"), "", &mut out);
    out
}

/// What recipes cannot say has no file and no row (deviation D17).
#[test]
fn every_file_is_inside_the_program_and_every_one_of_a_folder_stands_in_the_table() {
    let inside = presets().into_iter().chain(paper_recipes());
    assert_eq!(files(), inside.map(|preset| preset.name.to_string()).collect());
    let rows = ROWS.iter().map(|row| row.recipe);
    let others = SWEEPS.iter().map(|sweep| sweep.0).chain(TWINS.iter().map(|twin| twin.0));
    let known: Vec<&str> = rows.chain(others).chain(TASKS.iter().copied()).collect();
    let unique: BTreeSet<&str> = known.iter().copied().collect();
    assert_eq!(unique.len(), known.len(), "a recipe stands twice in the table");
    let in_folders: BTreeSet<&str> = paper_recipes().iter().map(|paper| paper.name).collect();
    assert_eq!(unique, in_folders);
}

/// The decays are λ of λ/2 ‖w‖², where the paper mostly has λ of ‖w‖² (deviation D13).
/// The batch is made of smaller ones (deviation D15), but for the asynchronous steps of WebVision
/// (deviation D21). What the paper does not say of the ensembles is their code's (deviation D22).
#[test]
fn every_recipe_has_the_numbers_of_the_paper() {
    for row in ROWS {
        let recipe = decoded(row.recipe);
        check_network_and_data(row, &recipe);
        check_training(row, &recipe);
        let name = row.recipe;
        let head = &recipe.head;
        assert_eq!(head.noise, row.noise, "{name}");
        assert_eq!(head.link, row.link, "{name}");
        assert_eq!(head.likelihood, row.likelihood, "{name}");
        assert_eq!(
            head.temperature,
            HeadTemperature::Fixed(row.temperature.try_into().unwrap()),
            "{name}"
        );
        assert_eq!((head.samples, recipe.evaluation.samples), (row.samples, row.samples), "{name}");
        assert_eq!(head.diag_scale, recipe::DiagScale::Affine, "{name}");
        assert_eq!(head.draws, recipe::Draws::Independent, "{name}");
        assert_eq!(recipe.evaluation.weights, EvaluatedWeights::Last, "{name}");
    }
}

fn check_network_and_data(row: &Row, recipe: &Recipe) {
    let name = row.recipe;
    let Layers::Image { network, hidden, .. } = &recipe.network.layers else { panic!("{name}") };
    assert_eq!((*network, &hidden[..]), (row.network, row.hidden), "{name}");
    let framing = recipe.data.framing;
    assert_eq!((framing.size, framing.values), (Some(row.image_size), row.pixel_values), "{name}");
    let augment = recipe.data.augment.unwrap();
    assert_eq!((augment.flip, augment.mixup, augment.rand_augment), (row.flip, None, None));
    assert!(matches!(augment.crop, Crop::Inception { .. }), "{name}");
    assert_eq!(recipe.data.noise, None, "{name}");
    assert_eq!(recipe.seeds, (0..row.seeds as u64).collect::<Vec<u64>>(), "{name}");
    let fraction = |split: &recipe::HeldOut| match split {
        recipe::HeldOut::Fraction { fraction, .. } => Some(*fraction),
        _ => None,
    };
    let validation = fraction(&recipe.data.validation);
    let test = recipe.data.test.as_ref().and_then(fraction);
    match row.held_out {
        HeldOut::Count { validation: images, of } => {
            let held_out = match recipe.data.validation {
                // As the splits are counted: the share times all, rounded.
                recipe::HeldOut::Fraction { fraction, .. } => (fraction * of as f64).round(),
                recipe::HeldOut::Count { count, .. } => count as f64,
                _ => panic!("{name} holds nothing out"),
            };
            assert_eq!(held_out, images as f64, "{name}");
            assert_eq!(test, None, "{name}");
            let limit = recipe.data.limit;
            assert!(limit.is_none_or(|limit| limit == of), "{name}: {limit:?}");
        }
        HeldOut::Shares { validation: share, test: other } => {
            assert_eq!((validation, test), (Some(share), Some(other)), "{name}");
        }
        HeldOut::Nothing => assert_eq!((validation, test), (None, None), "{name}"),
    }
}

fn check_training(row: &Row, recipe: &Recipe) {
    let name = row.recipe;
    let schedule = &recipe.schedule;
    assert_eq!((schedule.epochs, schedule.warm_up), (row.epochs, row.warm_up), "{name}");
    assert_eq!(schedule.decay, Decay::Steps { at: row.drops.to_vec(), factor: 0.1 }, "{name}");
    let optimizer = &recipe.optimizer;
    assert_eq!(optimizer.rule, Rule::Sgd { momentum: 0.9, nesterov: row.nesterov }, "{name}");
    assert_eq!(optimizer.learning_rate, row.learning_rate, "{name}");
    assert_eq!((optimizer.network_rate, optimizer.clip_norm), (None, row.clip_norm), "{name}");
    let l2 = optimizer.l2;
    let factor = match row.decay.norm {
        Norm::Whole => 2.0,
        Norm::Half => 1.0,
    };
    let (all, low_rank) = (factor * row.decay.all, factor * row.decay.low_rank);
    assert_eq!((l2.network, l2.mean, l2.covariance), (all, all, low_rank), "{name}");
    let apart = [l2.diagonal, l2.shared_loadings].map(|own| own.unwrap_or(l2.covariance));
    assert_eq!(apart, [all, all], "{name}");
    assert!(l2.biases || all == 0.0, "{name}");
    let training = &recipe.training;
    assert_eq!(training.batch, row.batch, "{name}");
    assert_eq!((training.min_steps, training.ema, training.patience), (None, None, None), "{name}");
}

#[test]
fn every_recipe_means_the_same_after_it_was_written_out() {
    for paper in paper_recipes().iter().filter(|paper| !paper.is_sweep() && !paper.is_tasks()) {
        let first = resolved(paper.name);
        assert_eq!(first.name, paper.name.replace('/', "-"));
        first.recipe.check().unwrap_or_else(|error| panic!("{}: {error}", paper.name));
        let written = first.recipe.to_toml();
        let again = Recipe::from_toml(&written, "again").unwrap();
        assert_eq!(again, first.recipe, "{}", paper.name);
        assert_eq!(again.to_toml(), written, "{}", paper.name);
        // As a run directory of an earlier version has it: the document, not the decoded recipe.
        let mut document = Document::preset(paper.name).unwrap();
        sets(paper.name).iter().for_each(|set| document.set(set).unwrap());
        let earlier = Recipe::from_toml(&document.to_toml(), "earlier").unwrap();
        assert_eq!(earlier, first.recipe, "{}", paper.name);
    }
}

#[test]
fn every_experiment_says_its_result_and_its_cost() {
    for paper in paper_recipes().iter().filter(|paper| paper.folder() != Some("small")) {
        let header: Vec<&str> =
            paper.text.lines().take_while(|line| line.starts_with('#')).collect();
        let has = |word: &str| header.iter().any(|line| line.starts_with(word));
        assert!(has("# Paper: ") && has("# Cost: "), "{}", paper.name);
    }
    for row in ROWS {
        let text = preset(row.recipe).text;
        assert!(text.contains(row.result), "{} does not name {}", row.recipe, row.result);
    }
}

#[test]
fn every_experiment_stands_in_the_documentation_with_its_result() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
    let text = fs::read_to_string(document).unwrap();
    for row in ROWS {
        let marked = format!("`{}`", row.recipe);
        let line = text.lines().find(|line| line.starts_with("| `") && line.contains(&marked));
        let line = line.unwrap_or_else(|| panic!("{} is not in docs/recipes.md", row.recipe));
        assert!(line.contains(&format!("| {}", row.result)), "{line}");
        // The first number of the header's result, as in "top-1 79.3".
        let header = preset(row.recipe).text.split("# Paper: ").nth(1).unwrap();
        let mut numbers = header.split_whitespace().filter(|word| word.contains('.'));
        let number = numbers.find(|word| word.parse::<f64>().is_ok());
        if let Some(number) = number.filter(|_| !header.starts_with("as ")) {
            assert!(line.contains(number), "{}: {number} is not in {line}", row.recipe);
        }
    }
}

#[test]
fn sweeps_are_found_by_name_and_make_the_runs_of_the_table() {
    for (name, bases) in SWEEPS {
        assert!(preset(name).is_sweep());
        let points = load_sweep(Path::new(name), &sets(name)).unwrap();
        assert_eq!(points.len(), bases.len());
        for (point, base) in points.iter().zip(*bases) {
            let mut expected = decoded(base);
            expected.seeds = vec![0];
            expected.summary.clone_from(&point.recipe.summary);
            assert_eq!(point.recipe, expected, "{}", point.name);
            assert!(!point.name.contains('/'));
        }
        let message = load(name, &sets(name), None).unwrap_err().to_string();
        assert!(message.contains("aleator sweep"), "{message}");
    }
}

/// Every key of a document, as `section.key`.
fn keys(prefix: &str, table: &Table) -> BTreeSet<String> {
    table
        .iter()
        .flat_map(|(key, node)| match &node.value {
            Value::Table(inner) => keys(&format!("{prefix}{key}."), inner),
            _ => BTreeSet::from([format!("{prefix}{key}")]),
        })
        .collect()
}

#[test]
fn a_twin_is_its_original_made_small() {
    for (twin, original) in TWINS {
        let shape = |name: &str| {
            let document = Document::preset(name).unwrap();
            let names = ["data", "network", "head", "optimizer", "schedule", "training"];
            let section = |name: &str| match &document.get(name).unwrap().value {
                Value::Table(table) => keys(&format!("{name}."), table),
                _ => panic!("{name}"),
            };
            let mut all: BTreeSet<String> = names.into_iter().flat_map(section).collect();
            // Where the original has sets of its own to measure on, a twin may hold a part out.
            all.retain(|key| !key.starts_with("data.validation."));
            all
        };
        assert_eq!(shape(twin), shape(original), "{twin}");
        let (small, large) = (decoded(twin), decoded(original));
        assert_eq!(discriminant(&small.head.noise), discriminant(&large.head.noise), "{twin}");
        assert_eq!(small.head.link, large.head.link, "{twin}");
        assert_eq!(small.head.temperature, large.head.temperature, "{twin}");
        assert_eq!(small.optimizer.rule, large.optimizer.rule, "{twin}");
        assert_eq!(small.optimizer.l2, large.optimizer.l2, "{twin}");
        assert_eq!(small.optimizer.clip_norm, large.optimizer.clip_norm, "{twin}");
        let drops = |recipe: &Recipe| match &recipe.schedule.decay {
            Decay::Steps { at, .. } => at.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(drops(&small), drops(&large), "{twin}");
        let warm_up = |recipe: &Recipe| discriminant(&recipe.schedule.warm_up);
        assert_eq!(warm_up(&small), warm_up(&large), "{twin}");
        // Small enough for minutes, and batches still have parts.
        assert!(small.schedule.epochs <= 18 && small.head.samples <= 100, "{twin}");
        assert_eq!(small.data.framing.size, Some(32), "{twin}");
        assert_eq!(small.training.parts > 1, large.training.parts > 1, "{twin}");
    }
}

/// Trainable parameters before the head of a ResNet of the second version: bottlenecks, no biases,
/// a norm before each convolution of a block, a projection in the first block of a stage, a last
/// norm.
fn resnet(blocks: [usize; 4]) -> usize {
    let mut channels = 64;
    let mut count = 7 * 7 * 3 * channels;
    for (stage, blocks) in blocks.into_iter().enumerate() {
        let width = 64 << stage;
        for block in 0..blocks {
            let norms = 2 * (channels + width + width);
            let convolutions = channels * width + 9 * width * width + width * 4 * width;
            let projection = if block == 0 { channels * 4 * width } else { 0 };
            count += norms + convolutions + projection;
            channels = 4 * width;
        }
    }
    count + 2 * channels
}

/// Parameters of a head on this many features.
fn head(features: usize, classes: usize, noise: Noise) -> usize {
    let layer = (features + 1) * classes;
    match noise {
        Noise::None => layer,
        Noise::Diagonal => 2 * layer,
        Noise::LowRank { rank } => (2 + rank) * layer,
        Noise::SharedLowRank { rank } => 3 * layer + classes * rank,
        Noise::OnFeatures { rank } => layer + 2 * (features + 1) * features + features * rank,
    }
}

/// 1,234,567 as the paper writes it.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

#[test]
fn the_counts_of_the_paper_and_of_the_headers_add_up() {
    let (large, small) = (resnet([3, 8, 36, 3]), resnet([3, 4, 6, 3]));
    // Appendix E.
    assert_eq!(large + head(2048, 1000, Noise::None), 60_185_128);
    assert_eq!(large + head(2048, 1000, Noise::LowRank { rank: 15 }), 92_969_128);
    assert_eq!(large + 2049 * 11_500 + head(11_500, 1000, Noise::None), 93_200_628);
    for row in ROWS.iter().filter(|row| row.hidden.is_empty()) {
        let (folder, _) = row.recipe.split_once('/').unwrap();
        let count = match folder {
            "ilsvrc12" => large + head(2048, 1000, row.noise),
            "imagenet21k" => large + head(2048, 21_843, row.noise),
            "ensembles" => small + head(2048, 1000, row.noise),
            "webvision" => head(1536, 1000, row.noise),
            _ => continue,
        };
        let text = preset(row.recipe).text;
        let as_another = text.contains("# Cost: as ");
        assert!(as_another || text.contains(&grouped(count)), "{}: {count}", row.recipe);
    }
    for recipe in ["jft/none", "jft/diagonal", "jft/shared", "transfer/vtab"] {
        assert!(preset(recipe).text.contains(&grouped(small)), "{recipe}");
    }
    for (recipe, noise) in [
        ("jft/none", Noise::None),
        ("jft/diagonal", Noise::Diagonal),
        ("jft/shared", Noise::SharedLowRank { rank: 50 }),
    ] {
        let each = format!("and {} for each class", grouped(head(2048, 1, noise)));
        assert!(preset(recipe).text.contains(&each), "{recipe}");
    }
}

/// The framings are choices where the paper is silent (deviation D16).
#[test]
fn the_steps_of_the_headers_and_the_framings_add_up() {
    let (all, left): (usize, usize) = (1_281_167, 1_281_167 - 50_000);
    for (recipe, images, batch, epochs) in [
        ("ilsvrc12/none", left, 1024, 270),
        ("ilsvrc12/none-90", left, 1024, 90),
        ("ensembles/none", all, 4096, 90),
        ("ensembles/full", all, 4096, 180),
        ("webvision/none", 2_400_000, 64, 1),
    ] {
        let steps = grouped(images.div_ceil(batch) * epochs);
        assert!(preset(recipe).text.contains(&steps), "{recipe}: {steps}");
    }
    // Of 1,000 examples, two steps are an epoch: warm-up and drops at 100, 200, 300, 400 of 500.
    let transfer = decoded("transfer/vtab");
    // The fresh head of BiT is zero.
    assert_eq!(transfer.head.mean_init, Some(0.0));
    let steps = 1000_usize.div_ceil(transfer.training.batch);
    assert_eq!(steps * transfer.schedule.epochs, 500);
    let Decay::Steps { at, .. } = transfer.schedule.decay else { panic!() };
    let at: Vec<f64> = at.iter().map(|epoch| epoch * steps as f64).collect();
    assert_eq!(at, [200.0, 300.0, 400.0]);
    for (recipe, crop, whole) in
        [("transfer/vtab", 384.0, 448.0), ("transfer/vtab-small", 128.0, 160.0)]
    {
        let Crop::Inception { area, ratio } = decoded(recipe).data.augment.unwrap().crop else {
            panic!("{recipe}")
        };
        let side = f64::sqrt(area.0) * whole;
        assert!((side - crop).abs() < 0.05 && area.0 == area.1 && ratio == (1.0, 1.0), "{side}");
    }
    let framing = decoded("webvision/full").data.framing;
    assert!((framing.centre_crop.unwrap() - 299.0 / (299.0 + 32.0)).abs() < 1e-6);
    assert_eq!(decoded("ilsvrc12/full").data.framing.centre_crop, Some(224.0 / 256.0));
}

/// Every table and figure of the paper has its row, and what a row names exists.
#[test]
fn the_map_of_the_paper_is_complete_and_names_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/paper.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    let pieces = (1..=11).map(|number| format!("Table {number},"));
    for piece in pieces.chain((1..=4).map(|number| format!("Figure {number},"))) {
        let start = format!("| {piece}");
        assert!(rows.iter().any(|row| row.starts_with(&start)), "{piece} has no row");
    }
    let tests = all_tests(&root.join("crates"));
    let recipes = files();
    let folders = ["ilsvrc12/", "webvision/", "imagenet21k/", "jft/", "ensembles/", "transfer/"];
    for word in text.split('`').skip(1).step_by(2) {
        if folders.iter().any(|folder| word.starts_with(folder)) {
            assert!(recipes.contains(word), "there is no recipe {word}");
        }
        // Names of tests are sentences.
        if word.matches('_').count() > 2 && !word.contains(['.', ' ', ':']) {
            assert!(tests.contains(&format!("fn {word}(")), "there is no test {word}");
        }
    }
}

/// The text of all integration tests.
fn all_tests(crates: &Path) -> String {
    let folders = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("tests"));
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
    texts.collect()
}
