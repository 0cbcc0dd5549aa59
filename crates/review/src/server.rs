//! The local server of the page.

mod connections;
mod opening;
mod refusal;
mod routes;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::ReviewError;
use crate::http::{Request, Response, drain};
use crate::pictures::Pictures;
use crate::session::Session;
use crate::token::Token;
use connections::{Connection, Connections};
use opening::Opening;

/// How often `stop` is checked, and how long nothing is accepted after a failure.
const POLL: Duration = Duration::from_millis(100);

/// Listens on the loopback interface only.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: Token,
    opening: Mutex<Option<Opening>>,
}

/// The state that all connections share.
struct Shared<'a> {
    server: &'a Server,
    session: Mutex<Session>,
    pictures: &'a Pictures,
    /// True after each decision, since `corrected.csv` must be written again; false at the end.
    decided: Sender<bool>,
    /// Why the last write of `corrected.csv` failed.
    trouble: Mutex<Option<String>>,
}

impl Server {
    /// Listens on the given port, or on a free one.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn bind(port: Option<u16>) -> Result<Self, ReviewError> {
        let wanted = port.unwrap_or(0);
        let failed = |source| ReviewError::Port { port: wanted, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port, token: Token::new()?, opening: Mutex::default() })
    }

    /// The address to open; its token is a secret.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token.as_str())
    }

    /// Writes a page into `dir` that leads a browser to the review, once, and returns its path. Only
    /// the user who runs the program can read it, so that the address is on no command line, which
    /// others can see. It is removed when it was used, or with the server.
    ///
    /// # Errors
    /// When it cannot be written, or others could read it.
    pub fn write_opening_page(&self, dir: &Path) -> Result<PathBuf, ReviewError> {
        let opening = Opening::write(dir, self.port)?;
        let path = opening.path().to_path_buf();
        *self.opening() = Some(opening);
        Ok(path)
    }

    fn opening(&self) -> MutexGuard<'_, Option<Opening>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves until `stop` is set. Then all decisions are in `corrected.csv`.
    ///
    /// # Errors
    /// When `corrected.csv` cannot be written at the end; the decisions themselves are on disk. When
    /// `decisions.jsonl` was replaced: the message says where the decisions are.
    pub fn run(
        &self,
        session: Session,
        pictures: &Pictures,
        stop: &AtomicBool,
    ) -> Result<Session, ReviewError> {
        session.write_corrected()?;
        let (session, trouble) = (Mutex::new(session), Mutex::default());
        let (decided, decisions) = channel();
        let shared = Shared { server: self, session, pictures, decided, trouble };
        let connections = Connections::default();
        thread::scope(|scope| {
            scope.spawn(|| shared.keep_corrected(decisions));
            scope.spawn(|| self.wake_when(stop));
            for stream in self.listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else {
                    // Most likely too many files are open.
                    connections.make_room();
                    thread::sleep(POLL);
                    continue;
                };
                let Some(connection) = connections.admit(stream) else { continue };
                let shared = &shared;
                // The client may be gone. Where there is no thread for it, it is turned away.
                let answer = move || drop(shared.answer(&connection));
                drop(thread::Builder::new().spawn_scoped(scope, answer));
            }
            connections.close();
            let _ = shared.decided.send(false);
        });
        let session = shared.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        let kept = session.keep_decisions();
        session.write_corrected()?;
        kept.map(|()| session)
    }

    /// Connects to the server to end its wait for a connection.
    fn wake_when(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

impl Shared<'_> {
    fn answer(&self, connection: &Connection) -> std::io::Result<()> {
        let stream = connection.stream();
        stream.set_nodelay(true)?;
        let response = match Request::read(stream) {
            Ok(Some(request)) => routes::respond(self, &request, connection),
            Ok(None) => return Ok(()),
            Err(status) => Response::empty(status),
        };
        response.write(stream)?;
        connection.release();
        drain(stream)
    }

    /// Decisions stay valid even if another connection panicked.
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `corrected.csv` after decisions; several at once if they come faster than a write.
    fn keep_corrected(&self, decisions: Receiver<bool>) {
        while decisions.recv() == Ok(true) && decisions.try_iter().all(|decided| decided) {
            let outcome = self.session().outcome();
            let written = outcome.write();
            *self.trouble() = written.err().map(|error| error.to_string());
        }
    }
}
