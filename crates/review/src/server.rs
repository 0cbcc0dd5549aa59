//! The page and what it asks, for one person on this computer.

mod routes;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::ReviewError;
use crate::http::{Request, Response, Status};
use crate::pictures::Pictures;
use crate::session::Session;
use crate::token::Token;

/// Connections at once. A browser opens six.
const CONNECTIONS: usize = 32;

/// How soon a wish to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Listens to this computer alone.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: Token,
}

/// What all connections share.
struct Shared<'a> {
    server: &'a Server,
    session: Mutex<Session>,
    pictures: &'a Pictures,
    outdated: Outdated,
}

/// Whether `corrected.csv` is behind the decisions.
#[derive(Default)]
struct Outdated {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    outdated: bool,
    ends: bool,
    /// Why it could not be written.
    trouble: Option<String>,
}

impl Server {
    /// Takes a port of this computer: this one, or one that is free.
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

    /// The address to open, which only its reader knows.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token.as_str())
    }

    /// Answers until `stop` is set. Then all that was decided is in `corrected.csv`.
    ///
    /// # Errors
    /// When the files of the outcome cannot be written at the end; the decisions are on the disk
    /// nevertheless.
    pub fn run(
        &self,
        session: Session,
        pictures: &Pictures,
        stop: &AtomicBool,
    ) -> Result<Session, ReviewError> {
        session.write_corrected()?;
        let outdated = Outdated::default();
        let shared = Shared { server: self, session: Mutex::new(session), pictures, outdated };
        let connections = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| shared.keep_corrected());
            scope.spawn(|| self.wake_when(stop));
            for stream in self.listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // What the system refuses to accept now, it offers again.
                let Ok(mut stream) = stream else { continue };
                if connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                    let _ = Response::empty(Status::Busy).write(&mut stream);
                    connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                scope.spawn(|| {
                    // Who went away needs no answer.
                    let _ = shared.answer(stream, stop);
                    connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
            shared.outdated.end();
        });
        let session = shared.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        session.write_corrected()?;
        Ok(session)
    }

    /// Waiting for a connection ends with one.
    fn wake_when(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

impl Shared<'_> {
    fn answer(&self, mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let response = match Request::read(&mut stream, stop)? {
            Ok(Some(request)) => routes::respond(self, &request),
            Ok(None) => return Ok(()),
            Err(status) => Response::empty(status),
        };
        response.write(&mut stream)
    }

    /// What was decided stays true, whatever happened to another connection.
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the outcome again whenever something was decided; several decisions at once where
    /// they come faster than it is written.
    fn keep_corrected(&self) {
        while self.outdated.wait() {
            let (subject, decisions) = {
                let session = self.session();
                (session.subject.clone(), session.decisions.clone())
            };
            let written = subject.write_corrected(&decisions);
            self.outdated.lock().trouble = written.err().map(|error| error.to_string());
        }
    }
}

impl Outdated {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self) {
        self.lock().outdated = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lock().ends = true;
        self.changed.notify_all();
    }

    fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }

    /// Waits until something is to be written; false when nothing will be any more.
    fn wait(&self) -> bool {
        let waits = |state: &mut State| !state.outdated && !state.ends;
        let state = self.changed.wait_while(self.lock(), waits);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.outdated = false;
        !state.ends
    }
}
