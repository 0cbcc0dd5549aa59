//! A headless Chromium that a test opens pages in, by the WebDriver protocol.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wire::call;

/// What stands for an element in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--hide-scrollbars",
];

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// A browser with one window. It and its driver end with it.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Of Chromium itself, where the driver says it.
    process: Option<u64>,
    _profile: TempDir,
    _output: BufReader<ChildStdout>,
}

/// An element of the page.
pub struct Element<'a> {
    browser: &'a Browser,
    id: String,
}

impl Browser {
    /// Starts Chromium and its driver: those that `CHROMIUM` and `CHROMEDRIVER` name, else those
    /// of the PATH.
    ///
    /// # Panics
    /// Where they are not installed.
    pub fn start() -> Self {
        let chromium = program("CHROMIUM", &["chromium", "chromium-browser", "google-chrome"]);
        let chromedriver = program("CHROMEDRIVER", &["chromedriver"]);
        let (driver, output, port) = start_driver(&chromedriver);
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            process: None,
            _profile: profile,
            _output: output,
        };
        browser.begin(&chromium);
        browser
    }

    fn begin(&mut self, chromium: &str) {
        let profile = format!("--user-data-dir={}", self._profile.path().display());
        let arguments: Vec<&str> = ARGUMENTS.into_iter().chain([profile.as_str()]).collect();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = call(self.port, "POST", "/session", Some(wanted))
            .unwrap_or_else(|error| panic!("{chromium} does not start: {error}"));
        self.session = session["sessionId"].as_str().expect("a session").to_string();
        self.process = session["capabilities"]["goog:processID"].as_u64();
    }

    /// Opens an address and waits until the page is there.
    pub fn open(&self, url: &str) {
        self.post("url", json!({"url": url}));
    }

    /// The first element that matches a CSS selector; waits for it.
    pub fn find(&self, css: &str) -> Element<'_> {
        self.waits(css, || self.find_all(css).into_iter().next())
    }

    /// The first element that matches a CSS selector and is visible; waits for it.
    pub fn find_shown(&self, css: &str) -> Element<'_> {
        self.waits(css, || self.find_all(css).into_iter().find(Element::is_shown))
    }

    /// All elements that match a CSS selector now.
    pub fn find_all(&self, css: &str) -> Vec<Element<'_>> {
        let found = self.post("elements", json!({"using": "css selector", "value": css}));
        let ids = found.as_array().into_iter().flatten();
        let id = |element: &Value| element[ELEMENT].as_str().expect("an element").to_string();
        ids.map(|element| Element { browser: self, id: id(element) }).collect()
    }

    /// What the body of a function returns; `arguments[0]` is `argument`.
    pub fn script(&self, body: &str, argument: Value) -> Value {
        self.post("execute/sync", json!({"script": body, "args": [argument]}))
    }

    /// Waits until an expression is true in the page.
    pub fn wait_until(&self, expression: &str) {
        let holds = || self.script(&format!("return !!({expression})"), json!(null)) == json!(true);
        self.waits(expression, || holds().then_some(()));
    }

    /// Types at what has the focus. `\u{e000}` and above are keys, as the protocol has them.
    pub fn keys(&self, keys: &str) {
        let press = |key: char| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.post("actions", json!({"actions": [{"type": "key", "id": "k", "actions": actions}]}));
    }

    /// The size of the page's window in CSS pixels, as small as a telephone's.
    pub fn resize(&self, width: usize, height: usize) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Whether the person prefers dark pages.
    pub fn prefer_dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Writes what the window shows as PNG.
    pub fn screenshot(&self, path: &Path) {
        let picture = self.devtools("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64(picture["data"].as_str().expect("a picture"));
        std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// A command of Chromium's own protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": command, "params": parameters}))
    }

    /// What the page wrote to the console since it was last asked: level and text.
    pub fn console(&self) -> Vec<(String, String)> {
        let entries = self.post("se/log", json!({"type": "browser"}));
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_string();
        let entries = entries.as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| (text(entry, "level"), text(entry, "message"))).collect()
    }

    /// # Panics
    /// If the console has an error: an exception, a blocked resource, a failed request.
    pub fn assert_no_errors(&self) {
        let console = self.console();
        let severe: Vec<_> = console.iter().filter(|(level, _)| level == "SEVERE").collect();
        assert!(severe.is_empty(), "the console has errors: {severe:#?}");
    }

    fn waits<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            match look() {
                Some(found) => return found,
                None if started.elapsed() < PATIENCE => sleep(Duration::from_millis(30)),
                None => panic!("{what} did not come; the page says:\n{}", self.text()),
            }
        }
    }

    fn text(&self) -> String {
        let text = self.script("return document.body.innerText", json!(null));
        format!("{}\n{:#?}", text.as_str().unwrap_or_default(), self.console())
    }

    fn post(&self, what: &str, body: Value) -> Value {
        let path = format!("/session/{}/{what}", self.session);
        call(self.port, "POST", &path, Some(body)).unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        let ended = self.session.is_empty() || call(self.port, "DELETE", &path, None).is_ok();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // The driver ends Chromium with the session, if it can still be asked.
        if let Some(process) = self.process.filter(|_| !ended) {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
    }
}

impl Element<'_> {
    pub fn click(&self) {
        self.post("click", json!({}));
    }

    /// Types into it.
    pub fn send_keys(&self, text: &str) {
        self.post("value", json!({"text": text}));
    }

    /// What a person reads there.
    pub fn text(&self) -> String {
        self.get("text").as_str().unwrap_or_default().to_string()
    }

    pub fn attribute(&self, name: &str) -> Option<String> {
        self.get(&format!("attribute/{name}")).as_str().map(str::to_string)
    }

    pub fn is_shown(&self) -> bool {
        self.get("displayed") == json!(true)
    }

    pub fn is_enabled(&self) -> bool {
        self.get("enabled") == json!(true)
    }

    fn post(&self, what: &str, body: Value) -> Value {
        self.browser.post(&format!("element/{}/{what}", self.id), body)
    }

    fn get(&self, what: &str) -> Value {
        let path = format!("/session/{}/element/{}/{what}", self.browser.session, self.id);
        call(self.browser.port, "GET", &path, None)
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

/// The program that a variable names, or the first of `names` in the PATH.
fn program(variable: &str, names: &[&str]) -> String {
    if let Ok(named) = std::env::var(variable) {
        return named;
    }
    let folders: Vec<_> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let places = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    match places.into_iter().find(|place| place.is_file()) {
        Some(place) => place.display().to_string(),
        None => panic!(
            "no {} is installed (apt-get install chromium chromium-driver), and {variable} names \
             none",
            names[0]
        ),
    }
}

/// Starts a driver on a free port. Two that start at the same moment may choose the same one, and
/// one of them ends; it is started again.
fn start_driver(chromedriver: &str) -> (Child, BufReader<ChildStdout>, u16) {
    let mut said = String::new();
    for _ in 0..5 {
        let mut driver = Command::new(chromedriver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{chromedriver} does not start: {error}"));
        let mut output = BufReader::new(driver.stdout.take().expect("a pipe"));
        match announced_port(&mut output) {
            Ok(port) => return (driver, output, port),
            Err(lines) => said = lines,
        }
        driver.wait().expect("the driver ends");
    }
    panic!("the driver ended without a port:\n{said}")
}

/// The port that a driver listens on, or what it said before it ended.
fn announced_port(output: &mut BufReader<ChildStdout>) -> Result<u16, String> {
    let mut said = String::new();
    for line in output.by_ref().lines() {
        let line = line.expect("the driver says its port");
        let port = line.split("on port ").nth(1).map(|rest| rest.trim_end_matches('.').to_string());
        if let Some(port) = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0) {
            return Ok(port);
        }
        said += &(line + "\n");
    }
    Err(said)
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}
