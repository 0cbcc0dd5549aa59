//! `aleator predict`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_data::inputs::Opened;
use aleator_data::{Ids, InputShape, Inputs};
use aleator_run::recipe::{Framing, InputSource};
use aleator_train::{Predicted, Predictor, load_run};
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
    let mut progress = Progress::new("", false);
    let predictor = Predictor::new(&run, recipe, &mut |event| progress.show(event))?;
    let mut inputs = vec![];
    for file in &args.files {
        inputs.push((file, open(file, predictor.shape(), &recipe.data.framing)?));
    }
    let mut out = io::stdout().lock();
    if !args.json {
        writeln!(out, "{HEADER}")?;
    }
    for (file, opened) in inputs {
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

fn open(file: &Path, shape: InputShape, framing: &Framing) -> Result<Opened> {
    let source = match shape {
        InputShape::Features(_) => InputSource::Features(file.display().to_string()),
        InputShape::Image { .. } => InputSource::images(file),
    };
    let opened = Inputs::open_unlabelled(&source, framing)?;
    let found = opened.inputs.shape();
    if found != shape {
        bail!("{}: the run was trained on {shape}, and these are {found}", file.display());
    }
    if let InputShape::Features(width) = shape {
        check_finite(file, &opened.inputs, width)?;
    }
    Ok(opened)
}

/// Refuses numbers that no model can answer for.
fn check_finite(file: &Path, inputs: &Inputs, width: usize) -> Result<()> {
    let mut example = vec![0.0; width];
    for row in 0..inputs.len() {
        inputs.read(row, &mut example)?;
        if let Some(column) = example.iter().position(|value| !value.is_finite()) {
            bail!(
                "{}: row {row}, column {column} is {}; every number must be finite: remove the \
                 row or replace the number",
                file.display(),
                example[column]
            );
        }
    }
    Ok(())
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
