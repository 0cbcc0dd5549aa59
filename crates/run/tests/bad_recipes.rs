//! One test for each kind of recipe that must be refused, and the words of the refusal.

use aleator_run::load;

use crate::recipes::needed;

/// What a preset says when this is set over it.
pub fn refusal(preset: &str, sets: &[&str]) -> String {
    let mut all = needed(preset);
    all.extend(sets.iter().map(ToString::to_string));
    match load(preset, &all, None) {
        Ok(_) => panic!("{preset} takes {sets:?}"),
        Err(error) => error.to_string(),
    }
}

/// The last of `sets` is refused by its own name, with these words.
#[track_caller]
pub fn refuses(preset: &str, sets: &[&str], words: &str) {
    let message = refusal(preset, sets);
    let last = sets.last().unwrap();
    assert!(message.starts_with(&format!("--set {last}: ")), "{message}");
    assert!(message.contains(words), "{message} lacks {words:?}");
}

/// Each value of `key` is refused with these words.
#[track_caller]
pub fn refuses_values(preset: &str, key: &str, values: &[&str], words: &str) {
    for value in values {
        refuses(preset, &[&format!("{key}={value}")], words);
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    refuses("digits-full", &["head.rnak=6"], "unknown key head.rnak; did you mean head.rank?");
    refuses("digits-full", &["head.rnak=6"], "Known here: noise, rank, link");
    refuses("digits-full", &["haed.rank=6"], "unknown key haed; did you mean head?");
    refuses("digits-full", &["rank=6"], "did you mean head.rank?");
    refuses(
        "digits-full",
        &["head.temperature={low=1,hgih=2}"],
        "did you mean head.temperature.high?",
    );
    refuses("digits-full", &["optimizer.l2.mena=0"], "did you mean optimizer.l2.mean?");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    std::fs::write(&path, "base = \"digits-full\"\n\n[head]\nrnak = 6\n").unwrap();
    let message = load(path.to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("my.toml:4: unknown key head.rnak"), "{message}");
}

#[test]
fn a_misspelt_key_is_reported_before_the_one_that_is_missing_because_of_it() {
    let message = refusal("digits-full", &["head.samples=", "head.sampels=10"]);
    assert!(message.contains("unknown key head.sampels"), "{message}");
}

#[test]
fn missing_keys_are_refused_with_the_way_to_give_them() {
    let error = |name: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        load(name, &sets, None).unwrap_err().to_string()
    };
    let message = error("features-full", &[]);
    assert!(
        message.starts_with("preset features-full: data.train.features is missing"),
        "{message}"
    );
    assert!(message.contains("--set data.train.features=FILE"), "{message}");
    assert!(message.contains("write features in section [data.train]"), "{message}");
    let message = error("features-full", &["data.train.features=x.npy"]);
    assert!(message.contains("--set data.train.labels=FILE"), "{message}");
    let message = error("images-full", &[]);
    assert!(message.contains("--set data.train.images=FOLDER"), "{message}");
    let message = error("digits-full", &["data.test=", "data.test.features=x.npy"]);
    assert!(message.contains("data.test.labels is missing"), "{message}");
}

/// Every key that has no meaning when absent is asked for by its name.
#[test]
fn every_required_key_is_asked_for() {
    let optional = ["data.noise", "data.test"];
    let document = aleator_run::Document::preset("digits-full").unwrap();
    let written = document.to_toml();
    let mut section = String::new();
    let mut count = 0;
    for line in written.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_string();
            continue;
        }
        let Some((key, _)) = line.split_once(" = ") else { continue };
        let key = if section.is_empty() { key.to_string() } else { format!("{section}.{key}") };
        let message = refusal("digits-full", &[&format!("{key}=")]);
        let asked = if key == "data.train.builtin" { "data.train.features" } else { &key };
        assert!(message.contains(&format!("{asked} is missing")), "{key}: {message}");
        count += 1;
    }
    assert!(count > 35, "{count}");
    for key in optional {
        assert!(load("digits-full", &[format!("{key}=")], None).is_ok(), "{key}");
    }
}

#[test]
fn values_of_another_type_are_refused_with_both_types() {
    refuses(
        "digits-full",
        &["head.rank=6.0"],
        "head.rank must be an integer, found the number 6.0",
    );
    refuses("digits-full", &["head.rank=six"], "found the text \"six\"");
    refuses("digits-full", &["head.samples=[1]"], "found a list of 1");
    refuses("digits-full", &["head=3"], "head must be a section [head], found the integer 3");
    refuses("digits-full", &["data.train=x.npy"], "must be a section [data.train]");
    refuses(
        "digits-full",
        &["head.noise=true"],
        "must be one of \"none\", \"diagonal\", \"full\", \"shared\", \"xl\", found true",
    );
    refuses("digits-full", &["head.temperature=warm"], "a number, or bounds");
    refuses("digits-full", &["seeds=0"], "seeds must be a list");
    refuses("digits-full", &["seeds=[a]"], "not a TOML value");
    refuses("digits-full", &["seeds=['a']"], "seeds[0] must be an integer");
    refuses("digits-full", &["optimizer.learning_rate=fast"], "must be a number");
    refuses("digits-full", &["head.covariance_init=1979-05-27"], "found the date 1979-05-27");
    refuses("digits-full", &["network.hidden=64"], "must be a list");
}

#[test]
fn words_that_are_no_choice_are_refused_with_the_nearest() {
    refuses("digits-full", &["head.noise=ful"], "found \"ful\"; did you mean \"full\"?");
    refuses("digits-full", &["head.link=sofmax"], "did you mean \"softmax\"?");
    refuses("digits-full", &["head.diag_scale=exp"], "one of \"affine\", \"softplus\"");
    refuses("digits-full", &["head.draws=random"], "one of \"independent\"");
    refuses("digits-full", &["network.kind=transformer"], "one of \"none\", \"mlp\", \"conv\"");
    refuses("digits-full", &["network.normalize=batch"], "one of \"none\", \"global\"");
    refuses("digits-full", &["optimizer.kind=lamb"], "one of \"sgd\", \"adam\", \"adamw\"");
    refuses("digits-full", &["schedule.kind=linear"], "one of \"constant\"");
    refuses("digits-full", &["evaluation.weights=first"], "one of \"best\", \"last\"");
    refuses("digits-full", &["evaluation.networks=both"], "one of \"first\", \"all\"");
    refuses("digits-full", &["data.label_kind=multi"], "\"multi-hot\"");
    refuses("digits-full", &["data.annotations=mean"], "one of \"majority\"");
    refuses("digits-full", &["data.train.builtin=mnist"], "must be \"digits\", found \"mnist\"");
    refuses("digits-full", &["data.noise.kind=asymmetric"], "did you mean \"symmetric\"?");
}

#[test]
fn impossible_heads_are_refused() {
    refuses_values("digits-full", "head.rank", &["0", "-1", "65537"], "an integer from 1 to");
    refuses_values(
        "digits-full",
        "head.temperature",
        &["0", "-1.0", "nan", "inf", "1e-60", "1e-20", "1e60"],
        "above 0",
    );
    refuses("digits-full", &["head.temperature={low=3,high=0.3}"], "low below high");
    refuses("digits-full", &["head.temperature={low=1,high=1}"], "low below high");
    refuses("digits-full", &["head.temperature={low=1}"], "high is missing");
    refuses("digits-full", &["head.temperature={low=0,high=1}"], "head.temperature.low must be");
    refuses_values("digits-full", "head.samples", &["0", "4294967296"], "from 1 to 4294967295");
    refuses_values(
        "digits-full",
        "evaluation.samples",
        &["0", "4294967296"],
        "from 1 to 4294967295",
    );
    refuses_values("digits-full", "head.covariance_init", &["-1", "nan", "inf"], "at least 0");
    refuses_values("digits-full", "head.mean_init", &["-1", "nan", "inf"], "at least 0");
    refuses_values("digits-full", "optimizer.l2.shared_loadings", &["-1", "nan"], "at least 0");
    refuses("digits-full", &["optimizer.l2.biases=1"], "true or false, found the integer 1");
}

#[test]
fn a_rank_left_over_beside_diagonal_noise_is_refused_with_the_way_out() {
    let message = refusal("features-full", &["head.noise=diagonal"]);
    assert!(message.starts_with("preset features-full:"), "{message}");
    assert!(
        message.contains(
            "head.rank has no meaning with head.noise = \"diagonal\" (--set head.noise=diagonal)"
        ),
        "{message}"
    );
    assert!(message.contains("--set head.rank="), "{message}");
    let sets =
        ["data.train.features=x", "data.train.labels=y", "head.noise=diagonal", "head.rank="];
    assert!(load("features-full", &sets.map(String::from), None).is_ok());
    let message = refusal("features-none", &["head.noise=full"]);
    assert!(message.contains("head.rank is missing"), "{message}");
}

#[test]
fn impossible_optimizers_are_refused() {
    refuses_values(
        "digits-full",
        "optimizer.learning_rate",
        &["0", "-0.1", "inf", "nan"],
        "finite number above 0",
    );
    for key in ["optimizer.beta1", "optimizer.beta2"] {
        refuses_values("digits-full", key, &["1", "1.0", "-0.1", "nan"], "at least 0 and below 1");
    }
    refuses_values("digits-full", "optimizer.epsilon", &["0", "-1e-8"], "above 0");
    refuses_values("digits-full", "optimizer.clip_norm", &["0", "inf"], "above 0");
    for key in ["network", "mean", "covariance"] {
        let key = format!("optimizer.l2.{key}");
        refuses_values("digits-full", &key, &["-1e-3", "inf"], "at least 0");
    }
    let sgd = ["optimizer.kind=sgd", "optimizer.beta1=", "optimizer.beta2=", "optimizer.epsilon="];
    let with = |last: &[&str], words| refuses("digits-full", &[&sgd[..], last].concat(), words);
    with(&["optimizer.nesterov=false", "optimizer.momentum=1"], "at least 0 and below 1");
    with(&["optimizer.momentum=0", "optimizer.nesterov=true"], "needs optimizer.momentum above 0");
    with(&["optimizer.nesterov=false", "optimizer.momentum=-0.5"], "at least 0 and below 1");
    let message = refusal("digits-full", &["optimizer.momentum=0.9"]);
    assert!(
        message.contains("optimizer.momentum has no meaning with optimizer.kind = \"adam\""),
        "{message}"
    );
}

#[test]
fn what_changes_the_objective_is_refused_beside_lbfgs() {
    for set in ["training.ema=0.9", "optimizer.clip_norm=1", "optimizer.network_rate=0.1"] {
        refuses("features-full", &[set], "changes what every step minimises");
    }
    // The message's way out is one.
    let sampled = "data.annotations=sampled";
    let message = refusal("features-full", &[sampled]);
    assert!(message.contains("changes what every step minimises"), "{message}");
    let (_, advice) = message.split_once("train in batches: --set ").unwrap();
    let files = ["data.train.features=x.npy", "data.train.labels=y.npy", sampled];
    let sets = files.into_iter().chain(advice.split(" --set "));
    load("features-full", &sets.map(String::from).collect::<Vec<_>>(), None).unwrap();
    refuses_values("features-full", "optimizer.memory", &["0", "101"], "an integer from 1 to 100");
    refuses_values("features-full", "optimizer.tolerance", &["0", "-1"], "above 0");
    refuses("features-full", &["evaluation.weights=best"], "needs optimizer.refit = false");
    refuses("digits-full", &["tune=auto"], "tune = \"auto\" needs optimizer.kind = \"lbfgs\"");
}

#[test]
fn impossible_schedules_are_refused() {
    refuses_values("digits-full", "schedule.epochs", &["0", "-1", "1000001"], "an integer from 1");
    refuses_values(
        "digits-full",
        "schedule.warm_up",
        &["-1", "1e9", "nan"],
        "from 0 to schedule.epochs",
    );
    let steps = ["schedule.epochs=10", "schedule.kind=steps", "schedule.factor=0.1"];
    let with = |last: &str, words| refuses("digits-full", &[&steps[..], &[last]].concat(), words);
    with("schedule.at=[5,3]", "ascending");
    with("schedule.at=[5,5]", "ascending");
    with("schedule.at=[5,10]", "schedule.at[1] must be above 0 and below schedule.epochs = 10");
    with("schedule.at=[0]", "above 0");
    with("schedule.at=[]", "1 to");
    for factor in ["0", "1.5", "-1"] {
        let factor = format!("schedule.factor={factor}");
        refuses(
            "digits-full",
            &[&steps[..], &["schedule.at=[5]", &factor]].concat(),
            "above 0 and at most 1",
        );
    }
    let message = refusal("digits-full", &["schedule.factor=0.1"]);
    assert!(message.contains("schedule.factor has no meaning with schedule.kind"), "{message}");
}

#[test]
fn impossible_training_is_refused() {
    for key in [
        "training.batch",
        "training.parts",
        "training.patience",
        "training.workers",
        "checkpoint.every_steps",
        "checkpoint.keep",
        "evaluation.batch",
    ] {
        refuses_values(
            "digits-full",
            key,
            &["0", "-1", "99999999999999999999"],
            "an integer from 1",
        );
    }
    refuses_values("digits-full", "training.ema", &["0", "1", "1.5", "nan"], "above 0 and below 1");
    refuses_values("digits-full", "evaluation.loadings_mib", &["-1"], "an integer from 0");
    let which = "must be \"all\", \"none\" or an integer from 1";
    let wrong = ["0", "-1", "some", "1.5", "true", "[]", "99999999999999999999"];
    refuses_values("digits-full", "evaluation.predictions", &wrong, which);
}

#[test]
fn impossible_networks_are_refused() {
    refuses("digits-full", &["network.hidden=[]"], "1 to 64 values, found 0");
    refuses(
        "digits-full",
        &["network.hidden=[64,0]"],
        "network.hidden[1] must be an integer from 1",
    );
    refuses("digits-full", &["network.hidden=[1000000000000]"], "an integer from 1 to 65536");
    let message = refusal("digits-full", &["network.kind=none"]);
    assert!(
        message.contains("network.hidden has no meaning with network.kind = \"none\""),
        "{message}"
    );
    refuses("digits-full", &["network.channels=[8]"], "network.channels has no meaning");
    let sets = ["network.hidden=", "network.channels=[8]", "network.kind=conv"];
    refuses("features-full", &sets, "needs images, and data.train has features");
}

#[test]
fn impossible_seeds_are_refused() {
    refuses("digits-full", &["seeds=[]"], "1 to 1000 values, found 0");
    refuses("digits-full", &["seeds=[0,1,0]"], "0 stands twice");
    refuses("digits-full", &["seeds=[-1]"], "an integer from 0");
    refuses(
        "digits-full",
        &["seed=18446744073709551616"],
        "an integer from 0 to 18446744073709551615",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    std::fs::write(&path, "base = \"digits-full\"\nseed = 1\nseeds = [2]\n").unwrap();
    let message = load(path.to_str().unwrap(), &[], None).unwrap_err().to_string();
    assert!(message.contains("my.toml:2: seed and seeds ("), "{message}");
    assert!(message.contains("my.toml:3"), "{message}");
}

#[test]
fn impossible_sources_are_refused() {
    let message = refusal("features-full", &["data.train.images=folder"]);
    assert!(message.contains("data.train.features and data.train.images (--set data.train.images=folder) are both given"), "{message}");
    refuses("features-full", &["data.train.labels=\"\""], "must name a file or folder");
    refuses("features-full", &[r#"data.train.labels="C:\new""#], "single quotes");
    refuses("features-full", &["data.image_size=32"], "data.image_size is for images");
    refuses_values("features-full", "data.classes", &["0", "1"], "an integer from 2");
    refuses_values(
        "images-full",
        "data.image_size",
        &["0", "1000000"],
        "an integer from 1 to 4096",
    );
}

#[test]
fn a_softmax_over_sets_of_classes_is_refused() {
    refuses("multilabel-full", &["head.link=softmax"], "take head.link = \"sigmoid\"");
}

#[test]
fn impossible_training_methods_are_refused() {
    let preset = "features-bootstrapping";
    refuses(preset, &["method=bootstraping"], "\"bootstrapping\"");
    for value in ["-0.1", "1.5", "nan"] {
        refuses(preset, &[&format!("bootstrapping.beta={value}")], "0 to 1");
    }
    refuses(preset, &["bootstrapping.targets=firm"], "\"soft\"");
    refuses(preset, &["bootstrapping.gamma=1"], "unknown key bootstrapping.gamma");
    let missing = refusal(preset, &["bootstrapping.beta="]);
    assert!(missing.contains("bootstrapping.beta"), "{missing}");
    let link = refusal(preset, &["head.link=sigmoid"]);
    assert!(link.contains("it needs head.link = \"softmax\""), "{link}");
    // Settings may wait for their method, but not be forgotten.
    let forgotten = refusal(preset, &["method="]);
    assert!(forgotten.contains("[bootstrapping] is for method"), "{forgotten}");
}

#[test]
fn settings_of_methods_are_refused_by_their_names() {
    for (method, set, words) in [
        ("label-smoothing", "label_smoothing.share=1.5", "0 to 1"),
        ("gce", "gce.exponent=-1", "0 to 1"),
        ("gce", "gce.truncate=1.0", "above 0 and below 1"),
        ("forward-correction", "forward_correction.quantile=2.0", "0 to 1"),
        ("forward-correction", "forward_correction.after=0", "an integer from 1"),
        ("data-parameters", "data_parameters.momentum=1.0", "below 1"),
        ("data-parameters", "data_parameters.bound=0.5", "at least 1"),
        ("data-parameters", "data_parameters.instances.start=50.0", "data_parameters.bound = 20"),
        ("elr", "elr.momentum=1.0", "below 1"),
        ("elr", "elr.strength=-1", "at least 0"),
        ("sop", "sop.rate_u=-1", "at least 0"),
        ("cores", "cores.ramp=-1", "an integer from 0"),
        ("har", "har.after=0", "an integer from 1"),
        ("har", "har.errors=fold", "\"validation\""),
        ("mixup", "mixup.alpha=0", "above 0"),
        ("mentornet", "mentornet.quantile=2.0", "0 to 1"),
        ("mentornet", "mentornet.curriculum=learnt", "\"predefined\""),
        ("mentornet-learned", "mentornet.steps=0", "an integer from 1"),
        ("cleannet", "cleannet.references=0", "an integer from 1"),
        ("cleannet", "cleannet.margin=1.0", "below 1"),
        ("cleannet", "cleannet.rate=0", "above 0"),
        ("mentormix", "mentormix.decay=1.0", "below 1"),
        ("co-teaching", "co_teaching.noise_rate=1.0", "below 1"),
        ("dividemix", "dividemix.warm_up=0", "an integer from 1"),
        ("dividemix", "dividemix.sharpness=0", "above 0"),
        ("dividemix", "dividemix.views.kind=augmentation", "needs [data.augment]"),
        ("dividemix", "dividemix.views={kind=\"noise\",strength=0}", "above 0"),
        ("dividemix", "dividemix.views={kind=\"dropout\",rate=1}", "below 1"),
        ("curriculumnet", "curriculumnet.noisy_after=1", "at least curriculumnet.after = 5"),
        ("curriculumnet", "curriculumnet.all_after=6", "curriculumnet.noisy_after = 12"),
        ("curriculumnet", "curriculumnet.weights=[0,1,1]", "the first above 0"),
        ("curriculumnet", "curriculumnet.weights=[1,1]", "three numbers"),
    ] {
        refuses(&format!("features-{method}"), &[set], words);
    }
    let neither = refusal("features-data-parameters", &["data_parameters.instances="]);
    assert!(neither.contains("needs a section [data_parameters.classes]"), "{neither}");
    // Those of other methods wait.
    let others = ["method=elr", "elr.momentum=0.5", "elr.strength=1", "gce.exponent=7"];
    let sets = ["data.train.features=x.npy", "data.train.labels=y.npy"];
    let sets: Vec<String> = sets.iter().chain(&others).map(ToString::to_string).collect();
    load("features-gce", &sets, None).unwrap_or_else(|error| panic!("{error}"));
    let stages = ["curriculumnet.all_after=90", "curriculumnet.noisy_after=90"];
    let late =
        refusal("features-curriculumnet", &[&stages[..], &["curriculumnet.after=30"]].concat());
    assert!(late.contains("curriculumnet.after must be below schedule.epochs"), "{late}");
    let missing = refusal("features-cleannet", &["cleannet.verified="]);
    assert!(missing.contains("--set cleannet.verified=FILE"), "{missing}");
    for key in ["har.after", "forward_correction.after", "dividemix.warm_up", "cleannet.after"] {
        let method = key.split('.').next().unwrap().replace('_', "-");
        let late = refusal(&format!("features-{method}"), &[&format!("{key}=30")]);
        let words = format!("{key} must be below schedule.epochs = 30, found 30");
        assert!(late.contains(&words), "{late}");
    }
}
