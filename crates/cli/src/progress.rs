//! What a person sees while the program works: a bar in a terminal, plain lines in a pipe.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aleator_run::SetAside;
use aleator_train::{Event, StepReport};
use indicatif::{ProgressBar, ProgressStyle};

/// Shows the events of training and evaluation on standard error.
pub struct Progress {
    name: String,
    style: Style,
    averages: Averages,
    steps_per_epoch: usize,
    total_steps: usize,
    passed_over: bool,
}

enum Style {
    Bar(ProgressBar),
    Lines { started: Instant, last: Instant, examples: usize, first_step: usize },
    Silent,
}

/// Loss and accuracy over about the last fifty steps; a single batch is too restless to read.
#[derive(Default)]
struct Averages {
    weight: f64,
    loss: f64,
    accuracy: f64,
}

const MEMORY: f64 = 0.98;

/// Plain lines come at most this often, beside those of epochs.
const PAUSE: Duration = Duration::from_secs(10);

impl Averages {
    fn add(&mut self, report: &StepReport) {
        self.weight = MEMORY * self.weight + 1.0;
        self.loss += (report.loss - self.loss) / self.weight;
        self.accuracy += (report.accuracy - self.accuracy) / self.weight;
    }
}

impl Progress {
    /// A bar if standard error is a terminal, else lines; nothing when `quiet`.
    pub fn new(name: &str, quiet: bool) -> Self {
        let now = Instant::now();
        let style = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Style::Silent,
            (false, true) => Style::Bar(ProgressBar::new(0)),
            (false, false) => Style::Lines { started: now, last: now, examples: 0, first_step: 0 },
        };
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        Self {
            name,
            style,
            averages: Averages::default(),
            steps_per_epoch: 1,
            total_steps: 0,
            passed_over: false,
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Started { step, total_steps, steps_per_epoch, parameters } => {
                (self.steps_per_epoch, self.total_steps) = (steps_per_epoch, total_steps);
                self.start(step, parameters);
            }
            Event::Opened { .. } => {}
            Event::Checking { done, total } => self.checking(done, total),
            Event::SetAside(examples) => self.set_aside(examples),
            Event::Warning(warning) => self.warn(warning),
            Event::Damaged(error) => {
                self.passed_over = true;
                self.warn(&format!("passing over a damaged checkpoint: {error}"));
            }
            Event::Step { step, examples, report } => self.step(step, examples, &report),
            Event::Epoch { epoch, nll, top1, best } => {
                let epochs = self.total_steps / self.steps_per_epoch.max(1);
                let mark = if best { " *" } else { "" };
                self.say(&format!(
                    "epoch {epoch:>3}/{epochs}  loss {:.4}  validation NLL {nll:.4}  top-1 {:.2} %{mark}",
                    self.averages.loss,
                    100.0 * top1,
                ));
            }
            Event::StoppedEarly { epoch } => {
                self.say(&format!(
                    "stopped early after epoch {epoch}: the validation NLL no longer falls"
                ));
            }
            Event::Evaluating { split, done, total } => self.evaluating(split, done, total),
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if let Style::Bar(bar) = self.style {
            bar.finish_and_clear();
        }
    }

    fn start(&mut self, step: usize, parameters: usize) {
        if self.passed_over && step == 0 {
            self.warn("no checkpoint can be used: training from the beginning");
        }
        let already = if step > 0 { format!(", from step {step}") } else { String::new() };
        let (epochs, total) = (self.total_steps / self.steps_per_epoch.max(1), self.total_steps);
        self.say(&format!(
            "{parameters} parameters, {epochs} epochs of {} steps{already}",
            self.steps_per_epoch
        ));
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_style(bar_style("{prefix}{bar:30} {percent:>3} %  {msg}  {eta} left"));
                bar.set_prefix(self.name.clone());
                bar.set_length(total as u64);
                bar.set_position(step as u64);
                bar.reset_eta();
            }
            Style::Lines { first_step, .. } => *first_step = step,
            Style::Silent => {}
        }
    }

    fn step(&mut self, step: usize, examples: usize, report: &StepReport) {
        self.averages.add(report);
        let (loss, accuracy) = (self.averages.loss, 100.0 * self.averages.accuracy);
        let total = self.total_steps;
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_position(step as u64);
                let rate = bar.per_sec() * examples as f64;
                bar.set_message(format!("loss {loss:.4}  accuracy {accuracy:.1} %  {rate:.0}/s"));
            }
            Style::Lines { started, last, examples: seen, first_step } => {
                *seen += examples;
                if last.elapsed() < PAUSE {
                    return;
                }
                *last = Instant::now();
                let elapsed = started.elapsed().as_secs_f64();
                let rate = *seen as f64 / elapsed;
                let left = elapsed * (total - step) as f64 / (step - *first_step).max(1) as f64;
                self.say(&format!(
                    "step {step}/{total}  loss {loss:.4}  accuracy {accuracy:.1} %  \
                     {rate:.0} examples/s  {left:.0} s left"
                ));
            }
            Style::Silent => {}
        }
    }

    fn checking(&mut self, done: usize, total: usize) {
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_style(bar_style("{prefix}{bar:30} {percent:>3} %  {msg}  {eta} left"));
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message("decoding every image once");
            }
            Style::Lines { last, .. } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                self.say(&format!("decoding every image once: {done}/{total}"));
            }
            Style::Lines { .. } | Style::Silent => {}
        }
    }

    fn set_aside(&mut self, examples: &[SetAside]) {
        const SHOWN: usize = 5;
        let shown =
            examples.iter().take(SHOWN).map(|one| format!("\n  {}: {}", one.id, one.reason));
        let more = match examples.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more, in run.json"),
        };
        let (s, are) = if examples.len() == 1 { ("", "is") } else { ("s", "are") };
        self.warn(&format!(
            "{} image{s} that cannot be decoded {are} set aside:{}{more}",
            examples.len(),
            shown.collect::<String>()
        ));
    }

    fn evaluating(&mut self, split: &str, done: usize, total: usize) {
        if let Style::Bar(bar) = &self.style {
            let message = format!("evaluating {split}: {done}/{total}");
            bar.set_message(if done < total { message } else { String::new() });
        }
    }

    /// Shown even when all else is silent.
    fn warn(&self, warning: &str) {
        match &self.style {
            Style::Silent => tell(&format!("{}warning: {warning}", self.name)),
            _ => self.say(&format!("warning: {warning}")),
        }
    }

    fn say(&self, line: &str) {
        let line = format!("{}{line}", self.name);
        match &self.style {
            Style::Bar(bar) => bar.suspend(|| tell(&line)),
            Style::Lines { .. } => tell(&line),
            Style::Silent => {}
        }
    }
}

/// Counts what is done of something long, from any thread.
pub struct Counter {
    what: &'static str,
    style: CounterStyle,
}

enum CounterStyle {
    Bar(ProgressBar),
    Lines(Mutex<Instant>),
    Silent,
}

impl Counter {
    /// A bar if standard error is a terminal, else a line now and then; nothing when `quiet`.
    pub fn new(what: &'static str, quiet: bool) -> Self {
        let style = match (quiet, io::stderr().is_terminal()) {
            (true, _) => CounterStyle::Silent,
            (false, true) => {
                let bar = ProgressBar::new(0);
                bar.set_style(bar_style("{bar:30} {pos}/{len} {msg}  {per_sec}  {eta} left"));
                bar.set_message(what);
                CounterStyle::Bar(bar)
            }
            (false, false) => CounterStyle::Lines(Mutex::new(Instant::now())),
        };
        Self { what, style }
    }

    /// Shows how far it is.
    pub fn show(&self, done: usize, total: usize) {
        match &self.style {
            CounterStyle::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            }
            CounterStyle::Lines(last) => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= PAUSE {
                    *last = Instant::now();
                    tell(&format!("{done}/{total} {}", self.what));
                }
            }
            CounterStyle::Silent => {}
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let CounterStyle::Bar(bar) = &self.style {
            bar.finish_and_clear();
        }
    }
}

/// Says a line to whoever reads along; that nobody does must not end the work.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
