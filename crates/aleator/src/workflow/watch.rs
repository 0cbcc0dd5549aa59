//! How a caller follows long work, and stops it.

use std::sync::atomic::AtomicBool;

/// What happens during long work.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something happened in the training of one run.
    Training {
        /// The run's name in its group; empty for a single run.
        run: &'a str,
        /// What happened.
        event: aleator_train::Event<'a>,
    },
    /// Part of some other work is done.
    Progress {
        /// What is counted, as in "images".
        what: &'a str,
        /// Number done.
        done: usize,
        /// Number in total.
        total: usize,
    },
    /// What was found at a path, or chosen for it: users should see it even when they ask for
    /// silence.
    Choice(&'a str),
    /// Information about the current step.
    Note(&'a str),
    /// Something that users should look into.
    Warning(&'a str),
}

/// Follows long work: receives every [`Event`], and can ask the work to stop.
///
/// Every workflow takes one. [`Watch::silent`] ignores all events and never stops.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use aleator::{Event, Watch};
///
/// let stop = AtomicBool::new(false); // set it from a signal handler or another thread
/// let mut watch = Watch::new(&stop, |event| {
///     if let Event::Warning(text) = event {
///         eprintln!("warning: {text}");
///     }
/// });
/// # let _ = &mut watch;
/// ```
pub struct Watch<'a> {
    stop: &'a AtomicBool,
    observer: Box<dyn FnMut(Event<'_>) + Send + 'a>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Watch<'a> {
    /// Calls `observer` with every event. Once `stop` is set, training, audits and embeddings save
    /// their state and return [`Error::Interrupted`](crate::Error::Interrupted); the other workflows
    /// have nothing to save and do not look at it.
    pub fn new(stop: &'a AtomicBool, observer: impl FnMut(Event<'_>) + Send + 'a) -> Self {
        Self { stop, observer: Box::new(observer) }
    }

    /// Ignores all events and never stops.
    pub fn silent() -> Self {
        Self::new(&NEVER, |_| {})
    }

    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.stop
    }

    /// Passes an event on to the observer.
    pub fn event(&mut self, event: Event<'_>) {
        (self.observer)(event);
    }

    pub(crate) fn training(&mut self, run: &str, event: aleator_train::Event<'_>) {
        self.event(Event::Training { run, event });
    }

    pub(crate) fn choice(&mut self, text: &str) {
        self.event(Event::Choice(text));
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.event(Event::Note(text));
    }

    pub(crate) fn warn(&mut self, text: &str) {
        self.event(Event::Warning(text));
    }
}
