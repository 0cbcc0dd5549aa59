//! What the server answers, and what it refuses, over plain sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::{digits, multi, single, write_digits_recipe};
use aleator_report::audit::Audit;
use aleator_review::{Pictures, Server, Session};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server at work on an audit.
struct Running {
    folder: TempDir,
    port: u16,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn on(audit: &Audit) -> Self {
        let folder = tempfile::tempdir().unwrap();
        audit.save(folder.path()).unwrap();
        Self::start(folder)
    }

    fn digits() -> Self {
        let folder = tempfile::tempdir().unwrap();
        digits().save(folder.path()).unwrap();
        write_digits_recipe(folder.path());
        Self::start(folder)
    }

    fn start(folder: TempDir) -> Self {
        let session = Session::open(folder.path()).unwrap();
        let pictures = Pictures::of_audit(folder.path(), session.audit(), None).unwrap();
        let server = Server::bind(None).unwrap();
        let url = server.url();
        let port = url.split([':', '/']).nth(4).unwrap().parse().unwrap();
        let token = url.split('=').nth(1).unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            server.run(session, &pictures, &flag).unwrap();
        });
        Self { folder, port, token, stop, thread: Some(thread) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sends bytes as they are; status and the whole answer.
    fn raw(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // The server may refuse and stop reading before everything is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, text)
    }

    fn request(&self, method: &str, target: &str, headers: &str, body: &str) -> (u16, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let length = body.len();
        self.raw(
            format!(
                "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }

    fn header(&self) -> String {
        format!("X-Aleator-Token: {}\r\n", self.token)
    }

    fn get(&self, target: &str) -> Value {
        let (status, text) = self.request("GET", target, &self.header(), "");
        assert_eq!(status, 200, "{target}: {text}");
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }

    fn post(&self, target: &str, body: &Value) -> (u16, String) {
        let headers = self.header() + "Content-Type: application/json\r\n";
        self.request("POST", target, &headers, &body.to_string())
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn pets() -> Running {
    Running::on(&single(
        &["cat", "dog", "<img src=x onerror=alert(1)>"],
        &[("a", 0, 1, true), ("b", 1, 0, true), ("c", 0, 2, true), ("d", 0, 1, false)],
    ))
}

/// Status alone, and nothing of the audit.
fn assert_refused(answer: &(u16, String), status: u16) {
    assert_eq!(answer.0, status, "{}", answer.1);
    let body = answer.1.split("\r\n\r\n").nth(1).unwrap_or_default();
    assert!(body.is_empty(), "{body}");
    assert!(answer.1.contains("Content-Length: 0\r\n"), "{}", answer.1);
}

const SUSPECTS: &str = r#"{"scope":"suspects","pair":null}"#;

fn suspects() -> Value {
    serde_json::from_str(SUSPECTS).unwrap()
}

#[test]
fn the_page_comes_with_strict_headers_and_without_anything_from_elsewhere() {
    let running = pets();
    let (status, page) = running.request("GET", &format!("/?token={}", running.token), "", "");
    assert_eq!(status, 200);
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    for header in [
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Cross-Origin-Resource-Policy: same-origin",
    ] {
        assert!(head.contains(header), "{header} is missing in {head}");
    }
    let nonce = head.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(body.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!body.contains("://") && !body.contains("innerHTML"), "something from elsewhere");
    let again = running.request("GET", &format!("/?token={}", running.token), "", "").1;
    assert!(!again.contains(nonce), "a nonce is used once");
}

#[test]
fn without_the_token_nothing_is_told() {
    let running = pets();
    for (method, target) in [
        ("GET", "/"),
        ("GET", "/?token="),
        ("GET", "/?token=00000000000000000000000000000000"),
        ("GET", "/api/overview"),
        ("GET", "/api/window?scope=suspects"),
        ("GET", "/picture/0?size=large"),
        ("GET", "/nowhere"),
        ("POST", "/api/decide"),
        ("POST", "/api/undo"),
    ] {
        assert_refused(&running.request(method, target, "", ""), 403);
    }
    // The token of the address is no token of requests, and one that is there twice is none.
    let target = format!("/api/overview?token={}", running.token);
    assert_refused(&running.request("GET", &target, "", ""), 403);
    let twice = running.header() + &running.header();
    assert_refused(&running.request("GET", "/api/overview", &twice, ""), 403);
    let wrong = format!("X-Aleator-Token: {}\r\n", running.token.replace(|c| c != '0', "0"));
    assert_refused(&running.request("GET", "/api/overview", &wrong, ""), 403);
}

#[test]
fn another_host_or_origin_is_refused() {
    let running = pets();
    let (port, token) = (running.port, running.header());
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:80", ""] {
        let text = format!("GET /api/overview HTTP/1.1\r\nHost: {host}\r\n{token}\r\n");
        assert_refused(&running.raw(text.as_bytes()), 421);
    }
    let none = format!("GET /api/overview HTTP/1.1\r\n{token}\r\n");
    assert_refused(&running.raw(none.as_bytes()), 421);
    let two = format!(
        "GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n{token}\r\n"
    );
    assert_refused(&running.raw(two.as_bytes()), 421);
    for header in [
        "Origin: http://evil.example\r\n".to_string(),
        "Origin: null\r\n".to_string(),
        format!("Origin: https://127.0.0.1:{port}\r\n"),
        format!("Origin: http://127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"),
        "Sec-Fetch-Site: cross-site\r\n".to_string(),
        "Sec-Fetch-Site: same-site\r\n".to_string(),
    ] {
        let answer = running.request("GET", "/api/overview", &(token.clone() + &header), "");
        assert_refused(&answer, 403);
    }
    let own = format!("{token}Origin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(running.request("GET", "/api/overview", &own, "").0, 200);
}

#[test]
fn wrong_methods_types_and_bodies_are_refused() {
    let running = pets();
    let token = running.header();
    for method in ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "get"] {
        assert_eq!(running.request(method, "/api/overview", &token, "").0, 405, "{method}");
    }
    assert_refused(&running.request("POST", "/api/overview", &token, ""), 405);
    assert_refused(&running.request("GET", "/api/decide", &token, ""), 405);
    let good = json!({"issue": 0, "decision": "keep", "filter": suspects()});
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let headers = format!("{token}Content-Type: {kind}\r\n");
        let answer = running.request("POST", "/api/decide", &headers, &good.to_string());
        assert_refused(&answer, 415);
    }
    assert_refused(&running.request("POST", "/api/decide", &token, &good.to_string()), 415);
    for body in [
        json!({}),
        json!({"issue": 0, "decision": "sing", "filter": suspects()}),
        json!({"issue": -1, "decision": "keep", "filter": suspects()}),
        json!({"issue": 0, "decision": "keep", "filter": suspects(), "more": 1}),
        json!({"issue": 0, "decision": {"class": 3}, "filter": suspects()}),
    ] {
        assert_refused(&running.post("/api/decide", &body), 400);
    }
    let outside = json!({"issue": 4, "decision": "keep", "filter": suspects()});
    assert_refused(&running.post("/api/decide", &outside), 404);
    let text = fs::read_to_string(running.path().join("decisions.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 1, "nothing was decided");
}

#[test]
fn what_is_too_large_or_no_request_is_refused() {
    let running = pets();
    let long = "x".repeat(100_000);
    assert_refused(&running.request("GET", &format!("/{long}"), "", ""), 431);
    let short = "x".repeat(3_000);
    assert_refused(&running.request("GET", &format!("/{short}"), "", ""), 431);
    assert_refused(&running.request("GET", "/", &format!("X: {long}\r\n"), ""), 431);
    let token = running.header() + "Content-Type: application/json\r\n";
    assert_refused(&running.request("POST", "/api/decide", &token, &long), 413);
    let host = format!("Host: 127.0.0.1:{}\r\n", running.port);
    let length = "Content-Length: 99999999999999999999";
    let head = format!("POST /api/decide HTTP/1.1\r\n{host}{token}{length}\r\n\r\n");
    assert_refused(&running.raw(head.as_bytes()), 413);
    for head in [
        format!("POST /api/decide HTTP/1.1\r\n{host}{token}Content-Length: -1\r\n\r\n"),
        format!(
            "POST /api/decide HTTP/1.1\r\n{host}{token}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"
        ),
        format!(
            "POST /api/decide HTTP/1.1\r\n{host}{token}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        format!("POST /api/decide HTTP/1.1\r\n{host}{token}Content-Length: 20\r\n\r\n{{}}"),
        format!("GET http://evil.example/ HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/2.0\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}no colon\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host} folded: x\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost".to_string(),
        "\r\n\r\n".to_string(),
    ] {
        assert_refused(&running.raw(head.as_bytes()), 400);
    }
    assert_refused(&running.raw(b"\xff\xfe / HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(running.get("/api/overview")["suspects"], 3, "it still works");
}

#[test]
fn pictures_are_asked_for_by_number_and_only_those_of_the_audit() {
    let running = Running::digits();
    let (status, text) = running.request("GET", "/picture/0?size=large", &running.header(), "");
    assert!(status == 200 && text.contains("Content-Type: image/png"), "{status}");
    for target in [
        "/picture/1797?size=large",
        "/picture/-1?size=large",
        "/picture/99999999999999999999999?size=large",
        "/picture/?size=large",
        "/picture/../audit.json?size=large",
        "/picture/%2e%2e%2faudit.json?size=large",
        "/picture//etc/passwd?size=large",
        "/../../etc/passwd",
        "/audit.json",
        "/decisions.jsonl",
    ] {
        assert_refused(&running.request("GET", target, &running.header(), ""), 404);
    }
    assert_refused(&running.request("GET", "/picture/0?size=9", &running.header(), ""), 400);
}

#[test]
fn a_decision_is_on_the_disk_before_its_answer_and_the_next_suspect_in_it() {
    let mut running = pets();
    let first = running.get("/api/window?scope=suspects");
    assert_eq!((&first["at"], &first["total"]), (&json!(0), &json!(3)));
    let asked = json!({"issue": 0, "decision": "accept", "filter": suspects()});
    let (status, text) = running.post("/api/decide", &asked);
    assert_eq!(status, 200);
    let decisions = fs::read_to_string(running.path().join("decisions.jsonl")).unwrap();
    assert!(decisions.ends_with("{\"id\":\"a\",\"decision\":\"accept\",\"label\":\"dog\"}\n"));
    let next: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((&next["at"], &next["decided"]), (&json!(1), &json!(1)));
    assert_eq!(next["progress"]["corrected"], 1);

    let other = json!({"issue": 2, "decision": {"class": 1}, "filter": suspects()});
    assert_eq!(running.post("/api/decide", &other).0, 200);
    let (_, text) = running.post("/api/undo", &json!({"filter": suspects()}));
    let undone: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((&undone["at"], &undone["decided"]), (&json!(2), &json!(1)));
    running.end();
    let corrected = fs::read_to_string(running.path().join("corrected.csv")).unwrap();
    assert_eq!(corrected, "id,label\na,dog\nb,dog\nc,cat\nd,cat\n");
}

#[test]
fn pairs_filter_the_queue_and_an_undone_issue_is_shown_though_filtered() {
    let running = Running::digits();
    let overview = running.get("/api/overview");
    let pair = &overview["pairs"][3];
    let window = running.get("/api/window?scope=suspects&pair=3");
    assert_eq!(window["total"], pair["count"]);
    assert!(window["issues"].as_array().unwrap().iter().all(|issue| {
        issue["given"] == pair["given"] && issue["suggested"] == pair["suggested"]
    }));
    let asked = json!({"issue": window["at"], "decision": "keep", "filter": {"scope": "suspects", "pair": 3}});
    assert_eq!(running.post("/api/decide", &asked).0, 200);
    let other = json!({"filter": {"scope": "suspects", "pair": 4}});
    let (_, text) = running.post("/api/undo", &other);
    let undone: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(undone["at"], window["at"]);
    assert_eq!(undone["filter"], suspects());
    assert_eq!(running.get("/api/window?scope=suspects&pair=999")["at"], Value::Null);
    assert_eq!(running.get("/api/window?scope=all&at=1796")["at"], 1796);
    assert_refused(
        &running.request("GET", "/api/window?scope=all&at=1797", &running.header(), ""),
        404,
    );
}

#[test]
fn no_suspects_no_pictures_and_vanished_images_are_said() {
    let running = Running::on(&single(&["cat", "dog"], &[("a", 0, 1, false), ("b", 1, 0, false)]));
    assert_eq!(running.get("/api/window?scope=suspects")["at"], Value::Null);
    assert_eq!(running.get("/api/window?scope=all")["at"], 0);
    let reason = &running.get("/api/overview")["no_pictures"];
    assert!(reason.as_str().unwrap().contains("--images"), "{reason}");

    let mut audit = single(&["cat", "dog"], &[("a", 0, 1, true)]);
    audit.issues[0].path = Some("/gone/a.png".into());
    let running = Running::on(&audit);
    assert_eq!(running.get("/api/overview")["no_pictures"], Value::Null);
    let reason = &running.get("/picture/0?size=small")["error"];
    assert!(reason.as_str().unwrap().contains("/gone/a.png: there is no such file"), "{reason}");
}

#[test]
fn another_class_is_refused_where_classes_are_on_or_off() {
    let running = Running::on(&multi(&["cat", "dog"], &[("a", &[0]), ("b", &[1])], &[0]));
    let window = running.get("/api/window?scope=suspects");
    assert_eq!(window["issues"][0]["given"], json!({"class": 0, "on": true}));
    let asked = json!({"issue": 0, "decision": {"class": 1}, "filter": suspects()});
    assert_refused(&running.post("/api/decide", &asked), 400);
    let asked = json!({"issue": 0, "decision": "accept", "filter": suspects()});
    assert_eq!(running.post("/api/decide", &asked).0, 200);
}

#[test]
fn more_connections_than_a_browser_has_are_turned_away_and_silent_ones_do_not_keep_it_from_ending()
{
    let mut running = pets();
    let silent: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(("127.0.0.1", running.port)).unwrap()).collect();
    let turned_away = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        running.request("GET", "/", "", "").0 == 503
    });
    assert!(turned_away);
    let started = std::time::Instant::now();
    running.end();
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    drop(silent);
}

#[test]
fn each_label_has_examples_that_are_surely_right() {
    let mut labels: Vec<(String, u32, u32, bool)> = vec![("a".to_string(), 0, 1, true)];
    labels.extend((0..6).map(|at| (format!("cat {at}"), 0, 1, false)));
    labels.extend((0..6).map(|at| (format!("dog {at}"), 1, 0, at == 0)));
    labels.sort_by_key(|(.., wrong)| !wrong);
    let borrowed: Vec<_> = labels.iter().map(|(id, a, b, c)| (id.as_str(), *a, *b, *c)).collect();
    let running = Running::on(&single(&["cat", "dog"], &borrowed));
    let references = |at: usize| {
        let window = running.get(&format!("/api/window?scope=all&at={at}"));
        let ids = |side: &str| -> Vec<String> {
            let numbers = window["references"][side].as_array().unwrap();
            let number = |it: &Value| it.as_u64().unwrap() as usize;
            numbers.iter().map(|it| labels[number(it)].0.clone()).collect()
        };
        (ids("given"), ids("suggested"))
    };
    // Those of the lowest rank first; suspects are not among them.
    let (cats, dogs) = references(0);
    assert_eq!(cats, ["cat 5", "cat 4", "cat 3", "cat 2"]);
    assert_eq!(dogs, ["dog 5", "dog 4", "dog 3", "dog 2"]);
    // One that is in question, or that was decided otherwise, is no example.
    let at = |id: &str| labels.iter().position(|label| label.0 == id).unwrap();
    assert_eq!(references(at("cat 5")).0[0], "cat 4");
    for (issue, decision) in [("dog 5", "accept"), ("dog 4", "keep")] {
        let body = json!({ "issue": at(issue), "decision": decision, "filter": suspects() });
        assert_eq!(running.post("/api/decide", &body).0, 200);
    }
    assert_eq!(references(0).1, ["dog 4", "dog 3", "dog 2", "dog 1"]);
}
