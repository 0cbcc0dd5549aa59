//! `aleator review`: a page on this computer to decide on the labels that an audit suspects.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aleator::report::audit::{Acceptance, SampledCount};
use aleator::review::{Pictures, Progress, Server, Session};
use aleator::run::Link;
use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::interrupt;
use crate::output::line;
use crate::progress::tell;
use crate::values::threshold;

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
    /// Accept suggestions that are at least this probable without looking at them, write
    /// corrected.csv, pruned.csv and weights.csv, and end
    #[arg(long, value_name = "P", value_parser = threshold)]
    #[arg(conflicts_with_all = ["images", "port", "open", "export"])]
    accept: Option<f64>,
}

const AFTER_HELP: &str = "\
Shows the labels that an audit suspects one at a time, with the picture, the given and the \
suggested label. One key decides: A accepts the suggestion, K keeps the label, C takes another \
class, M marks it as ambiguous, U undoes the last decision; ? lists all keys.

Every decision is in DIR/decisions.jsonl before the next label is shown, so nothing is lost \
whatever happens; the same command continues where you stopped. The outcome is DIR/corrected.csv: \
all labels, with yours in place of the wrong ones. Ambiguous ones keep their label and are listed \
in DIR/ambiguous.csv. DIR/verified.csv has only the examples that you decided about, for training \
methods that learn from them (aleator recipes show features-cleannet).

How many labels are wrong can be counted from what you decide: choose a random sample on the page. \
The labels that are most surely wrong, decided first, tell nothing about the others.

--accept P decides without you: DIR/corrected.csv has the suggestions that are at least P probable, \
DIR/pruned.csv leaves out the labels that are wrong with at least P, and DIR/weights.csv weights \
every label by the probability that it is right. What you decided stays as you decided it, and what \
you decide later too; another P takes the place of the first.

The page is served to this computer alone, at an address that nobody can guess. On another \
machine, forward the port: ssh -L 8000:127.0.0.1:8000 MACHINE aleator review DIR --port 8000

Examples:
  aleator review audit
  aleator review audit --open
  aleator review audit --images photos     look at the photos that embeddings were made from
  aleator review audit --export
  aleator review audit --accept 0.95
  aleator train RECIPE --set data.train.labels=audit/corrected.csv";

/// `aleator review`.
pub fn review(args: &ReviewArgs) -> Result<()> {
    if let Some(threshold) = args.accept {
        return accept(&args.audit, threshold);
    }
    let session = Session::open(&args.audit)?;
    session.notes().iter().for_each(|note| tell(&format!("note: {note}")));
    if args.export {
        return conclude(&args.audit, &session);
    }
    let pictures = Pictures::of_audit(&args.audit, session.audit(), args.images.as_deref());
    let pictures = pictures.map_err(|message| anyhow!(message))?;
    if let Some(reason) = pictures.absence() {
        tell(&format!("no pictures: {reason}"));
    }
    let server = Server::bind(args.port)?;
    let stop = interrupt::flag()?;
    let Progress { suspects, suspects_decided, .. } = session.progress();
    tell(&session.audit().summary.wrong_in_words());
    tell(&format!("{suspects_decided} of {suspects} suspects decided; Ctrl-C ends the review"));
    line(server.url())?;
    io::stdout().flush()?;
    if args.open {
        open(&server, &args.audit);
    }
    let session = server.run(session, &pictures, stop)?;
    conclude(&args.audit, &session)
}

/// Accepts suggestions by their probability, and says what came of it.
pub fn accept(audit: &Path, threshold: f64) -> Result<()> {
    let mut session = Session::open(audit)?;
    session.accept_above(threshold);
    conclude(audit, &session)
}

/// Writes the files of a review, and says what is in them.
fn conclude(audit: &Path, session: &Session) -> Result<()> {
    let record = session.write_corrected()?;
    let Progress { suspects, suspects_decided, corrected, kept, ambiguous, .. } =
        session.progress();
    if record.accept.is_none() || record.decided > 0 {
        line(format_args!(
            "{suspects_decided} of {suspects} suspects decided: {corrected} corrected, {kept} \
             kept, {ambiguous} ambiguous"
        ))?;
    }
    record.count.iter().try_for_each(sampled)?;
    let file = |name: &str| audit.join(name).display().to_string();
    match record.accept {
        Some(accept) => accepted(accept, session, &file)?,
        None => line(format_args!("written: {}", file("corrected.csv")))?,
    }
    line(format_args!("train on it: --set data.train.labels={}", file("corrected.csv")))
}

/// How many labels are wrong by a sample of them.
fn sampled(count: &SampledCount) -> Result<()> {
    let SampledCount { count, low, high, sampled, to_halve } = count;
    let more = to_halve.map_or(String::new(), |more| {
        format!("; about {more} more labels would halve the interval")
    });
    line(format_args!(
        "about {count:.0} labels are wrong by {sampled} of a random sample; between {low:.0} and \
         {high:.0} (95 %){more}"
    ))
}

/// What was accepted and left out, and where it is.
fn accepted(accept: Acceptance, session: &Session, file: &dyn Fn(&str) -> String) -> Result<()> {
    let Acceptance { threshold, accepted, pruned } = accept;
    let summary = &session.audit().summary;
    line(format_args!(
        "{accepted} suggestions with a probability of at least {threshold} accepted: {}",
        file("corrected.csv")
    ))?;
    line(format_args!(
        "{pruned} of {} examples left out, whose label is wrong with at least {threshold}: {}",
        summary.examples,
        file("pruned.csv")
    ))?;
    match summary.link {
        Link::Softmax => line(format_args!(
            "every label weighted by the probability that it is right: {}",
            file("weights.csv")
        )),
        Link::Sigmoid => line(
            "no weights.csv: where classes are on or off, examples have no weights in training",
        ),
    }
}

/// Asks the system for its browser. Where there is none, the address stands in the terminal. It is
/// not on the command line of the browser, which other users can see.
fn open(server: &Server, audit: &Path) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let opened = server.write_opening_page(audit).map_err(anyhow::Error::from).and_then(|page| {
        let mut command = Command::new(program);
        command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context(program)
    });
    if let Err(error) = opened {
        tell(&format!("no browser could be opened ({error:#}); open the address yourself"));
    }
}
