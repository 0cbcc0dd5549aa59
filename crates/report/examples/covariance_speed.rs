//! How long an analysis of covariances takes, and how much memory, on made-up predictions.
//!
//! ```text
//! cargo run --release -p aleator-report --example covariance_speed -- DIR shared 2000 21843 50
//! ```
//!
//! makes a run with noise `shared`, 2,000 examples, 21,843 classes and rank 50 in the new folder
//! DIR, analyses it and prints a line of JSON for each step. DIR stays; delete it.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use aleator_report::covariance::{Covariances, Measure};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, RunDir, RunInfo, Split, SplitCounts,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, kind, examples, classes, rank] = arguments.as_slice() else {
        return Err("usage: covariance_speed DIR full|shared|diagonal EXAMPLES CLASSES RANK".into());
    };
    let (examples, classes) = (examples.parse::<usize>()?, classes.parse::<usize>()?);
    let rank = rank.parse::<usize>()?;
    let noise = match kind.as_str() {
        "full" => Noise::LowRank { rank },
        "shared" => Noise::SharedLowRank { rank },
        "diagonal" => Noise::Diagonal,
        other => return Err(format!("noise must be full, shared or diagonal: {other}").into()),
    };
    let started = Instant::now();
    let run = make_run(Path::new(dir), noise, examples, classes)?;
    write_predictions(&run, noise, examples, classes)?;
    say("made", started)?;

    let mut covariances = Covariances::open(&run, Split::Test)?;
    let started = Instant::now();
    let pairs = covariances.top_pairs(10, &mut |_| {})?;
    say("pairs", started)?;
    let started = Instant::now();
    let predicted = covariances.predicted(&mut |_| {})?;
    let mut ties = 0;
    covariances.ties(&predicted, Measure::Raw, 10, &mut |_| {}, &mut |example| {
        ties += example.ties.len();
        Ok(())
    })?;
    say("ties", started)?;
    let started = Instant::now();
    let comparison = covariances.against(&predicted, &run, Measure::Raw, &mut |_| {})?;
    say("against", started)?;
    writeln!(
        io::stdout(),
        "{} pairs, the first {:?}; {ties} ties; {} examples judged",
        pairs.by_centred.len(),
        pairs.by_centred.first(),
        comparison.examples
    )?;
    Ok(())
}

fn say(what: &str, started: Instant) -> io::Result<()> {
    let seconds = started.elapsed().as_secs_f64();
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("").trim();
    writeln!(io::stdout(), "{{\"step\":{what:?},\"seconds\":{seconds:.2},\"peak\":{peak:?}}}")
}

fn make_run(
    dir: &Path,
    noise: Noise,
    examples: usize,
    classes: usize,
) -> Result<RunDir, Box<dyn Error>> {
    let info = RunInfo {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: 0,
        fingerprint: "made up".to_string(),
        link: Link::Softmax,
        noise,
        class_names: (0..classes).map(|class| format!("class {class}")).collect(),
        input_shape: vec![1],
        feature_names: None,
        examples: SplitCounts { train: 0, validation: 0, test: examples },
        set_aside: vec![],
        pretrained: None,
    };
    let run = RunDir::create(dir, &CreateRun { recipe: String::new(), info })?;
    run.write_examples((0..examples).map(|at| ExampleRow {
        id: at.to_string(),
        split: Split::Test,
        label: Some(vec![(at % classes) as u32]),
        clean_label: None,
    }))?;
    Ok(run)
}

/// Straight to the disk: the file may be larger than the memory.
fn write_predictions(run: &RunDir, noise: Noise, n: usize, k: usize) -> Result<(), Box<dyn Error>> {
    let mut tensors = vec![("log_probs", vec![n, k]), ("mean", vec![n, k])];
    tensors.push(("diag_scale", vec![n, k]));
    let rank = match noise {
        Noise::None | Noise::Diagonal => 0,
        Noise::LowRank { rank } => {
            tensors.push(("loadings", vec![n, k, rank]));
            rank
        }
        Noise::SharedLowRank { rank } => {
            tensors.extend([("loading_scale", vec![n, k]), ("shared_loadings", vec![k, rank])]);
            rank
        }
    };
    let metadata = serde_json::json!({ "classes": k, "rank": rank, "temperature": 0.5 });
    let mut header = serde_json::json!({ "__metadata__": { "aleator": metadata.to_string() } });
    let mut end = 0;
    for (name, shape) in &tensors {
        let start = end;
        end += 4 * shape.iter().product::<usize>();
        header[*name] =
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, end] });
    }
    let header = header.to_string();
    let mut out = BufWriter::new(File::create(run.predictions_path(Split::Test))?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut state = 1_u64;
    for (_, shape) in &tensors {
        for _ in 0..shape.iter().product::<usize>() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
            out.write_all(&value.to_le_bytes())?;
        }
    }
    Ok(out.flush()?)
}
