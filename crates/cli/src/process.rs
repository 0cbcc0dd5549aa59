//! What may end the program from outside: memory that cannot be had, threads that cannot be
//! started, signals, and panics of libraries. Each ends in a message.
#![allow(unsafe_code, reason = "an allocator and a signal's action are set by unsafe means alone")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::panic::{self, UnwindSafe};
use std::sync::Mutex;

use anyhow::{Result, anyhow};

use crate::progress::tell;

/// More threads than any machine can use: each takes memory, and starting them takes time.
pub const MOST_THREADS: usize = 1024;

/// What Rust programs exit with after a panic.
pub const PANIC_EXIT_CODE: u8 = 101;

#[global_allocator]
static ALLOCATOR: Memory = Memory;

/// The system's allocator; where it has no memory, the program ends with a message and exit code 1.
struct Memory;

// SAFETY: every call is passed on to the system's allocator, whose promises are the same. A
// failure does not return.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator.
        found(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        found(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        found(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn found(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        out_of_memory(size);
    }
    memory
}

/// Neither formats nor writes with memory of its own.
#[cold]
fn out_of_memory(size: usize) -> ! {
    eprintln!(
        "error: out of memory: {size} bytes more cannot be had; use smaller batches or images, \
         fewer --threads, or a machine with more memory (what was saved can be resumed)"
    );
    std::process::exit(1);
}

/// Lets a write beyond the limit of file sizes (`ulimit -f`) fail with an error, which is told,
/// instead of ending the program without a word.
pub fn survive_file_size_limit() {
    // SAFETY: to ignore a signal runs no code when it comes.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Bounds what the program may allocate from here on to `most` bytes, or to three quarters of the
/// memory that is free if that is less, so that work on a file of somebody else cannot take the
/// machine down.
///
/// On systems that do not say how much is free, or cannot bound it, nothing happens.
#[cfg(target_os = "linux")]
pub fn bound_memory(most: u64) {
    let (Some(free), Some(used)) = (free_memory(), own_data()) else { return };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write this one value.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.min(used.saturating_add(most.min(free / 4 * 3)));
            libc::setrlimit(libc::RLIMIT_DATA, &raw const limit);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn bound_memory(_most: u64) {}

/// Bytes that programs can still use here: those of the machine, or of the container.
#[cfg(target_os = "linux")]
fn free_memory() -> Option<u64> {
    let free = kilobytes("/proc/meminfo", "MemAvailable:")?;
    let number = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    let container = number("memory.max").zip(number("memory.current"));
    Some(container.map_or(free, |(most, used)| free.min(most.saturating_sub(used))))
}

/// Bytes that count against the limit already.
#[cfg(target_os = "linux")]
fn own_data() -> Option<u64> {
    kilobytes("/proc/self/status", "VmData:")
}

/// A line of the form `Name:   123 kB`, in bytes.
#[cfg(target_os = "linux")]
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Starts the threads for computing: as many as there are cores, or as said.
///
/// # Errors
/// When the system refuses to start them.
pub fn start_threads(threads: Option<usize>) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    pool.build_global().map_err(|error| {
        let wanted = match threads {
            Some(threads) => format!("the {threads} threads of --threads"),
            None => "a thread for each core".to_string(),
        };
        anyhow!(
            "{wanted} could not be started: {error}; set a smaller number with --threads, or raise \
             the limit of processes (ulimit -u)"
        )
    })
}

/// The last panic, in the words of its message.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Runs the program. A panic that nobody catches ends in a message; those that are caught, as of a
/// library that reads a damaged file, print nothing.
pub fn guarded<T>(work: impl FnOnce() -> T + UnwindSafe) -> Result<T, Box<dyn Any + Send>> {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|info| {
            if let Ok(mut last) = PANIC.lock() {
                *last = info.to_string();
            }
        }));
    }
    panic::catch_unwind(work).inspect_err(|_| {
        let last = PANIC.lock().map(|last| last.clone()).unwrap_or_default();
        tell(&format!(
            "error: {last}\nThis is a mistake in the program, not yours: please report it, with the \
             command and these lines"
        ));
    })
}
