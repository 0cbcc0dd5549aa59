//! Elapsed time and processor time.

use std::time::{Duration, Instant};

/// Milliseconds of one call, with its result.
pub fn time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

/// The median of at least one time.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 }
}

/// The shortest time.
pub fn minimum(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Processor seconds of all threads of this process since they started; 0 if not on Linux.
pub fn processor_seconds() -> f64 {
    // The kernel adds up a thread's time when the thread goes to sleep.
    std::thread::sleep(Duration::from_millis(2));
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() * 1e-9
}
