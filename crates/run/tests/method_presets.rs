//! Every training method has a preset for embeddings and one for images.

use crate::recipes::recipe;
use aleator_run::{Recipe, presets};

/// The method of `features-audit`, which has no twin for images.
const FOR_AUDITS: &str = "dynamics";

#[test]
fn every_method_has_a_preset_for_embeddings_and_one_for_images() {
    let of_family = |family: &str| -> Vec<&'static str> {
        let names = presets().into_iter().map(|preset| preset.name);
        let of_family = names.filter(|name| name.starts_with(family));
        let mut methods: Vec<&str> =
            of_family.map(|name| recipe(name, &[]).method.name()).collect();
        methods.sort_unstable();
        methods.dedup();
        methods.retain(|method| *method != FOR_AUDITS);
        methods
    };
    let methods = of_family("images-");
    assert_eq!(methods, of_family("features-"));
    for method in methods.into_iter().filter(|method| *method != "plain") {
        let own = recipe(&format!("images-{method}"), &[]);
        assert_eq!(own.method.name(), method);
        let same = Recipe { method: recipe("images-none", &[]).method, ..own.clone() };
        let plain = recipe("images-none", &[]);
        // What differs besides is said in the comments of the recipe.
        let same =
            Recipe { summary: plain.summary.clone(), evaluation: plain.evaluation.clone(), ..same };
        assert_eq!(same, plain, "{method}");
    }
}
