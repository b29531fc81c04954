//! A server under test from start to end.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::config;
use super::process::{Process, inside};
use super::spec::{ServerSpec, SpecError, listening_at};
use crate::machine::{Namespace, in_thread};

/// The longest start until it accepts connections.
const START: Duration = Duration::from_secs(30);
/// The longest end.
const END: Duration = Duration::from_secs(5);
/// The interval of connection attempts.
const TRY: Duration = Duration::from_millis(25);
/// The lines of its log that are shown if it does not start.
const LOG_LINES: usize = 12;

/// Where a server runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Its namespace.
    pub(super) side: &'a Namespace,
    /// The namespace that it is reached from.
    pub(super) from: &'a Namespace,
    /// Its cores.
    pub(super) cores: &'a [usize],
}

/// A running server with its folder.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    dir: TempDir,
    pub(super) url: String,
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its folder or log cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It cannot be started.
    #[error("{name} cannot be started: {source}")]
    Spawn {
        /// The name of the server.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// It ended at once.
    #[error("{name} ended with {status} before it accepted connections at {at}; its log {} ends with:\n{tail}", log.display())]
    Ended {
        /// The name of the server.
        name: String,
        /// Its exit status.
        status: ExitStatus,
        /// The address where it should listen.
        at: SocketAddr,
        /// The path of its log.
        log: PathBuf,
        /// The last lines of its log.
        tail: String,
    },
    /// It runs, but does not accept connections.
    #[error("{name} accepts no connections at {at} after {} s; its log {} ends with:\n{tail}", START.as_secs(), log.display())]
    Silent {
        /// The name of the server.
        name: String,
        /// The address where it should listen.
        at: SocketAddr,
        /// The path of its log.
        log: PathBuf,
        /// The last lines of its log.
        tail: String,
    },
    /// Its URL is malformed.
    #[error(transparent)]
    Url(#[from] SpecError),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl Server {
    /// Starts it, and waits until it accepts connections.
    pub(super) fn start(
        spec: &ServerSpec,
        place: Place<'_>,
        log: &Path,
        interrupted: &AtomicBool,
    ) -> Result<Self, StartError> {
        let cores = place.cores;
        let ip = place.side.ip.to_string();
        let write = |path: &Path| {
            let path = path.to_owned();
            move |source| StartError::Write { path, source }
        };
        let dir = tempfile::Builder::new()
            .prefix("portunus-hammer-")
            .tempdir();
        let dir = dir.map_err(write(&std::env::temp_dir()))?;
        config::write(dir.path(), &ip, cores.len()).map_err(write(dir.path()))?;
        let fill = |text: &str| {
            let core = cores.first().copied().unwrap_or_default();
            text.replace("{ip}", &ip)
                .replace("{core}", &core.to_string())
                .replace("{cores}", &cores.len().to_string())
                .replace("{dir}", &dir.path().display().to_string())
        };
        let url = fill(&spec.url);
        let at = listening_at(&url)?;
        let output = File::create(log).map_err(write(log))?;
        let errors = output.try_clone().map_err(write(log))?;
        let spawn = |source| StartError::Spawn {
            name: spec.name.clone(),
            source,
        };
        let mut command = inside(place.side, cores).map_err(spawn)?;
        command.args(spec.command.iter().map(|word| fill(word)));
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut server = Self {
            process: Process::start(&mut command).map_err(spawn)?,
            dir,
            url,
        };
        server.wait_until_ready(spec, place.from, at, log, interrupted)?;
        Ok(server)
    }

    /// Returns its process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns its folder, which is removed with it.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends it. Returns its status if it had already ended.
    pub(super) fn stop(&mut self) -> Option<ExitStatus> {
        self.process.stop(END)
    }

    fn wait_until_ready(
        &mut self,
        spec: &ServerSpec,
        from: &Namespace,
        at: SocketAddr,
        log: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(), StartError> {
        let (name, log) = (spec.name.clone(), log.to_owned());
        let start = Instant::now();
        in_thread(|| {
            if let Err(source) = from.enter() {
                return Err(StartError::Spawn { name, source });
            }
            loop {
                if TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok() {
                    return Ok(());
                }
                if let Ok(Some(status)) = self.process.ended() {
                    let tail = tail(&log);
                    return Err(StartError::Ended {
                        name,
                        status,
                        at,
                        log,
                        tail,
                    });
                }
                if start.elapsed() > START {
                    let tail = tail(&log);
                    return Err(StartError::Silent {
                        name,
                        at,
                        log,
                        tail,
                    });
                }
                if interrupted.load(Ordering::Relaxed) {
                    return Err(StartError::Interrupted);
                }
                thread::sleep(TRY);
            }
        })
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    let last = lines.into_iter().skip(from).map(|line| format!("  {line}"));
    last.collect::<Vec<_>>().join("\n")
}
