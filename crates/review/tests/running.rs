//! A server at work on an audit, asked over plain sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use aleator_report::audit::Audit;
use aleator_review::{Pictures, ReviewError, Server, Session};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{digits, write_digits_recipe};

/// A server at work on an audit.
pub struct Running {
    folder: TempDir,
    pub port: u16,
    pub token: String,
    stop: Arc<AtomicBool>,
    server: Arc<Server>,
    thread: Option<JoinHandle<Result<(), ReviewError>>>,
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
        let server = Arc::new(Server::bind(None).unwrap());
        let url = server.url();
        let port = url.split([':', '/']).nth(4).unwrap().parse().unwrap();
        let token = url.split('=').nth(1).unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, own) = (Arc::clone(&stop), Arc::clone(&server));
        let thread = std::thread::spawn(move || own.run(session, &pictures, &flag).map(drop));
        Self { folder, port, token, stop, server, thread: Some(thread) }
    }

    /// The page that `--open` hands to the browser.
    pub fn opening_page(&self) -> PathBuf {
        self.server.write_opening_page(self.path()).unwrap()
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

    /// Sends a request as a browser does when a person opens an address; status, headers and body.
    pub fn navigate(&self, target: &str, headers: &str) -> (u16, String, String) {
        let headers = format!("Accept: text/html,*/*;q=0.8\r\n{headers}");
        let (status, text) = self.request("GET", target, &headers, "");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        (status, head.to_string(), body.to_string())
    }

    pub fn end(&mut self) {
        self.ended().unwrap();
    }

    /// Ends the server; how it ended.
    pub fn ended(&mut self) -> Result<(), ReviewError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
