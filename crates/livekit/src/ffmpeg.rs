//! The program ffmpeg, which encodes and speaks protocols that this server does not.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a program may take to end after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The last lines of its error output that are kept, and the length of each in bytes.
const KEPT_LINES: usize = 8;
const MAX_LINE: usize = 400;

/// The reason why a program has not done its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// It is not installed.
    #[error("{0} is not installed, or not in PATH: install ffmpeg, or set livekit.ffmpeg")]
    Missing(String),
    /// It cannot be started.
    #[error("{program} cannot be started: {error}")]
    Start {
        /// Its path.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
    /// It has ended by an error.
    #[error("{program} has ended ({status}): {complaints}")]
    Failed {
        /// Its path.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its error output.
        complaints: String,
    },
}

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    child: Child,
    complaints: Complaints,
}

/// The last lines of a program's error output; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<VecDeque<String>>>);

impl Program {
    /// Starts a program, and writes `input` to its standard input.
    pub(crate) async fn start(
        program: &str,
        arguments: impl IntoIterator<Item = OsString>,
        input: Option<String>,
    ) -> Result<Self, ProgramError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ProgramError::Missing(program.to_owned()),
            _ => ProgramError::Start {
                program: program.to_owned(),
                error,
            },
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(match input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let complaints = Complaints::default();
        if let Some(stderr) = child.stderr.take() {
            let complaints = complaints.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(stderr).split(b'\n');
                while let Ok(Some(line)) = lines.next_segment().await {
                    complaints.add(&line);
                }
            });
        }
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes()).await.map_err(failed)?;
        }
        Ok(Program {
            name: program.to_owned(),
            child,
            complaints,
        })
    }

    /// Returns the last lines of its error output.
    #[cfg(test)]
    fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> Result<(), ProgramError> {
        let status = self.child.wait().await;
        let status = status.map_err(|error| ProgramError::Start {
            program: self.name.clone(),
            error,
        })?;
        if status.success() {
            return Ok(());
        }
        // The lines may still be on their way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(ProgramError::Failed {
            program: self.name.clone(),
            status,
            complaints: self.complaints.text(),
        })
    }

    /// Asks it to end, and kills it if it does not.
    pub(crate) async fn stop(mut self) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::INT);
        }
        if timeout(END_LIMIT, self.child.wait()).await.is_err() {
            tracing::warn!(program = self.name, "does not end, and is killed");
            let _ = self.child.kill().await;
        }
    }
}

impl Complaints {
    fn add(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line: String = line.trim().chars().take(MAX_LINE).collect();
        if line.is_empty() {
            return;
        }
        tracing::debug!("ffmpeg: {line}");
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        if lines.len() > KEPT_LINES {
            lines.pop_front();
        }
    }

    /// Returns the lines, joined.
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.join("; ")
    }
}

/// Returns arguments as the system takes them.
pub(crate) fn arguments<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<OsString> {
    texts.into_iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[tokio::test]
    async fn a_program_that_is_missing_or_fails_says_why() {
        let missing = Program::start("no-such-program", Vec::new(), None).await;
        let text = missing.unwrap_err().to_string();
        assert!(text.contains("not installed"), "{text}");
        let script = arguments(["-c", "read a; echo got $a >&2; exit 3"]);
        let input = Some("hello\n".to_owned());
        let mut program = Program::start("sh", script, input).await.unwrap();
        let text = program.ended().await.unwrap_err().to_string();
        assert!(text.contains("got hello") && text.contains('3'), "{text}");
    }

    #[tokio::test]
    async fn a_program_that_is_stopped_may_finish_its_work() {
        let folder = std::env::temp_dir().join(format!("portunus-{}", std::process::id()));
        let file = folder.to_str().unwrap().to_owned();
        let text = format!(
            "trap 'touch {file}; exit 0' INT; echo ready >&2; while :; do sleep 0.05; done"
        );
        let program = Program::start("sh", arguments(["-c", &text]), None);
        let program = program.await.unwrap();
        let complaints = program.complaints();
        while complaints.text().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        program.stop().await;
        assert!(folder.exists());
        std::fs::remove_file(folder).unwrap();
    }
}
