//! The permissions in the systemd unit. The service reads the default configuration, so its unit
//! does not matter to others.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of units. The first one with the file takes precedence.
const FOLDERS: [&str; 5] = [
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];
const UNIT: &str = "portunus.service";

/// The folders that systemd makes for a unit, by their keys.
const STATE: [(&str, &str); 4] = [
    ("StateDirectory", "/var/lib"),
    ("CacheDirectory", "/var/cache"),
    ("LogsDirectory", "/var/log"),
    ("RuntimeDirectory", "/run"),
];

/// The server's systemd service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// Its user, or `None` for root.
    pub(super) user: Option<String>,
    capabilities: Vec<String>,
    /// The limit of open files, if the unit has one.
    pub(super) files: Option<u64>,
    /// Whether it can write to [`Service::writable`] only.
    is_strict: bool,
    writable: Vec<PathBuf>,
}

impl Service {
    /// Reads the unit and its drop-ins below `root`. Returns `None` if there is no unit.
    pub(super) fn read(root: &Path) -> Option<Self> {
        let unit = |folder: &&str| fs::read_to_string(root.join(folder).join(UNIT)).ok();
        let text = FOLDERS.iter().find_map(unit)?;
        let mut service = Service::default();
        service.take(&text);
        let mut extensions: Vec<PathBuf> = FOLDERS
            .iter()
            .map(|folder| root.join(folder).join(format!("{UNIT}.d")))
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "conf"))
            .collect();
        extensions.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
        for text in extensions
            .iter()
            .filter_map(|it| fs::read_to_string(it).ok())
        {
            service.take(&text);
        }
        Some(service)
    }

    fn take(&mut self, text: &str) {
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let (key, value) = (key.trim(), value.trim());
            let words = value.split_whitespace();
            let state = STATE.iter().find(|(name, _)| *name == key);
            match key {
                "User" => {
                    self.user = Some(value.to_owned()).filter(|it| !it.is_empty() && it != "root");
                }
                "LimitNOFILE" => {
                    let hard = value.rsplit(':').next().unwrap_or(value);
                    self.files = match hard {
                        "infinity" => Some(u64::MAX),
                        number => number.parse().ok(),
                    };
                }
                "ProtectSystem" => self.is_strict = value == "strict",
                // An empty value resets the ones before it.
                "AmbientCapabilities" if value.is_empty() => self.capabilities.clear(),
                "AmbientCapabilities" => self.capabilities.extend(words.map(str::to_owned)),
                "ReadWritePaths" => {
                    self.writable
                        .extend(words.map(|it| it.trim_start_matches(['-', '+']).into()));
                }
                _ => {}
            }
            if let Some((_, parent)) = state {
                let folders = value.split_whitespace();
                self.writable
                    .extend(folders.map(|it| Path::new(parent).join(it)));
            }
        }
    }

    /// Whether it has a capability such as `CAP_SYS_NICE`.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.user.is_none() || self.capabilities.iter().any(|it| it == capability)
    }

    /// Whether it may write to a path. A relative one is below its working directory.
    pub(super) fn writes(&self, path: &Path) -> bool {
        // It has folders of its own there.
        let is_temporary = path.starts_with("/tmp") || path.starts_with("/var/tmp");
        let mut writable = self.writable.iter();
        !self.is_strict
            || path.is_relative()
            || is_temporary
            || writable.any(|it| path.starts_with(it))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn the_unit_of_the_package_and_its_drop_ins_are_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Service::read(root.path()), None);
        let units = root.path().join("usr/lib/systemd/system");
        fs::create_dir_all(&units).unwrap();
        let unit = include_str!("../../../../packaging/systemd/portunus.service");
        fs::write(units.join(UNIT), unit).unwrap();
        let service = Service::read(root.path()).unwrap();
        assert_eq!(service.user.as_deref(), Some("portunus"));
        assert!(service.has("CAP_SYS_NICE") && !service.has("CAP_NET_BIND_SERVICE"));
        assert_eq!(service.files, Some(1_048_576));
        assert!(service.writes("/var/lib/portunus/recordings".as_ref()));
        assert!(service.writes("recordings".as_ref()));
        assert!(!service.writes("/srv/recordings".as_ref()));

        let drop_ins = root.path().join("etc/systemd/system/portunus.service.d");
        fs::create_dir_all(&drop_ins).unwrap();
        let text = "[Service]\nAmbientCapabilities=CAP_NET_BIND_SERVICE\nReadWritePaths=/srv/recordings -/mnt\n";
        fs::write(drop_ins.join("override.conf"), text).unwrap();
        let service = Service::read(root.path()).unwrap();
        assert!(service.has("CAP_SYS_NICE") && service.has("CAP_NET_BIND_SERVICE"));
        assert!(service.writes("/srv/recordings/a".as_ref()));
        assert!(service.writes("/mnt/b".as_ref()) && !service.writes("/srv/other".as_ref()));
    }
}
