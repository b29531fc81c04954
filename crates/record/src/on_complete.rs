//! The command that runs for each complete file.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::process::Command;

use crate::Completed;
use crate::pending::Unfinished;
use crate::shared::Shared;

impl Shared {
    /// Notifies subscribers of a file, and queues its command.
    pub(crate) fn completed(self: &Arc<Self>, completed: Completed) {
        self.counters.completed.fetch_add(1, Relaxed);
        if !self.config.on_complete.is_empty() {
            self.queue_command(completed.clone());
        }
        self.completions.publish(completed);
    }

    fn queue_command(self: &Arc<Self>, completed: Completed) {
        let unfinished = Unfinished::new(&self.pending);
        if let Some(lost) = self.completions.push(completed, unfinished) {
            self.counters.commands_lost.fetch_add(1, Relaxed);
            let file = lost.file.display();
            tracing::error!(%file, "too many commands wait: none is run for this file");
        }
        if let Some(runtime) = self.completions.start_task() {
            let shared = Arc::clone(self);
            runtime.spawn(async move { shared.run_commands().await });
        }
    }

    /// Runs commands one after the other until none waits.
    async fn run_commands(self: Arc<Self>) {
        while let Some((completed, _unfinished)) = self.completions.next() {
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

/// The failure of a command.
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
        // Its children end with it.
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

/// Returns a word of the command with the paths in place of `{file}` and `{manifest}`.
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
