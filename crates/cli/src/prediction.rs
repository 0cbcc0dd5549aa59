//! `aleator predict`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use aleator_data::inputs::Opened;
use aleator_data::{DataSet, Ids, InputShape, Inputs};
use aleator_metrics::Calibration;
use aleator_run::recipe::InputSource;
use aleator_train::{Job, Predicted, Predictor, load_run};
use anyhow::{Result, bail};
use clap::Args;

use crate::progress::Progress;

/// Arguments of `aleator predict`.
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// A trained run
    dir: PathBuf,
    /// Embeddings or images of the kind that the run was trained on
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Examples that are predicted together.
const BATCH: usize = 512;

/// `aleator predict`.
pub fn predict(args: &PredictArgs) -> Result<()> {
    let (run, resolved) = load_run(&args.dir)?;
    let recipe = &resolved.recipe;
    let data = DataSet::open(&recipe.data, recipe.head.link)?;
    let never = AtomicBool::new(false);
    let seed = run.info().seed;
    let job = Job { run: &run, recipe, seed, data: &data, stop: &never };
    let calibrated = run.path().join("calibration.json").exists();
    let calibration: Option<Calibration> =
        if calibrated { Some(run.read_json("calibration.json")?) } else { None };
    let mut progress = Progress::new("", false);
    let predictor = Predictor::new(&job, calibration, &mut |event| progress.show(event))?;
    let mut out = io::stdout().lock();
    if !args.json {
        writeln!(out, "{HEADER}")?;
    }
    for file in &args.files {
        let opened = open(file, data.shape, recipe.data.image_size)?;
        let ids = match opened.ids {
            Some(names) => Ids::named(names, file)?,
            None => Ids::Rows(opened.inputs.len()),
        };
        for start in (0..opened.inputs.len()).step_by(BATCH) {
            let rows = start..opened.inputs.len().min(start + BATCH);
            let name = |row: usize| ids.name(row).to_string();
            for predicted in predictor.predict(&opened.inputs, rows, name, |row| ids.key(row))? {
                write(&mut out, &predicted, args.json)?;
            }
        }
    }
    Ok(())
}

fn open(file: &PathBuf, shape: InputShape, image_size: Option<usize>) -> Result<Opened> {
    let source = match shape {
        InputShape::Features(_) => InputSource::Features(file.display().to_string()),
        InputShape::Image { .. } => InputSource::Images(file.clone()),
    };
    let opened = Inputs::open(&source, image_size)?;
    let found = opened.inputs.shape();
    if found != shape {
        bail!("{}: the run was trained on {shape}, and these are {found}", file.display());
    }
    Ok(opened)
}

const HEADER: &str = "id\tclass\tprobability\tspread\tentropy\tmay be confused with";

fn write(out: &mut impl Write, predicted: &Predicted, json: bool) -> Result<()> {
    if json {
        writeln!(out, "{}", serde_json::to_string(predicted)?)?;
        return Ok(());
    }
    let join = |parts: Vec<String>| if parts.is_empty() { "–".into() } else { parts.join(", ") };
    let classes = predicted.classes.iter();
    let names = join(classes.clone().map(|chance| chance.class.clone()).collect());
    let probs = join(classes.clone().map(|chance| format!("{:.4}", chance.probability)).collect());
    let spreads = join(classes.map(|chance| format!("{:.4}", chance.spread)).collect());
    let confused = predicted.confused_with.iter();
    let confused = join(
        confused.map(|it| format!("{} ({:.0} %)", it.class, 100.0 * it.flip_probability)).collect(),
    );
    let (id, entropy) = (&predicted.id, predicted.entropy);
    writeln!(out, "{id}\t{names}\t{probs}\t{spreads}\t{entropy:.4}\t{confused}")?;
    Ok(())
}
