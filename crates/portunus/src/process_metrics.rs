//! The metrics of this process: its build, and what it uses.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use portunus_core::Gateway;
use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

/// Ticks of CPU time in a second: fixed for programs (proc(5)).
const TICKS: f64 = 100.0;

/// The process in which a gateway runs.
#[derive(Debug)]
pub(crate) struct ProcessMetrics(pub(crate) Gateway);

impl MetricsSource for ProcessMetrics {
    fn write(&self, page: &mut MetricsPage) {
        let build = self.0.build_facts();
        page.head(MetricKind::Gauge, "build_info", "What runs; the value is 1");
        let labels = format!("version=\"{}\",commit=\"{}\"", build.version, build.commit);
        page.sample("build_info", &labels, 1);
        let started = build.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (name, help) = (
            "process_start_time_seconds",
            "When the process was started, since 1970",
        );
        page.unprefixed(MetricKind::Gauge, name, help, started.as_secs_f64());
        memory(page);
        files(page);
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        if let Some(seconds) = cpu_seconds(&stat) {
            let help = "CPU time that the process has used";
            let name = "process_cpu_seconds_total";
            page.unprefixed(MetricKind::Counter, name, help, seconds);
        }
        let expiries = self.0.certificate_expiries();
        if !expiries.is_empty() {
            let help = "When a certificate expires, since 1970";
            let name = "certificate_expiry_timestamp_seconds";
            page.labelled(MetricKind::Gauge, name, help, "use", expiries);
        }
        if let Some(free) = free_bytes(self.0.recording_folder()) {
            let help = "Bytes that are free on the disk of recordings";
            page.gauge("recording_disk_free_bytes", help, free);
        }
    }
}

fn memory(page: &mut MetricsPage) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (name, help, key, unit) in [
        (
            "process_resident_memory_bytes",
            "Memory of the process that is in RAM",
            "VmRSS",
            1_024.0,
        ),
        (
            "process_virtual_memory_bytes",
            "Address space of the process",
            "VmSize",
            1_024.0,
        ),
        ("process_threads", "Threads of the process", "Threads", 1.0),
    ] {
        if let Some(value) = field(&status, key) {
            page.unprefixed(MetricKind::Gauge, name, help, value * unit);
        }
    }
}

fn files(page: &mut MetricsPage) {
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        // One of them is the folder that is read.
        let open = files.count().saturating_sub(1);
        let help = "Files, sockets and the like that the process has open";
        page.unprefixed(MetricKind::Gauge, "process_open_fds", help, open);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = open_files(&limits) {
        let help = "How many of these it may have open";
        page.unprefixed(MetricKind::Gauge, "process_max_fds", help, most);
    }
}

/// Returns the number in a line such as `VmRSS:    1234 kB`.
fn field(status: &str, key: &str) -> Option<f64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns the soft limit of open files.
fn open_files(limits: &str) -> Option<f64> {
    let mut lines = limits.lines();
    let rest = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the CPU time in the text of `/proc/self/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name of the program may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some((next()? + next()?) as f64 / TICKS)
}

/// Returns the bytes that are free for this process on the disk of `folder`, which need not exist
/// yet.
fn free_bytes(folder: &Path) -> Option<u64> {
    let mut all = folder.ancestors().filter(|it| !it.as_os_str().is_empty());
    let disk = all.find_map(|folder| rustix::fs::statvfs(folder).ok());
    let disk = disk.or_else(|| rustix::fs::statvfs(".").ok())?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let status = "Name:\tportunus\nVmSize:\t  2048 kB\nVmRSS:\t    1024 kB\nThreads:\t7\n";
        assert_eq!(field(status, "VmRSS"), Some(1_024.0));
        assert_eq!(field(status, "Threads"), Some(7.0));
        assert_eq!(field(status, "VmSwap"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(open_files(limits), Some(1_024.0));
        assert_eq!(open_files("Max open files            unlimited"), None);
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 150 0 0 20 0 7 0 100";
        assert_eq!(cpu_seconds(stat), Some(4.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }

    #[test]
    fn the_disk_of_a_folder_is_known_before_it_is_made() {
        for folder in ["/no/such/folder", "no/such/folder", "."] {
            assert!(free_bytes(Path::new(folder)).is_some(), "{folder}");
        }
    }
}
