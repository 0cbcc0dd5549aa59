//! Small runs in folders that go away.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::DataSet;
use aleator_metrics::Evaluation;
use aleator_run::{Document, Predictions, Recipe, RunDir, Split};
use aleator_train::{
    EvaluateSettings, Event, Job, Outcome, StepReport, TrainError, create_run, evaluate,
    finish_run, train,
};
use safetensors::SafeTensors;
use tempfile::TempDir;

/// Everything that a run needs but its data; tests set over it what they are about.
pub const RECIPE: &str = r#"
summary = "A test"
seeds = [0]

[data]
label_kind = "auto"
annotations = "majority"
[data.validation]
fraction = 0.25
seed = 0

[network]
kind = "none"
normalize = "none"

[head]
noise = "none"
link = "softmax"
temperature = 1.0
diag_scale = "softplus"
covariance_init = 1.0
samples = 16
draws = "antithetic"

[optimizer]
kind = "sgd"
momentum = 0.9
nesterov = false
learning_rate = 0.05
[optimizer.l2]
network = 1e-4
mean = 1e-4
covariance = 1e-4

[schedule]
kind = "constant"
epochs = 2
warm_up = 0.0

[training]
batch = 16
parts = 1
workers = 1

[checkpoint]
keep = 100

[evaluation]
weights = "best"
samples = 32
batch = 64
loadings_mib = 1
"#;

/// [`RECIPE`] with Adam.
pub fn adam() -> String {
    let sgd = "kind = \"sgd\"\nmomentum = 0.9\nnesterov = false";
    let adam = "kind = \"adam\"\nbeta1 = 0.9\nbeta2 = 0.999\nepsilon = 1e-8";
    assert!(RECIPE.contains(sgd));
    RECIPE.replace(sgd, adam)
}

/// The recipe of a text with these keys set.
pub fn resolve(text: &str, sets: &[&str]) -> Recipe {
    let mut document = Document::parse(text, "test").unwrap();
    sets.iter().for_each(|set| document.set(set).unwrap());
    document.recipe().unwrap()
}

/// The built-in digits.
pub const DIGITS: &str = "data.train.builtin=digits";

/// Files of a data set.
pub struct Files(pub TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    }

    /// The settings of a recipe for examples `[labels.len(), 4]` that cluster by their class, with
    /// these lines for a label file.
    pub fn source(&self, classes: &[usize], labels: &str) -> [String; 2] {
        let features = self.write("x.npy", npy(classes.len(), 4, &clusters(classes)));
        let labels = self.write("labels.csv", labels);
        [format!("data.train.features={features}"), format!("data.train.labels={labels}")]
    }
}

/// Examples around a point for each class, in four dimensions.
pub fn clusters(classes: &[usize]) -> Vec<f32> {
    let mut words = aleator_kernels::split_mix(7);
    let mut unit = || (words.next().unwrap() >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
    let mut row = |class: usize| -> [f32; 4] {
        std::array::from_fn(|at| unit() + if at == class % 4 { 2.0 } else { 0.0 })
    };
    classes.iter().flat_map(|class| row(*class)).collect()
}

/// The classes 0, 1, 2, 0, 1, 2, … of some examples.
pub fn cycle(examples: usize) -> Vec<usize> {
    (0..examples).map(|at| at % 3).collect()
}

/// A label file of one column.
pub fn column(classes: &[usize]) -> String {
    classes.iter().fold("label\n".to_string(), |text, class| format!("{text}{class}\n"))
}

/// The bytes of a `.npy` file of 4-byte floats.
pub fn npy(rows: usize, columns: usize, values: &[f32]) -> Vec<u8> {
    let shape = format!("({rows}, {columns})");
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// A run in a folder that goes away.
pub struct Trial {
    folder: TempDir,
    pub run: RunDir,
    pub recipe: Recipe,
    pub data: DataSet,
}

/// What the observer received.
#[derive(Default)]
pub struct Events {
    pub steps: Vec<StepReport>,
    /// (epoch, NLL, best)
    pub epochs: Vec<(usize, f64, bool)>,
    pub damaged: Vec<String>,
    pub stopped_early: Option<usize>,
}

impl Trial {
    pub fn new(text: &str, sets: &[&str]) -> Self {
        Self::of(resolve(text, sets))
    }

    /// On clusters of three classes.
    pub fn on_clusters(text: &str, examples: usize, sets: &[&str]) -> Self {
        let files = Files::new();
        let classes = cycle(examples);
        let source = files.source(&classes, &column(&classes));
        Self::on(text, &source, sets)
    }

    /// On the files of [`Files::source`], which may go away after this.
    pub fn on(text: &str, source: &[String], sets: &[&str]) -> Self {
        let all: Vec<&str> =
            source.iter().map(String::as_str).chain(sets.iter().copied()).collect();
        Self::new(text, &all)
    }

    pub fn of(recipe: Recipe) -> Self {
        let data = DataSet::open(&recipe.data, recipe.head.link).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let seed = recipe.seeds[0];
        let run = create_run(&folder.path().join("run"), &recipe, seed, &data, &[]).unwrap();
        Self { folder, run, recipe, data }
    }

    pub fn job<'a>(&'a self, stop: &'a AtomicBool) -> Job<'a> {
        Job { run: &self.run, recipe: &self.recipe, data: &self.data, stop }
    }

    /// Trains to the end.
    pub fn train(&self) -> Events {
        let (events, outcome) = self.try_train_until(usize::MAX);
        assert!(matches!(outcome.unwrap(), Outcome::Finished(())));
        events
    }

    /// Trains until some steps are done, as if by Ctrl-C.
    pub fn train_until(&self, step: usize) -> Events {
        let (events, outcome) = self.try_train_until(step);
        assert_eq!(outcome.unwrap(), Outcome::Interrupted { step });
        events
    }

    pub fn try_train_until(&self, last: usize) -> (Events, Result<Outcome, TrainError>) {
        let stop = AtomicBool::new(false);
        let mut events = Events::default();
        let outcome = train(&self.job(&stop), &mut |event| match event {
            Event::Step { step, report, .. } => {
                events.steps.push(report);
                stop.store(step >= last, Ordering::Relaxed);
            }
            Event::Epoch { epoch, nll, best, .. } => events.epochs.push((epoch, nll, best)),
            Event::Damaged(error) => events.damaged.push(error.to_string()),
            Event::StoppedEarly { epoch } => events.stopped_early = Some(epoch),
            _ => {}
        });
        (events, outcome)
    }

    pub fn evaluate(&self, settings: EvaluateSettings) -> Result<Evaluation, TrainError> {
        evaluate(&self.job(&AtomicBool::new(false)), &settings, &mut |_| {})
    }

    /// Trains and evaluates.
    pub fn finish(&self) -> Evaluation {
        let stop = AtomicBool::new(false);
        match finish_run(&self.job(&stop), &mut |_| {}).unwrap() {
            Outcome::Finished(evaluation) => evaluation,
            other => panic!("{other:?}"),
        }
    }

    pub fn predictions(&self, split: Split) -> Predictions {
        Predictions::load(&self.run.predictions_path(split)).unwrap()
    }

    /// The folder of a checkpoint.
    pub fn checkpoint(&self, step: usize) -> PathBuf {
        self.run.checkpoints_path().join(format!("step-{step:08}"))
    }

    /// A file of a checkpoint.
    pub fn bytes(&self, step: usize, file: &str) -> Vec<u8> {
        std::fs::read(self.checkpoint(step).join(file)).unwrap()
    }

    /// The weights of a checkpoint.
    pub fn weights(&self, step: usize) -> Tensors {
        tensors(&self.bytes(step, "model.safetensors"))
    }

    /// The steps that have a checkpoint.
    pub fn steps(&self) -> Vec<usize> {
        aleator_train::Checkpoints::new(self.run.checkpoints_path()).steps().unwrap()
    }
}

/// Shape and numbers by name.
pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

pub fn tensors(bytes: &[u8]) -> Tensors {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let read = |(name, view): (&str, safetensors::tensor::TensorView<'_>)| {
        let words = view.data().as_chunks::<4>().0;
        let values = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
        (name.to_string(), (view.shape().to_vec(), values))
    };
    file.iter().map(read).collect()
}

/// The largest difference between numbers of the same names.
pub fn distance(a: &Tensors, b: &Tensors) -> f32 {
    assert!(a.keys().eq(b.keys()));
    let numbers = |tensors: &Tensors| -> Vec<f32> {
        tensors.values().flat_map(|(_, values)| values.clone()).collect()
    };
    let pairs = numbers(a).into_iter().zip(numbers(b));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
