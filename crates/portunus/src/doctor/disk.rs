//! The free space of disks for recordings.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portunus_core::configuration::Probe;

use super::finding::{Check, Finding};
use crate::config::Config;

const GIB: u64 = 1 << 30;

/// The free space above `recording.keep_free_mb` below which there is a warning: about 5 hours of a
/// video of 2 Mbit/s.
const LITTLE: u64 = 5 * GIB;

/// A file system that the server writes to.
struct Disk {
    /// A folder on it.
    folder: PathBuf,
    keys: Vec<String>,
}

/// Examines each file system that the configuration writes to.
pub(super) fn examine(config: &Config, probe: &Probe) -> Vec<Finding> {
    let mut disks = BTreeMap::<u64, Disk>::new();
    let recorded = !probe.recorded().is_empty() && config.recording.dir.is_none();
    let working = recorded.then(|| ("recording.dir".to_owned(), PathBuf::from(".")));
    let written = probe.written().iter();
    let written = written.map(|it| (it.key.clone(), it.path.clone()));
    for (key, path) in written.chain(working) {
        let is_of_recordings = key.starts_with("recording.");
        if is_of_recordings && !config.recording.enabled {
            continue;
        }
        // The check of the configuration reports missing folders.
        let Some((folder, device)) = existing(&path) else {
            continue;
        };
        let disk = disks.entry(device).or_insert(Disk {
            folder,
            keys: Vec::new(),
        });
        disk.keys.push(key);
    }
    let keep = config.recording.keep_free_mb << 20;
    disks.values().filter_map(|it| it.examine(keep)).collect()
}

/// Returns the existing part of a path, and its device.
fn existing(path: &Path) -> Option<(PathBuf, u64)> {
    let path = std::path::absolute(path).ok()?;
    let mut folders = path.ancestors();
    folders.find_map(|it| Some((it.to_owned(), it.metadata().ok()?.dev())))
}

impl Disk {
    fn examine(&self, keep: u64) -> Option<Finding> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let (keys, folder) = (self.keys.join(", "), self.folder.display());
        let seen = format!("{} GiB are free at {folder} ({keys}).", tenths(free));
        let change = "Delete old recordings, or name a folder of a larger disk.";
        Some(if free < keep {
            let kept = keep >> 20;
            let text = format!("{seen} Recordings end below {kept} MiB (recording.keep_free_mb).");
            Finding::error(Check::Disk, text).change(change)
        } else if free - keep < LITTLE {
            Finding::warning(Check::Disk, seen).change(change)
        } else {
            Finding::ok(Check::Disk, seen)
        })
    }
}

/// Formats GiB with one digit after the point.
fn tenths(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / GIB as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_a_missing_folder_counts_as_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let (found, device) = existing(&folder.path().join("a/b")).unwrap();
        assert_eq!(found, folder.path());
        assert_eq!(device, folder.path().metadata().unwrap().dev());
        let disk = Disk {
            folder: found,
            keys: vec!["recording.dir".to_owned()],
        };
        let free = rustix::fs::statvfs(folder.path()).unwrap();
        let free = free.f_bavail * free.f_frsize;
        let levels = [u64::MAX, free - LITTLE / 2].map(|keep| disk.examine(keep).unwrap().level);
        assert_eq!(levels, [Level::Error, Level::Warning]);
    }
}
