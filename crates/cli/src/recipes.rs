//! `aleator recipes`.

use aleator::report::table::columns::lines;
use aleator::run::{Document, Preset, paper_recipes, presets};
use anyhow::Result;
use clap::{Args, Subcommand};

use crate::output::{line, text};

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
    let all: Vec<Preset> = presets().into_iter().chain(paper_recipes()).collect();
    if let Some(RecipesCommand::Show { name }) = &args.command {
        let document = Document::preset(name)?;
        let own = all.iter().find(|preset| preset.name == name).map_or("", |preset| preset.text);
        own.lines().take_while(|line| line.starts_with('#')).try_for_each(line)?;
        return text(format_args!("\n{}", document.to_toml()));
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|preset| vec![preset.name.to_string(), preset.summary.to_string()])
        .collect();
    let mut folder = None;
    for (preset, row) in all.iter().zip(lines(&[], &rows, &[0, 1])) {
        if preset.folder() != folder {
            folder = preset.folder();
            line(format_args!("\n{}", heading(folder.unwrap_or_default())))?;
        }
        line(row)?;
    }
    line("\n`aleator recipes show NAME` prints one; `aleator train NAME --set …` runs it.")
}

/// What the recipes of a directory are.
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
