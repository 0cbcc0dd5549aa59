//! A review whose program is killed, or whose files fail, while several people decide.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::NamedTempFile;

use super::jobs::with_audit;
use super::{Call, Errno, Fault, is_slow, random, shim};
use crate::support::{Place, Tree};

/// A label that a person decided on before.
const DECIDED: &str = "3";
const WRITERS: usize = 3;

/// The program at work; it is ended when the test ends.
struct Review {
    program: Child,
    log: NamedTempFile,
    port: u16,
    token: String,
}

impl Review {
    /// None if it ended before it could be asked.
    fn start(place: &Place, fault: Fault) -> Option<Self> {
        let log = NamedTempFile::new().expect("a file for the log");
        let mut command = shim::command(place, "review audit", fault, log.path());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().expect("the program starts");
        let mut url = String::new();
        let output = program.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut url).expect("an address");
        let Some((address, token)) = url.trim().split_once("/?token=") else {
            program.wait().expect("it ends");
            return None;
        };
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Some(Self { program, log, port, token: token.to_string() })
    }

    /// Keeps a label; the status and the body of the answer, nothing if there is none.
    fn keep(&self, issue: usize) -> Option<(u16, String)> {
        let body = format!(
            r#"{{"issue":{issue},"decision":"keep","filter":{{"scope":"all","pair":null}}}}"#
        );
        let request = format!(
            "POST /api/decide HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-Aleator-Token: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.token,
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        stream.shutdown(Shutdown::Write).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer))
    }

    /// Ctrl-C; the operations up to the end.
    fn end(mut self) -> Vec<Call> {
        let script = format!("kill -s INT {}", self.program.id());
        Command::new("sh").args(["-c", &script]).status().expect("sh starts");
        self.program.wait().expect("it ends");
        shim::calls(self.log.path())
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        // Fails where it has ended by itself.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The ids of the issues in their order.
fn ids(place: &Place) -> Vec<String> {
    let text = String::from_utf8(place.read("audit/issues.csv")).expect("text");
    text.lines().skip(1).map(|line| line.split(',').next().expect("an id").to_string()).collect()
}

/// How often each id was decided on, by complete lines of the journal.
fn journal(place: &Place) -> BTreeMap<String, usize> {
    let text = String::from_utf8(place.read("audit/decisions.jsonl")).expect("text");
    let (whole, _) = text.rsplit_once('\n').expect("a complete line");
    let mut counts = BTreeMap::new();
    for line in whole.lines().skip(1) {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        *counts.entry(line["id"].as_str().expect("an id").to_string()).or_default() += 1;
    }
    counts
}

/// Everybody decides on labels of their own until there is no answer; those that were confirmed.
fn decide(review: &Review, ids: &[String]) -> Vec<String> {
    let confirmed = |writer: usize| {
        let own = (writer..ids.len()).step_by(WRITERS).filter(|issue| ids[*issue] != DECIDED);
        let is_confirmed = |issue: &usize| review.keep(*issue).is_some_and(|(code, _)| code == 200);
        own.take_while(is_confirmed).map(|issue| ids[issue].clone()).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let writers = [0, 1, 2].map(|writer| scope.spawn(move || confirmed(writer)));
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    })
}

#[test]
fn confirmed_decisions_are_in_the_journal_once_wherever_the_review_is_killed() {
    let place = with_audit();
    let (before, ids) = (Tree::of(&place), ids(&place));
    let review = Review::start(&place, Fault::None).expect("a review");
    let all = decide(&review, &ids);
    assert_eq!(all.len(), ids.len() - 1);
    let calls = review.end();
    let kills = if is_slow() { calls.len() } else { 12 };
    let mut confirmed_in_all = 0;
    for number in 0..kills {
        let at = if is_slow() { number } else { random(number as u64, calls.len()) };
        before.restore(&place);
        let review = Review::start(&place, Fault::Kill(at));
        let confirmed = review.map_or(vec![], |review| decide(&review, &ids));
        let found = journal(&place);
        for id in confirmed.iter().map(String::as_str).chain([DECIDED]) {
            assert_eq!(found.get(id), Some(&1), "killed at {at}: {id} of {confirmed:?}");
        }
        confirmed_in_all += confirmed.len();
        place.succeeds("review audit --export");
        let left: Vec<String> = Tree::of(&place).names().map(String::from).collect();
        assert!(!left.iter().any(|name| name.contains("/.tmp")), "killed at {at}: {left:?}");
    }
    assert!(confirmed_in_all > kills, "only {confirmed_in_all} decisions in {kills} reviews");
}

#[test]
fn a_decision_that_cannot_be_written_is_not_confirmed_and_can_be_made_again() {
    let place = with_audit();
    let (before, ids) = (Tree::of(&place), ids(&place));
    let issues: Vec<usize> = (0..6).filter(|issue| ids[*issue] != DECIDED).collect();
    let review = Review::start(&place, Fault::None).expect("a review");
    issues.iter().for_each(|issue| drop(review.keep(*issue)));
    let calls = review.end();
    let is_journal = |at: &usize| {
        let Call { operation, path, .. } = &calls[*at];
        path.ends_with("decisions.jsonl") && matches!(operation.as_str(), "read" | "write" | "sync")
    };
    // A review whose journal cannot be read at the start does not start.
    let is_early = |at: &usize| calls[*at].operation == "read";
    let operations: Vec<usize> = (0..calls.len()).filter(is_journal).skip_while(is_early).collect();
    assert!(operations.len() >= 3 * issues.len(), "{calls:?}");
    for (number, at) in operations.into_iter().enumerate() {
        before.restore(&place);
        let error = [Errno::NoSpace, Errno::Io][number % 2];
        let review = Review::start(&place, Fault::Once(at, error)).expect("a review");
        for issue in &issues {
            let (mut code, mut text) = review.keep(*issue).expect("an answer");
            if code == 500 {
                assert!(text.contains("decisions.jsonl"), "{text}");
                (code, text) = review.keep(*issue).expect("an answer");
            }
            assert_eq!(code, 200, "call {at}: {text}");
        }
        review.end();
        let found = journal(&place);
        for issue in &issues {
            assert_eq!(found.get(&ids[*issue]), Some(&1), "call {at}, issue {issue}: {found:?}");
        }
    }
}
