//! `aleator predict`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use aleator::train::ExamplePrediction;
use aleator::{Event, Examples, PredictionColumns, Predictor, Watch, write_json_line};
use anyhow::{Result, ensure};
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::output::{line, text};
use crate::progress::shown;
use crate::values::whole;

/// Arguments of `aleator predict`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct PredictArgs {
    /// A trained run, runs of several seeds, or an ensemble
    dir: PathBuf,
    /// Embeddings or images of the kind that the run was trained on
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write all probabilities to a file: .csv, .parquet, .jsonl, or .npy for the matrix [N, K]
    /// with the names of its columns in a .json file beside it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Give the K most probable classes
    #[arg(long, value_name = "K", value_parser = whole(1..=usize::MAX))]
    top: Option<usize>,
    /// Give all probabilities of the true class too, with the noise of the labels taken out; a
    /// .npy file then has these alone
    #[arg(long = "true")]
    truth: bool,
    /// Predict given that this class is on in every example; may be repeated. For a multilabel
    /// run of a joint likelihood, which has learned what labels go together
    #[arg(long, value_name = "CLASS")]
    on: Vec<String>,
    /// Predict given that this class is off in every example; may be repeated
    #[arg(long, value_name = "CLASS")]
    off: Vec<String>,
    #[command(flatten)]
    checkpoint: CheckpointArg,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Two probabilities are given. `probability` is that of the label: what an annotator like those of \
the training data would say. `true_probability` is that of the true class, with the noise of the \
labels taken out. `spread` is how far the noise moves a probability, `entropy` how undecided the \
probabilities are, in nats.

A multilabel run with head.likelihood = \"joint\" also gives the most probable set of labels and the \
probability that exactly these are on. With --on and --off all of this is given those labels, and \
`known_probability` is the probability of these labels themselves.

Examples:
  aleator predict run new.npy                         a line for each example
  aleator predict run new.npy --top 5                 its five most probable classes
  aleator predict run new.npy --out p.parquet         every probability, in columns p:CLASS
  aleator predict run new.npy --out p.npy --true      the matrix [N, K] of the true class
  aleator predict runs/three photos --out p.csv       by the ensemble of several seeds
  aleator predict run new.npy --on beach --off urban  given two labels, of a joint likelihood";

/// `aleator predict`.
pub fn predict(args: &PredictArgs, quiet: bool) -> Result<()> {
    let columns = PredictionColumns { top: args.top, truth: args.truth };
    let predictor = Predictor::open_at(&args.dir, args.checkpoint.step)?;
    let predictor = predictor.given(&args.on, &args.off)?;
    predictor.check_columns(args.out.as_deref(), &columns)?;
    // All files are opened before anything is printed.
    let files = args.files.iter().map(|file| predictor.examples(file));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    match &args.out {
        Some(out) => write_file(&predictor, &files, out, &columns, quiet),
        None => print(&predictor, &files, &columns, args.json, quiet),
    }
}

fn write_file(
    predictor: &Predictor,
    files: &[Examples],
    out: &Path,
    columns: &PredictionColumns,
    quiet: bool,
) -> Result<()> {
    let written = shown(quiet, |watch| predictor.write(files, out, columns, watch))?;
    let classes = predictor.class_names().len();
    let by = match predictor.checkpoint() {
        Some(step) => format!(", by the checkpoint of step {step}"),
        None => String::new(),
    };
    line(format_args!(
        "{} examples, {classes} classes{by}: written to {}",
        written.examples,
        out.display()
    ))?;
    match written.names {
        Some(names) => line(format_args!("the names of its columns are in {}", names.display())),
        None => Ok(()),
    }
}

fn print(
    predictor: &Predictor,
    files: &[Examples],
    columns: &PredictionColumns,
    json: bool,
    quiet: bool,
) -> Result<()> {
    // On a terminal the lines themselves show how far the work is.
    let quiet = quiet || io::stdout().is_terminal();
    let total = files.iter().map(Examples::len).sum();
    let predict_all = |watch: &mut Watch<'_>| -> Result<()> {
        if !json {
            line(header(predictor, columns.truth))?;
        }
        let (mut done, mut damaged) = (0, 0);
        for piece in files.iter().flat_map(|examples| predictor.predict_pieces(examples)) {
            let piece = piece?;
            piece.damaged.iter().for_each(|image| watch.event(Event::Warning(&image.to_string())));
            damaged += piece.damaged.len();
            done += piece.len();
            if let Some(piece) = &piece.prediction {
                for row in 0..piece.len() {
                    if json {
                        let mut json = vec![];
                        write_json_line(&mut json, piece, row, columns)?;
                        text(String::from_utf8_lossy(&json))?;
                        continue;
                    }
                    let truth = piece.true_probabilities(row).filter(|_| columns.truth);
                    let described = piece.describe(row, columns.top);
                    line(in_words(&described, truth.as_deref()))?;
                }
            }
            watch.event(Event::Progress { what: "examples", done, total });
        }
        ensure!(damaged < total, "none of the {total} images can be decoded");
        Ok(())
    };
    shown(quiet, |watch| Ok(predict_all(watch)))?
}

fn header(predictor: &Predictor, truth: bool) -> String {
    let mut names = vec!["id", "class", "probability", "spread", "entropy"];
    if predictor.knows_sets() {
        names.extend(["most probable set", "its probability"]);
    }
    if predictor.is_given_labels() {
        names.push("probability of the known labels");
    }
    if predictor.knows_true_class() {
        names.extend(["true class", "true probability"]);
    }
    names.push("may be confused with");
    if truth {
        names.push("probabilities of the true class");
    }
    names.extend(predictor.checkpoint().map(|_| "checkpoint"));
    names.join("\t")
}

/// A line with tabs.
fn in_words(predicted: &ExamplePrediction, truth: Option<&[f32]>) -> String {
    let join = |parts: Vec<String>| if parts.is_empty() { "–".into() } else { parts.join(", ") };
    let classes = predicted.classes.iter();
    let mut cells = vec![
        predicted.id.clone(),
        join(classes.clone().map(|chance| chance.class.clone()).collect()),
        join(classes.clone().map(|chance| format!("{:.4}", chance.probability)).collect()),
        join(classes.map(|chance| format!("{:.4}", chance.spread)).collect()),
        format!("{:.4}", predicted.entropy),
    ];
    cells.extend(predicted.most_probable_set.clone().map(join));
    let chances = predicted.set_probability.into_iter().chain(predicted.known_probability);
    cells.extend(chances.map(|probability| format!("{probability:.4}")));
    if let (Some(class), Some(probability)) = (&predicted.true_class, predicted.true_probability) {
        cells.extend([class.clone(), format!("{probability:.4}")]);
    }
    let confused = predicted.confused_with.iter();
    cells.push(join(
        confused.map(|it| format!("{} ({:.0} %)", it.class, 100.0 * it.flip_probability)).collect(),
    ));
    cells.extend(truth.map(|all| join(all.iter().map(|prob| format!("{prob:.4}")).collect())));
    cells.extend(predicted.checkpoint.map(|step| step.to_string()));
    cells.join("\t")
}
