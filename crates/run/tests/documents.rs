//! Recipes as trees: parsing, setting, merging, writing.

use aleator_run::{Document, Value};

fn parse(text: &str) -> Document {
    Document::parse(text, "my.toml").unwrap()
}

fn set(assignment: &str) -> Document {
    let mut document = parse("");
    document.set(assignment).unwrap();
    document
}

fn refused(document: &mut Document, assignment: &str) -> String {
    document.set(assignment).unwrap_err().to_string()
}

fn text(value: &str) -> Value {
    Value::String(value.to_string())
}

#[test]
fn every_value_knows_its_line() {
    let document = parse(
        "seeds = [\n  1,\n  2,\n]\n\n[head]\n# a comment\nrank = 6\n\n[data.train]\nlabels = \"y\"\n",
    );
    let line = |key: &str| document.get(key).unwrap().origin.to_string();
    assert_eq!(line("seeds"), "my.toml:1");
    assert_eq!(line("head.rank"), "my.toml:8");
    assert_eq!(line("data.train"), "my.toml:10");
    assert_eq!(line("data.train.labels"), "my.toml:11");
    let Value::Array(seeds) = &document.get("seeds").unwrap().value else { panic!() };
    assert_eq!(seeds[1].origin.to_string(), "my.toml:3");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_no_matter() {
    let document = parse("\u{feff}seed = 1\r\n[head]\r\nrank = 3\r\n");
    assert_eq!(document.get("head.rank").unwrap().origin.to_string(), "my.toml:3");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    for (broken, line, word) in [
        ("a = 1\na = 2\n", 2, "duplicate"),
        ("\n\n[x\n", 3, "unclosed"),
        ("a = \"x", 1, "string"),
        ("\na = 1_000_000_000_000_000_000_000_000_000_000_000_000_000\n", 2, "too large"),
    ] {
        let message = Document::parse(broken, "my.toml").unwrap_err().to_string();
        assert!(message.starts_with(&format!("my.toml:{line}: ")), "{message}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    for deep in [
        format!("{} = 1", vec!["a"; 200_000].join(".")),
        format!("[{}]", vec!["a"; 200_000].join(".")),
        format!("a = {}", "[".repeat(200_000)),
    ] {
        assert!(Document::parse(&deep, "my.toml").is_err());
    }
    let message = refused(&mut parse(""), &format!("{}=1", vec!["a"; 200_000].join(".")));
    assert!(message.contains("unknown key"));
}

#[test]
fn set_reads_toml_values() {
    for (assignment, key, value) in [
        ("head.rank=6", "head.rank", Value::Integer(6)),
        ("head.rank = 1_000", "head.rank", Value::Integer(1000)),
        ("optimizer.learning_rate=1e-3", "optimizer.learning_rate", Value::Float(1e-3)),
        ("optimizer.nesterov=true", "optimizer.nesterov", Value::Boolean(true)),
        ("head.noise=none", "head.noise", text("none")),
        ("head.noise=\"none\"", "head.noise", text("none")),
        ("seed=18446744073709551615", "seed", Value::Integer(u64::MAX.into())),
    ] {
        assert_eq!(set(assignment).get(key).unwrap().value, value, "{assignment}");
    }
    let document = set("seeds=[0, 1]");
    let Value::Array(seeds) = &document.get("seeds").unwrap().value else { panic!() };
    assert_eq!(
        seeds.iter().map(|seed| &seed.value).collect::<Vec<_>>(),
        [&Value::Integer(0), &Value::Integer(1)]
    );
    let document = set("head.temperature={low=0.3,high=3.0}");
    assert_eq!(document.get("head.temperature.low").unwrap().value, Value::Float(0.3));
    assert_eq!(
        document.get("head.temperature.low").unwrap().origin.to_string(),
        "--set head.temperature={low=0.3,high=3.0}"
    );
}

#[test]
fn set_takes_paths_as_they_are_typed() {
    for path in [
        "x.npy",
        "x.safetensors#embedding",
        "my data/x = 1, #2.npy",
        r"C:\new\temp\x.npy",
        r"\\server\share\x.npy",
        "2024",
        "2024-01-31",
        "1e5",
        "true",
        "[draft]/x.npy",
        "~/x.npy",
        "Füße/数据.npy",
    ] {
        let document = set(&format!("data.train.features={path}"));
        assert_eq!(document.get("data.train.features").unwrap().value, text(path));
        // And so they are written.
        let again = parse(&document.to_toml());
        assert_eq!(again.get("data.train.features").unwrap().value, text(path));
    }
    let quoted = set(r#"data.train.features='C:\new\x.npy'"#);
    assert_eq!(quoted.get("data.train.features").unwrap().value, text(r"C:\new\x.npy"));
}

#[test]
fn set_to_nothing_removes_a_key_or_a_section() {
    for nothing in ["", " ", "null"] {
        let mut document = parse("[data.noise]\nrate = 0.3\n[head]\nrank = 6\nnoise = \"full\"\n");
        document.set(&format!("data.noise={nothing}")).unwrap();
        document.set(&format!("head.rank={nothing}")).unwrap();
        document.set(&format!("training.ema={nothing}")).unwrap();
        assert_eq!(document.get("data.noise"), None);
        assert_eq!(document.get("head.rank"), None);
        assert_eq!(document.get("head.noise").unwrap().value, text("full"));
    }
    let message = refused(&mut parse(""), "head.rnak=");
    assert!(message.contains("unknown key head.rnak; did you mean head.rank?"), "{message}");
    let message = refused(&mut parse(""), "haed.rank=");
    assert!(
        message.contains("unknown key haed; did you mean head? Known here: base,"),
        "{message}"
    );
    let message = refused(&mut parse(""), "head.rank.x=");
    assert!(message.contains("unknown key head.rank.x. Known here: nothing"), "{message}");
}

#[test]
fn set_cannot_go_below_what_is_no_section() {
    let mut document = parse("\n[head]\ntemperature = 1.0\n");
    let message = refused(&mut document, "head.temperature.low=0.3");
    assert!(message.contains("head.temperature is the number 1.0 (my.toml:3)"), "{message}");
    assert!(message.contains("--set head.temperature="), "{message}");
    document.set("head.temperature=").unwrap();
    document.set("head.temperature.low=0.3").unwrap();
    assert_eq!(document.get("head.temperature.low").unwrap().value, Value::Float(0.3));
}

#[test]
fn set_without_key_or_value_or_with_broken_toml_is_refused() {
    for (assignment, words) in [
        ("head.rank", "expected key=value"),
        ("=6", "expected a dotted key"),
        ("head..rank=6", "expected a dotted key"),
        (".rank=6", "expected a dotted key"),
        ("seeds=[0, 1", "not a TOML value"),
        ("head.temperature={low=1", "not a TOML value"),
        ("head.noise=\"full", "not a TOML value"),
    ] {
        let message = refused(&mut parse(""), assignment);
        assert!(message.starts_with(&format!("--set {assignment}: ")), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn seed_and_seeds_are_one_setting_in_two_spellings() {
    let mut document = parse("seeds = [0]\n");
    document.set("seed=3").unwrap();
    assert_eq!(document.to_toml(), "seed = 3\n");
    document.set("seeds=[4]").unwrap();
    assert_eq!(document.to_toml(), "seeds = [4]\n");
    assert_eq!(parse("seed = 5\n").over(document).to_toml(), "seed = 5\n");
}

#[test]
fn a_document_over_another_merges_sections_and_replaces_values() {
    let base = Document::parse(
        "seeds = [0, 1]\n[head]\nrank = 6\ntemperature = 1.0\n[optimizer.l2]\nmean = 1.0\n",
        "base.toml",
    )
    .unwrap();
    let over = parse("seeds = [2]\n[head]\ntemperature = { low = 0.3, high = 3.0 }\n");
    let merged = over.over(base);
    assert_eq!(
        merged.to_toml(),
        "seeds = [2]\n\n[head]\nrank = 6\ntemperature = { low = 0.3, high = 3.0 }\n\n\
         [optimizer.l2]\nmean = 1.0\n"
    );
    assert_eq!(merged.get("head.rank").unwrap().origin.to_string(), "base.toml:3");
    assert_eq!(merged.get("head.temperature").unwrap().origin.to_string(), "my.toml:3");
}

#[test]
fn the_written_order_is_that_of_a_recipe_whatever_the_order_of_writing() {
    let document = parse(
        "head.rank = 6\nzebra = 1\nhead.noise = \"full\"\ndata.train.labels = \"y\"\n\
         data.classes = 3\nsummary = \"s\"\n",
    );
    assert_eq!(
        document.to_toml(),
        "summary = \"s\"\nzebra = 1\n\n[data]\nclasses = 3\n\n[data.train]\nlabels = \"y\"\n\n\
         [head]\nnoise = \"full\"\nrank = 6\n"
    );
}

#[test]
fn every_value_is_written_so_that_it_reads_back() {
    let document = parse(
        "a = \"quote \\\" tab \\t nul \\u0000 del \\u007F ' \\\\ λ\"\nb = 'C:\\new'\nc = 1e-8\nd = 2.0\n\
         e = -inf\nf = [[1, 2], []]\ng = 1979-05-27T07:32:00Z\nh = { \"a b\" = {}, x = false }\n\
         \"\" = 1e300\ni = 0xff\n",
    );
    let written = document.to_toml();
    let again = Document::parse(&written, "my.toml").unwrap();
    assert_eq!(again.to_toml(), written);
    for key in ["a", "b", "c", "d", "e", "g", "h.x", "i", ""] {
        assert_eq!(again.get(key).unwrap().value, document.get(key).unwrap().value, "{key}");
    }
    let nan = parse("x = nan\n");
    assert_eq!(nan.to_toml(), "x = nan\n");
}
