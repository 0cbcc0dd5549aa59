//! A server at work on an audit, asked over plain sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use aleator_report::audit::Audit;
use aleator_review::{Pictures, Server, Session};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{digits, write_digits_recipe};

/// A server at work on an audit.
pub struct Running {
    folder: TempDir,
    pub port: u16,
    pub token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn on(audit: &Audit) -> Self {
        let folder = tempfile::tempdir().unwrap();
        audit.save(folder.path()).unwrap();
        Self::start(folder)
    }

    pub fn digits() -> Self {
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

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sends bytes as they are; status and the whole answer.
    pub fn raw(&self, bytes: &[u8]) -> (u16, String) {
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

    pub fn request(&self, method: &str, target: &str, headers: &str, body: &str) -> (u16, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let length = body.len();
        self.raw(
            format!(
                "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }

    pub fn header(&self) -> String {
        format!("X-Aleator-Token: {}\r\n", self.token)
    }

    pub fn get(&self, target: &str) -> Value {
        let (status, text) = self.request("GET", target, &self.header(), "");
        assert_eq!(status, 200, "{target}: {text}");
        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }

    pub fn post(&self, target: &str, body: &Value) -> (u16, String) {
        let headers = self.header() + "Content-Type: application/json\r\n";
        self.request("POST", target, &headers, &body.to_string())
    }

    pub fn end(&mut self) {
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
