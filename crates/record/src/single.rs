//! A recording of one source into one file, on the thread of the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portunus_files::manifest::Track;
use portunus_media::Tap;
use tokio::sync::watch;

use crate::control::Control;
use crate::disk::{Job, Round, Turn, ended, guarded};
use crate::ending::Ending;
use crate::outcome::{End, State, file_end};
use crate::output::{Output, Written};
use crate::session::Entry;
use crate::{RecordError, RecordingSpec};

/// The packets that are written at a time.
const BATCH: usize = 4_096;
/// The time for which an ended recording waits for the last packets of the worker.
pub(crate) const LAST_WAIT: Duration = Duration::from_secs(2);

/// A recording of one source.
#[derive(Debug)]
pub(crate) struct Single {
    tap: Tap,
    spec: RecordingSpec,
    control: Arc<Control>,
    state: watch::Sender<State>,
    /// `None` once it has ended.
    output: Option<Output>,
    entry: Option<Entry>,
    progress: Progress,
    /// Since when it is ending.
    ends_since: Option<Instant>,
}

/// The counters that were published already.
#[derive(Debug, Default)]
struct Progress {
    written: Written,
    dropped: u64,
}

impl Single {
    /// Returns a recording into this file.
    pub(crate) fn new(
        tap: Tap,
        spec: RecordingSpec,
        output: Output,
        control: Arc<Control>,
        state: watch::Sender<State>,
    ) -> Self {
        tracing::info!(file = %output.target.path().display(), "recording");
        let _ = state.send(State::Open);
        Self {
            tap,
            spec,
            control,
            state,
            output: Some(output),
            entry: None,
            progress: Progress::default(),
            ends_since: None,
        }
    }

    /// Writes waiting packets. Returns the end of the recording, if it has come.
    fn write(&mut self, round: &mut Round) -> Result<Option<End>, RecordError> {
        let is_stopped = self.control.is_stopped();
        let Some(output) = &mut self.output else {
            return Ok(Some(End::Stopped));
        };
        output.target.check_room(round)?;
        loop {
            round.batch.clear();
            let goes_on = self.tap.drain(&mut round.batch, BATCH);
            let is_all = round.batch.len() < BATCH;
            let is_time_up = output.write(&round.batch, self.control.until(), round.now);
            round.batch.clear();
            if is_time_up? {
                return Ok(Some(End::Time));
            }
            match (goes_on, is_stopped) {
                (false, true) => return Ok(Some(End::Stopped)),
                (false, false) => return Ok(Some(End::Source)),
                (true, true) if is_all => {
                    // The tap is ending already, but packets handed over before still come.
                    let since = *self.ends_since.get_or_insert(round.now);
                    let is_over = round.now >= since + LAST_WAIT;
                    return Ok(is_over.then_some(End::Stopped));
                }
                (true, _) if is_all => return Ok(None),
                (true, _) => {}
            }
        }
    }

    /// Adds the file to the manifest, once it has content.
    fn enter(&mut self) {
        let (Some(output), Some(of)) = (&self.output, &self.spec.of) else {
            return;
        };
        if self.progress.written.frames == 0 && output.written().frames > 0 {
            let mut track = self.spec.media.track();
            track.track = 1;
            let (path, format) = (output.target.claimed(), self.spec.format);
            self.entry = Entry::begin(of, path, format, 1, |file| {
                file.encrypted = self.spec.media.is_encrypted();
                file.tracks.push(track);
            });
        }
    }

    /// Publishes the new counts.
    fn count(&mut self) {
        self.enter();
        let Some(output) = &self.output else {
            return;
        };
        let (written, dropped) = (output.written(), self.tap.dropped());
        let counters = &output.target.shared().counters;
        let frames = written.frames.saturating_sub(self.progress.written.frames);
        counters.frames.fetch_add(frames, Relaxed);
        let missed = dropped.saturating_sub(self.progress.dropped);
        counters.dropped.fetch_add(missed, Relaxed);
        if self.progress.dropped == 0 && dropped > 0 {
            let file = output.target.path().display();
            tracing::warn!(%file, "the disk is too slow: packets are left out of the recording");
        }
        if let Some(entry) = &self.entry {
            let started_us = output.started_us();
            entry.update(false, |file| {
                file.bytes = output.target.len();
                file.duration_ms = written.duration().as_secs_f64() * 1_000.0;
                file.started_us = started_us;
                if let Some(track) = file.tracks.first_mut() {
                    note(track, &written, dropped);
                }
            });
        }
        self.progress = Progress { written, dropped };
    }

    /// Whether its manifest is still being made. The end is reported with the manifest's path.
    fn awaits_manifest(&mut self, now: Instant) -> bool {
        let since = *self.ends_since.get_or_insert(now);
        let is_made = self.entry.as_ref().is_none_or(Entry::has_place);
        !is_made && now < since + LAST_WAIT
    }

    fn end(&mut self, ended: Result<End, RecordError>) {
        let finished = match (&mut self.output, &ended) {
            (Some(output), Ok(_)) => output.finish(),
            (Some(output), Err(error)) if error.leaves_room() => {
                // It plays without its end, too.
                let _ = output.finish();
                Ok(())
            }
            (Some(output), Err(RecordError::Fault { .. })) => output.flush(),
            _ => Ok(()),
        };
        self.count();
        let Some(output) = self.output.take() else {
            return;
        };
        let outcome = match output.written().frames {
            0 => {
                // A failed file without content is deleted.
                if ended.is_err() {
                    let counters = &output.target.shared().counters;
                    counters.failed.fetch_add(1, Relaxed);
                }
                output.target.discard();
                ended
            }
            _ => {
                let ending = Ending {
                    entry: self.entry.take(),
                    of: self.spec.of.as_ref(),
                    control: &self.control,
                    end: file_end(&ended),
                    error: ended.as_ref().err(),
                    duration: output.written().duration(),
                };
                let left = ending.conclude(output.target, finished);
                ended.and_then(|end| left.map(|()| end))
            }
        };
        if let Err(error) = &outcome {
            tracing::error!(file = self.spec.name, "recording ended: {error}");
        }
        let _ = self.state.send(State::Ended(outcome.map_err(Arc::new)));
    }
}

fn note(track: &mut Track, written: &Written, dropped: u64) {
    track.offset_ms = (written.frames > 0).then_some(0.0);
    track.packets = written.frames;
    track.late = written.left_out;
    track.dropped = dropped;
}

impl Job for Single {
    fn turn(&mut self, round: &mut Round) -> Turn {
        let worked = guarded(|| self.write(round));
        self.count();
        match ended(worked, &self.spec.name) {
            None => Turn::GoesOn,
            Some(Ok(End::Stopped | End::Source)) if self.awaits_manifest(round.now) => Turn::GoesOn,
            Some(ended) => {
                self.end(ended);
                Turn::Ended
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.control.is_stopped()
    }
}
