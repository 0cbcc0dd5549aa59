//! Files of tasks to carry a network over to.

use aleator_run::recipe::Crop;
use aleator_run::{load as load_recipe, load_tasks};

fn load(text: &str) -> Result<aleator_run::Tasks, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.toml");
    std::fs::write(&path, text).unwrap();
    load_tasks(&path).map_err(|error| error.to_string())
}

#[test]
fn tasks_come_in_the_order_of_the_file() {
    let text = "recipe = \"mine.toml\"\n[tasks.b]\ndata = \"x\"\n[tasks.a]\nset = [\"data.train.builtin=digits\"]\n";
    let tasks = load(text).unwrap();
    assert_eq!(tasks.recipe.as_deref(), Some("mine.toml"));
    let names: Vec<&str> = tasks.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(tasks.tasks[0].data.as_deref(), Some("x".as_ref()));
    assert_eq!(tasks.tasks[1].sets, ["data.train.builtin=digits"]);
}

#[test]
fn what_is_wrong_with_a_file_of_tasks_is_said_with_its_line() {
    for (text, words) in [
        ("", "tasks.NAME.data is missing"),
        ("tasks = 3", "a section for each task"),
        ("[tasks]\na = 3", "tasks.a must be a section"),
        ("[tasks.a]\n", "tasks.a has no data"),
        ("[tasks.a]\ndta = \"x\"", "did you mean tasks.a.data"),
        ("[task.a]\ndata = \"x\"", "did you mean tasks"),
        ("[tasks.\"../a\"]\ndata = \"x\"", "becomes that of a folder"),
        ("[tasks.a]\ndata = 3", "tasks.a.data must be a path"),
        ("[tasks.a]\nset = [1]", "tasks.a.set[0] must be a text"),
    ] {
        let message = load(text).unwrap_err();
        assert!(message.contains("tasks.toml") && message.contains(words), "{text}: {message}");
    }
}

#[test]
fn the_example_of_the_documents_loads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/tasks.toml");
    let tasks = load_tasks(path.as_ref()).unwrap();
    assert_eq!(tasks.recipe.as_deref(), Some("small/transfer"));
    assert_eq!(tasks.tasks.len(), 4);
}

/// The 19 tasks: 7 of natural, 4 of specialised and 8 of structured images. Those of less than 96 ×
/// 96 pixels are cropped to 128.
#[test]
fn the_tasks_of_vtab_have_their_number_of_classes_size_and_augmentation() {
    let tasks = load_tasks("transfer/vtab-tasks".as_ref()).unwrap();
    assert_eq!(tasks.recipe.as_deref(), Some("transfer/vtab"));
    #[rustfmt::skip]
    let expected = [
        ("caltech101", 102, 384), ("cifar100", 100, 128), ("dtd", 47, 384), ("flowers102", 102, 384),
        ("pets", 37, 384), ("sun397", 397, 384), ("svhn", 10, 128),
        ("eurosat", 10, 128), ("resisc45", 45, 384), ("patch-camelyon", 2, 384), ("retinopathy", 5, 384),
        ("clevr-count", 8, 384), ("clevr-distance", 6, 384), ("dmlab", 6, 384), ("kitti-distance", 4, 384),
        ("dsprites-location", 16, 128), ("dsprites-orientation", 16, 128),
        ("smallnorb-azimuth", 18, 384), ("smallnorb-elevation", 9, 384),
    ];
    let names: Vec<&str> = tasks.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, expected.map(|(name, ..)| name));
    for (task, (name, classes, size)) in tasks.tasks.iter().zip(expected) {
        let summary = task.summary.as_deref().unwrap();
        assert_eq!(summary.split(' ').next().unwrap(), classes.to_string(), "{name}");
        assert_eq!(task.data.as_ref().unwrap().to_str(), Some(&*format!("vtab/{name}")));
        let recipe = task.recipe.as_deref().unwrap_or("transfer/vtab");
        let images = ["data.train.images=images".to_string()];
        let sets = [&images[..], &task.sets].concat();
        let recipe =
            load_recipe(recipe, &sets, None).unwrap_or_else(|error| panic!("{error}")).recipe;
        assert_eq!(recipe.data.framing.size, Some(size), "{name}");
        assert_eq!(recipe.data.limit, Some(1_020), "{name}");
        let augment = recipe.data.augment.unwrap();
        let mirrored = ["svhn", "dsprites-location", "dsprites-orientation", "smallnorb-azimuth"];
        assert_eq!(augment.flip, !mirrored.contains(&name), "{name}");
        let whole =
            ["clevr-count", "clevr-distance", "dmlab", "kitti-distance", "dsprites-location"];
        assert_eq!(augment.crop == Crop::None, whole.contains(&name), "{name}");
    }
    let message = load_recipe("transfer/vtab-tasks", &[], None).unwrap_err().to_string();
    assert!(message.contains("aleator transfer"), "{message}");
}
