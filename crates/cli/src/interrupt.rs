//! Ctrl-C and SIGTERM: the current work is saved before the program ends.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, Result};

use crate::progress::tell;

static STOP: AtomicBool = AtomicBool::new(false);
static SIGNALS: AtomicU32 = AtomicU32::new(0);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// As shells do: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

/// Set by the first signal; the second ends the program at once.
pub fn flag() -> Result<&'static AtomicBool> {
    if INSTALLED.set(()).is_ok() {
        ctrlc::set_handler(|| {
            STOP.store(true, Ordering::Relaxed);
            if SIGNALS.fetch_add(1, Ordering::Relaxed) > 0 {
                std::process::exit(EXIT_CODE.into());
            }
            tell("\nstopping: saving first (again to stop at once)");
        })
        .context("no handler for Ctrl-C could be installed")?;
    }
    Ok(&STOP)
}
