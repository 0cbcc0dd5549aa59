//! `aleator predict`.

use std::io::{self, Write};
use std::path::PathBuf;

use aleator::Predictor;
use aleator::train::ExamplePrediction;
use anyhow::Result;
use clap::Args;

use crate::progress::shown;

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

/// `aleator predict`.
pub fn predict(args: &PredictArgs, quiet: bool) -> Result<()> {
    let predictor = shown(quiet, |watch| Predictor::open(&args.dir, watch))?;
    // All files are opened before anything is printed.
    let files = args.files.iter().map(|file| predictor.examples(file));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut out = io::stdout().lock();
    if !args.json {
        writeln!(out, "{HEADER}")?;
    }
    for piece in files.iter().flat_map(|examples| predictor.predict_pieces(examples)) {
        let piece = piece?;
        for row in 0..piece.ids.len() {
            write(&mut out, &piece.describe(row), args.json)?;
        }
    }
    Ok(())
}

const HEADER: &str = "id\tclass\tprobability\tspread\tentropy\tmay be confused with";

fn write(out: &mut impl Write, predicted: &ExamplePrediction, json: bool) -> Result<()> {
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
