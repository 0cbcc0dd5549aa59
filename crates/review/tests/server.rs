//! What the server answers, and what it refuses, over plain sockets.

use std::fs;

use serde_json::{Value, json};

use crate::running::Running;
use crate::support::{multi, single};

pub fn pets() -> Running {
    Running::on(&single(
        &["cat", "dog", "<img src=x onerror=alert(1)>"],
        &[("a", 0, 1, true), ("b", 1, 0, true), ("c", 0, 2, true), ("d", 0, 1, false)],
    ))
}

/// Status alone, and nothing of the audit.
pub fn assert_refused(answer: &(u16, String), status: u16) {
    assert_eq!(answer.0, status, "{}", answer.1);
    let body = answer.1.split("\r\n\r\n").nth(1).unwrap_or_default();
    assert!(body.is_empty(), "{body}");
    assert!(answer.1.contains("Content-Length: 0\r\n"), "{}", answer.1);
}

const SUSPECTS: &str = r#"{"scope":"suspects","pair":null}"#;

pub fn suspects() -> Value {
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
        ("POST", "/api/accept-all"),
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
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n".to_string(),
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: same-origin\r\n".to_string(),
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
        "/picture/+1?size=large",
        "/picture/%201?size=large",
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
    for query in ["at=+1", "at=-1", "at=", "pair=+1", "pair=x"] {
        let target = format!("/api/window?scope=all&{query}");
        assert_refused(&running.request("GET", &target, &running.header(), ""), 400);
    }
}

/// 16 KiB from the first byte to the blank line that ends the headers.
#[test]
fn the_limit_of_headers_is_exact() {
    let running = pets();
    let head = format!(
        "GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}X: ",
        running.port,
        running.header()
    );
    let of_length =
        |length: usize| head.clone() + &"x".repeat(length - head.len() - 4) + "\r\n\r\n";
    assert_eq!(running.raw(of_length(16 << 10).as_bytes()).0, 200);
    assert_refused(&running.raw(of_length((16 << 10) + 1).as_bytes()), 431);
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
fn all_of_a_pair_are_accepted_by_one_request() {
    let running = Running::digits();
    let filter = json!({"scope": "suspects", "pair": 3});
    let count = running.get("/api/overview")["pairs"][3]["count"].clone();
    let answer = |text: String| -> Value {
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let (status, text) = running.post("/api/accept-all", &json!({"filter": filter}));
    let accepted = answer(text);
    assert_eq!((status, &accepted["undoes"], &accepted["decided"]), (200, &count, &count));
    assert_eq!(accepted["at"], Value::Null, "nothing of the pair is left");
    let decisions = fs::read_to_string(running.path().join("decisions.jsonl")).unwrap();
    assert_eq!(decisions.lines().count(), 2, "one line for all: {decisions}");
    let undone = answer(running.post("/api/undo", &json!({"filter": filter})).1);
    assert_eq!((&undone["undoes"], &undone["decided"]), (&json!(0), &json!(0)));
    // Of all pairs at once nothing is accepted.
    assert_refused(&running.post("/api/accept-all", &json!({"filter": suspects()})), 400);
    let unknown = json!({"filter": {"scope": "all", "pair": 9999}});
    assert_eq!(answer(running.post("/api/accept-all", &unknown).1)["undoes"], 0);
}

#[test]
fn the_random_sample_is_shown_in_its_order_and_counted() {
    let running = Running::digits();
    let filter = json!({"scope": "sample", "pair": null});
    let mut window = running.get("/api/window?scope=sample");
    assert_eq!((&window["total"], &window["sample_needed"]), (&json!(1797), &json!(16)));
    let mut shown = vec![];
    for decided in 0..16 {
        assert_eq!((&window["count"], &window["sampled"]), (&Value::Null, &json!(decided)));
        assert_eq!(window["position"], decided);
        shown.push(window["at"].as_u64().unwrap());
        let asked = json!({"issue": window["at"], "decision": "keep", "filter": filter});
        let (_, text) = running.post("/api/decide", &asked);
        window = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    }
    assert!(!shown.is_sorted(), "not by rank: {shown:?}");
    assert_eq!((&window["count"]["sampled"], &window["count"]["count"]), (&json!(16), &json!(0.0)));
    assert!(window["count"]["high"].as_f64() > Some(100.0), "{window}");
}

#[test]
fn no_suspects_no_pictures_and_vanished_images_are_said() {
    let running = Running::on(&single(&["cat", "dog"], &[("a", 0, 1, false), ("b", 1, 0, false)]));
    assert_eq!(running.get("/api/window?scope=suspects")["at"], Value::Null);
    assert_eq!(running.get("/api/window?scope=all")["at"], 0);
    let reason = &running.get("/api/overview")["no_pictures"];
    assert!(reason.as_str().unwrap().contains("--images"), "{reason}");

    // A path of issues.csv is not opened, whatever is there.
    let picture = tempfile::Builder::new().suffix(".ppm").tempfile().unwrap();
    std::fs::write(picture.path(), b"P6 1 1 255\n\x00\x7f\xff").unwrap();
    let mut audit = single(&["cat", "dog"], &[("a", 0, 1, true)]);
    audit.issues[0].path = Some(picture.path().into());
    let running = Running::on(&audit);
    let reason = &running.get("/api/overview")["no_pictures"];
    assert!(reason.as_str().unwrap().contains("--images PATH"), "{reason}");
    let shown = &running.get("/picture/0?size=small")["error"];
    assert_eq!(shown, reason);
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
