//! The paths of a recipe, made absolute.

use std::path::Path;

use aleator_run::load;
use aleator_run::recipe::{Data, HeldOut, InputSource, NoiseKind};

use crate::recipes::{recipe, strings};

#[test]
fn paths_become_absolute_and_keep_the_name_after_the_hash() {
    let sets = [
        "data.class_names=../names.txt",
        "data.train.features=./x.safetensors#e",
        "data.train.ids=/data/ids.csv",
        "data.noise={kind='matrix',matrix='t.csv',seed=0}",
    ];
    let mut recipe = recipe("features-full", &sets);
    recipe.make_paths_absolute(Path::new("/home/me")).unwrap();
    let Data { train, class_names, noise, .. } = &recipe.data;
    assert_eq!(class_names.as_deref(), Some(Path::new("/home/me/../names.txt")));
    assert_eq!(train.inputs, InputSource::Features("/home/me/x.safetensors#e".to_string()));
    assert_eq!(train.labels.as_deref(), Some("/home/me/y.npy"));
    assert_eq!(train.ids.as_deref(), Some("/data/ids.csv"));
    let kind = NoiseKind::Matrix { file: "/home/me/t.csv".to_string() };
    assert_eq!(noise.as_ref().unwrap().kind, kind);
    let images = ["data.train.images=a", "data.test.images=b", "network.pretrained=w"];
    let sets = strings(&images);
    let mut recipe = load("images-full", &sets, None).unwrap().recipe;
    recipe.make_paths_absolute(Path::new("/x")).unwrap();
    assert_eq!(recipe.data.train.inputs, InputSource::images("/x/a"));
    let Some(HeldOut::Source(test)) = &recipe.data.test else { panic!() };
    assert_eq!(test.inputs, InputSource::images("/x/b"));
    assert_eq!(recipe.network.pretrained.as_deref(), Some(Path::new("/x/w")));
}

#[test]
fn files_of_methods_become_absolute_too() {
    let transitions = ["forward_correction.transitions=file", "forward_correction.after="];
    let matrix = ["forward_correction.quantile=", "forward_correction.matrix=m.csv"];
    let errors = ["har.errors=file", "har.after=", "har.class_errors=e.csv"];
    for (preset, sets, expected) in [
        ("features-forward-correction", [transitions, matrix].concat(), "matrix = \"/x/m.csv\""),
        ("features-har", errors.to_vec(), "class_errors = \"/x/e.csv\""),
        ("features-mentornet-learned", vec![], "verified = \"/x/v.csv\""),
        ("features-cleannet", vec![], "verified = \"/x/v.csv\""),
    ] {
        let mut recipe = recipe(preset, &sets);
        recipe.make_paths_absolute(Path::new("/x")).unwrap();
        let written = recipe.to_toml();
        assert!(written.contains(expected), "{written}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_not_unicode_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Path::new(std::ffi::OsStr::from_bytes(b"/data/\xff"));
    let mut recipe = recipe("features-full", &[]);
    let message = recipe.make_paths_absolute(folder).unwrap_err().to_string();
    assert!(message.contains("data.train.features") && message.contains("Unicode"), "{message}");
    recipe.data.train.inputs = InputSource::images(folder);
    assert!(recipe.check().unwrap_err().to_string().contains("Unicode"));
}
