//! `aleator doctor`: what is in some data, and what is wrong with it.

use std::path::PathBuf;

use aleator::data::examine_columns;
use anyhow::Result;
use clap::Args;

use crate::output::{line, text};
use crate::progress::counted;
use crate::recipe_args::ColumnArgs;

/// Arguments of `aleator doctor`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct DoctorArgs {
    /// A table, a folder of images, a manifest, shards, Parquet, CIFAR or IDX files, or embeddings
    data: PathBuf,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Reads and decodes everything once, and says: how the data would be read, how many examples of \
which classes, sizes of images, scales of features, files that cannot be decoded, duplicate files \
(with other labels, or in two splits), labels that occur once. Changes nothing.

Examples:
  aleator doctor photos
  aleator doctor 'shards/train-{0000..0099}.tar'
  aleator doctor embeddings.npy --json";

/// `aleator doctor`.
pub fn doctor(args: &DoctorArgs, quiet: bool) -> Result<()> {
    let columns = args.columns.names();
    let diagnosis =
        counted("examples", quiet, |count| examine_columns(&args.data, &columns, count))?;
    if args.json {
        return line(serde_json::to_string_pretty(&diagnosis)?);
    }
    text(diagnosis)
}
