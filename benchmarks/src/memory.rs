//! Memory, as the operating system reports it.

/// A line of a `/proc` file, such as `VmHWM: 1234 kB`, in MiB; `None` if there is no `/proc`.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// The largest memory use of this process so far, in MiB.
pub fn peak_mib() -> Option<u64> {
    field("/proc/self/status", "VmHWM:")
}

/// The current memory use of this process, in MiB.
pub fn resident_mib() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// Memory that is still available, in MiB.
pub fn available_mib() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// A size for people to read.
pub fn in_words(mib: Option<u64>) -> String {
    mib.map_or("unknown".into(), |mib| format!("{mib} MiB"))
}
