//! The part of HTTP/1.1 that one local page needs, with strict limits.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most bytes of the request line and all headers. Browsers send less than 2 KiB.
const HEAD: usize = 16 << 10;

/// Most bytes of the request line.
const LINE: usize = 2 << 10;

/// Most bytes of a body: a decision is short.
pub(crate) const BODY: usize = 4 << 10;

/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often an idle connection checks whether the server ends.
const LOOK: Duration = Duration::from_millis(200);

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
    pub const BUSY: Self = Self("503 Service Unavailable");
}

impl Request {
    /// Reads one request; `None` if nothing came.
    pub fn read(stream: &mut TcpStream, stop: &AtomicBool) -> Result<Option<Self>, Status> {
        let mut input = Input { stream, stop, deadline: Instant::now() + PATIENCE, bytes: vec![] };
        let end = loop {
            if let Some(end) = input.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if input.bytes.len() > HEAD {
                return Err(Status::HEAD_TOO_LARGE);
            }
            if !input.more()? {
                return if input.bytes.is_empty() { Ok(None) } else { Err(Status::BAD_REQUEST) };
            }
        };
        let (mut request, length) = parse(&input.bytes[..end])?;
        if length > BODY {
            return Err(Status::TOO_LARGE);
        }
        let body = end + 4..end + 4 + length;
        while input.bytes.len() < body.end {
            if !input.more()? {
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

    /// How often a header occurs.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(header, _)| header == name).count()
    }

    /// A value of the query; the page sends none that needs decoding.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

struct Input<'a> {
    stream: &'a mut TcpStream,
    stop: &'a AtomicBool,
    deadline: Instant,
    bytes: Vec<u8>,
}

impl Input<'_> {
    /// Waits for more bytes; false at the end of the connection, also of one that fails.
    fn more(&mut self) -> Result<bool, Status> {
        let mut part = [0; 4 << 10];
        while Instant::now() < self.deadline && !self.stop.load(Ordering::Relaxed) {
            let limited = self.stream.set_read_timeout(Some(LOOK));
            match limited.and_then(|()| self.stream.read(&mut part)) {
                Ok(read) => {
                    self.bytes.extend(&part[..read]);
                    return Ok(read > 0);
                }
                Err(error) if is_pause(&error) => {}
                Err(_) => return Ok(false),
            }
        }
        Err(Status::TIMEOUT)
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
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return Err(Status::BAD_REQUEST),
    };
    Ok((request, length))
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

    pub fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
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
        stream.shutdown(Shutdown::Write)?;
        drain(stream)
    }
}

/// The policy of responses that are not pages: nothing may be loaded.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Reads the rest of the request: closing a connection with unread data can discard the response.
fn drain(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK))?;
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
