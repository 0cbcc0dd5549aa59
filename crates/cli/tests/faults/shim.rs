//! The program with `shim.c` preloaded, which sees every file operation below a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::{Ended, Place};

/// What happens to the program.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Nothing; the operations are listed.
    None,
    /// An operation fails with this number of an error, counted from 0.
    Once(usize, Errno),
    /// The device is gone: this operation fails, and all after it.
    Onwards(usize),
    /// It is killed in place of an operation.
    Kill(usize),
}

/// Errors of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    Io = 5,
    Access = 13,
    TooManyFiles = 24,
    NoSpace = 28,
}

/// An operation that the program asked for.
#[derive(Clone, Debug)]
pub struct Call {
    /// `open`, `create`, `read`, `write`, `sync`, `truncate`, `rename`, `remove` or `mkdir`.
    pub operation: String,
    pub path: PathBuf,
    /// Whether it was made to fail.
    pub failed: bool,
}

impl Call {
    /// Errors that this operation can meet in practice.
    pub fn errors(&self) -> &'static [Errno] {
        use Errno::*;
        match self.operation.as_str() {
            "open" => &[Access, TooManyFiles, Io],
            "create" => &[NoSpace, TooManyFiles, Access],
            "read" => &[Io],
            "remove" => &[Access, Io],
            "write" | "sync" | "rename" | "mkdir" => &[NoSpace, Io],
            "truncate" => &[Io],
            other => panic!("the shim names no operation {other}"),
        }
    }
}

/// Runs the program in a place where a fault happens; the operations up to its end.
pub fn run(place: &Place, arguments: &str, fault: Fault) -> (Ended, Vec<Call>) {
    let log = tempfile::NamedTempFile::new().expect("a file for the log");
    let mut command = command(place, arguments, fault, log.path());
    let output = command.output().expect("the program starts");
    (Ended::of(output), calls(log.path()))
}

/// The program with the library in front of the C library.
pub fn command(place: &Place, arguments: &str, fault: Fault, log: &Path) -> Command {
    let root = fs::canonicalize(place.path("")).expect("the folder");
    let mut command = place.command(arguments);
    command.env("LD_PRELOAD", library()).env("SHIM_ROOT", root).env("SHIM_LOG", log);
    let (at, last, error) = match fault {
        Fault::None => return command,
        Fault::Once(at, error) => (at, at, error as i32),
        Fault::Onwards(at) => (at, i64::MAX as usize, Errno::Io as i32),
        Fault::Kill(at) => (at, at, 0),
    };
    let set = [("SHIM_AT", at), ("SHIM_LAST", last), ("SHIM_ERRNO", error as usize)];
    command.envs(set.map(|(name, value)| (name, value.to_string())));
    command
}

/// The lines that the library wrote.
pub fn calls(log: &Path) -> Vec<Call> {
    let text = fs::read_to_string(log).expect("the log");
    let call = |line: &str| {
        let (operation, path) = line.split_once('\t').expect("an operation and a path");
        let failed = operation.starts_with('!');
        let operation = operation.trim_start_matches('!').to_string();
        Call { operation, path: path.into(), failed }
    };
    text.lines().map(call).collect()
}

/// Compiled once for all tests, by the compiler that links every Rust program here.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let (made, place) = (format!("shim-{}.so", std::process::id()), folder.join("shim.so"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.join(&made)).arg(source);
        let output = compiler.arg("-ldl").stdin(Stdio::null()).output();
        let output = output.expect("`cc`, which Rust links by, must be there to test faults");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Another test program may do the same at this moment.
        fs::rename(folder.join(made), &place).expect("a library");
        place
    })
}
