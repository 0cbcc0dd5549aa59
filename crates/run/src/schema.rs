//! Every key that a recipe can have, in the order in which recipes are written.

/// A section and its keys. Sections below it are sections of their own.
pub(crate) struct SectionKeys {
    /// Its dotted name; empty for the top of the file.
    pub name: &'static str,
    pub keys: &'static [&'static str],
}

pub(crate) const SECTIONS: &[SectionKeys] = &[
    SectionKeys { name: "", keys: &["base", "without", "summary", "seed", "seeds", "method"] },
    SectionKeys {
        name: "data",
        keys: &[
            "label_kind",
            "annotations",
            "classes",
            "class_names",
            "limit",
            "image_size",
            "channels",
            "centre_crop",
            "filter",
            "pixel_values",
        ],
    },
    SectionKeys {
        name: "data.train",
        keys: &["features", "images", "builtin", "memory", "labels", "clean_labels", "ids"],
    },
    SectionKeys { name: "data.validation", keys: HELD_OUT },
    SectionKeys { name: "data.test", keys: TEST },
    SectionKeys { name: "data.noise", keys: &["kind", "seed", "rate", "pairs", "matrix"] },
    SectionKeys {
        name: "data.augment",
        keys: &["crop", "area", "ratio", "padding", "flip", "operations", "magnitude", "mixup"],
    },
    SectionKeys {
        name: "network",
        keys: &[
            "kind",
            "hidden",
            "channels",
            "norm_momentum",
            "norm_epsilon",
            "normalize",
            "pretrained",
            "frozen",
        ],
    },
    SectionKeys {
        name: "head",
        keys: &[
            "noise",
            "rank",
            "link",
            "temperature",
            "diag_scale",
            "covariance_init",
            "samples",
            "draws",
        ],
    },
    SectionKeys {
        name: "optimizer",
        keys: &[
            "kind",
            "learning_rate",
            "network_rate",
            "momentum",
            "nesterov",
            "beta1",
            "beta2",
            "epsilon",
            "clip_norm",
        ],
    },
    SectionKeys { name: "optimizer.l2", keys: &["network", "mean", "covariance"] },
    SectionKeys {
        name: "schedule",
        keys: &["kind", "epochs", "warm_up", "warm_up_steps", "at", "factor"],
    },
    SectionKeys { name: "bootstrapping", keys: &["beta", "targets", "burn_in"] },
    SectionKeys {
        name: "training",
        keys: &["batch", "min_steps", "parts", "ema", "patience", "workers"],
    },
    SectionKeys { name: "checkpoint", keys: &["every_steps", "keep"] },
    SectionKeys {
        name: "evaluation",
        keys: &["weights", "samples", "batch", "calibrate", "loadings_mib"],
    },
];

/// A part of the training data, or a source of its own.
const HELD_OUT: &[&str] = &[
    "fraction",
    "seed",
    "features",
    "images",
    "builtin",
    "memory",
    "labels",
    "clean_labels",
    "ids",
];

/// As [`HELD_OUT`], or one of several equal parts of the training data.
const TEST: &[&str] = &[
    "fraction",
    "fold",
    "folds",
    "seed",
    "features",
    "images",
    "builtin",
    "memory",
    "labels",
    "clean_labels",
    "ids",
];

/// Tables that are values: written on one line, as `temperature = { low = 0.3, high = 3.0 }`.
const TABLE_VALUES: &[SectionKeys] =
    &[SectionKeys { name: "head.temperature", keys: &["low", "high"] }];

/// Keys whose values are paths of files or folders.
pub(crate) const PATHS: &[&str] = &[
    "data.class_names",
    "data.noise.matrix",
    "data.test.clean_labels",
    "data.test.features",
    "data.test.ids",
    "data.test.images",
    "data.test.labels",
    "data.train.clean_labels",
    "data.train.features",
    "data.train.ids",
    "data.train.images",
    "data.train.labels",
    "data.validation.clean_labels",
    "data.validation.features",
    "data.validation.ids",
    "data.validation.images",
    "data.validation.labels",
    "network.pretrained",
];

/// Whether the key takes any text: then a text of the command line is never a number.
pub(crate) fn is_free_text(key: &str) -> bool {
    key == "summary" || PATHS.contains(&key)
}

/// No key has more parts than this.
pub(crate) const MAX_DEPTH: usize = 3;

/// `section.key`, or the key alone at the top.
pub(crate) fn join(section: &str, key: &str) -> String {
    if section.is_empty() { key.to_string() } else { format!("{section}.{key}") }
}

/// Whether this is the name of a section.
pub(crate) fn is_section(name: &str) -> bool {
    SECTIONS.iter().any(|section| section.name == name)
}

/// The keys directly in a table of this name, those of sections below it last; `None` where a
/// recipe has no table.
pub(crate) fn keys_of(name: &str) -> Option<Vec<&'static str>> {
    let section = SECTIONS.iter().chain(TABLE_VALUES).find(|section| section.name == name)?;
    let below = SECTIONS.iter().filter_map(|other| match other.name.rsplit_once('.') {
        Some((parent, key)) => (parent == name).then_some(key),
        None => (name.is_empty() && !other.name.is_empty()).then_some(other.name),
    });
    Some(section.keys.iter().copied().chain(below).collect())
}

/// Whether a recipe can have this key or section.
pub(crate) fn is_known(name: &str) -> bool {
    let (section, key) = name.rsplit_once('.').unwrap_or(("", name));
    keys_of(section).is_some_and(|keys| keys.contains(&key))
}

/// What the writer of an unknown key may have meant: a similar key of the same section, else
/// the keys of that very name in others.
pub(crate) fn nearest(section: &str, key: &str) -> Option<String> {
    let here = keys_of(section).unwrap_or_default();
    if let Some(similar) = most_similar(key, &here) {
        return Some(join(section, similar));
    }
    let elsewhere: Vec<String> = SECTIONS
        .iter()
        .filter(|other| other.keys.contains(&key))
        .map(|other| join(other.name, key))
        .collect();
    (!elsewhere.is_empty()).then(|| elsewhere.join(" or "))
}

/// The candidate that a word was probably meant to be.
pub(crate) fn most_similar<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    /// Below this, two words that both occur in recipes are meant as such.
    const SIMILAR: f64 = 0.8;
    let score = |candidate: &str| strsim::jaro_winkler(word, candidate);
    let best = candidates.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(best) >= SIMILAR).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_a_known_key() {
        for path in PATHS {
            assert!(is_known(path), "{path}");
            assert!(path.split('.').count() <= MAX_DEPTH, "{path}");
        }
    }

    #[test]
    fn every_key_stands_in_the_documentation() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md");
        let text = std::fs::read_to_string(document).unwrap();
        let keys = text.split("## Every key").nth(1).unwrap().split("## Sweeps").next().unwrap();
        for section in SECTIONS {
            let header = format!("| `[{}]`", section.name);
            assert!(section.name.is_empty() || keys.contains(&header), "{header}");
            for key in section.keys {
                assert!(keys.contains(&format!("`{key}`")), "{key} of [{}]", section.name);
            }
        }
    }

    #[test]
    fn sections_are_known_by_their_parents() {
        assert_eq!(keys_of("optimizer").unwrap().last(), Some(&"l2"));
        assert!(keys_of("").unwrap().contains(&"data"));
        assert!(!keys_of("").unwrap().contains(&"train"));
        assert!(is_known("data.noise") && is_known("head.temperature.low"));
        assert!(!is_known("head.rank.low") && !is_known("heads"));
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour_and_a_misplaced_one_its_place() {
        assert_eq!(nearest("head", "rnak").as_deref(), Some("head.rank"));
        assert_eq!(nearest("head", "temp").as_deref(), Some("head.temperature"));
        assert_eq!(nearest("", "rank").as_deref(), Some("head.rank"));
        assert_eq!(
            nearest("training", "samples").as_deref(),
            Some("head.samples or evaluation.samples")
        );
        assert_eq!(nearest("head", "zzz"), None);
    }
}
