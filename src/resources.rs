//! What the machine has to spare, asked before large rasters are allocated.

use crate::error::{Error, Result};

/// Runs `work` with `threads` worker threads; `None` is one per core.
///
/// # Errors
/// [`Error::Argument`] for 0 threads or more than the system gives; those of `work`.
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if threads == Some(0) {
        return Err(Error::argument("--threads", 0, "give 1 or more"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|e| Error::argument("--threads", e, "give a smaller number"))?
        .install(work)
}

/// Refuses a raster of `cols` x `rows` cells that needs more bytes than there are.
///
/// # Errors
/// [`Error::TooLarge`], where `have` is known and less than `need`.
pub fn require(cols: u64, rows: u64, need: u64, of_what: &'static str, have: Option<u64>) -> Result<()> {
    match have {
        Some(have) if need > have => {
            Err(Error::TooLarge { cols, rows, need: human_bytes(need), of_what, have: human_bytes(have) })
        }
        _ => Ok(()),
    }
}

/// Bytes of memory that can be taken without swapping: what the kernel says is available, or what the container's limit
/// leaves, whichever is less. `None` where neither is said (not Linux).
pub fn memory_available() -> Option<u64> {
    let system = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_in_meminfo(&text));
    match (system, container_left()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn available_in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// What the control group's limit leaves (version 2, then version 1); `None` without a limit.
fn container_left() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?));
    left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
        .or_else(|| left("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"))
}

/// `bytes` with a unit, for messages.
///
/// ```
/// assert_eq!(histmap::resources::human_bytes(67_000_000), "67.0 MB");
/// ```
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if value < 999.95 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.0} PB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        assert_eq!(available_in_meminfo("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:      12 kB\n"), Some(12 * 1024));
        assert_eq!(available_in_meminfo("MemTotal: 9 kB"), None);
        assert_eq!(available_in_meminfo("MemAvailable: x kB"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory() {
        assert!(memory_available().unwrap() > 1 << 20);
    }

    #[test]
    fn bytes_are_said_with_a_unit() {
        assert_eq!(human_bytes(999), "999 bytes");
        assert_eq!(human_bytes(1_000), "1.0 kB");
        assert_eq!(human_bytes(1_500_000_000), "1.5 GB");
        assert_eq!(human_bytes(u64::MAX), "18447 PB");
    }
}
