//! `aleator review`: a page on this computer to decide on the labels that an audit suspects.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aleator::review::{Pictures, Progress, Server, Session};
use anyhow::{Result, anyhow};
use clap::Args;

use crate::interrupt;
use crate::output::line;
use crate::progress::tell;

/// Arguments of `aleator review`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct ReviewArgs {
    /// The directory of a finished audit
    #[arg(value_name = "DIR")]
    audit: PathBuf,
    /// The images that the audited features were made from, to look at: a folder, a manifest,
    /// shards, Parquet
    #[arg(long, value_name = "DATA")]
    images: Option<PathBuf>,
    /// The port to listen on [default: one that is free]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Write corrected.csv from the decisions so far, and end
    #[arg(long, conflicts_with_all = ["images", "port", "open"])]
    export: bool,
}

const AFTER_HELP: &str = "\
Shows the labels that an audit suspects one at a time, with the picture, the given and the \
suggested label. One key decides: A accepts the suggestion, K keeps the label, C takes another \
class, M marks it as ambiguous, U undoes the last decision; ? lists all keys.

Every decision is in DIR/decisions.jsonl before the next label is shown, so nothing is lost \
whatever happens; the same command continues where you stopped. The outcome is DIR/corrected.csv: \
all labels, with yours in place of the wrong ones. Ambiguous ones keep their label and are listed \
in DIR/ambiguous.csv.

The page is served to this computer alone, at an address that nobody can guess. On another \
machine, forward the port: ssh -L 8000:127.0.0.1:8000 MACHINE aleator review DIR --port 8000

Examples:
  aleator review audit
  aleator review audit --open
  aleator review audit --images photos     look at the photos that embeddings were made from
  aleator review audit --export
  aleator train RECIPE --set data.train.labels=audit/corrected.csv";

/// `aleator review`.
pub fn review(args: &ReviewArgs) -> Result<()> {
    let session = Session::open(&args.audit)?;
    session.notes().iter().for_each(|note| tell(&format!("note: {note}")));
    if args.export {
        session.write_corrected()?;
        return conclude(&args.audit, session.progress());
    }
    let pictures = Pictures::of_audit(&args.audit, session.audit(), args.images.as_deref());
    let pictures = pictures.map_err(|message| anyhow!(message))?;
    if let Some(reason) = pictures.absence() {
        tell(&format!("no pictures: {reason}"));
    }
    let server = Server::bind(args.port)?;
    let stop = interrupt::flag()?;
    let Progress { suspects, suspects_decided, .. } = session.progress();
    tell(&format!("{suspects_decided} of {suspects} suspects decided; Ctrl-C ends the review"));
    line(server.url())?;
    io::stdout().flush()?;
    if args.open {
        open(&server.url());
    }
    let session = server.run(session, &pictures, stop)?;
    conclude(&args.audit, session.progress())
}

fn conclude(audit: &Path, progress: Progress) -> Result<()> {
    let Progress { suspects, suspects_decided, corrected, kept, ambiguous, .. } = progress;
    let file = audit.join("corrected.csv");
    line(format_args!(
        "{suspects_decided} of {suspects} suspects decided: {corrected} corrected, {kept} kept, \
         {ambiguous} ambiguous\nwritten: {}\ntrain on it: --set data.train.labels={}",
        file.display(),
        file.display()
    ))
}

/// Asks the system for its browser. Where there is none, the address stands in the terminal.
fn open(url: &str) {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/c", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        tell(&format!(
            "no browser could be opened ({program}: {error}); open the address yourself"
        ));
    }
}
