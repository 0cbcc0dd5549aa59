//! A folder with small data in it, and the program run there as a user runs it.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

mod arrays;
mod outcome;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use arrays::{Toy, npy, npy_f32, npy_i64, picture, ppm, read_npy_i64};
pub use outcome::{Outcome, last_checkpoint};
pub use tree::Tree;

/// A temporary folder that the program is run in.
pub struct Place {
    folder: TempDir,
}

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// With `x.npy`, `y.npy` to train on and `tx.npy`, `ty.npy` to test on, of four classes.
    pub fn with_features() -> Self {
        let place = Self::empty();
        Toy { examples: 160, seed: 1 }.write_single(&place, "x.npy", "y.npy");
        Toy { examples: 60, seed: 2 }.write_single(&place, "tx.npy", "ty.npy");
        place
    }

    /// The same with labels of `[N, 4]`, each class on or off.
    pub fn with_multi_hot() -> Self {
        let place = Self::empty();
        Toy { examples: 160, seed: 1 }.write_multi_hot(&place, "x.npy", "y.npy");
        Toy { examples: 60, seed: 2 }.write_multi_hot(&place, "tx.npy", "ty.npy");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        read(&self.path(name))
    }

    pub fn json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aleator"));
        command.args(words(arguments)).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program; `arguments` are split at spaces.
    pub fn run(&self, arguments: &str) -> Ended {
        Ended::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs it and expects success.
    pub fn succeeds(&self, arguments: &str) -> Ended {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "aleator {arguments}\n{}", ended.stderr);
        ended
    }

    /// Runs it and expects exit code 1 with these words in the message.
    pub fn refuses(&self, arguments: &str, words: &[&str]) -> Ended {
        let ended = self.run(arguments);
        ended.check_refusal(arguments, words);
        ended
    }

    /// A shell command in this folder in which `$ALEATOR` is the program.
    pub fn shell(&self, script: &str) -> Ended {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("ALEATOR", env!("CARGO_BIN_EXE_aleator"));
        Ended::of(command.output().expect("bash starts"))
    }

    /// Starts it and does not wait.
    pub fn start(&self, arguments: &str) -> Started {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Started { child: command.spawn().expect("the program starts") }
    }

    /// Lines of a file that may not be there yet.
    pub fn lines(&self, name: &str) -> usize {
        fs::read_to_string(self.path(name)).map_or(0, |text| text.lines().count())
    }
}

/// The program at work; it is ended when the test ends.
pub struct Started {
    child: Child,
}

impl Drop for Started {
    fn drop(&mut self) {
        // Fails where it has ended by itself, as it mostly has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Started {
    /// Waits until something is true, or until the program has ended.
    pub fn wait_until(&mut self, mut reached: impl FnMut() -> bool) {
        let started = Instant::now();
        while !reached() && self.child.try_wait().expect("a state").is_none() {
            assert!(started.elapsed() < Duration::from_secs(120), "it takes too long");
            sleep(Duration::from_millis(1));
        }
    }

    /// Ends it without a chance to save; says whether it was still at work.
    pub fn kill(&mut self) -> bool {
        let _ = self.child.kill();
        is_killed(self.child.wait().expect("it ends"))
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let script = format!("kill -s {name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.expect("sh starts").success(), "no signal {name}");
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut pipe, &mut stderr).expect("text");
        }
        let code = self.child.wait().expect("it ends").code();
        Ended { code, stdout: String::new(), stderr }
    }
}

fn is_killed(status: ExitStatus) -> bool {
    status.code().is_none()
}

impl Ended {
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Exit code 1, no panic, and these words.
    pub fn check_refusal(&self, what: &str, words: &[&str]) {
        let text = &self.stderr;
        assert_eq!(self.code, Some(1), "{what}: {text}");
        self.check_no_panic(what);
        for word in words {
            assert!(text.contains(word), "{what}: {word:?} is not in: {text}");
        }
    }

    pub fn check_no_panic(&self, what: &str) {
        assert!(!self.stderr.contains("panicked"), "{what}: {}", self.stderr);
    }
}

/// The arguments of a command line; `'…'` holds spaces together.
fn words(arguments: &str) -> Vec<String> {
    let mut out = vec![];
    for (at, part) in arguments.split('\'').enumerate() {
        if at % 2 == 1 {
            out.push(part.to_string());
        } else {
            out.extend(part.split_whitespace().map(str::to_string));
        }
    }
    out
}

pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The settings that name the files of [`Place::with_features`].
pub const FILES: &str = "--set data.train.features=x.npy --set data.train.labels=y.npy \
                         --set data.test.features=tx.npy --set data.test.labels=ty.npy";

/// A network and samples that are small enough for a test, trained in batches at fixed settings.
pub const SMALL: &str = "--set network.kind=mlp --set network.hidden=[8] --set head.samples=16 \
                         --set evaluation.samples=32 --set schedule.epochs=3 \
                         --set schedule.warm_up=0.5 --set tune=off \
                         --set optimizer= --set optimizer.kind=adam \
                         --set optimizer.learning_rate=5e-3 --set optimizer.beta1=0.9 \
                         --set optimizer.beta2=0.999 --set optimizer.epsilon=1e-8 \
                         --set optimizer.l2.network=1e-4 --set optimizer.l2.mean=1e-2 \
                         --set optimizer.l2.covariance=1e-2 --set schedule.kind=cosine \
                         --set training.batch=256 --set training.min_steps=32 \
                         --set training.parts=1 --set training.validate_every= \
                         --set checkpoint.keep=2 --set evaluation.weights=best -q";

/// The rule of stochastic gradient descent with so much momentum, whatever the preset has.
pub fn sgd(learning_rate: &str, momentum: &str, nesterov: bool) -> String {
    format!(
        "--set optimizer= --set optimizer.kind=sgd --set optimizer.learning_rate={learning_rate} \
         --set optimizer.momentum={momentum} --set optimizer.nesterov={nesterov} \
         --set optimizer.l2.network=1e-4 --set optimizer.l2.mean=1e-4 \
         --set optimizer.l2.covariance=1e-4"
    )
}

/// Adam's rule, whatever the preset has.
pub const ADAM: &str = "--set optimizer= --set optimizer.kind=adam \
                        --set optimizer.learning_rate=5e-3 --set optimizer.beta1=0.9 \
                        --set optimizer.beta2=0.999 --set optimizer.epsilon=1e-8 \
                        --set optimizer.l2.network=1e-4 --set optimizer.l2.mean=1e-3 \
                        --set optimizer.l2.covariance=1e-3";
