//! The page of `aleator report` as people see it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::driver::Browser;

/// A run on built-in digits and its report.
fn digits() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let aleator = |arguments: &[&str]| {
        let ended = Command::new(env!("CARGO_BIN_EXE_aleator"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    aleator(&["train", "digits-full", "-q", "--out", "run", "--set", "schedule.epochs=3"]);
    aleator(&["report", "run", "-q"]);
    folder
}

fn address(page: &Path) -> String {
    format!("file://{}", page.display())
}

/// The texts of a column of the table of classes, from the top, as far as they are shown.
fn column(browser: &Browser, at: usize) -> Vec<String> {
    let body = "return [...document.querySelectorAll('#classes tbody tr:not([hidden])')]
        .map(row => row.cells[arguments[0]].textContent)";
    let texts = browser.script(body, json!(at));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    texts.as_array().expect("a list").iter().map(text).collect()
}

#[test]
fn a_report_is_sorted_and_filtered_and_fits_a_telephone() {
    let folder = digits();
    let browser = Browser::start();
    browser.open(&address(&folder.path().join("run/report.html")));
    browser.assert_no_errors();
    assert_eq!(column(&browser, 0).len(), 10);

    browser.script("document.querySelector('#classes').scrollIntoView()", json!(null));
    browser.wait_until(
        "Math.abs(document.querySelector('#classes').getBoundingClientRect().top) < 100",
    );
    browser.find("#classes thead th:first-child button").click();
    browser.find("#classes thead th:first-child button").click();
    assert_eq!(column(&browser, 0)[0], "9");
    let heading = browser.find("#classes thead th:first-child");
    assert_eq!(heading.attribute("aria-sort").as_deref(), Some("descending"));
    // Enter on the heading of the next column, by keyboard alone.
    browser.keys("\u{e004}\u{e007}");
    let counts: Vec<usize> =
        column(&browser, 1).iter().map(|count| count.parse().expect("a count")).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");

    browser.find_shown("#classes input").send_keys("7");
    assert_eq!(column(&browser, 0), ["7"]);
    assert_eq!(browser.find("#classes output").text(), "1 of 10");

    let overflow = "return document.documentElement.scrollWidth - innerWidth";
    for (width, dark) in [(390, false), (390, true), (1280, true)] {
        browser.resize(width, 844);
        browser.prefer_dark(dark);
        assert!(browser.script(overflow, json!(null)).as_i64() <= Some(0), "at {width} pixels");
    }
    let light = "return getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.script(light, json!(null)), json!("rgb(21, 24, 27)"));
    browser.assert_no_errors();
}

/// The ids of the suspects that are shown.
fn suspects(browser: &Browser) -> Vec<String> {
    let body = "return [...document.querySelectorAll('#suspects .gallery li:not([hidden]) .id')]
        .map(id => id.textContent)";
    let texts = browser.script(body, json!(null));
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    texts.as_array().expect("a list").iter().map(text).collect()
}

#[test]
fn suspects_are_paged_and_the_page_is_short_on_a_telephone() {
    let folder = digits();
    let browser = Browser::start();
    browser.open(&address(&folder.path().join("run/report.html")));
    let first = suspects(&browser);
    assert_eq!(first.len(), 24);
    assert!(browser.find("#suspects .pager output").text().starts_with("1–24 of "));
    let press = |at: usize| {
        let body = "document.querySelectorAll('#suspects .pager button')[arguments[0]].click()";
        browser.script(body, json!(at));
    };
    press(1);
    let second = suspects(&browser);
    assert!(!second.is_empty() && second.iter().all(|id| !first.contains(id)), "{second:?}");
    press(0);
    assert_eq!(suspects(&browser), first);
    // On the first page there is nothing before it.
    press(0);
    assert_eq!(suspects(&browser), first);

    browser.resize(390, 844);
    browser.open(&address(&folder.path().join("run/report.html")));
    assert_eq!(suspects(&browser).len(), 9);
    let screens = "return document.documentElement.scrollHeight / 844";
    let screens = browser.script(screens, json!(null)).as_f64().expect("a number");
    assert!(screens < 12.0, "{screens} screens");
    browser.assert_no_errors();
}

#[test]
fn a_large_table_opens_at_once_and_nothing_is_fetched() {
    let folder = digits();
    let path = folder.path().join("run/report.html");
    let page = std::fs::read_to_string(&path).expect("a page");
    let row = page.split("<tbody>\n").last().and_then(|rest| rest.lines().next()).expect("a row");
    let large = page.replace(row, &row.repeat(1000));
    std::fs::write(&path, &large).expect("a page");
    let browser = Browser::start();
    let started = Instant::now();
    browser.open(&address(&path));
    assert!(started.elapsed() < Duration::from_secs(8), "it took {:?}", started.elapsed());
    let fetched = "return performance.getEntriesByType('resource')
        .filter(entry => !entry.name.startsWith('data:')).length";
    assert_eq!(browser.script(fetched, json!(null)), json!(0));
    browser.assert_no_errors();
}
