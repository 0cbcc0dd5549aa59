//! The connections that are open, and which of them gives way when there are too many.
//!
//! Clients that send nothing, or one byte after the other, cost the server a thread each. None of
//! them can keep others out: the one that has been waited for longest is closed for a new one.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most connections that are waited for. A browser opens six.
const WAITING: usize = 128;

/// Most connections in all, with those that have a right to their answer or are about to end.
const ALL: usize = 2 * WAITING;

/// All connections, in the order in which they came.
#[derive(Default)]
pub(super) struct Connections {
    open: Mutex<Vec<Open>>,
}

struct Open {
    stream: Arc<TcpStream>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client has not shown that it may be here, or has its answer already.
    Waiting,
    /// A permitted request is being answered.
    Answered,
    /// It had to make room; its thread is about to end.
    Closed,
}

/// A connection, which ends when this is dropped.
pub(super) struct Connection<'a> {
    connections: &'a Connections,
    stream: Arc<TcpStream>,
}

impl Connections {
    /// Takes a connection in, and closes another one for it if there are too many. `None`, and it is
    /// turned away, where that does not help.
    pub fn admit(&self, stream: TcpStream) -> Option<Connection<'_>> {
        let mut open = self.open();
        if open.iter().filter(|it| it.state == State::Waiting).count() >= WAITING {
            close_first(&mut open);
        }
        if open.len() >= ALL {
            return None;
        }
        let stream = Arc::new(stream);
        open.push(Open { stream: Arc::clone(&stream), state: State::Waiting });
        Some(Connection { connections: self, stream })
    }

    /// Closes the connection that has been waited for longest.
    pub fn make_room(&self) {
        close_first(&mut self.open());
    }

    /// Closes all connections that are waited for.
    pub fn close(&self) {
        let mut open = self.open();
        while close_first(&mut open) {}
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the wait of a thread for the first connection that is waited for; false if there is none.
fn close_first(open: &mut [Open]) -> bool {
    let Some(first) = open.iter_mut().find(|it| it.state == State::Waiting) else { return false };
    first.state = State::Closed;
    // Fails if the client has closed it.
    let _ = first.stream.shutdown(Shutdown::Both);
    true
}

impl Connection<'_> {
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// From now on the connection does not give way to others.
    pub fn keep(&self) {
        self.change(State::Waiting, State::Answered);
    }

    /// The answer is sent: the connection gives way again.
    pub fn release(&self) {
        self.change(State::Answered, State::Waiting);
    }

    fn change(&self, from: State, to: State) {
        let mut open = self.connections.open();
        let own = open.iter_mut().find(|it| Arc::ptr_eq(&it.stream, &self.stream));
        if let Some(own) = own.filter(|own| own.state == from) {
            own.state = to;
        }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.connections.open().retain(|it| !Arc::ptr_eq(&it.stream, &self.stream));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn the_longest_wait_gives_way_and_answers_do_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = vec![];
        let mut next = || {
            clients.push(TcpStream::connect(address).unwrap());
            listener.accept().unwrap().0
        };
        let connections = Connections::default();
        let answered = connections.admit(next()).unwrap();
        answered.keep();
        let waiting: Vec<Connection> =
            (0..WAITING + 1).map(|_| connections.admit(next()).unwrap()).collect();
        let is_closed = |mut stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.read(&mut [0]), Ok(0))
        };
        assert!(is_closed(waiting[0].stream()));
        assert!(!is_closed(waiting[1].stream()) && !is_closed(answered.stream()));
        answered.release();
        connections.make_room();
        assert!(is_closed(answered.stream()), "it came first");
        connections.close();
        assert!(waiting.iter().all(|it| is_closed(it.stream())));
        // Those that do not end are not too many.
        let more = (waiting.len() + 1..ALL).map(|_| connections.admit(next()).unwrap());
        let more: Vec<Connection> = more.collect();
        assert!(connections.admit(next()).is_none());
        drop(more);
        assert!(connections.admit(next()).is_some());
    }
}
