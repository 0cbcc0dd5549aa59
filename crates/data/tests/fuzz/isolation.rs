//! Cases in a process of their own, which may end as it likes.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Where a process that tries cases writes its files; it is one if this is set.
const FOLDER: &str = "ALEATOR_FUZZ_FOLDER";
const SEED: &str = "ALEATOR_FUZZ_SEED";
const SECONDS: &str = "ALEATOR_FUZZ_SECONDS";
/// The slow form of a target takes an hour.
const DEFAULT_SECONDS: u64 = 3600;
/// A case takes milliseconds; this is for machines with much else to do, as they have while the
/// slow form runs beside other work.
const LONGEST_CASE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(600)];
/// All seeds together are a few kilobytes. What a damaged size promises would show.
const MOST_MEMORY_KIB: u64 = 2 << 20;
/// Before a line with the number of a case.
const MARK: &str = "fuzz case ";

/// Tries cases in a process of this test program that runs this test alone. How many it was, or
/// which of them failed and how.
pub fn run(test: &str, cases: u64, mut attempt: impl FnMut(u64, &Path)) -> Result<u64, String> {
    if let Some(folder) = env::var_os(FOLDER) {
        return Ok(try_cases(cases, |number| attempt(number, Path::new(&folder))));
    }
    // The name of the test program is not part of the names that it takes.
    let (_, test) = test.split_once("::").expect("a module");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut child, numbers) = start(test, folder.path());
    let longest = LONGEST_CASE[usize::from(is_slow())];
    let (mut tried, mut last) = (0, None);
    let reason = loop {
        match numbers.recv_timeout(longest) {
            Ok(number) => (last, tried) = (Some(number), tried + 1),
            Err(RecvTimeoutError::Timeout) => {
                break format!("took more than {} seconds", longest.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => match child.wait().expect("an end") {
                status if status.success() && tried > 0 => return Ok(tried),
                status if status.success() => return Err(format!("there is no test {test}")),
                status => break status.to_string(),
            },
        }
    };
    // Fails where it has ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    let said = fs::read(folder.path().join("stderr")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(4000)..]).into_owned();
    let number = last.map_or("none".to_string(), |number| number.to_string());
    let files = folder.keep();
    Err(format!(
        "case {number}: {reason}; repeat it with {SEED}={number} and this test; its files are in \
         {}\n{said}",
        files.display()
    ))
}

fn is_slow() -> bool {
    env::var_os("ALEATOR_SLOW").is_some()
}

/// The cases of a process that was started for them.
fn try_cases(cases: u64, mut attempt: impl FnMut(u64)) -> u64 {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = Duration::from_secs(number(SECONDS).unwrap_or(DEFAULT_SECONDS));
    let first = number(SEED).unwrap_or(0);
    let started = Instant::now();
    let more = |at: u64| match (is_slow(), number(SEED)) {
        (true, _) => started.elapsed() < seconds,
        (false, Some(only)) => at == only,
        (false, None) => at < cases,
    };
    let numbers = (first..).take_while(|at| more(*at));
    numbers.fold(0, |tried, at| {
        println!("{MARK}{at}");
        attempt(at);
        tried + 1
    })
}

/// Starts the process; the numbers of its cases arrive as they are begun.
fn start(test: &str, folder: &Path) -> (Child, Receiver<u64>) {
    let program = env::current_exe().expect("a test program");
    let mut command = limited(&program);
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    // Threads and their memory are those of a small machine everywhere.
    command.env(FOLDER, folder).env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
    let stderr = File::create(folder.join("stderr")).expect("a file");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut child = command.spawn().expect("the test program starts");
    let output = child.stdout.take().expect("a pipe");
    let (sender, numbers) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The first line of a case may follow words of the test program.
            let number = line.split(MARK).nth(1).and_then(|number| number.parse().ok());
            if number.is_some_and(|number| sender.send(number).is_err()) {
                break;
            }
        }
    });
    (child, numbers)
}

/// A program that may take only so much memory, where the system can say so.
fn limited(program: &Path) -> Command {
    if cfg!(not(unix)) {
        return Command::new(program);
    }
    let script = format!("ulimit -v {MOST_MEMORY_KIB} 2> /dev/null; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program);
    command
}
