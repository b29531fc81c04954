//! A browser's program: its search, its start in a profile of its own, and its end.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::sleep;

use super::BrowserError;

/// The longest time from the start until it can be driven.
const START: Duration = Duration::from_secs(60);
/// The interval of looking whether it can.
const LOOK: Duration = Duration::from_millis(50);
/// The characters of its output that are shown if it cannot.
const SAID: usize = 2_000;

/// A running browser with the folder of its profile.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    child: Child,
    profile: TempDir,
}

/// Returns the program with this name in `PATH`.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    let mut candidates = env::split_paths(&paths).map(|folder| folder.join(name));
    candidates.find(|path| path.is_file())
}

impl Program {
    /// Starts it. `prepare` writes its profile and returns its arguments.
    pub(super) fn start(
        path: PathBuf,
        prepare: impl FnOnce(&Path) -> io::Result<Vec<String>>,
    ) -> Result<Self, BrowserError> {
        let start = || {
            let profile = tempfile::Builder::new()
                .prefix("hammer-browser-")
                .tempdir()?;
            let arguments = prepare(profile.path())?;
            let output = File::create(profile.path().join("output.log"))?;
            let child = Command::new(&path)
                .args(arguments)
                // Firefox writes outside of its profile otherwise.
                .env("HOME", profile.path())
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output)
                .process_group(0)
                .spawn()?;
            Ok(Self {
                path: path.clone(),
                child,
                profile,
            })
        };
        start().map_err(|source| BrowserError::Start {
            program: path.clone(),
            source,
        })
    }

    /// Waits until a file of the profile has what is needed to drive it.
    pub(super) async fn ready<T>(
        &mut self,
        file: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, BrowserError> {
        let path = self.profile.path().join(file);
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if let Some(found) = read(&text) {
                return Ok(found);
            }
            let ended = matches!(self.child.try_wait(), Ok(Some(_)));
            if ended || start.elapsed() > START {
                let log = fs::read(self.profile.path().join("output.log")).unwrap_or_default();
                let log = String::from_utf8_lossy(&log);
                let from = log.chars().count().saturating_sub(SAID);
                return Err(BrowserError::Silent {
                    program: self.path.clone(),
                    after: start.elapsed(),
                    said: log.chars().skip(from).collect(),
                });
            }
            sleep(LOOK).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // It has already ended.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
