//! Label noise that cannot be made.

use crate::bad_recipes::{refusal, refuses, refuses_values};
use aleator_run::load;

#[test]
fn impossible_label_noise_is_refused() {
    refuses_values(
        "digits-full",
        "data.noise.rate",
        &["1", "1.0", "-0.1", "nan"],
        "at least 0 and below 1",
    );
    refuses(
        "digits-full",
        &["data.noise.matrix=t.npy"],
        "data.noise.matrix has no meaning with data.noise.kind = \"instance\"",
    );
    let message = refusal("digits-full", &["data.noise.kind=matrix"]);
    assert!(
        message.contains("data.noise.rate has no meaning with data.noise.kind = \"matrix\""),
        "{message}"
    );
    let with = |pairs: &str, words| {
        let pairs = format!("data.noise.pairs={pairs}");
        refuses("digits-full", &["data.noise.kind=pairwise", "data.classes=10", &pairs], words);
    };
    with("[[3,3]]", "two different classes");
    with("[[3,5],[3,6]]", "class 3 can go to one other class only");
    with("[[3,10]]", "an integer from 0 to 9");
    with("[[3]]", "a pair of classes");
    with("[3]", "a pair of classes");
}

#[test]
fn impossible_latent_noise_is_refused() {
    let latent = |key: &str, words| {
        let made = [
            "data.noise=",
            "data.noise.kind=latent",
            "data.noise.seed=0",
            "data.noise.margin=2",
            "data.noise.scale=0.5",
            "data.noise.law=normal",
            "data.classes=10",
        ];
        let good = made.map(ToString::to_string);
        assert!(load("digits-full", &good, None).is_ok());
        refuses("digits-full", &[&made[..], &[key]].concat(), words);
    };
    latent("data.noise.margin=-1", "a finite number of at least 0");
    latent("data.noise.scale=nan", "a finite number of at least 0");
    latent("data.noise.law=cauchy", "\"normal\", \"gumbel\", \"logistic\"");
    latent("data.noise.rate=0.1", "data.noise.rate has no meaning");
    latent("data.noise.covariances=[[3,8]]", "two classes and a finite covariance");
    latent("data.noise.covariances=[[3,8,inf]]", "two classes and a finite covariance");
    latent("data.noise.covariances=[[3,10,1.0]]", "an integer from 0 to 9");
    latent("data.noise.covariances=[[3,3,1]]", "two different classes");
    latent("data.noise.covariances=[[3,8,1],[8,3,-1]]", "give their covariance once");
}
