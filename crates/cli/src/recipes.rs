//! `aleator recipes`.

use std::io::{self, Write};

use aleator::report::table::columns::lines;
use aleator::run::{Document, Preset, paper_recipes, presets};
use anyhow::Result;
use clap::{Args, Subcommand};

/// Arguments of `aleator recipes`.
#[derive(Args, Debug)]
pub struct RecipesArgs {
    #[command(subcommand)]
    command: Option<RecipesCommand>,
}

#[derive(Subcommand, Debug)]
enum RecipesCommand {
    /// Print a recipe with its bases merged in, as a start for your own
    Show {
        /// Its name
        name: String,
    },
}

/// `aleator recipes`.
pub fn run(args: &RecipesArgs) -> Result<()> {
    let mut out = io::stdout().lock();
    let all: Vec<Preset> = presets().into_iter().chain(paper_recipes()).collect();
    if let Some(RecipesCommand::Show { name }) = &args.command {
        let document = Document::preset(name)?;
        let text = all.iter().find(|preset| preset.name == name).map_or("", |preset| preset.text);
        for line in text.lines().take_while(|line| line.starts_with('#')) {
            writeln!(out, "{line}")?;
        }
        write!(out, "\n{}", document.to_toml())?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|preset| vec![preset.name.to_string(), preset.summary.to_string()])
        .collect();
    let mut folder = None;
    for (preset, line) in all.iter().zip(lines(&[], &rows, &[0, 1])) {
        if preset.folder() != folder {
            folder = preset.folder();
            writeln!(out, "\n{}", heading(folder.unwrap_or_default()))?;
        }
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "\n`aleator recipes show NAME` prints one; `aleator train NAME --set …` runs it."
    )?;
    Ok(())
}

/// What the recipes of a folder are.
fn heading(folder: &str) -> &str {
    match folder {
        "ilsvrc12" => "The paper's experiments: Imagenet ILSVRC12",
        "webvision" => "WebVision 1.0",
        "imagenet21k" => "Imagenet-21k, several classes each",
        "jft" => "JFT-300M, several classes each",
        "ensembles" => "Ensembles of four",
        "transfer" => "Transfer to other tasks",
        "small" => "Twins of the paper's experiments, for small images and two cores",
        other => other,
    }
}
