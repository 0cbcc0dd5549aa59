//! `aleator review`, from the first click to a classifier that is trained on the corrected labels.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::audits;
use crate::driver::Browser;
use crate::support::Place;

const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";

/// The program at work on `audit`; killed when the test ends.
struct Review {
    program: Child,
    url: String,
}

impl Review {
    fn start(place: &Place) -> Self {
        Self::start_by(&mut place.command("review audit"))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut program = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut url = String::new();
        let output = program.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut url).expect("an address");
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self { program, url: url.trim().to_string() }
    }

    /// As kill -9 or a power cut end it.
    fn kill(mut self) {
        self.program.kill().expect("a signal");
        self.program.wait().expect("its end");
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn with_digits() -> Place {
    let place = Place::empty();
    place.write("audit/.made", "");
    audits::digits().save(&place.path("audit")).expect("an audit");
    audits::write_digits_recipe(&place.path("audit"));
    place
}

/// Waits until the page shows this number of decided suspects.
fn wait_decided(browser: &Browser, count: usize) {
    let text = format!("{count} of 257 suspects decided");
    browser
        .wait_until(&format!("document.getElementById('counts').textContent.includes('{text}')"));
    browser.wait_until("!document.body.hasAttribute('aria-busy')");
}

fn shown_id(browser: &Browser) -> String {
    browser.find_shown("#id").text()
}

fn labels(place: &Place) -> Vec<String> {
    let text = String::from_utf8(place.read("audit/corrected.csv")).expect("UTF-8");
    text.lines().skip(1).map(|line| line.split(',').nth(1).expect("a label").to_string()).collect()
}

#[test]
fn suspects_are_decided_killed_resumed_and_trained_on() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&review.url);
    wait_decided(&browser, 0);
    browser.wait_until("document.getElementById('picture').naturalWidth === 8");

    // Every seventh digit has the label of the next one, and is ranked in the order of rows.
    assert_eq!(shown_id(&browser), "0");
    browser.find_shown("#accept").click();
    wait_decided(&browser, 1);
    assert_eq!(shown_id(&browser), "7");
    browser.keys("k");
    wait_decided(&browser, 2);
    browser.keys("m");
    wait_decided(&browser, 3);
    assert_eq!(shown_id(&browser), "21");
    review.kill();

    let review = Review::start(&place);
    browser.open(&review.url);
    // What the first page could not fetch any more.
    browser.console();
    wait_decided(&browser, 3);
    assert_eq!(shown_id(&browser), "21");
    browser.keys("c");
    browser.find_shown("#query").send_keys("5");
    browser.keys(ENTER);
    wait_decided(&browser, 4);
    browser.keys("a");
    wait_decided(&browser, 5);
    browser.keys("u");
    wait_decided(&browser, 4);
    assert_eq!(shown_id(&browser), "28");
    browser.keys(RIGHT);
    browser.wait_until("document.getElementById('id').textContent === '35'");
    browser.find_shown("#previous").click();
    browser.wait_until("document.getElementById('id').textContent === '28'");

    // One pair alone, to its end.
    let pair = choose(&browser, "pair", "9");
    let pair = pair.as_str().expect("a text").to_string();
    let size: usize = pair.rsplit(['(', ')']).nth(1).and_then(|n| n.parse().ok()).expect("a count");
    let (given, suggested) =
        pair.split_once(" (").and_then(|(pair, _)| pair.split_once(" → ")).expect("a pair");
    browser.wait_until(&format!(
        "document.getElementById('place').textContent.includes(' of {size} · ')"
    ));
    assert_eq!(browser.find("#given").text(), given);
    let already =
        browser.script("return document.querySelectorAll('#strip .settled').length", json!(null));
    let left = size - already.as_u64().expect("a count") as usize;
    for done in 1..=left {
        assert_eq!(browser.find("#suggested").text(), suggested);
        browser.keys("a");
        wait_decided(&browser, 4 + done);
    }
    assert!(browser.find_shown("#done").text().contains("All of this pair decided"));
    browser.assert_no_errors();
    drop(review);

    place.succeeds("review audit --export");
    let labels = labels(&place);
    assert_eq!(labels.len(), 1797);
    assert_eq!((labels[0].as_str(), labels[21].as_str()), ("0", "5"));
    let text = String::from_utf8(place.read("audit/ambiguous.csv")).expect("UTF-8");
    assert!(text.starts_with("id,given,suggested\n14,"), "{text}");

    let train = "train digits-none --quiet --out run --set data.noise= --set schedule.epochs=2 \
                 --set data.train.labels=audit/corrected.csv";
    place.succeeds(train);
    let evaluation: Value = place.json("run/evaluation.json");
    assert_eq!(evaluation["class_names"].as_array().map(Vec::len), Some(10));
}

/// One click accepts all suggestions of a pair, one undoes them, and a kill loses nothing.
#[test]
fn all_of_a_pair_are_accepted_in_one_click_and_undone_in_one() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    browser.resize(390, 844);
    browser.open(&review.url);
    wait_decided(&browser, 0);
    assert!(!browser.find("#accept-pair").is_shown(), "of all pairs at once nothing is accepted");
    choose(&browser, "pair", "0");
    browser.wait_until("document.getElementById('given').textContent !== ''");
    let text = browser.find_shown("#accept-pair").text();
    let size: usize = text.split(' ').find_map(|word| word.parse().ok()).expect("a count");
    browser.keys("k");
    wait_decided(&browser, 1);
    screenshot(&browser, "review-pair-390");
    browser.find_shown("#accept-pair").click();
    wait_decided(&browser, size);
    assert!(browser.find_shown("#done").text().contains("All of this pair decided"));
    assert!(browser.find_shown("#done-undo").text().starts_with(&format!("Undo all {}", size - 1)));
    screenshot(&browser, "review-accepted-390");
    review.kill();

    let review = Review::start(&place);
    browser.open(&review.url);
    // What the first page could not fetch any more.
    browser.console();
    wait_decided(&browser, size);
    browser.find_shown("#undo").click();
    wait_decided(&browser, 1);
    // The decision before it is undone by itself.
    browser.find_shown("#undo").click();
    wait_decided(&browser, 0);
    assert!(!browser.find("#undo").is_enabled());
    browser.assert_no_errors();
}

/// Labels in random order come to a count, which grows more certain.
#[test]
fn a_random_sample_is_decided_and_counted() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&review.url);
    wait_decided(&browser, 0);
    choose(&browser, "scope", "sample");
    browser.wait_until("document.getElementById('sample').textContent.includes('0 of the 16')");
    assert!(!browser.find("#pair").is_enabled(), "a sample of one pair says nothing about all");
    let sampled = |count: usize| {
        format!("document.getElementById('counts').textContent.includes('by {count} labels')")
    };
    for at in 0..24 {
        // Every seventh digit is labelled wrong.
        let id: usize = shown_id(&browser).parse().expect("a row");
        browser.keys(if id.is_multiple_of(7) { "a" } else { "k" });
        let decided =
            format!("document.getElementById('place').textContent.startsWith('{} ')", at + 2);
        browser.wait_until(&decided);
        browser.wait_until("!document.body.hasAttribute('aria-busy')");
        let counted = browser.script(&format!("return {}", sampled(at + 1)), json!(null));
        assert_eq!(counted, json!(at >= 15), "after {} labels", at + 1);
    }
    let text = browser.find_shown("#sample").text();
    assert!(text.contains("more would halve the interval"), "{text}");
    for (width, height, dark) in [(1280, 800, false), (390, 844, false), (390, 844, true)] {
        browser.resize(width, height);
        browser.prefer_dark(dark);
        let wide = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.script(wide, json!(null)), json!(true), "{width} pixels");
        screenshot(
            &browser,
            &format!("review-sample-{width}-{}", if dark { "dark" } else { "light" }),
        );
    }
    browser.assert_no_errors();
    drop(review);
    let ended = place.succeeds("review audit --export");
    assert!(ended.stdout.contains("by 24 of a random sample; between"), "{}", ended.stdout);
    assert_eq!(place.json("audit/review.json")["count"]["sampled"], 24);
}

/// Chooses a value of a menu, as a click on it does.
fn choose(browser: &Browser, menu: &str, value: &str) -> Value {
    let script = "const menu = document.getElementById(arguments[0].menu);
                  menu.value = arguments[0].value; menu.dispatchEvent(new Event('change'));
                  return menu.selectedOptions[0].text";
    browser.script(script, json!({ "menu": menu, "value": value }))
}

/// Keeps a picture of the page where somebody wants to look at it.
fn screenshot(browser: &Browser, name: &str) {
    if let Some(folder) = std::env::var_os("ALEATOR_SCREENSHOTS") {
        fs::create_dir_all(&folder).expect("a folder");
        browser.screenshot(&PathBuf::from(folder).join(format!("{name}.png")));
    }
}

/// Names that would be code, were they not text.
#[test]
fn hostile_names_are_shown_as_text() {
    let place = Place::empty();
    let hostile = "<img src=x onerror=\"document.title='taken'\">";
    place.write("audit/.made", "");
    let labels = [(hostile, 0, 1, true), ("b", 1, 0, true)];
    let audit =
        audits::single(&[hostile, "</script><script>document.title='taken'</script>"], &labels);
    audit.save(&place.path("audit")).expect("an audit");
    let review = Review::start(&place);
    let browser = Browser::start();
    browser.open(&review.url);
    browser.wait_until("document.getElementById('id').textContent !== ''");
    assert_eq!(shown_id(&browser), hostile);
    assert_eq!(browser.find_shown("#given").text(), hostile);
    assert!(browser.find_shown("#suggested").text().starts_with("</script>"));
    browser.keys("c");
    browser.find_shown("#query").send_keys("<img");
    assert_eq!(browser.find("#matches [role=option]").text(), hostile);
    assert_ne!(browser.script("return document.title", json!(null)), json!("taken"));
    browser.assert_no_errors();
}

/// A telephone has no keys: everything is in reach of a finger.
#[test]
fn the_page_fits_a_telephone_and_names_its_controls() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    for (width, height, dark) in
        [(390, 844, false), (390, 844, true), (1280, 800, false), (1280, 800, true)]
    {
        browser.resize(width, height);
        browser.prefer_dark(dark);
        browser.open(&review.url);
        wait_decided(&browser, 0);
        browser.wait_until("document.getElementById('picture').naturalWidth === 8");
        browser.wait_until("document.querySelectorAll('#strip img').length > 8");
        let wide = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(browser.script(wide, json!(null)), json!(true), "{width} pixels");
        for button in ["#accept", "#keep", "#other", "#ambiguous"] {
            let bottom = format!(
                "return document.querySelector('{button}').getBoundingClientRect().bottom <= innerHeight"
            );
            assert_eq!(
                browser.script(&bottom, json!(null)),
                json!(true),
                "{button} at {width} pixels"
            );
        }
        let nameless =
            "return [...document.querySelectorAll('button, select, input')].filter(one =>
            !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length";
        assert_eq!(browser.script(nameless, json!(null)), json!(0));
        screenshot(&browser, &format!("review-{width}-{}", if dark { "dark" } else { "light" }));
        browser.assert_no_errors();
    }
}

/// Digits that are surely right stand beside the suspect; each picture can be enlarged.
#[test]
fn a_suspect_is_compared_with_examples_of_both_labels() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    browser.resize(1280, 800);
    browser.open(&review.url);
    wait_decided(&browser, 0);
    for (side, label) in [("given", "1"), ("suggested", "0")] {
        assert_eq!(browser.find(&format!("#{side}")).text(), label);
        let loaded = format!(
            "[...document.querySelectorAll('#{side}-examples img')].filter(one => one.naturalWidth === 8).length === 4"
        );
        browser.wait_until(&loaded);
        let name = format!("return document.querySelector('#{side}-examples button').ariaLabel");
        assert_eq!(browser.script(&name, json!(null)), json!(format!("Surely {label}")));
    }
    let is_open = "document.getElementById('zoom').open";
    browser.find_shown("#given-examples button").click();
    browser.wait_until(is_open);
    // Keys do not decide about a label that is covered.
    browser.keys("a");
    browser.find_shown("#zoomed").click();
    browser.wait_until(&format!("!{is_open}"));
    wait_decided(&browser, 0);
    browser.keys("z");
    browser.wait_until(is_open);
    browser.keys("z");
    browser.wait_until(&format!("!{is_open}"));
    browser.keys("a");
    wait_decided(&browser, 1);
    browser.assert_no_errors();
}

/// Pages for those who come without the secret, from another page, or through a file.
#[test]
fn an_address_that_does_not_open_the_review_says_what_to_do() {
    let place = with_digits();
    let review = Review::start(&place);
    let browser = Browser::start();
    let without = review.url.split('?').next().expect("an address");
    place.write("link.html", format!("<!doctype html><a href=\"{}\">the review</a>", review.url));
    let other_page = format!("file://{}", place.path("link.html").display());
    for (width, height, dark) in
        [(390, 844, false), (390, 844, true), (1280, 800, false), (1280, 800, true)]
    {
        browser.resize(width, height);
        browser.prefer_dark(dark);
        let look = |name: &str, title: &str| {
            assert_eq!(browser.find_shown("h2").text(), title);
            let wide = "return document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.script(wide, json!(null)), json!(true), "{name}: {width} pixels");
            let shade = if dark { "dark" } else { "light" };
            screenshot(&browser, &format!("{name}-{width}-{shade}"));
        };
        browser.open(without);
        look("review-no-token", "This address does not open the review");
        browser.open(&other_page);
        browser.find("a").click();
        look("review-other-page", "Another page led you here");
        browser.find_shown("#done a").click();
        wait_decided(&browser, 0);
    }
}

/// What `--open` starts in place of a browser: it notes the page.
const OPENER: &str = "#!/bin/sh\nprintf '%s' \"$1\" > noted && mv noted opened\n";

#[cfg(unix)]
#[test]
fn the_page_that_open_hands_over_leads_to_the_review() {
    use std::os::unix::fs::PermissionsExt;
    let place = with_digits();
    for name in ["bin/xdg-open", "bin/open"] {
        place.write(name, OPENER);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.path(name), executable).expect("permissions");
    }
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", place.path("bin").display());
    let review = Review::start_by(place.command("review audit --open").env("PATH", path));
    let started = std::time::Instant::now();
    while !place.path("opened").exists() {
        assert!(started.elapsed().as_secs() < 20, "no browser was opened");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let page = String::from_utf8(place.read("opened")).expect("UTF-8");
    let browser = Browser::start();
    browser.open(&format!("file://{page}"));
    wait_decided(&browser, 0);
    assert_eq!(browser.script("return location.href", json!(null)), json!(review.url));
    assert!(!fs::exists(&page).expect("an answer"), "it is removed");
    browser.assert_no_errors();
}
