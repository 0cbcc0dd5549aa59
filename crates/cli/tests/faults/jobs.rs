//! What the program is asked to do while faults happen.

use super::{Call, Fault, shim};
use crate::onnx::mean_colours;
use crate::support::{ADAM, Ended, FILES, Place, SMALL, Tree, npy_f32, npy_i64, picture};

/// A command in a place, with what it leaves if nothing stops it.
pub struct Job {
    pub place: Place,
    pub command: String,
    /// The folder that `aleator resume` continues; without one the command itself does.
    resumed: Option<&'static str>,
    /// Whether it may do without a file, if a warning names the file.
    pub warns: bool,
    pub before: Tree,
    pub whole: Tree,
    /// Its file operations.
    pub calls: Vec<Call>,
}

impl Job {
    fn new(place: Place, command: String, resumed: Option<&'static str>) -> Self {
        let before = Tree::of(&place);
        let (ended, calls) = shim::run(&place, &command, Fault::None);
        assert_eq!(ended.code, Some(0), "{command}: {}", ended.stderr);
        assert!(calls.len() > 10, "{command}: the shim saw only {calls:?}");
        let whole = Tree::of(&place);
        Self { place, command, resumed, warns: false, before, whole, calls }
    }

    /// The command without its settings, to tell jobs apart.
    pub fn name(&self) -> &str {
        self.command.split(" --set").next().unwrap_or_default()
    }

    /// Runs it from the beginning with a fault.
    pub fn run(&self, threads: usize, fault: Fault) -> (Ended, Vec<Call>) {
        self.before.restore(&self.place);
        shim::run(&self.place, &format!("{} --threads {threads}", self.command), fault)
    }

    /// The command that continues what is there.
    pub fn again(&self) -> String {
        match self.resumed {
            Some(folder) if self.place.path(folder).exists() => format!("resume {folder} -q"),
            _ => self.command.clone(),
        }
    }

    /// Continues without faults, to the same bytes.
    pub fn continues(&self, threads: usize, what: &str) {
        let again = format!("{} --threads {threads}", self.again());
        let (ended, _) = shim::run(&self.place, &again, Fault::None);
        assert_eq!(ended.code, Some(0), "{what}\nthen: {}", ended.stderr);
        Tree::of(&self.place).assert_same(&self.whole, &format!("{what}\nthen continued"));
    }
}

/// The smaller of the two data sets, for what takes long.
const FEW: &str = "--set data.train.features=tx.npy --set data.train.labels=ty.npy";

/// 18 steps in 2 epochs, with everything that has a state; all checkpoints are kept, so that each
/// can be compared with that of a run that nothing stops.
fn settings(recipe: &str) -> String {
    format!(
        "{recipe} {FILES} {SMALL} {ADAM} --set head.rank=2 --set schedule.epochs=2 \
         --set training.batch=16 --set training.parts=2 --set training.ema=0.9 \
         --set checkpoint.every_steps=4 --set training.min_steps= --set checkpoint.keep=100"
    )
}

pub fn train() -> Job {
    let command = format!("train {} --seed 3 --out out", settings("features-full"));
    Job::new(Place::with_features(), command, Some("out"))
}

/// A run that was killed when it had two checkpoints.
pub fn resume() -> Job {
    let Job { place, command, before, calls, .. } = train();
    before.restore(&place);
    let renamed = |call: &Call| call.operation == "rename" && call.path.ends_with("step-00000008");
    let at = calls.iter().position(renamed).expect("a checkpoint of step 8");
    shim::run(&place, &format!("{command} --threads 1"), Fault::Kill(at + 4));
    assert!(place.path("out/checkpoints/step-00000008").exists());
    assert!(!place.path("out/checkpoints/step-00000009").exists());
    Job::new(place, "resume out -q".to_string(), Some("out"))
}

/// Settings are chosen first, by trials that a resumed run does not repeat.
pub fn tuned_train() -> Job {
    let command = format!(
        "train features-full {FEW} --set checkpoint.keep=100 --set head.samples=8 \
         --set evaluation.samples=8 -q --seed 3 --out out"
    );
    Job::new(Place::with_features(), command, Some("out"))
}

/// Several seeds, and their ensemble.
pub fn seeds() -> Job {
    let command = format!("train {} --set seeds=[3,4] --out out", settings("features-full"));
    Job::new(Place::with_features(), command, Some("out"))
}

pub fn tune() -> Job {
    let recipe = settings("features-full --temperatures 0.5,1 --ranks 1");
    Job::new(Place::with_features(), format!("tune {recipe} --out out"), Some("out"))
}

pub fn sweep() -> Job {
    let place = Place::with_features();
    place.write("ranks.toml", "base = \"features-full\"\n[axes]\n\"head.rank\" = [1, 2]\n");
    let set = settings("ranks.toml").replace("--set head.rank=2", "");
    Job::new(place, format!("sweep {set} --out out"), Some("out"))
}

pub fn audit_with_folds() -> Job {
    let command = format!("audit {} --folds 2 --out out", settings("features-full"));
    Job::new(Place::with_features(), command, Some("out"))
}

pub fn audit_without_folds() -> Job {
    let command = format!("audit features-audit {FEW} -q --out out");
    Job::new(Place::with_features(), command, Some("out"))
}

/// A finished run in the folder `run`.
fn with_run() -> Place {
    let place = Place::with_features();
    place.succeeds(&format!("train {} --seed 3 --out run", settings("features-full")));
    place
}

/// An earlier file of the same name is replaced, or stays.
pub fn predict(ending: &str) -> Job {
    let place = with_run();
    place.write(&format!("p.{ending}"), "of an earlier command");
    Job::new(place, format!("predict run tx.npy -q --out p.{ending}"), None)
}

pub fn eval() -> Job {
    Job::new(with_run(), "eval run -q --calibrate".to_string(), None)
}

pub fn report() -> Job {
    let place = with_run();
    // A page without pictures is better than none.
    Job { warns: true, ..Job::new(place, "report run -q --out page.html".to_string(), None) }
}

/// An audit of thirty examples in the folder `audit`, with a decision.
pub fn with_audit() -> Place {
    let place = Place::empty();
    let row = |example: usize| {
        let own = 0.8 + 0.005 * example as f32;
        (0..3).map(move |class| if class == example % 3 { own } else { (1.0 - own) / 2.0 })
    };
    let mut labels: Vec<i64> = (0..30).map(|example| example % 3).collect();
    (labels[3], labels[7]) = (2, 0);
    place.write("y.npy", npy_i64(&[30], labels));
    place.write("p.npy", npy_f32(&[30, 3], (0..30).flat_map(row).collect()));
    place.succeeds("audit --probabilities p.npy --labels y.npy -q --out audit");
    place.succeeds("review audit --export");
    let journal = String::from_utf8(place.read("audit/decisions.jsonl")).expect("text");
    let kept = r#"{"id":"3","decision":"keep","label":"2"}"#;
    place.write("audit/decisions.jsonl", format!("{journal}{kept}\n"));
    place
}

pub fn accept() -> Job {
    Job::new(with_audit(), "review audit --accept 0.6 -q".to_string(), None)
}

/// Images of two classes in the folder `images`.
fn with_images() -> Place {
    let place = Place::empty();
    for number in 0..16 {
        place.write(&format!("images/stripes/{number}.ppm"), picture(16, number, false));
        place.write(&format!("images/columns/{number}.ppm"), picture(16, number, true));
    }
    place
}

pub fn embed() -> Job {
    let place = with_images();
    place.write("net.onnx", mean_colours(-1, -1).file());
    let command = "embed images --model net.onnx --runtime rten --size 8 --batch 4 -q \
                   --out e.safetensors";
    Job::new(place, command.to_string(), None)
}

/// A small network on images in the folder `run`.
fn with_network() -> Place {
    let place = with_images();
    place.succeeds(
        "train small/ilsvrc12-none --set data.train.images=images --set data.image_size=16 \
         --set data.validation.fraction=0.25 --set schedule.epochs=2 --set schedule.at=[1] \
         --set schedule.warm_up=0 --set evaluation.samples=4 --seed 0 -q --out run",
    );
    place
}

pub fn embed_by_a_run() -> Job {
    let command = "embed images --backbone run --batch 4 -q --out e.safetensors";
    Job::new(with_network(), command.to_string(), None)
}

pub fn transfer() -> Job {
    let place = with_network();
    for number in 0..12 {
        for split in ["train", "test"] {
            let seed = if split == "train" { number } else { 100 + number };
            place.write(&format!("task/{split}/a/{number}.ppm"), picture(16, seed, false));
            place.write(&format!("task/{split}/b/{number}.ppm"), picture(16, seed, true));
        }
    }
    place.write(
        "tasks.toml",
        "recipe = \"small/transfer\"\n[tasks.one]\ndata = \"task\"\n[tasks.two]\ndata = \"task\"\n",
    );
    let command = "transfer run tasks.toml --set schedule.epochs=2 --set schedule.at=[1] \
                   --set schedule.warm_up_steps=0 --set data.limit=20 --set data.validation.count=4 \
                   --set evaluation.samples=4 -q --out out";
    Job::new(place, command.to_string(), Some("out"))
}
