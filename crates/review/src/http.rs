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

/// The statuses in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    Forbidden,
    NotFound,
    WrongMethod,
    Timeout,
    TooLarge,
    WrongMediaType,
    Misdirected,
    HeadTooLarge,
    Failed,
    Busy,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::WrongMethod => "405 Method Not Allowed",
            Self::Timeout => "408 Request Timeout",
            Self::TooLarge => "413 Content Too Large",
            Self::WrongMediaType => "415 Unsupported Media Type",
            Self::Misdirected => "421 Misdirected Request",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Failed => "500 Internal Server Error",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

impl Request {
    /// Reads one request; `None` if nothing came or the client is gone.
    pub fn read(
        stream: &mut TcpStream,
        stop: &AtomicBool,
    ) -> io::Result<Result<Option<Self>, Status>> {
        let mut input = Input { stream, stop, deadline: Instant::now() + PATIENCE, bytes: vec![] };
        let end = loop {
            if let Some(end) = input.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if input.bytes.len() > HEAD {
                return Ok(Err(Status::HeadTooLarge));
            }
            match input.more()? {
                More::Bytes => {}
                More::End if input.bytes.is_empty() => return Ok(Ok(None)),
                More::End => return Ok(Err(Status::BadRequest)),
                More::Late => return Ok(Err(Status::Timeout)),
            }
        };
        let (mut request, length) = match parse(&input.bytes[..end]) {
            Ok(parsed) => parsed,
            Err(status) => return Ok(Err(status)),
        };
        if length > BODY {
            return Ok(Err(Status::TooLarge));
        }
        while input.bytes.len() < end + 4 + length {
            match input.more()? {
                More::Bytes => {}
                More::End => return Ok(Err(Status::BadRequest)),
                More::Late => return Ok(Err(Status::Timeout)),
            }
        }
        request.body = input.bytes[end + 4..end + 4 + length].to_vec();
        Ok(Ok(Some(request)))
    }

    /// A header that occurs exactly once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header == name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// How often a header occurs.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(header, _)| header == name).count()
    }

    /// A value of the query; the page sends none that needs decoding.
    pub fn value(&self, key: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

struct Input<'a> {
    stream: &'a mut TcpStream,
    stop: &'a AtomicBool,
    deadline: Instant,
    bytes: Vec<u8>,
}

enum More {
    Bytes,
    End,
    Late,
}

impl Input<'_> {
    fn more(&mut self) -> io::Result<More> {
        self.stream.set_read_timeout(Some(LOOK))?;
        let mut part = [0; 4 << 10];
        loop {
            if Instant::now() >= self.deadline || self.stop.load(Ordering::Relaxed) {
                return Ok(More::Late);
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(More::End),
                Ok(read) => {
                    self.bytes.extend(&part[..read]);
                    return Ok(More::Bytes);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
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
    let text = std::str::from_utf8(head).map_err(|_| Status::BadRequest)?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    if line.len() > LINE {
        return Err(Status::HeadTooLarge);
    }
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Status::BadRequest);
    };
    if !target.starts_with('/') || target.contains(|c: char| c.is_control()) {
        return Err(Status::BadRequest);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |line: &str| {
        let (name, value) = line.split_once(':').ok_or(Status::BadRequest)?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) || value.contains(['\n', '\r', '\0']) {
            return Err(Status::BadRequest);
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
        return Err(Status::BadRequest);
    }
    let length = match request.header("content-length") {
        None => 0,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return Err(Status::BadRequest),
    };
    Ok((request, length))
}

impl Response {
    /// A response without a body.
    pub fn empty(status: Status) -> Self {
        Self { status, media_type: "text/plain", body: vec![], policy: NOTHING.to_string() }
    }

    pub fn json(status: Status, value: &impl serde::Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self { media_type: "application/json", body, ..Self::empty(status) },
            Err(_) => Self::empty(Status::Failed),
        }
    }

    pub fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\nContent-Security-Policy: {}\r\n\r\n",
            self.status.line(),
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
