//! Ctrl-C and SIGTERM: the current work is saved before the program ends.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::progress::tell;

static STOP: AtomicBool = AtomicBool::new(false);

/// As shells do: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

/// Set by the first signal; the second ends the program at once. Each command asks for it once.
pub fn flag() -> Result<&'static AtomicBool> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
        tell("\nstopping: saving what can be resumed (again to stop at once)");
    })
    .context("no handler for Ctrl-C could be installed")?;
    Ok(&STOP)
}
