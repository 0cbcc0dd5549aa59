//! What a person sees who opens an address that does not lead to the review, and the page that does.

use std::fs;

use crate::running::Running;
use crate::server::{assert_refused, pets};

/// A page that tells what to do, and nothing of the audit.
fn assert_advice(running: &Running, page: (u16, String, String), status: u16, advice: &[&str]) {
    let (found, head, body) = page;
    assert_eq!(found, status, "{head}");
    assert!(head.contains("Content-Type: text/html; charset=utf-8"), "{head}");
    assert!(
        head.contains("Content-Security-Policy: default-src 'none'; img-src data:; style-src"),
        "{head}"
    );
    assert!(head.contains("X-Frame-Options: DENY"), "{head}");
    for words in advice {
        assert!(body.contains(words), "{words:?} is not in {body}");
    }
    let folder = running.path().file_name().unwrap().to_string_lossy().into_owned();
    for secret in [running.token.as_str(), "cat", "dog", &folder, "<script"] {
        assert!(!body.contains(secret), "{secret:?} is in {body}");
    }
}

#[test]
fn without_the_token_a_person_is_told_where_it_is() {
    let running = pets();
    let zeros = "0".repeat(32);
    for target in ["/", "/?token=", &format!("/?token={zeros}"), "/nowhere", "/open", "/open?code="]
    {
        for site in ["", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
            let page = running.navigate(target, site);
            let advice = ["Copy the whole address", "?token=", "<code>aleator review</code>"];
            assert_advice(&running, page, 403, &advice);
        }
    }
}

#[test]
fn who_comes_from_another_page_can_go_on_by_a_click() {
    let running = pets();
    let address = format!("/?token={}", running.token);
    let page = running.navigate(&address, "Sec-Fetch-Site: cross-site\r\n");
    assert_advice(&running, page, 403, &["Another page led you here", "<a href=\"\">"]);
    // The click is the page's own.
    let (status, _, body) = running.navigate(&address, "Sec-Fetch-Site: same-origin\r\n");
    assert!(status == 200 && body.contains("<script"), "{status}");
}

#[test]
fn who_comes_through_another_port_is_told_the_right_one() {
    let running = pets();
    let request = format!(
        "GET /?token={} HTTP/1.1\r\nHost: 127.0.0.1:9\r\nAccept: text/html\r\n\r\n",
        running.token
    );
    let (status, text) = running.raw(request.as_bytes());
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let page = (status, head.to_string(), body.to_string());
    assert_advice(&running, page, 421, &["ssh -L", "with the same port"]);
}

/// The address that a page leads to by itself.
fn destination(page: &str) -> String {
    let (_, rest) = page.split_once("content=\"0; url=").expect("a page that leads on");
    rest.split('"').next().unwrap().to_string()
}

#[test]
fn the_opening_page_leads_to_the_review_once() {
    let running = pets();
    let path = running.opening_page();
    assert!(path.is_absolute() && path.starts_with(running.path()), "{}", path.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(!page.contains(&running.token), "the token itself is in no file");
    let address = destination(&page);
    let target = address.strip_prefix(&format!("http://127.0.0.1:{}", running.port)).unwrap();
    let from_a_file = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";

    // What it is not for takes nothing from it.
    let code = target.split('=').nth(1).unwrap();
    assert_refused(&running.request("GET", "/open?code=0", from_a_file, ""), 403);
    assert_refused(&running.request("POST", target, from_a_file, ""), 403);
    let evil = "Origin: http://evil.example\r\n";
    assert_refused(&running.request("GET", target, evil, ""), 403);
    assert_refused(&running.request("GET", &format!("/?token={code}"), "", ""), 403);
    let header = format!("X-Aleator-Token: {code}\r\n");
    assert_refused(&running.request("GET", "/api/overview", &header, ""), 403);
    assert!(path.exists());

    let (status, _, body) = running.navigate(target, from_a_file);
    assert_eq!((status, destination(&body)), (200, format!("/?token={}", running.token)));
    assert!(!path.exists(), "it is removed");
    let (status, _, body) = running.navigate(target, from_a_file);
    assert!(status == 403 && !body.contains(&running.token), "the code is used up");
}

#[test]
fn an_opening_page_that_nobody_opened_goes_with_the_server() {
    let mut running = pets();
    let path = running.opening_page();
    running.end();
    drop(running);
    assert!(!path.exists());
}
