//! `aleator compare` as a user meets it.

use std::fs;

use crate::support::{FILES, Place, SMALL};

/// Little training is enough to have something to compare.
const QUICK: &str = "--set head.samples=8 --set evaluation.samples=16 --set schedule.epochs=1 \
                     --set schedule.warm_up=0.5 --set seeds=[0,1] -q";

/// Folders of two seeds on the built-in digits.
fn place_with(names: &[&str]) -> Place {
    let place = Place::empty();
    for name in names {
        place.succeeds(&format!("train digits-{name} {QUICK} --out runs/{name}"));
    }
    place
}

#[test]
fn folders_of_seeds_stand_side_by_side_in_every_form() {
    let place = place_with(&["none", "full"]);
    let text = place.succeeds("compare plain=runs/none runs/full").stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("top-1") && lines[0].contains("NLL"), "{text}");
    assert!(lines[1].starts_with("plain ") && lines[2].starts_with("full "), "{text}");
    assert_eq!(lines[1].matches(" ± ").count(), 5, "{text}");
    assert!(text.contains("Test split (359 examples), given labels"), "{text}");
    assert!(text.contains("over 2 runs") && text.contains("paired by seed"), "{text}");
    assert!(!text.contains('\x1b'), "a pipe is no terminal: {text:?}");
    // One argument, a folder that holds both: the same numbers.
    let both = place.succeeds("compare runs").stdout;
    let row = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
        line.split_whitespace().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row(&both, "none"), row(&text, "plain"));
    assert!(both.lines().nth(1).unwrap().starts_with("none "), "the baseline first: {both}");
    place.succeeds("report runs -q");
    let page = String::from_utf8(place.read("runs/report.html")).unwrap();
    assert!(page.contains("full/ensemble") && page.contains("runs/none/seed-0"));

    for (ending, words) in [
        ("md", "|---|---:|---:|"),
        ("tex", "\\begin{tabular}{lrr}"),
        ("csv", "name,runs,test_top1_mean"),
    ] {
        let out = format!("tables/table.{ending}");
        place.refuses(&format!("compare runs --out {out}"), &["cannot", "tables"]);
        fs::create_dir(place.path("tables")).unwrap();
        let said = place.succeeds(&format!("compare runs --metrics top1,nll,top1 --out {out}"));
        assert_eq!(said.stdout, format!("written to {out}\n"));
        let text = String::from_utf8(place.read(&out)).unwrap();
        assert!(text.contains(words), "{text}");
        let format = [("md", "markdown"), ("tex", "latex"), ("csv", "csv")];
        let format = format.iter().find(|(known, _)| *known == ending).unwrap().1;
        let printed = place.succeeds(&format!("compare runs --metrics top1,nll --format {format}"));
        assert_eq!(printed.stdout, text);
        fs::remove_dir_all(place.path("tables")).unwrap();
    }
    // Of the validation labels, which were made wrong, the true ones are known.
    let text = place.succeeds("compare runs --split validation").stdout;
    assert!(text.contains("Validation split") && text.contains("clean labels"), "{text}");
    let text = place.succeeds("compare runs --split validation --labels given").stdout;
    assert!(text.contains("given labels"), "{text}");
    let text = place.succeeds("compare runs --test unpaired").stdout;
    assert!(text.contains("unpaired two-tailed t-test (pooled variance)"), "{text}");
    let ended = place.shell("set -o pipefail; \"$ALEATOR\" compare runs | head -0");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_planned_table_shows_what_runs_there_are() {
    let place = place_with(&["none", "full"]);
    let text = place.succeeds("compare --list").stdout;
    assert!(text.contains("ilsvrc12") && text.contains("Table 11"), "{text}");
    let text = place.succeeds("compare --table ilsvrc12").stdout;
    assert!(text.contains("79.3 ± 0.10 %") && text.contains("No runs of this table"), "{text}");
    place.write(
        "mine.toml",
        "title = \"Mine\"\ntest = \"paired\"\n\n[[column]]\nmetric = \"nll\"\nsplit = \"test\"\n\n\
         [[row]]\nname = \"without\"\nrecipe = \"digits-none\"\nrun = \"none\"\n\n\
         [[row]]\nname = \"with\"\nrecipe = \"digits-full\"\nrun = \"full\"\n\n\
         [[row]]\nname = \"never run\"\nrecipe = \"digits-shared\"\nrun = \"shared\"\n",
    );
    let text = place.succeeds("compare --table mine.toml --runs runs").stdout;
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
    assert!(line("without").contains(" ± ") && line("with ").contains(" ± "), "{text}");
    assert!(line("never run").ends_with('–'), "{text}");
    assert!(text.contains("No runs in runs of digits-shared."), "{text}");
    let text = place.succeeds("compare --table mine.toml --test unpaired").stdout;
    assert!(text.contains("unpaired"), "{text}");
    place.write("bad.toml", "titel = \"x\"\n");
    place.refuses("compare --table bad.toml", &["bad.toml:1", "titel", "did you mean title?"]);
    place.refuses("compare --table nothing", &["\"nothing\"", "ilsvrc12, webvision"]);
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_to_do() {
    let place = place_with(&["none"]);
    place.refuses("compare nowhere", &["nowhere: there is no such directory"]);
    place.refuses("compare a=nowhere", &["nowhere: there is no such directory"]);
    fs::create_dir(place.path("empty")).unwrap();
    place.refuses("compare empty", &["empty holds no runs"]);
    place.refuses("compare runs --labels clean", &["no clean labels", "--labels given"]);
    place.refuses("compare runs --calibrated", &["not calibrated", "--calibrate"]);
    place.refuses("compare a=runs/none a=runs/none", &["same seed"]);

    // The same files, other test examples.
    place.succeeds(&format!("train digits-none {QUICK} --set data.test.seed=5 --out other"));
    place.refuses("compare runs/none other", &["cannot be compared", "hold other examples"]);
    // Other classes.
    let features = Place::with_features();
    features.succeeds(&format!("train features-none {FILES} {SMALL} --out toy"));
    let toy = features.path("toy").display().to_string();
    place.refuses(&format!("compare runs/none {toy}"), &["they have 10 and 4 classes"]);
    // Other training labels and the same test examples: that is a comparison.
    place.succeeds(&format!("train digits-none {QUICK} --set data.noise.rate=0.1 --out less"));
    place.succeeds("compare runs/none less");
    place.refuses("compare runs/none less --split validation --labels given", &["another label"]);

    let evaluation = place.path("runs/none/seed-1/evaluation.json");
    let whole = fs::read(&evaluation).unwrap();
    fs::write(&evaluation, &whole[..whole.len() / 2]).unwrap();
    place.refuses("compare runs", &["runs/none/seed-1/evaluation.json", "EOF"]);
    fs::remove_file(&evaluation).unwrap();
    place.refuses("compare runs", &["seed-1 is not finished", "`aleator resume runs/none`"]);
    place.succeeds("resume runs/none -q");
    assert_eq!(fs::read(&evaluation).unwrap(), whole);
    place.succeeds("compare runs");
}

#[test]
fn arguments_that_mean_nothing_are_named() {
    let place = Place::empty();
    for (arguments, words) in [
        ("compare", vec!["DIR"]),
        ("compare runs --metrics accuracy", vec!["accuracy", "top1, top5, nll"]),
        ("compare runs --metrics top1,,nll", vec!["--metrics"]),
        ("compare runs --split train", vec!["train", "validation"]),
        ("compare runs --format html", vec!["html", "markdown"]),
        ("compare runs --table ilsvrc12", vec!["cannot be used with"]),
        ("compare --table ilsvrc12 --metrics nll", vec!["cannot be used with"]),
        ("compare runs --runs runs", vec!["cannot be used with"]),
        ("compare --runs runs", vec!["DIR"]),
    ] {
        let ended = place.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments}: {}", ended.stderr);
        ended.check_no_panic(arguments);
        for word in words {
            assert!(
                ended.stderr.contains(word),
                "{arguments}: {word:?} is not in {}",
                ended.stderr
            );
        }
    }
}
