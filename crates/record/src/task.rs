//! The task of a recording: from the tap to the file.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use portunus_media::{Tap, Tapped};
use tokio::sync::watch;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};

use crate::output::{Output, Written};
use crate::recorder::{Claim, Counters};
use crate::recording::State;
use crate::{RecordError, RecordingSpec};

/// How often a busy recording writes. Packets wait in the tap meanwhile, where they cost nothing: sources remember them
/// for as long anyway.
const PERIOD: Duration = Duration::from_millis(250);
/// Packets written at a time.
const BATCH: usize = 4_096;
/// How long after its end a recording waits for what the worker had handed over before.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// A recording to be made.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) tap: Tap,
    pub(crate) claim: Claim,
    pub(crate) spec: RecordingSpec,
    /// Its sender is dropped when the recording is to end.
    pub(crate) stopped: watch::Receiver<()>,
    pub(crate) state: watch::Sender<State>,
}

/// Records until the tap ends or the recording does.
pub(crate) async fn run(mut job: Job) {
    let outcome = job.record().await;
    let Job {
        claim, spec, state, ..
    } = job;
    let error = outcome.err().map(Arc::new);
    if let Some(error) = &error {
        claim.shared.counters.failed.fetch_add(1, Relaxed);
        tracing::error!(file = spec.name, "recording ended: {error}");
    }
    // Whoever hears of the end finds the name free.
    drop(claim);
    let _ = state.send(State::Ended(error));
}

impl Job {
    async fn record(&mut self) -> Result<(), RecordError> {
        let shared = Arc::clone(&self.claim.shared);
        let (path, spec) = (self.claim.path.clone(), self.spec.clone());
        let created = blocking(move || {
            let set_up = (&shared.config, &shared.places);
            Output::create(set_up, &path, &spec)
        })
        .await;
        let mut output = created.unwrap_or_else(|gone| Err(self.lost(&gone)))?;
        tracing::info!(file = %self.claim.path.display(), "recording");
        let _ = self.state.send(State::Open);

        let mut progress = Progress::default();
        progress.count(&self.claim.shared.counters, output.written(), 0);
        let mut batch = Vec::new();
        while self.take(&mut batch).await {
            let taken = std::mem::take(&mut batch);
            let (written, back, result) = match blocking(move || write(output, taken)).await {
                Ok((written, back, result)) => (written, back, result),
                Err(gone) => return Err(self.lost(&gone)),
            };
            (output, batch) = (written, back);
            let counters = &self.claim.shared.counters;
            if progress.count(counters, output.written(), self.tap.dropped()) {
                tracing::warn!(
                    file = %self.claim.path.display(),
                    "the disk is too slow: packets are left out of the recording"
                );
            }
            if let Err(error) = result {
                // What was written is kept under its name.
                let _ = blocking(move || output.finish()).await;
                return Err(error);
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                _ = self.stopped.changed() => {}
            }
        }
        let finished = blocking(move || output.finish()).await;
        let written = finished.unwrap_or_else(|gone| Err(self.lost(&gone)))?;
        tracing::info!(
            file = %self.claim.path.display(),
            bytes = written.bytes,
            frames = written.frames,
            too_long = written.too_long,
            dropped = self.tap.dropped(),
            "recorded"
        );
        Ok(())
    }

    /// Takes what there is, or waits for it; false once nothing more comes.
    async fn take(&mut self, batch: &mut Vec<Tapped>) -> bool {
        let mut deadline = None;
        loop {
            let end = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                taken = self.tap.recv_many(batch, BATCH) => return taken > 0,
                // The plugin has asked for the tap's end already: what was handed over before still comes.
                _ = self.stopped.changed(), if deadline.is_none() => {
                    deadline = Some(Instant::now() + LAST_WAIT);
                }
                () = end => return false,
            }
        }
    }

    /// The thread that writes is gone.
    fn lost(&self, gone: &JoinError) -> RecordError {
        RecordError::Write {
            name: self.spec.name.clone(),
            error: std::io::Error::other(gone.to_string()),
        }
    }
}

/// Writes a batch, and gives the room for the next one back.
fn write(
    mut output: Output,
    mut batch: Vec<Tapped>,
) -> (Output, Vec<Tapped>, Result<(), RecordError>) {
    let written = output.write(&batch);
    batch.clear();
    (output, batch, written)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    spawn_blocking(work).await
}

/// What of a recording is counted already.
#[derive(Debug, Default)]
struct Progress {
    written: Written,
    dropped: u64,
}

impl Progress {
    /// Counts what is new; says whether something was dropped for the first time.
    fn count(&mut self, counters: &Counters, written: Written, dropped: u64) -> bool {
        let bytes = written.bytes.saturating_sub(self.written.bytes);
        let frames = written.frames.saturating_sub(self.written.frames);
        counters.bytes.fetch_add(bytes, Relaxed);
        counters.frames.fetch_add(frames, Relaxed);
        let missed = dropped.saturating_sub(self.dropped);
        counters.dropped.fetch_add(missed, Relaxed);
        let first = self.dropped == 0 && dropped > 0;
        self.written = written;
        self.dropped = dropped;
        first
    }
}
