//! The requests of the page: permissions and answers.

use serde::Deserialize;
use serde_json::json;

use super::connections::Connection;
use super::refusal::Refusal;
use super::{Server, Shared, opening};
use crate::decision::Decision;
use crate::error::ReviewError;
use crate::http::{Request, Response, Status, whole_number};
use crate::queue::{Filter, Scope};
use crate::views::{self, At};

const PAGE: &str = include_str!("../page/review.html");
const STYLE: &str = include_str!("../page/review.css");
const SCRIPT: &str = include_str!("../page/review.js");

/// Pixels on a side of the current picture, and of its neighbours.
const LARGE: usize = 1024;
const SMALL: usize = 160;

/// The body of a decision.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decide {
    issue: usize,
    decision: Decision,
    filter: Filter,
}

/// The body of an undo, and of accepting all suggestions of a pair.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filtered {
    filter: Filter,
}

/// Answers a request; one without permission learns nothing.
pub(super) fn respond(shared: &Shared, request: &Request, connection: &Connection) -> Response {
    let permission = check_address(shared.server, request);
    if permission.is_ok() && request.path == opening::PATH {
        return open(shared.server, request);
    }
    match permission.and_then(|()| check_token(shared.server, request)) {
        Ok(()) => {
            connection.keep();
            answer(shared, request).unwrap_or_else(Response::empty)
        }
        Err(refusal) => refusal.response(request),
    }
}

/// Whether a request was meant for this server, and not sent by a page of another origin.
fn check_address(server: &Server, request: &Request) -> Result<(), Refusal> {
    let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", server.port));
    // A page of another name that leads here (DNS rebinding) has that name in its requests.
    if !request.header("host").is_some_and(|host| names.iter().any(|name| name == host)) {
        return Err(Refusal::OtherAddress);
    }
    let is_ours = |origin: &str| names.iter().any(|name| origin == format!("http://{name}"));
    if request.allows("origin", is_ours) { Ok(()) } else { Err(Refusal::OtherSite) }
}

fn check_token(server: &Server, request: &Request) -> Result<(), Refusal> {
    if !request.allows("sec-fetch-site", |site| matches!(site, "same-origin" | "none")) {
        return Err(Refusal::OtherSite);
    }
    let token = match request.path.as_str() {
        "/" => request.value("token"),
        _ => request.header("x-aleator-token"),
    };
    let is_right = token.is_some_and(|token| server.token.is(token));
    if is_right { Ok(()) } else { Err(Refusal::NoToken) }
}

/// Swaps the code of the opening page for the address. The page is removed with it.
fn open(server: &Server, request: &Request) -> Response {
    let code = request.value("code").filter(|_| request.method == "GET");
    match server.opening().take_if(|page| code.is_some_and(|code| page.has_code(code))) {
        Some(_) => opening::response(&server.token).unwrap_or_else(Response::empty),
        None => Refusal::NoToken.response(request),
    }
}

fn answer(shared: &Shared, request: &Request) -> Result<Response, Status> {
    let route = (request.method.as_str(), request.path.as_str());
    match route {
        ("GET", "/") => page(),
        ("GET", "/api/overview") => {
            Ok(Response::json(Status::OK, &views::overview(&shared.session(), shared.pictures)))
        }
        ("GET", "/api/window") => window(shared, request),
        ("POST", "/api/decide") => decide(shared, &body(request)?),
        ("POST", "/api/accept-all") => accept_all(shared, &body(request)?),
        ("POST", "/api/undo") => Ok(undo(shared, &body(request)?)),
        ("GET", path) if path.starts_with("/picture/") => picture(shared, request),
        (
            _,
            "/" | "/api/overview" | "/api/window" | "/api/decide" | "/api/accept-all" | "/api/undo",
        ) => Err(Status::WRONG_METHOD),
        _ => Err(Status::NOT_FOUND),
    }
}

fn page() -> Result<Response, Status> {
    let text = PAGE.replace("STYLE", STYLE).replace("SCRIPT", SCRIPT);
    let allowed = "script-src 'nonce-NONCE'; img-src blob: data:; connect-src 'self'; ";
    Response::html(Status::OK, &text, allowed)
}

fn body<'a, T: Deserialize<'a>>(request: &'a Request) -> Result<T, Status> {
    let media_type = request.header("content-type").unwrap_or_default();
    if media_type.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Status::WRONG_MEDIA_TYPE);
    }
    serde_json::from_slice(&request.body).map_err(|_| Status::BAD_REQUEST)
}

fn window(shared: &Shared, request: &Request) -> Result<Response, Status> {
    let scope = match request.value("scope") {
        Some("suspects") => Scope::Suspects,
        Some("all") => Scope::All,
        Some("sample") => Scope::Sample,
        _ => return Err(Status::BAD_REQUEST),
    };
    let number = |text: &str| whole_number(text).ok_or(Status::BAD_REQUEST);
    let filter = Filter { scope, pair: request.value("pair").map(number).transpose()? };
    let issue = request.value("at").map(number).transpose()?;
    let issues = shared.session().audit().issues.len();
    match issue {
        Some(issue) if issue >= issues => Err(Status::NOT_FOUND),
        Some(issue) => Ok(window_reply(shared, filter, At::Issue(issue))),
        None => Ok(window_reply(shared, filter, At::Undecided)),
    }
}

fn decide(shared: &Shared, body: &Decide) -> Result<Response, Status> {
    let mut session = shared.session();
    let classes = session.audit().summary.class_names.len();
    let issue = session.audit().issues.get(body.issue).ok_or(Status::NOT_FOUND)?;
    if !body.decision.suits(issue, classes) {
        return Err(Status::BAD_REQUEST);
    }
    let written = session.decide(body.issue, body.decision);
    drop(session);
    Ok(reply(shared, body.filter, written.map(|()| At::After(body.issue))))
}

fn accept_all(shared: &Shared, body: &Filtered) -> Result<Response, Status> {
    if body.filter.pair.is_none() {
        return Err(Status::BAD_REQUEST);
    }
    let written = shared.session().accept_all(body.filter);
    Ok(reply(shared, body.filter, written.map(|_| At::Undecided)))
}

fn undo(shared: &Shared, body: &Filtered) -> Response {
    let undone = shared.session().undo();
    reply(shared, body.filter, undone.map(|issue| issue.map_or(At::Undecided, At::Issue)))
}

/// Where to go on after a decision or its undoing, or why it could not be written.
fn reply(shared: &Shared, filter: Filter, at: Result<At, ReviewError>) -> Response {
    match at {
        Ok(at) => {
            // The receiver lives as long as the server.
            let _ = shared.decided.send(true);
            window_reply(shared, filter, at)
        }
        Err(error) => Response::json(Status::FAILED, &json!({ "error": error.to_string() })),
    }
}

fn window_reply(shared: &Shared, filter: Filter, at: At) -> Response {
    let trouble = shared.trouble().clone();
    let window = views::window(&shared.session(), filter, at, trouble.as_deref());
    Response::json(Status::OK, &window)
}

/// Pictures are requested by the number of an issue, so nothing outside the audit can be read.
fn picture(shared: &Shared, request: &Request) -> Result<Response, Status> {
    let number = request.path.strip_prefix("/picture/").unwrap_or_default();
    let number = whole_number(number).ok_or(Status::NOT_FOUND)?;
    let side = match request.value("size") {
        Some("large") => LARGE,
        Some("small") => SMALL,
        _ => return Err(Status::BAD_REQUEST),
    };
    let issue = shared.session().audit().issues.get(number).cloned().ok_or(Status::NOT_FOUND)?;
    Ok(match shared.pictures.picture(&issue, side) {
        Ok(picture) => Response {
            media_type: picture.media_type,
            body: picture.bytes,
            ..Response::empty(Status::OK)
        },
        Err(error) => Response::json(Status::OK, &json!({ "error": error })),
    })
}
