//! The browser itself can be trusted.

use std::fs;

use serde_json::json;

use crate::driver::Browser;

const PAGE: &str = "<!doctype html><title>t</title><link rel=icon href=data:,>
<style>@media (prefers-color-scheme: dark) { body { background: rgb(1, 2, 3) } }</style>
<button onclick=\"out.textContent += 'clicked '\">Go</button><input><p id=out></p>
<p hidden>hidden</p>
<script>addEventListener('keydown', event => { out.textContent += event.key + ' ' })</script>";

#[test]
fn a_page_is_opened_read_clicked_and_typed_at() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.html");
    fs::write(&file, PAGE).expect("a page");
    let browser = Browser::start();
    browser.open(&format!("file://{}", file.display()));
    browser.find("button").click();
    browser.find("input").send_keys("x");
    browser.keys("?\u{e014}");
    assert_eq!(browser.find("#out").text(), "clicked x ? ArrowRight");
    assert!(!browser.find("[hidden]").is_shown());

    browser.resize(390, 800);
    assert_eq!(browser.script("return innerWidth + arguments[0]", json!(1)), json!(391));
    let background = "return getComputedStyle(document.body).backgroundColor";
    browser.prefer_dark(true);
    assert_eq!(browser.script(background, json!(null)), json!("rgb(1, 2, 3)"));
    let picture = folder.path().join("page.png");
    browser.screenshot(&picture);
    assert!(fs::read(&picture).expect("a picture").starts_with(b"\x89PNG\r\n\x1a\n"));

    browser.assert_no_errors();
    browser.script("setTimeout(() => { throw new Error('on purpose') })", json!(null));
    browser.wait_until("true");
    let said = (0..50).flat_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        browser.console()
    });
    let mut severe = said.filter(|(level, _)| level == "SEVERE");
    assert!(severe.next().is_some_and(|(_, text)| text.contains("on purpose")));
}
