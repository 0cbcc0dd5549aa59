//! `aleator recipes`.

use aleator::report::table::columns::lines;
use aleator::run::{Document, Preset, paper_recipes, presets};
use aleator::{KnownShape, ModelSize, count_parameters};
use anyhow::Result;
use clap::{Args, Subcommand};

use crate::output::{line, table, text};
use crate::values::whole;

/// Arguments of `aleator recipes`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct RecipesArgs {
    #[command(subcommand)]
    command: Option<RecipesCommand>,
    /// Count the parameters of a recipe's model, without training or making it
    #[arg(long, value_name = "NAME")]
    parameters: Option<String>,
    /// The number of classes, where there are no data to count them in
    #[arg(long, value_name = "K", requires = "parameters", value_parser = whole(2..=1 << 24))]
    classes: Option<usize>,
    /// The numbers of an example, for recipes of embeddings whose data are not there
    #[arg(long, value_name = "D", requires = "parameters", value_parser = whole(1..=1 << 32))]
    features: Option<usize>,
    /// Set a key of the recipe, as in --set head.rank=6; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "parameters")]
    set: Vec<String>,
}

const AFTER_HELP: &str = "\
Examples:
  aleator recipes                                   all recipes
  aleator recipes show features-full                one of them, as a start for your own
  aleator recipes --parameters imagenet21k/shared --classes 21843
  aleator recipes --parameters features-full --set head.rank=15 --classes 10 --features 768";

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
    if let Some(name) = &args.parameters {
        let known = KnownShape { classes: args.classes, features: args.features };
        return print_size(name, &count_parameters(name, &args.set, known)?);
    }
    let all: Vec<Preset> = presets().into_iter().chain(paper_recipes()).collect();
    if let Some(RecipesCommand::Show { name }) = &args.command {
        let preset = all.iter().find(|preset| preset.name == name);
        if let Some(tasks) = preset.filter(|preset| preset.is_tasks()) {
            return text(tasks.text);
        }
        let document = Document::preset(name)?;
        let own = preset.map_or("", |preset| preset.text);
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
    line(
        "\n`aleator recipes show NAME` prints one; `aleator train NAME --set …` runs it; `aleator",
    )?;
    line("recipes --parameters NAME` counts its parameters.")
}

/// The parameters of each part of a model.
fn print_size(name: &str, size: &ModelSize) -> Result<()> {
    let ModelSize { input, classes, counts } = size;
    line(format_args!("{name}: {input}, {} classes\n", count(*classes)))?;
    let parts = [
        ("network", Some(counts.network)),
        ("mean", Some(counts.mean)),
        ("d(x)", Some(counts.diag_scale)),
        ("V", Some(counts.loadings)),
        ("v(x)", Some(counts.loading_scale)),
        ("temperature", Some(counts.temperature).filter(|learned| *learned > 0)),
        ("total", counts.total()),
    ];
    let row = |(part, number): (&str, Option<usize>)| Some(vec![part.to_string(), count(number?)]);
    table(&["", "parameters"], &parts.into_iter().filter_map(row).collect::<Vec<_>>(), &[0])
}

/// 193,497,199.
fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
