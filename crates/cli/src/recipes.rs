//! `aleator recipes`.

use std::io::{self, Write};

use aleator_run::{Document, presets};
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
    /// Print a preset, to be copied and changed
    Show {
        /// Its name
        name: String,
    },
}

/// `aleator recipes`.
pub fn run(args: &RecipesArgs) -> Result<()> {
    let mut out = io::stdout().lock();
    if let Some(RecipesCommand::Show { name }) = &args.command {
        out.write_all(Document::preset(name)?.to_toml().as_bytes())?;
        return Ok(());
    }
    let width = presets().iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    for preset in presets() {
        writeln!(out, "{:<width$}  {}", preset.name, preset.summary)?;
    }
    writeln!(
        out,
        "\n`aleator recipes show NAME` prints one; `aleator train NAME --set …` runs it."
    )?;
    Ok(())
}
