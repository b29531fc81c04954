//! The memory of the machine.

use std::fs::read_to_string;
use std::path::Path;

/// Assumed if the system does not report it.
const UNKNOWN: u64 = 1 << 30;

/// Returns the machine's memory in bytes, or the limit of the process's control group if that is
/// less.
pub(crate) fn machine_memory() -> u64 {
    let read = |path: &str| read_to_string(path).ok();
    let machine = read("/proc/meminfo").as_deref().and_then(total);
    let group = read("/proc/self/cgroup").and_then(|groups| {
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let limits = Path::new(path).ancestors().filter_map(|path| {
            let path = path.to_str()?.trim_end_matches('/');
            read(&format!("/sys/fs/cgroup{path}/memory.max"))
        });
        limits.filter_map(|limit| limit.trim().parse().ok()).min()
    });
    // Version 1 of control groups. Without a limit the number is far larger than any memory.
    let old_group = read("/sys/fs/cgroup/memory/memory.limit_in_bytes")
        .and_then(|limit| limit.trim().parse().ok());
    let known = [machine, group, old_group];
    known.into_iter().flatten().min().unwrap_or(UNKNOWN)
}

/// Returns the total in the text of `/proc/meminfo`.
fn total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some_memory() {
        assert!(machine_memory() > 16 << 20);
        let text = "MemTotal:        1000000 kB\nMemFree:          512 kB\n";
        assert_eq!(total(text), Some(1_024_000_000));
        assert_eq!(total("MemFree: 1 kB"), None);
    }
}
