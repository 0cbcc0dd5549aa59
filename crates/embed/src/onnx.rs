//! A network from an ONNX file, run by one of two runtimes.

mod inspect;
pub mod library;
mod microsoft;
pub mod model_file;
mod native;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::EmbedError;
use crate::extractor::{Extractor, Identity, Images};
use crate::signature::{InputSpec, Layout, Port, Reading, choose_output, listed};
use model_file::ModelFile;

/// Reading a network and preparing it takes seconds; whatever takes longer does not end.
const LONGEST_OPENING: Duration = Duration::from_secs(300);

/// Networks are read, and their nodes put in order, by recursion: this suffices for twice as many
/// nodes as inspection lets pass.
const STACK: usize = 64 << 20;

/// The program that runs a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// ONNX Runtime if its library is found, otherwise rten.
    Auto,
    /// ONNX Runtime, from a library that is loaded when it is needed.
    OnnxRuntime,
    /// rten, which is part of the program.
    Rten,
}

/// How to open a network.
#[derive(Clone, Debug)]
pub struct OnnxOptions<'a> {
    /// The runtime.
    pub runtime: Runtime,
    /// The library of ONNX Runtime; by default it is searched for.
    pub library: Option<&'a Path>,
    /// The output to use; by default the only one.
    pub output: Option<&'a str>,
    /// Number of threads.
    pub threads: usize,
}

/// A network in a runtime.
struct Network {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// The name of the runtime in files.
    runtime: String,
    run: Run,
}

/// Runs images of this shape and returns one output with its shape; the error is a phrase.
type Run = Box<dyn FnMut(&[f32], [usize; 4], usize) -> Result<Output, String> + Send>;

/// Numbers of any shape.
struct Output {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// A network from an ONNX file.
///
/// ```no_run
/// use std::sync::atomic::AtomicBool;
/// use aleator_embed::{Extractor, OnnxNetwork, OnnxOptions, Runtime};
///
/// let options =
///     OnnxOptions { runtime: Runtime::Rten, library: None, output: None, threads: 2 };
/// let stop = AtomicBool::new(false);
/// let mut say = |message: &str| println!("{message}");
/// let mut network = OnnxNetwork::open("net.onnx".as_ref(), &options, &stop, &mut say)?;
/// println!("{:?}", network.input());
/// # Ok::<(), aleator_embed::EmbedError>(())
/// ```
pub struct OnnxNetwork {
    path: PathBuf,
    hash: String,
    network: Network,
    input: InputSpec,
    output: usize,
    reading: Option<Reading>,
    /// Memory for full batches of networks with a fixed batch size.
    padded: Vec<f32>,
}

impl OnnxNetwork {
    /// Opens a network and checks that it takes images. `say` is called with messages about the
    /// runtime.
    ///
    /// The file may come from anybody: its structure is checked before a runtime reads it, and
    /// operators that may run for ever are refused. What its operators allocate is bounded by the
    /// limits of the process alone.
    ///
    /// # Errors
    /// When the file does not exist, no runtime can read it, it does not turn an image into one
    /// vector, or `stop` becomes true meanwhile.
    pub fn open(
        path: &Path,
        options: &OnnxOptions,
        stop: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, EmbedError> {
        let file = ModelFile::read(path)?;
        let hash = file.hash.clone();
        let network = start(file, options, stop, say)?;
        let refuse = |what: String| EmbedError::model(path, what);
        let input = InputSpec::of(&network.inputs).map_err(refuse)?;
        let output = choose_output(&network.outputs, options.output).map_err(refuse)?;
        let (path, padded) = (path.to_path_buf(), vec![]);
        Ok(Self { path, hash, network, input, output, reading: None, padded })
    }

    /// Runs exactly as many images as the network takes.
    fn run(&mut self, images: &Images) -> Result<Output, EmbedError> {
        let Images { values, count, height, width } = *images;
        let shape = match self.input.layout {
            Layout::ChannelsFirst => [count, self.input.channels, height, width],
            Layout::ChannelsLast => [count, height, width, self.input.channels],
        };
        assert_eq!(values.len(), shape.iter().product::<usize>(), "images must be {shape:?}");
        let (run, output, path) = (&mut self.network.run, self.output, &self.path);
        thread::scope(|scope| {
            let run = move || run(values, shape, output);
            let running = thread_for_a_network().spawn_scoped(scope, run).map_err(no_thread)?;
            let gave_up = |_| Err("its runtime gave up; try the other one with --runtime".into());
            let result = running.join().unwrap_or_else(gave_up);
            result.map_err(|what| EmbedError::model(path, what))
        })
    }

    fn read(&mut self, output: &Output, count: usize) -> Result<Vec<f32>, EmbedError> {
        let outputs = &self.network.outputs;
        let refuse = |why: String| {
            let (port, shape) = (&outputs[self.output].name, &output.shape);
            let all = listed(outputs);
            let message =
                format!("its output {port} of shape {shape:?} {why}; the outputs are {all}");
            EmbedError::model(&self.path, message)
        };
        let reading = Reading::of(&output.shape, self.input.layout).map_err(refuse)?;
        if output.shape[0] != count || reading.width() == 0 {
            return Err(refuse(format!("is not one vector for each of {count} images")));
        }
        let expected = *self.reading.get_or_insert(reading);
        if expected.width() != reading.width() {
            return Err(refuse(format!("changed its width from {}", expected.width())));
        }
        Ok(reading.vectors(&output.values))
    }
}

impl Extractor for OnnxNetwork {
    fn identity(&self) -> Identity {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Identity::from([
            ("model", name.into_owned()),
            ("model_blake3", self.hash.clone()),
            ("output", self.network.outputs[self.output].name.clone()),
            ("runtime", self.network.runtime.clone()),
        ])
    }

    fn input(&self) -> InputSpec {
        self.input
    }

    fn extract(&mut self, images: &Images) -> Result<Vec<f32>, EmbedError> {
        let Some(batch) = self.input.batch else {
            let output = self.run(images)?;
            return self.read(&output, images.count);
        };
        let image = images.values.len() / images.count;
        let mut features = Vec::new();
        for part in images.values.chunks(batch * image) {
            let given = part.len() / image;
            let mut padded = std::mem::take(&mut self.padded);
            padded.clear();
            padded.extend_from_slice(part);
            // Repeat the last image to fill the batch.
            (given..batch).for_each(|_| padded.extend_from_slice(&part[part.len() - image..]));
            let output = self.run(&Images { values: &padded, count: batch, ..*images });
            self.padded = padded;
            let vectors = self.read(&output?, batch)?;
            features.extend_from_slice(&vectors[..vectors.len() / batch * given]);
        }
        Ok(features)
    }

    fn reading(&self) -> Option<Reading> {
        self.reading
    }
}

/// The network in the requested runtime.
fn start(
    file: ModelFile,
    options: &OnnxOptions,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<Network, EmbedError> {
    let how_to_get = library::HOW_TO_GET;
    let found = match options.runtime {
        Runtime::Rten => None,
        Runtime::OnnxRuntime | Runtime::Auto => library::load(options.library, say)?,
    };
    let threads = options.threads;
    match (found, options.runtime) {
        (Some(found), _) => {
            say(&format!("runtime: {} ({})", found.version, found.path.display()));
            apart(file, stop, move |file| microsoft::open(&file.path, &found, threads))
        }
        (None, Runtime::OnnxRuntime) => {
            let message = format!("the library of ONNX Runtime is not found; {how_to_get}");
            Err(EmbedError::Runtime(message))
        }
        (None, runtime) => {
            say("runtime: rten, which is part of this program");
            if runtime == Runtime::Auto {
                say(&format!("ONNX Runtime is often faster: {how_to_get}"));
            }
            apart(file, stop, move |file| native::open(file, threads))
        }
    }
}

fn thread_for_a_network() -> thread::Builder {
    thread::Builder::new().name("network".into()).stack_size(STACK)
}

fn no_thread(error: std::io::Error) -> EmbedError {
    EmbedError::Runtime(format!("no thread can be started: {error}; lower --threads"))
}

/// Opens a network on a thread of its own, which is left behind if it does not end.
fn apart(
    file: ModelFile,
    stop: &AtomicBool,
    open: impl FnOnce(ModelFile) -> Result<Network, EmbedError> + Send + 'static,
) -> Result<Network, EmbedError> {
    const PATIENCE: Duration = Duration::from_millis(50);
    let path = file.path.clone();
    let (send, opened) = sync_channel(1);
    let work = move || {
        let result = catch_unwind(AssertUnwindSafe(|| open(file)));
        // Nobody waits any more after an interruption.
        let _ = send.send(result);
    };
    thread_for_a_network().spawn(work).map_err(no_thread)?;
    let since = Instant::now();
    loop {
        match opened.recv_timeout(PATIENCE) {
            Ok(Ok(result)) => return result,
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let message = "cannot be read as an ONNX network (its reader gave up); export it \
                               again";
                return Err(EmbedError::model(path, message));
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(EmbedError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) if since.elapsed() > LONGEST_OPENING => {
                let seconds = LONGEST_OPENING.as_secs();
                let message = format!("was not read within {seconds} s; export it again");
                return Err(EmbedError::model(path, message));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> ModelFile {
        let (path, hash) = ("net.onnx".into(), String::new());
        ModelFile { path, bytes: vec![], external: vec![], hash }
    }

    #[test]
    fn reading_that_does_not_end_can_be_stopped() {
        let (started, go_on) = (Instant::now(), AtomicBool::new(true));
        let result = apart(file(), &go_on, |_| {
            thread::sleep(Duration::from_secs(60));
            Err(EmbedError::Runtime("never".into()))
        });
        assert!(matches!(result.err(), Some(EmbedError::Interrupted)));
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_reader_that_panics_is_an_error() {
        let result = apart(file(), &AtomicBool::new(false), |_| panic!("on purpose"));
        assert!(result.err().unwrap().to_string().contains("its reader gave up"));
    }
}
