//! The invariants of ARCHITECTURE.md that a reader of files can check.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below a folder of the repository with one of these endings.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                walk(&path, out);
            } else if path.is_file() {
                out.push(path);
            }
        }
    }
    let mut out = vec![];
    walk(&root().join(folder), &mut out);
    let ends = |path: &PathBuf| endings.iter().any(|end| path.to_string_lossy().ends_with(end));
    out.into_iter().filter(ends).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Every file of the shipped crates and of the benchmarks with one of these endings.
fn all_files(endings: &[&str]) -> Vec<PathBuf> {
    [files("crates", endings), files("benchmarks", endings)].concat()
}

/// The crates of a manifest's `[dependencies]`.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&root().join(format!("crates/{name}/Cargo.toml")));
    let section = manifest.split("[dependencies]").nth(1).expect("a [dependencies] section");
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn kernels_layers_and_metrics_depend_on_none_of_ours_but_the_vocabulary() {
    assert_eq!(dependencies("kernels"), ["aleator-vocabulary", "pulp", "rayon"]);
    assert_eq!(dependencies("layers"), ["pulp", "rayon"]);
    assert_eq!(dependencies("metrics"), ["serde"]);
    assert_eq!(dependencies("vocabulary"), ["serde"]);
}

#[test]
fn the_tensor_framework_is_named_in_model_and_train_and_reexported_by_aleator_only() {
    for name in [
        "vocabulary",
        "kernels",
        "layers",
        "metrics",
        "run",
        "covariance",
        "data",
        "embed",
        "report",
        "review",
        "cli",
    ] {
        let found = dependencies(name);
        assert!(!found.iter().any(|name| name.starts_with("burn")), "{name}: {found:?}");
        for path in files(&format!("crates/{name}/src"), &[".rs"]) {
            assert!(!read(&path).contains("burn::"), "{} names burn", short(&path));
        }
    }
}

/// What is right of the files knows nothing of tensors.
#[test]
fn report_and_run_do_not_depend_on_training() {
    let tensors = ["aleator", "aleator-model", "aleator-train"];
    for name in ["report", "review", "run", "covariance", "data", "embed"] {
        let found = dependencies(name);
        assert!(!found.iter().any(|name| tensors.contains(&name.as_str())), "{name}: {found:?}");
        assert!(!found.contains(&"aleator-kernels".to_string()), "{name}: {found:?}");
        // Products of matrices over plain slices are only for the analysis of covariances.
        let layers = found.contains(&"aleator-layers".to_string());
        assert!(["report", "covariance"].contains(&name) || !layers, "{name}: {found:?}");
    }
}

/// Code changes typed recipes; keys as text come from users alone.
#[test]
fn no_setting_is_written_as_a_dotted_key() {
    let sections = ["data", "head", "network", "training", "schedule", "optimizer", "evaluation"];
    for name in ["aleator", "cli", "train", "report", "review", "embed"] {
        let source = files(&format!("crates/{name}/src"), &[".rs"]).into_iter();
        for path in source.filter(|path| !path.ends_with("tests.rs")) {
            for (at, line) in read(&path).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default().replace("\\\"", "'");
                let literal = |section| code.split(&format!("\"{section}.")).nth(1);
                let key = sections.into_iter().filter_map(literal).find(|rest| {
                    rest.split(['"', ' ']).next().is_some_and(|rest| rest.contains('='))
                });
                assert!(key.is_none(), "{}:{}: a setting as text", short(&path), at + 1);
            }
        }
    }
}

#[test]
fn unsafe_stands_where_it_may_and_says_why() {
    let allowed = |path: &str| {
        path.starts_with("crates/layers/src/")
            || path == "crates/model/src/recycled.rs"
            || path == "crates/cli/src/process.rs"
    };
    for path in all_files(&[".rs"]) {
        let (name, text) = (short(&path), read(&path));
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let is_unsafe = |what: &&str| code.contains(&["unsafe", what].join(" "));
            if !["{", "fn", "impl", "extern"].iter().any(is_unsafe) {
                continue;
            }
            assert!(allowed(&name), "{name}:{}: unsafe outside its places", at + 1);
            let before = &lines[at.saturating_sub(4)..at];
            let said = before.iter().any(|line| line.contains("// SAFETY:"));
            // What callers of a function must keep is in its documentation, which clippy wants.
            assert!(
                said || is_unsafe(&"fn"),
                "{name}:{}: unsafe without a SAFETY sentence",
                at + 1
            );
        }
    }
}

/// Lines that are neither blank, comment, nor in a test module at the end of the file.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn no_source_file_is_long_and_none_has_a_name_that_says_nothing() {
    const VAGUE: [&str; 8] =
        ["util", "utils", "common", "base", "helper", "helpers", "misc", "types"];
    for path in all_files(&[".rs"]) {
        let name = short(&path);
        let lines = lines_of_code(&read(&path));
        assert!(lines <= 400, "{name} has {lines} lines of code, at most 400 fit a reader");
        let stem = path.file_stem().unwrap().to_string_lossy().to_string();
        assert!(!VAGUE.contains(&stem.as_str()), "{name} has a name that says nothing");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ig", "nore"),
        concat!("dbg", "!("),
    ];
    for path in all_files(&[".rs"]) {
        let text = read(&path);
        for mark in marks {
            assert!(!text.contains(mark), "{} contains {mark}", short(&path));
        }
    }
}

/// A target with `test = false` is not compiled a second time for unit tests, so its source must
/// have none, or `tests/main.rs` must include their file by its path.
#[test]
fn no_unit_test_is_left_out() {
    for manifest in all_files(&["Cargo.toml"]) {
        if !read(&manifest).contains("test = false") {
            continue;
        }
        let folder = short(manifest.parent().unwrap());
        let program = root().join(&folder).join("tests/main.rs");
        let program = if program.exists() { read(&program) } else { String::new() };
        for path in files(&format!("{folder}/src"), &[".rs"]) {
            let included = short(&path).replacen(&folder, "..", 1);
            let tested = !read(&path).contains("#[cfg(test)]") || program.contains(&included);
            assert!(tested, "{} has unit tests that never run", short(&path));
        }
    }
}

/// Every departure from the paper has a number, an entry, and the tests name those they check.
#[test]
fn every_deviation_that_the_code_names_is_written_down() {
    let document = read(&root().join("docs/deviations.md"));
    let mut named = vec![];
    for path in files("crates", &[".rs"]) {
        let text = read(&path);
        for (at, _) in text.match_indices("eviation D") {
            let digits: String = text[at + 10..].chars().take_while(char::is_ascii_digit).collect();
            named.push((short(&path), digits));
        }
    }
    assert!(!named.is_empty());
    for (path, digits) in &named {
        assert!(document.contains(&format!("## D{digits}")), "{path} names D{digits}");
    }
    let tested =
        |number: &str| named.iter().any(|(path, n)| n == number && path.contains("/tests/"));
    let numbers = document.lines().filter_map(|line| line.strip_prefix("## D")?.split('.').next());
    for number in numbers {
        assert!(tested(number), "no test names deviation D{number}");
    }
}

/// No number may depend on the clock, the environment or a global generator.
#[test]
fn results_depend_on_nothing_but_their_arguments() {
    for folder in ["crates/kernels/src", "crates/layers/src", "crates/model/src"] {
        for path in files(folder, &[".rs"]) {
            let text = read(&path);
            for word in ["Instant", "SystemTime", "env::var", "thread_rng", "HashMap", "HashSet"] {
                assert!(!text.contains(word), "{} uses {word}", short(&path));
            }
        }
    }
}

#[test]
fn the_readme_has_the_two_commands_and_ci_runs_the_same_test_command() {
    let readme = read(&root().join("README.md"));
    let ci = read(&root().join(".ci/run"));
    for command in ["cargo run --release -- demo", "cargo test --release --workspace"] {
        assert!(readme.contains(command), "README.md lacks `{command}`");
    }
    assert!(ci.contains("cargo test --release --workspace"));
}

/// Relative links of the documents lead somewhere.
#[test]
fn links_between_the_documents_lead_somewhere() {
    let mut documents = files("docs", &[".md"]);
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        documents.push(root().join(name));
    }
    for path in documents {
        let text = read(&path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let to = path.parent().unwrap().join(target);
            assert!(to.exists(), "{} links to {target}", short(&path));
        }
    }
}
