//! Where the library of ONNX Runtime is.

use std::io::Read;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::error::EmbedError;

/// For messages.
pub const HOW_TO_GET: &str =
    "`pip install onnxruntime` is enough, or name the library with --onnxruntime PATH";

/// The library, loaded.
#[derive(Clone)]
pub(super) struct Library {
    pub path: PathBuf,
    /// Name and version, such as "onnxruntime 1.22.0".
    pub version: String,
    pub environment: Environment,
}

/// A process has at most one environment of ONNX Runtime, which is never released.
static LOADED: Mutex<Option<Library>> = Mutex::new(None);

/// The time limit for the Python interpreter.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the given library, or else the first suitable one of: `ORT_DYLIB_PATH`, the Python
/// package, well-known directories. `say` is called for unsuitable ones.
pub(super) fn load(
    named: Option<&Path>,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Library>, EmbedError> {
    let mut loaded = LOADED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(library) = &*loaded {
        return Ok(Some(library.clone()));
    }
    let found = match named {
        Some(path) => Some(open(path).map_err(|what| {
            EmbedError::Runtime(format!("{}: {what}; {HOW_TO_GET}", path.display()))
        })?),
        None => {
            [of_variable, of_python, well_known].iter().flat_map(|place| place()).find_map(|path| {
                let passing_over =
                    |what: &String| say(&format!("passing over {}: {what}", path.display()));
                open(&path).inspect_err(passing_over).ok()
            })
        }
    };
    loaded.clone_from(&found);
    Ok(found)
}

fn of_variable() -> Vec<PathBuf> {
    let variable = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty());
    variable.into_iter().map(PathBuf::from).collect()
}

/// Whether ONNX Runtime can be used here.
pub fn is_found() -> bool {
    load(None, &mut |_| ()).is_ok_and(|library| library.is_some())
}

/// Loads a library; the error is a phrase.
fn open(path: &Path) -> Result<Library, String> {
    // A relative path would be resolved against the program's directory.
    let path = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_string(),
        _ => error.to_string(),
    })?;
    let loaded = catch_unwind(|| {
        let builder = ort::init_from(&path).map_err(|error| {
            format!("is no library of ONNX Runtime 1.{} or later ({error})", ort::MINOR_VERSION)
        })?;
        let environment =
            builder.with_telemetry(false).build().map_err(|error| error.to_string())?;
        environment.set_log_level(LogLevel::Error);
        Ok((environment, version(&path)))
    });
    let (environment, version) =
        loaded.unwrap_or_else(|_| Err("cannot be loaded as ONNX Runtime".to_string()))?;
    Ok(Library { path, version, environment })
}

/// The version in the file's name, as in `libonnxruntime.so.1.22.0`, or in the library itself.
fn version(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let from = name.find(|c: char| c.is_ascii_digit());
    let numbers = from.map(|at| name[at..].trim_end_matches(".dylib"));
    match numbers.filter(|text| digits(text)) {
        Some(numbers) => format!("onnxruntime {numbers}"),
        None => {
            let about = ort::info();
            let commit = about.split("git-commit-id=").nth(1).and_then(|it| it.split(',').next());
            format!("onnxruntime {}", commit.unwrap_or("of unknown version"))
        }
    }
}

/// The library inside the package `onnxruntime` of the user's Python. Python also looks in the
/// current directory, which may be a folder of data from somebody else: nothing is loaded from there.
fn of_python() -> Vec<PathBuf> {
    const PROGRAM: &str = "import sys; sys.path = [path for path in sys.path if path]; \
                           import importlib.util as u; s = u.find_spec('onnxruntime'); \
                           print(s.submodule_search_locations[0] if s else '')";
    let package = ["python3", "python"].iter().find_map(|python| answer(python, PROGRAM));
    package.map(|package| libraries_in(&Path::new(&package).join("capi"))).unwrap_or_default()
}

/// The output of a Python program, if it ends in time.
fn answer(python: &str, program: &str) -> Option<String> {
    let mut child = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let started = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > PATIENCE {
            // It may have ended in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

fn well_known() -> Vec<PathBuf> {
    const DIRECTORIES: [&str; 9] = [
        "/usr/local/lib",
        "/usr/local/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/opt/onnxruntime/lib",
        "/opt/homebrew/lib",
        "/opt/local/lib",
    ];
    DIRECTORIES.iter().flat_map(|directory| libraries_in(Path::new(directory))).collect()
}

/// The libraries of ONNX Runtime in a directory: without a version first, then the newest.
fn libraries_in(directory: &Path) -> Vec<PathBuf> {
    let is_library = |name: &str| {
        name == "libonnxruntime.so"
            || name.starts_with("libonnxruntime.so.")
            || name == "onnxruntime.dll"
            || (name.starts_with("libonnxruntime.") && name.ends_with(".dylib"))
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return vec![] };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_library(name)).collect();
    let numbers = |name: &String| -> Vec<u32> {
        name.split('.').filter_map(|part| part.parse().ok()).collect()
    };
    names.sort_by_key(|name| {
        let numbers = numbers(name);
        (!numbers.is_empty(), std::cmp::Reverse(numbers))
    });
    names.into_iter().map(|name| directory.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_folder_comes_first_after_the_plain_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libonnxruntime.so.1.9.0", "libonnxruntime.so.1.22.0", "libonnxruntime.so"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::write(folder.path().join("libonnxruntime_providers_shared.so"), "").unwrap();
        let names: Vec<String> = libraries_in(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        let expected = ["libonnxruntime.so", "libonnxruntime.so.1.22.0", "libonnxruntime.so.1.9.0"];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_is_no_library_is_refused_with_words() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("libonnxruntime.so");
        std::fs::write(&text, "not a library").unwrap();
        assert!(open(&text).err().unwrap().contains("is no library of ONNX Runtime"));
        assert!(open(&folder.path().join("gone.so")).err().unwrap().contains("no such file"));
    }

    #[test]
    fn a_python_that_is_not_there_answers_nothing() {
        assert_eq!(answer("a-python-that-is-not-there", "print(1)"), None);
    }
}
