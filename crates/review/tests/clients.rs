//! Clients that keep the server waiting.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::running::Running;
use crate::server::pets;

/// As many as there are at once; those that are closed come again.
const CLIENTS: usize = 200;

fn connect(running: &Running) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Whether the server has closed a connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// Clients that send one byte after the other of what `request` says, until `stop` is set.
fn drip(running: &Running, request: &[u8], stop: &AtomicBool, rounds: &AtomicUsize) {
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(running)).collect();
    for byte in request.iter().cycle() {
        for client in &mut clients {
            if is_closed(client) || client.write_all(&[*byte]).is_err() {
                *client = connect(running);
            }
        }
        rounds.fetch_add(1, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks what only the owner of the token may ask while clients without it drip.
fn assert_answered_beside(request: &[u8]) {
    let running = pets();
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| drip(&running, request, &stop, &rounds));
        let started = Instant::now();
        while rounds.load(Ordering::Relaxed) < 3 {
            assert!(started.elapsed() < Duration::from_secs(5), "the clients do not come in");
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..20 {
            let asked = Instant::now();
            assert_eq!(running.get("/api/overview")["suspects"], 3);
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
            std::thread::sleep(Duration::from_millis(30));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn clients_that_drip_do_not_keep_others_out() {
    assert_answered_beside(b"GET /?token=00000000000000000000000000000000&and=so-on");
}

#[test]
fn clients_that_were_refused_and_do_not_end_do_not_keep_others_out() {
    assert_answered_beside(b"\r\n\r\n\r\n");
}

#[test]
fn silent_clients_keep_nobody_out_and_do_not_keep_the_server_from_ending() {
    let mut running = pets();
    let silent: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(&running)).collect();
    let asked = Instant::now();
    assert_eq!(running.get("/api/overview")["suspects"], 3);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(is_closed(&silent[0]), "the first makes room");
    assert!(!is_closed(&silent[CLIENTS - 1]), "the last stays");
    let started = Instant::now();
    running.end();
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}
