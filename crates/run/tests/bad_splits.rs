//! Splits that cannot be held out.

use crate::bad_recipes::{refusal, refuses, refuses_values};

#[test]
fn impossible_held_out_splits_are_refused() {
    refuses_values(
        "digits-full",
        "data.validation.fraction",
        &["0", "1", "-0.1", "nan"],
        "above 0 and below 1",
    );
    let folds = ["data.test=", "data.test.seed=0", "data.test.folds=5"];
    let message = refusal("digits-full", &folds);
    assert!(message.contains("data.test.fold is missing"), "{message}");
    let with = |more: &'static str| [&folds[..], &[more]].concat();
    refuses("digits-full", &with("data.test.fold=5"), "an integer from 0 to 4");
    refuses("digits-full", &with("data.test.fraction=0.1"), "no meaning with data.test.folds = 5");
    let message = refusal("digits-full", &with("data.test.features=x.npy"));
    assert!(message.contains("data.test.folds takes a part of the training data"), "{message}");
    refuses("digits-full", &["data.validation.folds=2"], "data.validation.folds");
    refuses_values("digits-full", "data.test.fraction", &["0", "1.0"], "above 0 and below 1");
    refuses(
        "digits-full",
        &["data.validation.fraction=0.5", "data.test.fraction=0.5"],
        "nothing to train on",
    );
    let message = refusal("features-full", &["data.validation.features=v.npy"]);
    assert!(
        message.contains("data.validation.fraction takes a part of the training data"),
        "{message}"
    );
    assert!(message.contains("(--set data.validation.features=v.npy)"), "{message}");
    assert!(message.contains("--set data.validation="), "{message}");
    let sets =
        ["data.validation.fraction=", "data.validation.features=v", "data.validation.labels=w"];
    let message = refusal("features-full", &sets);
    assert!(message.contains("data.validation.seed chooses a fraction"), "{message}");
}

#[test]
fn counts_that_cannot_be_held_out_are_refused() {
    let count = |more: &'static str| {
        ["data.validation=", "data.validation.count=20", "data.validation.seed=0", more]
    };
    refuses("digits-full", &count("data.validation.count=0"), "an integer from 1");
    let message = refusal("digits-full", &count("data.validation.seed="));
    assert!(message.contains("data.validation.seed is missing"), "{message}");
    let message = refusal("digits-full", &count("data.limit=20"));
    assert!(message.starts_with("--set data.validation.count=20: "), "{message}");
    assert!(message.contains("nothing to train on of the 20 examples"), "{message}");
    let message = refusal("digits-full", &count("data.validation.fraction=0.1"));
    assert!(message.contains("data.validation.fraction=0.1) are both given"), "{message}");
    assert!(message.contains("--set data.validation.count= removes"), "{message}");
    let message = refusal("digits-full", &count("data.validation.features=v.npy"));
    assert!(message.contains("data.validation.count takes a part"), "{message}");
}
