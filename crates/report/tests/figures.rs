//! The figures of a fixture, compared with committed files that people have checked.
//!
//! After a change that is meant, `ALEATOR_ACCEPT=1 cargo test -p aleator-report --test figures`
//! writes the files anew; look at them before they are committed.

use std::fs;
use std::path::Path;

use crate::support::{Fixture, plain, write_group};

const SHOWN: [&str; 4] =
    ["compared-accuracy", "validation-nll", "confusion", "reliability-test-given"];

#[test]
fn figures_are_as_they_were_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("demo");
    let fixture = |seed| Fixture { seed, ..Fixture::of(&["cat", "dog", "fox"]) };
    let members =
        [("none/seed-0", fixture(0)), ("none/seed-1", fixture(1)), ("full/seed-0", fixture(2))];
    write_group(&dir, "demo", &members);
    let made = plain(&[dir]);
    let looked_at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/figures");
    for name in SHOWN {
        let figure = made.figures.iter().find(|figure| figure.name == name);
        let svg = figure.unwrap_or_else(|| panic!("no figure {name}")).standalone();
        let path = looked_at.join(name).with_extension("svg");
        if std::env::var_os("ALEATOR_ACCEPT").is_some() {
            fs::write(&path, &svg).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(svg == expected, "{name} is not as {} has it:\n{svg}", path.display());
    }
}
