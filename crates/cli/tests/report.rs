//! `aleator report` as a user runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{FILES, Place, SMALL, picture};

/// A run on built-in digits that is over in a second.
const DIGITS: &str = "--set schedule.epochs=1 --set schedule.warm_up=0.5 --set head.samples=8 \
                      --set evaluation.samples=16 -q";

fn html(place: &Place, name: &str) -> String {
    String::from_utf8(place.read(name)).expect("text")
}

#[test]
fn a_run_on_digits_becomes_a_page_with_pictures_and_figures() {
    let place = Place::empty();
    place.succeeds(&format!("train digits-full --seed 3 --out run {DIGITS}"));
    let ended = place.succeeds("report run --suspects 9 --ambiguous 4 -q");
    assert!(ended.stdout.contains("report: run/report.html"), "{}", ended.stdout);
    let page = html(&place, "run/report.html");
    assert_eq!(page.matches("<img class=\"tiny\"").count(), 13);
    assert!(page.contains("aleator train run/recipe.toml --seed 3 --out again"));
    for figure in ["confusion", "noise-correlation", "training-loss", "reliability-test-given"] {
        let svg = html(&place, &format!("run/figures/{figure}.svg"));
        assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"));
    }
    let first = place.read("run/report.html");
    place.succeeds("report run --suspects 9 --ambiguous 4 -q");
    assert!(first == place.read("run/report.html"), "other bytes the second time");
    place.succeeds("report run -q --out pages/a.html --figures drawn");
    assert!(place.path("pages/a.html").is_file() && place.path("drawn/confusion.svg").is_file());
}

#[test]
fn seeds_and_runs_beside_each_other_are_one_page() {
    let place = Place::with_features();
    place.succeeds(&format!("train features-full {FILES} {SMALL} --set seeds=[0,1] --out seeds"));
    place.succeeds(&format!("train features-none {FILES} {SMALL} --out plain"));
    place.succeeds("report seeds plain --out both.html -q");
    let page = html(&place, "both.html");
    assert!(page.contains("±") && page.contains("seeds/ensemble") && page.contains("plain"));
    assert!(page.contains("aleator train seeds/seed-0/recipe.toml --out again"));
}

#[test]
fn images_that_are_gone_are_said_to_be_and_moved_ones_are_found() {
    let place = Place::empty();
    for at in 0..24 {
        let class = if at % 2 == 0 { "across" } else { "down" };
        place.write(&format!("photos/{class}/{at}.ppm"), picture(12, at, at % 2 == 1));
    }
    place.succeeds(
        "train images-none --data photos --out run --set schedule.epochs=1 --set data.image_size=8 \
         --set schedule.warm_up=0.5 --set training.batch=8 --set network= \
         --set network.kind=mlp --set network.hidden=[4] --set network.normalize=global -q",
    );
    place.succeeds("report run -q");
    assert!(html(&place, "run/report.html").contains("<img"));
    fs::rename(place.path("photos"), place.path("moved")).expect("a folder");
    let ended = place.succeeds("report run -q");
    assert!(ended.stderr.contains("--images"), "{}", ended.stderr);
    let page = html(&place, "run/report.html");
    assert!(page.contains("image not found") && !page.contains("<img"));
    place.succeeds("report run -q --images moved");
    assert!(html(&place, "run/report.html").contains("<img"));
}

#[test]
fn what_cannot_be_reported_is_refused_in_words() {
    let place = Place::with_features();
    place.refuses("report nowhere", &["nowhere does not exist"]);
    place.write("notes/readme.txt", "x");
    place.refuses("report notes", &["notes", "neither a run"]);
    place.succeeds(&format!("train features-full {FILES} {SMALL} --out run"));
    place.succeeds(&format!("train digits-none --out digits {DIGITS}"));
    place.refuses("report run digits", &["run", "digits", "classes are not the same"]);

    place.write("mine.html", "<p>mine");
    place.refuses("report run --out mine.html", &["mine.html", "not an aleator report"]);
    assert_eq!(place.read("mine.html"), b"<p>mine");
    place.refuses("report run --out .", &["directory", "report.html"]);

    let readonly = place.path("readonly");
    fs::create_dir(&readonly).expect("a folder");
    fs::set_permissions(&readonly, fs::Permissions::from_mode(0o555)).expect("permissions");
    let ended = place.run("report run --out readonly/report.html");
    fs::set_permissions(&readonly, fs::Permissions::from_mode(0o755)).expect("permissions");
    // Root is not refused.
    if ended.code != Some(0) {
        ended.check_refusal("a read-only folder", &["readonly"]);
    }

    fs::write(place.path("digits/evaluation.json"), "{").expect("a file");
    place.refuses("report digits", &["digits/evaluation.json"]);
    fs::remove_file(place.path("digits/evaluation.json")).expect("a file");
    place.refuses("report digits", &["digits", "not finished", "aleator resume digits"]);
    fs::remove_file(place.path("run/predictions/validation.safetensors")).expect("a file");
    place.refuses("report run", &["validation", "aleator eval run"]);
}

#[test]
fn the_demonstration_ends_with_its_report() {
    let place = Place::empty();
    let ended = place.succeeds("demo --out demo -q");
    assert!(ended.stdout.contains("demo/report.html"), "{}", ended.stdout);
    let page = html(&place, "demo/report.html");
    let told = |words: &str| assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    told("of 1438 labels");
    told("and the suggested label is right for");
    // Terminal and page say the same of how many are wrong.
    let count = ended.stdout.lines().find(|line| line.contains("look wrong")).expect("a count");
    assert!(page.contains(&count.replace(" %", "\u{202f}%")), "{count}");
    assert!(page.contains("<summary>"));
    assert!(page.contains("demo/full/seed-0") && page.contains("<img class=\"tiny\""));
}
