//! Requests and answers over HTTP/1.1, as far as a WebDriver needs them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than a page takes to load on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request to a WebDriver at this port; its `value`, or what it says is wrong.
pub fn call(port: u16, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
    let answer = exchange(port, method, path, body).map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    match answer["value"].get("error") {
        Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
        None => Ok(answer["value"].clone()),
    }
}

fn exchange(port: u16, method: &str, path: &str, body: Option<Value>) -> std::io::Result<String> {
    let body = if method == "POST" { body.unwrap_or(json!({})).to_string() } else { String::new() };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut bytes = vec![];
    let end = loop {
        let mut part = [0; 1 << 16];
        let read = stream.read(&mut part)?;
        bytes.extend(&part[..read]);
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(head) = head
            && (read == 0 || bytes.len() >= head + 4 + length(&bytes[..head]))
        {
            break head + 4;
        }
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    Ok(String::from_utf8_lossy(&bytes[end..]).into_owned())
}

/// What the head of an answer says of its body; without that it goes on to the end.
fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    line.and_then(|length| length.trim().parse().ok()).unwrap_or(usize::MAX / 2)
}
