//! The part of HTTP/1.1 that one local page needs, with strict limits.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::token::Token;

/// Most bytes of the request line and all headers, with the blank line that ends them. Browsers send
/// less than 2 KiB.
const HEAD: usize = 16 << 10;

/// Most bytes of the request line.
const LINE: usize = 2 << 10;

/// Most bytes of a body: a decision is short.
pub(crate) const BODY: usize = 4 << 10;

/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client may take to close its side after the response.
const PARTING: Duration = Duration::from_millis(200);

/// A well-formed request.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    query: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub status: Status,
    pub media_type: &'static str,
    pub body: Vec<u8>,
    /// The content security policy.
    pub policy: String,
}

/// A status line; the constants are those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(&'static str);

impl Status {
    pub const OK: Self = Self("200 OK");
    pub const BAD_REQUEST: Self = Self("400 Bad Request");
    pub const FORBIDDEN: Self = Self("403 Forbidden");
    pub const NOT_FOUND: Self = Self("404 Not Found");
    pub const WRONG_METHOD: Self = Self("405 Method Not Allowed");
    const TIMEOUT: Self = Self("408 Request Timeout");
    const TOO_LARGE: Self = Self("413 Content Too Large");
    pub const WRONG_MEDIA_TYPE: Self = Self("415 Unsupported Media Type");
    pub const MISDIRECTED: Self = Self("421 Misdirected Request");
    const HEAD_TOO_LARGE: Self = Self("431 Request Header Fields Too Large");
    pub const FAILED: Self = Self("500 Internal Server Error");
}

impl Request {
    /// Reads one request; `None` if nothing came.
    pub fn read(stream: &TcpStream) -> Result<Option<Self>, Status> {
        let mut input = Input { stream, deadline: Instant::now() + PATIENCE, bytes: vec![] };
        let mut searched = 0_usize;
        let end = loop {
            // The four bytes may come in parts.
            let from = searched.saturating_sub(3);
            if let Some(at) = input.bytes[from..].windows(4).position(|it| it == b"\r\n\r\n") {
                break from + at;
            }
            searched = input.bytes.len();
            if searched == HEAD {
                return Err(Status::HEAD_TOO_LARGE);
            }
            if !input.more(HEAD)? {
                return if searched == 0 { Ok(None) } else { Err(Status::BAD_REQUEST) };
            }
        };
        let (mut request, length) = parse(&input.bytes[..end])?;
        if length > BODY {
            return Err(Status::TOO_LARGE);
        }
        let body = end + 4..end + 4 + length;
        while input.bytes.len() < body.end {
            if !input.more(body.end)? {
                return Err(Status::BAD_REQUEST);
            }
        }
        request.body = input.bytes[body].to_vec();
        Ok(Some(request))
    }

    /// A header that occurs exactly once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(header, _)| header == name)?;
        (self.count(name) == 1).then_some(value)
    }

    /// Whether a header is absent, or occurs once with a value that is allowed.
    pub fn allows(&self, name: &str, is_allowed: impl FnOnce(&str) -> bool) -> bool {
        self.count(name) == 0 || self.header(name).is_some_and(is_allowed)
    }

    /// Whether a person opened an address in a browser, who can read a page.
    pub fn is_navigation(&self) -> bool {
        let accepts = self.header("accept").unwrap_or_default();
        self.method == "GET" && accepts.contains("text/html")
    }

    fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(header, _)| header == name).count()
    }

    /// A value of the query; the page sends none that needs decoding.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

struct Input<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
    bytes: Vec<u8>,
}

impl Input<'_> {
    /// Waits for more bytes, up to `limit` of them in all; false at the end of the connection, also
    /// of one that fails.
    fn more(&mut self, limit: usize) -> Result<bool, Status> {
        let mut part = [0; 4 << 10];
        let room = part.len().min(limit - self.bytes.len());
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Status::TIMEOUT);
            }
            let limited = self.stream.set_read_timeout(Some(left));
            match limited.and_then(|()| self.stream.read(&mut part[..room])) {
                Ok(read) => {
                    self.bytes.extend(&part[..read]);
                    return Ok(read > 0);
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return Ok(false),
            }
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// The request without its body, and the length of the body.
fn parse(head: &[u8]) -> Result<(Request, usize), Status> {
    let text = std::str::from_utf8(head).map_err(|_| Status::BAD_REQUEST)?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    if line.len() > LINE {
        return Err(Status::HEAD_TOO_LARGE);
    }
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::BAD_REQUEST);
    };
    if !target.starts_with('/') || target.contains(|c: char| c.is_control()) {
        return Err(Status::BAD_REQUEST);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |line: &str| {
        let (name, value) = line.split_once(':').ok_or(Status::BAD_REQUEST)?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) || value.contains(['\n', '\r', '\0']) {
            return Err(Status::BAD_REQUEST);
        }
        Ok((name.to_ascii_lowercase(), value.trim().to_string()))
    };
    let headers = lines.map(header).collect::<Result<Vec<_>, Status>>()?;
    let request = Request {
        method: method.to_string(),
        path: path.to_string(),
        query: query.to_string(),
        headers,
        body: vec![],
    };
    if request.count("transfer-encoding") > 0 || request.count("content-length") > 1 {
        return Err(Status::BAD_REQUEST);
    }
    let length = match request.header("content-length") {
        None => 0,
        Some(text) => whole_number(text).ok_or(Status::BAD_REQUEST)?,
    };
    Ok((request, length))
}

/// A number in digits alone, without a sign; those that are too large are the largest one.
pub(crate) fn whole_number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

impl Response {
    /// A response without a body.
    pub fn empty(status: Status) -> Self {
        Self { status, media_type: "text/plain", body: vec![], policy: NOTHING.to_string() }
    }

    pub fn json(status: Status, value: &serde_json::Value) -> Self {
        let (media_type, body) = ("application/json", value.to_string().into_bytes());
        Self { media_type, body, ..Self::empty(status) }
    }

    /// A page in which `NONCE` stands for a number used once, that its policy allows to its own
    /// style. `allowed` are further directives of the policy.
    pub fn html(status: Status, text: &str, allowed: &str) -> Result<Self, Status> {
        let nonce = Token::new().map_err(|_| Status::FAILED)?;
        let policy = format!(
            "default-src 'none'; {allowed}style-src 'nonce-NONCE'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        let [body, policy] = [text, &policy].map(|it| it.replace("NONCE", nonce.as_str()));
        let media_type = "text/html; charset=utf-8";
        Ok(Self { status, media_type, body: body.into_bytes(), policy })
    }

    /// Writes the response and closes this side of the connection.
    pub fn write(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\nContent-Security-Policy: {}\r\n\r\n",
            self.status.0,
            self.media_type,
            self.body.len(),
            self.policy
        );
        stream.write_all(&[head.as_bytes(), &self.body].concat())?;
        stream.shutdown(Shutdown::Write)
    }
}

/// The policy of responses that are not pages: nothing may be loaded.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Reads the rest of the request: closing a connection with unread data can discard the response.
pub(crate) fn drain(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PARTING))?;
    let mut part = [0; 4 << 10];
    for _ in 0..16 {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if is_pause(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
