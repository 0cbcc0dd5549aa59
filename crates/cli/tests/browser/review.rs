//! `aleator review`, from the first click to a classifier that is trained on the corrected labels.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

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
        let mut program = place
            .command("review audit")
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

/// Waits until the page shows so many decisions of all suspects.
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
    let choose = "const menu = document.getElementById('pair'); menu.value = arguments[0];
                  menu.dispatchEvent(new Event('change')); return menu.selectedOptions[0].text";
    let pair = browser.script(choose, json!("9"));
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
        if let Some(folder) = std::env::var_os("ALEATOR_SCREENSHOTS") {
            let name = format!("review-{width}-{}.png", if dark { "dark" } else { "light" });
            fs::create_dir_all(&folder).expect("a folder");
            browser.screenshot(&PathBuf::from(folder).join(name));
        }
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
