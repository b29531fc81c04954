//! The task of a recording: from the tap to the file.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_media::{Tap, Tapped};
use tokio::sync::watch;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{sleep, sleep_until};

use crate::output::{Output, Written};
use crate::place::Places;
use crate::recorder::{Claim, Counters};
use crate::recording::{End, State};
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
    pub(crate) places: Arc<Places>,
    pub(crate) spec: RecordingSpec,
    /// Its file, if it was made before.
    pub(crate) output: Option<Output>,
    /// When it ends by itself. Its sender is dropped when it is to end at once.
    pub(crate) until: watch::Receiver<Option<Instant>>,
    pub(crate) state: watch::Sender<State>,
}

/// Records until the tap ends or the recording does.
pub(crate) async fn run(mut job: Job) {
    let outcome = job.record().await;
    let Job {
        claim, spec, state, ..
    } = job;
    let outcome = outcome.map_err(Arc::new);
    if let Err(error) = &outcome {
        claim.shared.counters.failed.fetch_add(1, Relaxed);
        tracing::error!(file = spec.name, "recording ended: {error}");
    }
    // Whoever hears of the end finds the name free.
    drop(claim);
    let _ = state.send(State::Ended(outcome));
}

/// Makes the file of a recording.
pub(crate) async fn create(
    claim: &Claim,
    places: &Arc<Places>,
    spec: &RecordingSpec,
) -> Result<Output, RecordError> {
    let (shared, places) = (Arc::clone(&claim.shared), Arc::clone(places));
    let (path, wanted) = (claim.path.clone(), spec.clone());
    let created = blocking(move || Output::create((&shared.config, &places), &path, &wanted));
    created
        .await
        .unwrap_or_else(|gone| Err(lost(&spec.name, &gone)))
}

impl Job {
    async fn record(&mut self) -> Result<End, RecordError> {
        let mut output = match self.output.take() {
            Some(output) => output,
            None => create(&self.claim, &self.places, &self.spec).await?,
        };
        tracing::info!(file = %self.claim.path.display(), "recording");
        let _ = self.state.send(State::Open);

        let mut progress = Progress::default();
        progress.count(&self.claim.shared.counters, output.written(), 0);
        let mut batch = Vec::new();
        let mut is_time_up = false;
        while self.take(&mut batch).await {
            let taken = std::mem::take(&mut batch);
            let until = *self.until.borrow();
            let done = blocking(move || write(output, taken, until)).await;
            let (written, back, result) = match done {
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
            is_time_up = match result {
                Ok(is_time_up) => is_time_up,
                Err(error) => {
                    // What was written is kept under its name.
                    let _ = blocking(move || output.leave()).await;
                    return Err(error);
                }
            };
            if is_time_up {
                break;
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                _ = self.until.changed() => {}
            }
        }
        let end = match (is_time_up, self.until.has_changed()) {
            (true, _) => End::Time,
            (false, Err(_)) => End::Stopped,
            (false, Ok(_)) => End::Source,
        };
        let finished = blocking(move || output.finish()).await;
        let written = finished.unwrap_or_else(|gone| Err(self.lost(&gone)))?;
        progress.count(&self.claim.shared.counters, written, self.tap.dropped());
        tracing::info!(
            file = %self.claim.path.display(),
            bytes = written.bytes,
            frames = written.frames,
            left_out = written.left_out,
            dropped = self.tap.dropped(),
            "recorded"
        );
        Ok(end)
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
                changed = self.until.changed(), if deadline.is_none() => if changed.is_err() {
                    deadline = Some(tokio::time::Instant::now() + LAST_WAIT);
                },
                () = end => return false,
            }
        }
    }

    /// The thread that writes is gone.
    fn lost(&self, gone: &JoinError) -> RecordError {
        lost(&self.spec.name, gone)
    }
}

fn lost(name: &str, gone: &JoinError) -> RecordError {
    RecordError::Write {
        name: name.to_owned(),
        error: std::io::Error::other(gone.to_string()),
    }
}

/// Writes a batch, and gives the room for the next one back.
fn write(
    mut output: Output,
    mut batch: Vec<Tapped>,
    until: Option<Instant>,
) -> (Output, Vec<Tapped>, Result<bool, RecordError>) {
    let written = output.write(&batch, until);
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
