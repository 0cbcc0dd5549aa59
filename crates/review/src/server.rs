//! The local server of the page.

mod routes;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::ReviewError;
use crate::http::{Request, Response, Status};
use crate::pictures::Pictures;
use crate::session::Session;
use crate::token::Token;

/// Most simultaneous connections. A browser opens six.
const CONNECTIONS: usize = 32;

/// How often `stop` is checked.
const POLL: Duration = Duration::from_millis(100);

/// Listens on the loopback interface only.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: Token,
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
        Ok(Self { listener, port, token: Token::new()? })
    }

    /// The address to open; its token is a secret.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token.as_str())
    }

    /// Serves until `stop` is set. Then all decisions are in `corrected.csv`.
    ///
    /// # Errors
    /// When `corrected.csv` cannot be written at the end; the decisions themselves are on disk.
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
        let connections = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| shared.keep_corrected(decisions));
            scope.spawn(|| self.wake_when(stop));
            for stream in self.listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // A failed accept is tried again.
                let Ok(mut stream) = stream else { continue };
                if connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                    let _ = Response::empty(Status::BUSY).write(&mut stream);
                    connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                scope.spawn(|| {
                    // The client may be gone.
                    let _ = shared.answer(stream, stop);
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let _ = shared.decided.send(false);
        });
        let session = shared.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        session.write_corrected()?;
        Ok(session)
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
    fn answer(&self, mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let response = match Request::read(&mut stream, stop) {
            Ok(Some(request)) => routes::respond(self, &request),
            Ok(None) => return Ok(()),
            Err(status) => Response::empty(status),
        };
        response.write(&mut stream)
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
