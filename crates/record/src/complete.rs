//! Files that are complete, who is told of them, and the command that is run for each.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_files::manifest::FileEnd;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::broadcast;

use crate::shared::{Shared, Unfinished};

/// Complete files that may wait for somebody who is told of them.
const WAITING_EVENTS: usize = 1_024;
/// Commands that run at a time.
const RUNNING: usize = 4;
/// Files that may wait for their commands; the oldest is lost.
const WAITING: usize = 1_000;

/// Whose files are of which nothing else says it: they belong to no recorded room or call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The package of the plugin.
    pub plugin: &'static str,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
}

/// A file that nothing more is written into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Where it is.
    pub file: PathBuf,
    /// Where the manifest is that names it.
    pub manifest: Option<PathBuf>,
    /// The package of the plugin; none if nobody said whose recording it is.
    pub plugin: Option<&'static str>,
    /// The id of the room or mountpoint.
    pub room: Option<String>,
    /// The id in the room.
    pub participant: Option<String>,
    /// How long it is.
    pub duration: Duration,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// Why it ended.
    pub end: FileEnd,
}

/// Tells of complete files.
#[derive(Debug)]
pub(crate) struct Completions {
    told: broadcast::Sender<Completed>,
    commands: Mutex<Commands>,
}

#[derive(Debug, Default)]
struct Commands {
    /// Where they run; none before the first recording.
    runtime: Option<Handle>,
    running: usize,
    waiting: VecDeque<(Completed, Unfinished)>,
}

impl Default for Completions {
    fn default() -> Self {
        Self {
            told: broadcast::Sender::new(WAITING_EVENTS),
            commands: Mutex::default(),
        }
    }
}

impl Completions {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Completed> {
        self.told.subscribe()
    }

    /// Commands are run by the runtime that this is called in, if it is in one.
    pub(crate) fn in_this_runtime(&self) {
        let mut commands = self.lock();
        if commands.runtime.is_none() {
            commands.runtime = Handle::try_current().ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Tells everybody of a file.
    pub(crate) fn completed(self: &Arc<Self>, completed: Completed) {
        self.counters.completed.fetch_add(1, Relaxed);
        if !self.config.on_complete.is_empty() {
            self.queue(completed.clone());
        }
        // That nobody listens is fine.
        let _ = self.completions.told.send(completed);
    }

    /// Has the command run once it is its turn.
    fn queue(self: &Arc<Self>, completed: Completed) {
        let mut commands = self.completions.lock();
        let unfinished = Unfinished::new(self);
        commands.waiting.push_back((completed, unfinished));
        if commands.waiting.len() > WAITING {
            let lost = commands.waiting.pop_front();
            self.counters.commands_lost.fetch_add(1, Relaxed);
            if let Some((lost, _)) = lost {
                let file = lost.file.display();
                tracing::error!(%file, "too many commands wait: none is run for this file");
            }
        }
        if commands.running < RUNNING
            && let Some(runtime) = &commands.runtime
        {
            let shared = Arc::clone(self);
            runtime.spawn(async move { shared.run_commands().await });
            commands.running += 1;
        }
    }

    /// Runs commands one after the other until none waits.
    async fn run_commands(self: Arc<Self>) {
        loop {
            let next = {
                let mut commands = self.completions.lock();
                let next = commands.waiting.pop_front();
                if next.is_none() {
                    commands.running -= 1;
                }
                next
            };
            let Some((completed, _unfinished)) = next else {
                return;
            };
            self.counters.commands.fetch_add(1, Relaxed);
            let limit = Duration::from_secs(self.config.on_complete_timeout);
            if let Err(error) = run(&self.config.on_complete, &completed, limit).await {
                self.counters.commands_failed.fetch_add(1, Relaxed);
                let file = completed.file.display();
                tracing::error!(%file, "recording.on_complete: {error}");
            }
        }
    }
}

/// Why a command has not done what it should.
#[derive(Debug, Error)]
enum CommandError {
    #[error("the command cannot be run: {0}")]
    Start(std::io::Error),
    #[error("the command has failed: {0}")]
    Failed(std::process::ExitStatus),
    #[error("the command was ended after {0:?} (recording.on_complete_timeout)")]
    TimeOut(Duration),
}

async fn run(words: &[String], completed: &Completed, limit: Duration) -> Result<(), CommandError> {
    let manifest = completed.manifest.as_deref().unwrap_or(Path::new(""));
    let mut words = words
        .iter()
        .map(|word| filled(word, &completed.file, manifest));
    let program = words.next().unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut child = Command::new(program)
        .args(words)
        .env("PORTUNUS_FILE", &completed.file)
        .env("PORTUNUS_MANIFEST", manifest)
        .env("PORTUNUS_PLUGIN", completed.plugin.unwrap_or_default())
        .env("PORTUNUS_ROOM", text(&completed.room))
        .env("PORTUNUS_PARTICIPANT", text(&completed.participant))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // What it starts ends with it.
        .process_group(0)
        .spawn()
        .map_err(CommandError::Start)?;
    match tokio::time::timeout(limit, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(CommandError::Failed(status)),
        Ok(Err(error)) => Err(CommandError::Start(error)),
        Err(_) => {
            let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.kill().await;
            Err(CommandError::TimeOut(limit))
        }
    }
}

/// A word of the command with the names of the files in it.
fn filled(word: &str, file: &Path, manifest: &Path) -> OsString {
    let mut filled = Vec::new();
    let mut rest = word;
    let names = [("{file}", file), ("{manifest}", manifest)];
    loop {
        let found = names.iter().filter_map(|(mark, path)| {
            let at = rest.find(mark)?;
            Some((at, mark, path))
        });
        let Some((at, mark, path)) = found.min_by_key(|(at, ..)| *at) else {
            filled.extend_from_slice(rest.as_bytes());
            return OsString::from_vec(filled);
        };
        filled.extend_from_slice(rest.get(..at).unwrap_or_default().as_bytes());
        filled.extend_from_slice(OsStr::as_bytes(path.as_os_str()));
        rest = rest.get(at + mark.len()..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stand_in_the_command() {
        let (file, manifest) = (Path::new("/a/{manifest}.webm"), Path::new("/a/b.json"));
        for (word, becomes) in [
            ("{file}", "/a/{manifest}.webm"),
            (
                "--in={file}:{manifest}!",
                "--in=/a/{manifest}.webm:/a/b.json!",
            ),
            ("file", "file"),
            ("{ file}", "{ file}"),
        ] {
            assert_eq!(filled(word, file, manifest), OsString::from(becomes));
        }
    }
}
