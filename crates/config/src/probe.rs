//! Faults of a valid configuration: missing files and addresses, and keys that contradict each
//! other. Also the files that the server writes, its certificates, and the servers to which it
//! connects.

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The server cannot start, or what is configured cannot work.
    Error,
    /// It works, but probably not as intended.
    Warning,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The key with its section, such as `tls.certificate` or `videoroom.room[1].record`.
    pub key: String,
    /// The fault.
    pub text: String,
    /// Its severity.
    pub severity: Severity,
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warning = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{warning}{}: {}", self.key, self.text)
    }
}

/// A key that turns on recordings, and their folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The key with its section.
    pub key: String,
    /// Relative to the folder of all recordings. `None` means that folder.
    pub dir: Option<String>,
}

/// A file or folder that the server writes, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The key with its section.
    pub key: String,
    /// The file or folder.
    pub path: PathBuf,
}

/// A PEM file of certificates that the server shows, its own certificate first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The key that names the file, with its section.
    pub key: String,
    /// The file.
    pub path: PathBuf,
}

/// An attempt to reach another server. Returns the reason for a failure. Nothing happens before it
/// is polled.
pub type Attempt = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Another server to which this one connects.
pub struct Remote {
    /// The key of its address, with its section.
    pub key: String,
    /// Its address, for people.
    pub address: String,
    /// Tries to reach it, in the way of the server itself.
    pub attempt: Attempt,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({}: {})", self.key, self.address)
    }
}

/// The relations of a section to the machine and to other servers: faults, files and connections.
/// Keys are relative to the present section.
#[derive(Debug, Default)]
pub struct Probe {
    /// With a dot at its end, unless it is the file itself.
    path: String,
    findings: Vec<Finding>,
    recorded: Vec<Recorded>,
    written: Vec<Written>,
    certificates: Vec<Certificate>,
    remotes: Vec<Remote>,
}

impl Probe {
    /// Looks at a section.
    pub fn section(&mut self, name: &str, look: impl FnOnce(&mut Probe)) {
        let outer = self.path.clone();
        self.path = format!("{outer}{name}.");
        look(self);
        self.path = outer;
    }

    /// Notes that the server cannot start with this key, or cannot do what it says.
    pub fn error(&mut self, key: &str, text: impl Display) {
        self.find(key, text, Severity::Error);
    }

    /// Notes that this key is probably not as intended.
    pub fn warning(&mut self, key: &str, text: impl Display) {
        self.find(key, text, Severity::Warning);
    }

    fn find(&mut self, key: &str, text: impl Display, severity: Severity) {
        self.findings.push(Finding {
            key: format!("{}{key}", self.path),
            text: text.to_string(),
            severity,
        });
    }

    /// Checks that the machine has this address.
    pub fn address(&mut self, key: &str, address: IpAddr) {
        // With port 0 the kernel picks a free port, so no running server is affected. Other errors
        // do not concern the address.
        let Err(error) = UdpSocket::bind((address, 0)) else {
            return;
        };
        let is_lacking = error.kind() == ErrorKind::AddrNotAvailable
            || Errno::from_io_error(&error) == Some(Errno::AFNOSUPPORT);
        if is_lacking {
            self.error(key, format!("this machine has no address {address}"));
        }
    }

    /// Checks that the file exists and is readable.
    pub fn file(&mut self, key: &str, path: &Path) {
        // A pipe would be waited for.
        let opened = fs::metadata(path).and_then(|it| match it.is_file() {
            true => File::open(path).map(drop),
            false => Err(io::Error::other("it is no file")),
        });
        if let Err(error) = opened {
            self.error(key, format!("cannot read {}: {error}", path.display()));
        }
    }

    /// Warns if the folder is missing. It may be made later.
    pub fn folder(&mut self, key: &str, path: &Path) {
        match fs::metadata(path) {
            Ok(it) if it.is_dir() => {}
            Ok(_) => self.warning(key, format!("{} is no folder", path.display())),
            Err(error) => self.warning(
                key,
                format!("there is no folder {}: {error}", path.display()),
            ),
        }
    }

    /// Checks that files can be made in the folder, which may be missing.
    pub fn written_folder(&mut self, key: &str, path: &Path) {
        self.writes(key, path);
        if let Err(error) = takes_files(path) {
            self.error(
                key,
                format!("cannot write into the folder {}: {error}", path.display()),
            );
        }
    }

    /// Checks that the file is writable or, if it is missing, that files can be made in its folder.
    pub fn written_file(&mut self, key: &str, path: &Path) {
        self.writes(key, path);
        let outcome = match fs::metadata(path) {
            Ok(it) if it.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
            Ok(_) => Ok(access(path, Access::READ_OK | Access::WRITE_OK)).and_then(|it| Ok(it?)),
            Err(_) => match path.parent().map(|it| (it, it.is_dir())) {
                Some((folder, true)) => takes_files(folder),
                Some((folder, false)) if folder.as_os_str().is_empty() => takes_files(".".as_ref()),
                _ => Err(io::Error::from(ErrorKind::NotFound)),
            },
        };
        if let Err(error) = outcome {
            self.error(key, format!("cannot write {}: {error}", path.display()));
        }
    }

    /// Checks that the program exists, as a path or in a folder of `PATH`.
    pub fn program(&mut self, key: &str, program: &str) {
        let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        let found = match program.contains('/') {
            true => runs(program.as_ref()),
            false => {
                let folders = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&folders).any(|folder| runs(&folder.join(program)))
            }
        };
        if !found {
            self.error(key, format!("there is no program {program}"));
        }
    }

    /// Notes that this key turns on recordings, in `dir` if there is one.
    pub fn records(&mut self, key: &str, dir: Option<&str>) {
        self.recorded.push(Recorded {
            key: format!("{}{key}", self.path),
            dir: dir.map(str::to_owned),
        });
    }

    fn writes(&mut self, key: &str, path: &Path) {
        self.written.push(Written {
            key: format!("{}{key}", self.path),
            path: path.to_owned(),
        });
    }

    /// Notes that the server shows the first certificate of this PEM file. Does not read the file.
    pub fn certificate(&mut self, key: &str, path: &Path) {
        self.certificates.push(Certificate {
            key: format!("{}{key}", self.path),
            path: path.to_owned(),
        });
    }

    /// Notes that the server connects to `address`. `attempt` tries it once.
    pub fn connects(
        &mut self,
        key: &str,
        address: impl Display,
        attempt: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.remotes.push(Remote {
            key: format!("{}{key}", self.path),
            address: address.to_string(),
            attempt: Box::pin(attempt),
        });
    }

    /// Returns the files and folders that the server writes.
    pub fn written(&self) -> &[Written] {
        &self.written
    }

    /// Returns the certificates that the server shows.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Takes the servers to which this one connects.
    pub fn take_remotes(&mut self) -> Vec<Remote> {
        std::mem::take(&mut self.remotes)
    }

    /// Returns the keys that ask for recordings.
    pub fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// Returns the findings so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// Checks that files can be made in a folder, which may be missing. Makes nothing.
pub fn takes_files(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let mut there: PathBuf = folder;
    loop {
        match fs::metadata(&there) {
            Ok(it) if it.is_dir() => break,
            Ok(_) => return Err(io::Error::from(ErrorKind::NotADirectory)),
            Err(error) if error.kind() == ErrorKind::NotFound && there.pop() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(access(&there, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use super::*;

    fn found(look: impl FnOnce(&mut Probe)) -> Vec<String> {
        let mut probe = Probe::default();
        probe.section("part", look);
        probe.findings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_that_the_machine_lacks_are_found() {
        let address = |text: &str| found(|it| it.address("bind", text.parse().unwrap()));
        assert!(address("127.0.0.1").is_empty());
        assert!(address("0.0.0.0").is_empty());
        let lacking = ["part.bind: this machine has no address 192.0.2.77"];
        assert_eq!(address("192.0.2.77"), lacking);
    }

    #[test]
    fn files_and_folders_that_are_missing_are_found() {
        let place = tempfile::tempdir().unwrap();
        let (file, missing) = (place.path().join("file"), place.path().join("missing"));
        fs::write(&file, "x").unwrap();
        let deeper = missing.join("deeper");
        let below = file.join("below");
        assert!(found(|it| it.file("key", &file)).is_empty());
        assert!(found(|it| it.folder("key", place.path())).is_empty());
        assert!(found(|it| it.written_folder("key", &deeper)).is_empty());
        assert!(found(|it| it.written_file("key", &file)).is_empty());
        assert!(found(|it| it.written_file("key", &missing)).is_empty());
        assert!(!deeper.exists() && !missing.exists(), "nothing is made");
        for (what, findings) in [
            ("cannot read", found(|it| it.file("key", &missing))),
            ("cannot read", found(|it| it.file("key", place.path()))),
            ("there is no folder", found(|it| it.folder("key", &missing))),
            ("is no folder", found(|it| it.folder("key", &file))),
            (
                "cannot write into",
                found(|it| it.written_folder("key", &below)),
            ),
            ("cannot write", found(|it| it.written_file("key", &deeper))),
            (
                "cannot write",
                found(|it| it.written_file("key", place.path())),
            ),
        ] {
            assert_eq!(findings.len(), 1, "{what}");
            let finding = findings[0].trim_start_matches("warning: ");
            assert!(
                finding.starts_with("part.key: ") && finding.contains(what),
                "{findings:?}"
            );
        }
    }

    #[test]
    fn programs_are_looked_for_as_a_shell_does() {
        for program in ["sh", "/bin/sh"] {
            assert!(
                found(|it| it.program("run", program)).is_empty(),
                "{program}"
            );
        }
        for program in [
            "no-such-program",
            "/bin/no-such-program",
            "/bin",
            "/etc/passwd",
            "",
        ] {
            assert_eq!(found(|it| it.program("run", program)).len(), 1, "{program}");
        }
    }

    #[test]
    fn keys_are_told_with_their_sections_and_warnings_apart() {
        let mut probe = Probe::default();
        probe.section("rooms", |it| {
            it.section("room[1]", |it| it.warning("pin", "is short"));
            it.records("room[2].record", Some("x"));
        });
        probe.error("key", "is wrong");
        probe.section("events", |it| {
            it.certificate("certificate", "/c.pem".as_ref());
            it.connects("backend", "example.org:1", async { Ok(()) });
        });
        let certificate = Certificate {
            key: "events.certificate".to_owned(),
            path: "/c.pem".into(),
        };
        assert_eq!(probe.certificates(), [certificate]);
        let remotes = format!("{:?}", probe.take_remotes());
        assert_eq!(remotes, "[Remote(events.backend: example.org:1)]");
        let recorded = Recorded {
            key: "rooms.room[2].record".to_owned(),
            dir: Some("x".to_owned()),
        };
        assert_eq!(probe.recorded(), [recorded]);
        let findings = probe.findings();
        let told: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["warning: rooms.room[1].pin: is short", "key: is wrong"]
        );
        assert_eq!(findings[1].severity, Severity::Error);
    }
}
