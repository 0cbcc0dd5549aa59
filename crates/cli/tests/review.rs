//! `aleator review` next to other programs: the browser that it opens, and others that write to the
//! same directory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{FILES, Place, SMALL};

/// A review at work; killed when the test ends.
struct Review {
    program: Child,
    url: String,
}

impl Review {
    fn start(mut command: Command) -> Self {
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { program, url: url.trim().to_string() }
    }

    fn token(&self) -> &str {
        self.url.split_once("token=").expect("an address with a token").1
    }
}

impl Drop for Review {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn audit(more: &str) -> String {
    format!("audit features-full {FILES} {SMALL} --set data.test= --folds 2 --out audit {more}")
}

/// Notes what it is started with, and what every user of the machine can see of it.
const BROWSER: &str = "#!/bin/sh
printf '%s\\n' \"$@\" > seen
[ -r /proc/$$/cmdline ] && tr '\\0' '\\n' < /proc/$$/cmdline >> seen
ps -o args= -p $$ >> seen 2> /dev/null
cp -p \"$1\" page.html
mv seen opened
";

#[test]
fn the_token_is_on_no_command_line() {
    let place = Place::with_features();
    place.succeeds(&audit(""));
    for name in ["bin/xdg-open", "bin/open"] {
        place.write(name, BROWSER);
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = place.command("review audit --open");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("bin").display()));
    let review = Review::start(command);
    let started = Instant::now();
    while !place.path("opened").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "no browser was opened");
        std::thread::sleep(Duration::from_millis(5));
    }
    let seen = String::from_utf8(place.read("opened")).unwrap();
    let page = seen.lines().next().unwrap();
    assert!(page.ends_with(".html") && page.contains("/audit/"), "{seen}");
    assert!(!seen.contains(review.token()), "{seen}");
    let code = String::from_utf8(place.read("page.html")).unwrap();
    let (_, code) = code.split_once("/open?code=").expect("a code");
    assert!(!seen.contains(code.split('"').next().unwrap()), "{seen}");
    let mode = fs::metadata(place.path("page.html")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others can read it");
    // A kill leaves the page; the next process that may write there removes it.
    drop(review);
    place.succeeds("review audit --export");
    assert!(!fs::exists(page).unwrap(), "{page}");
}

#[test]
fn a_review_and_a_resumed_audit_exclude_each_other() {
    let place = Place::with_features();
    place.succeeds(&audit(""));
    let review = Review::start(place.command("review audit"));
    let holder = format!("audit is in use by process {}", review.program.id());
    for command in ["resume audit", "review audit --export", "review audit --accept 0.9"] {
        place.refuses(command, &[&holder, "wait until it ends"]);
    }
    drop(review);
    place.succeeds("resume audit");
}

#[test]
fn an_audit_at_work_is_not_touched_by_a_second_process() {
    let place = Place::with_features();
    let mut first = place.start(&audit("--set schedule.epochs=100000"));
    first.wait_until(|| place.lines("audit/fold-0/metrics.jsonl") >= 2);
    let holder = String::from_utf8(place.read("audit/.lock")).unwrap();
    place.refuses("resume audit", &[&format!("audit is in use by process {}", holder.trim())]);
    assert!(first.kill(), "the first process ended by itself");
}
