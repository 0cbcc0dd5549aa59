//! What the operating system says about memory.

/// A line of a `/proc` file, such as `VmHWM: 1234 kB`, in MiB; `None` where there is no `/proc`.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// Most memory that this process has held, MiB.
pub fn peak_mib() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// Memory that this process holds, MiB.
pub fn resident_mib() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// Memory that can still be had, MiB.
pub fn available_mib() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}
