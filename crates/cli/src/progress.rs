//! What a user sees while the program works: a bar in a terminal, plain lines in a pipe.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use aleator::train::{Event as TrainEvent, StepReport};
use aleator::{Event, Watch};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;

/// Runs a workflow with progress on standard error; Ctrl-C makes it save and stop.
pub fn watched<T>(
    quiet: bool,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, aleator::Error>,
) -> Result<T> {
    follow(interrupt::flag()?, quiet, work)
}

/// Runs work that has nothing to save, with progress on standard error; Ctrl-C ends the program.
pub fn shown<T>(
    quiet: bool,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, aleator::Error>,
) -> Result<T> {
    follow(&AtomicBool::new(false), quiet, work)
}

fn follow<T>(
    stop: &AtomicBool,
    quiet: bool,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, aleator::Error>,
) -> Result<T> {
    let mut progress = Progress::new(quiet);
    Ok(work(&mut Watch::new(stop, |event| progress.show(event)))?)
}

/// Runs work that counts from any thread what is done, with progress on standard error.
pub fn counted<T>(
    what: &str,
    quiet: bool,
    work: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> T,
) -> T {
    let progress = Mutex::new(Progress::new(quiet));
    work(&|done, total| {
        if let Ok(mut progress) = progress.lock() {
            progress.show(Event::Progress { what, done, total });
        }
    })
}

/// Prints a line to stderr; a closed stderr is not an error.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Shows the events of a workflow on standard error.
struct Progress {
    display: Display,
    /// The prefix of the current run: "seed-1: ".
    prefix: String,
    /// What is counted now, since when, from which count on, and how far.
    counted: String,
    started: Instant,
    first: usize,
    done: usize,
    averages: Averages,
    epochs: usize,
    total_steps: usize,
    damaged: bool,
}

enum Display {
    Bar(ProgressBar),
    Lines { last: Instant },
    Silent,
}

/// Loss and accuracy averaged over about the last fifty steps; a single batch is too noisy.
#[derive(Default)]
struct Averages {
    weight: f64,
    loss: f64,
    accuracy: f64,
}

const MEMORY: f64 = 0.98;

/// The shortest time between two plain lines, apart from those of epochs.
const PAUSE: Duration = Duration::from_secs(10);

const TEMPLATE: &str = "{prefix}{bar:30} {percent:>3} %  {msg}  {eta} left";

impl Averages {
    fn add(&mut self, report: &StepReport) {
        self.weight = MEMORY * self.weight + 1.0;
        self.loss += (report.loss - self.loss) / self.weight;
        self.accuracy += (report.accuracy - self.accuracy) / self.weight;
    }
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let display = if quiet {
            Display::Silent
        } else if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template(TEMPLATE);
            let bar = ProgressBar::new(0);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            Display::Bar(bar)
        } else {
            Display::Lines { last: Instant::now() }
        };
        Self {
            display,
            prefix: String::new(),
            counted: String::new(),
            started: Instant::now(),
            first: 0,
            done: 0,
            averages: Averages::default(),
            epochs: 0,
            total_steps: 0,
            damaged: false,
        }
    }

    fn show(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Training { .. }) {
            self.prefix.clear();
        }
        match event {
            Event::Training { run, event } => {
                let prefix = if run.is_empty() { String::new() } else { format!("{run}: ") };
                if prefix != self.prefix {
                    (self.prefix, self.counted) = (prefix, String::new());
                    (self.averages, self.damaged) = (Averages::default(), false);
                }
                self.training(event);
            }
            Event::Progress { what, done, total } => {
                self.advance(what, done, total, |rate| {
                    format!("{done}/{total} {what}  {rate:.0}/s")
                });
            }
            Event::Choice(text) | Event::Note(text) => self.say(text),
            Event::Warning(text) => self.warn(text),
        }
    }

    fn training(&mut self, event: TrainEvent<'_>) {
        match event {
            TrainEvent::Started { step, total_steps, steps_per_epoch, parameters } => {
                if self.damaged && step == 0 {
                    self.warn(
                        "there is no whole checkpoint before it: training from the beginning",
                    );
                }
                (self.epochs, self.total_steps) =
                    (total_steps / steps_per_epoch.max(1), total_steps);
                let already = if step > 0 { format!(", from step {step}") } else { String::new() };
                let epochs = self.epochs;
                let steps = match steps_per_epoch {
                    1 => format!("at most {epochs} steps on all examples"),
                    _ => format!("{epochs} epochs of {steps_per_epoch} steps"),
                };
                self.say(&format!("{parameters} parameters, {steps}{already}"));
                self.count("steps", step);
            }
            TrainEvent::Opened { .. } => {}
            TrainEvent::Checking { done, total } => {
                self.advance("images", done, total, |rate| {
                    format!("decoding every image once: {done}/{total}  {rate:.0}/s")
                });
            }
            TrainEvent::SetAside(examples) => self.set_aside(examples),
            TrainEvent::Note(note) => self.say(note),
            TrainEvent::Warning(warning) => self.warn(warning),
            TrainEvent::Damaged(error) => {
                self.damaged = true;
                self.warn(&format!("passing over a damaged checkpoint: {error}"));
            }
            TrainEvent::Trial { done, nll } => {
                if let Display::Bar(bar) = &self.display {
                    bar.set_message(format!(
                        "choosing settings: trial {done}, held-out NLL {nll:.4}"
                    ));
                }
            }
            TrainEvent::Tuned(tuning) => self.say(&tuning.to_string()),
            TrainEvent::Step { step, examples, report } => self.step(step, examples, &report),
            TrainEvent::Epoch { epoch, nll, top1, best } => {
                let mark = if best { " *" } else { "" };
                self.say(&format!(
                    "epoch {epoch:>3}/{}  loss {:.4}  validation NLL {nll:.4}  top-1 {:.2} %{mark}",
                    self.epochs,
                    self.averages.loss,
                    100.0 * top1,
                ));
            }
            TrainEvent::StoppedEarly { epoch } => self.say(&format!(
                "stopped early after epoch {epoch}: the validation NLL no longer falls"
            )),
            TrainEvent::Evaluating { split, done, total } => {
                if let Display::Bar(bar) = &self.display {
                    let message = format!("evaluating {split}: {done}/{total}");
                    bar.set_message(if done < total { message } else { String::new() });
                }
            }
        }
    }

    fn step(&mut self, step: usize, examples: usize, report: &StepReport) {
        self.averages.add(report);
        let (loss, accuracy) = (self.averages.loss, 100.0 * self.averages.accuracy);
        let total = self.total_steps;
        self.advance("steps", step, total, |rate| {
            let rate = rate * examples as f64;
            format!("step {step}/{total}  loss {loss:.4}  accuracy {accuracy:.1} %  {rate:.0} examples/s")
        });
    }

    fn set_aside(&mut self, examples: &[aleator::run::SetAside]) {
        const SHOWN: usize = 5;
        let shown =
            examples.iter().take(SHOWN).map(|one| format!("\n  {}: {}", one.id, one.reason));
        let more = match examples.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more, in run.json"),
        };
        let (s, are) = if examples.len() == 1 { ("", "is") } else { ("s", "are") };
        self.warn(&format!(
            "{} image{s} that cannot be decoded {are} left out:{}{more}",
            examples.len(),
            shown.collect::<String>()
        ));
    }

    /// Starts to count something, of which `first` are done already.
    fn count(&mut self, what: &str, first: usize) {
        (self.counted, self.first, self.started) = (what.to_string(), first, Instant::now());
        if let Display::Bar(bar) = &self.display {
            bar.set_prefix(self.prefix.clone());
            bar.set_position(first as u64);
            bar.reset_eta();
        }
    }

    /// Shows how far the work is; `text` gets the count per second.
    fn advance(&mut self, what: &str, done: usize, total: usize, text: impl Fn(f64) -> String) {
        if self.counted != what || done < self.done {
            self.count(what, done.min(total));
        }
        self.done = done;
        let elapsed = self.started.elapsed().as_secs_f64();
        let new = done.saturating_sub(self.first);
        let rate = if elapsed > 0.0 { new as f64 / elapsed } else { 0.0 };
        match &mut self.display {
            Display::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message(text(rate));
            }
            Display::Lines { last } if new > 0 && last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let left = elapsed * total.saturating_sub(done) as f64 / new as f64;
                self.say(&format!("{}  {left:.0} s left", text(rate)));
            }
            Display::Lines { .. } | Display::Silent => {}
        }
    }

    fn warn(&self, warning: &str) {
        self.say_always(&format!("warning: {warning}"));
    }

    fn say(&self, line: &str) {
        if !matches!(self.display, Display::Silent) {
            self.say_always(line);
        }
    }

    /// Shown even when progress is not.
    fn say_always(&self, line: &str) {
        let line = format!("{}{line}", self.prefix);
        match &self.display {
            Display::Bar(bar) => bar.suspend(|| tell(&line)),
            Display::Lines { .. } | Display::Silent => tell(&line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
    }
}
