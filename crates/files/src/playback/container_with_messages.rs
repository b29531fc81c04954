//! A container with messages that were recorded with it, on one timeline.

use std::time::Duration;

use super::messages::Messages;
use super::{nanos, time};
use crate::demux::Nanos;
use crate::{FileError, MediaFile, Play, Sent, TimedPacket};

/// A container and its messages.
#[derive(Debug)]
pub(super) struct ContainerWithMessages {
    file: MediaFile,
    messages: Messages,
    /// The number of the messages among the tracks.
    track: usize,
    /// By how much the messages start before the container.
    lead: Nanos,
    /// The end of the timeline.
    duration: Option<Duration>,
    /// The target of a seek, and its place on the endless timeline, until the container's next
    /// packet is known.
    gone_to: Option<(Nanos, Nanos)>,
    /// The time of the last message.
    until: Nanos,
    /// The error of the container, until all messages are played.
    error: Option<FileError>,
}

impl ContainerWithMessages {
    /// Returns both from their starts on.
    pub(super) fn new(mut file: MediaFile, messages: Messages) -> Self {
        let (first, last) = messages.span();
        let lead = first.saturating_neg().max(0);
        file.begin_at(lead);
        let duration = file.duration().map(nanos);
        let duration = duration.map(|ends| time(ends.max(last).saturating_add(lead)));
        Self {
            track: file.tracks().len(),
            file,
            messages,
            lead,
            duration,
            gone_to: Some((0, 0)),
            until: 0,
            error: None,
        }
    }

    /// Returns when the container's next packet is due. An error is kept.
    fn peek_file(&mut self) -> Option<Nanos> {
        if self.error.is_some() {
            return None;
        }
        match self.file.peek() {
            Ok(at) => at.map(nanos),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// Has the messages follow a seek of the container.
    fn follow(&mut self) {
        if let Some((to, base)) = self.gone_to.take() {
            let own = to.saturating_sub(self.lead);
            let shift = base.saturating_sub(own);
            // The container starts at a keyframe before the target, unless it has ended.
            self.messages
                .go_to(base, self.file.shift().unwrap_or(shift));
        }
    }

    /// Seeks the container to `to` on the common timeline, which starts at `base` on the endless
    /// one.
    fn go_to(
        &mut self,
        to: Nanos,
        base: Nanos,
        seek: impl FnOnce(&mut MediaFile, Nanos, Duration) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let own = to.saturating_sub(self.lead);
        let begins = base.saturating_add(own.saturating_neg().max(0));
        self.gone_to = Some((to, base));
        self.until = base;
        self.error = None;
        seek(&mut self.file, begins, time(own))
    }
}

impl Play for ContainerWithMessages {
    fn clock_rates(&self) -> Vec<Option<u32>> {
        let mut rates = Play::clock_rates(&self.file);
        rates.push(None);
        rates
    }

    fn duration(&self) -> Option<Duration> {
        self.duration
    }

    fn is_looping(&self) -> bool {
        self.file.is_looping()
    }

    fn next(&mut self) -> Option<Result<TimedPacket<'_>, FileError>> {
        let of_file = self.peek_file();
        self.follow();
        let message = self.messages.peek();
        let message = message.filter(|at| of_file.is_none_or(|file| *at <= file));
        if let Some(at) = message {
            self.until = self.until.max(at);
            return Some(Ok(TimedPacket {
                track: self.track,
                at: time(at),
                presented: time(at),
                bytes: self.messages.take(),
            }));
        }
        if of_file.is_some() {
            return self.file.next();
        }
        let error = self.error.take().or_else(|| self.messages.take_error());
        error.map(Err)
    }

    fn seek(&mut self, to: Duration) -> Result<(), FileError> {
        let base = self.file.read_until().max(self.until);
        self.go_to(nanos(to), base, |file, begins, own| {
            file.wait_until(begins);
            file.seek(own)
        })
    }

    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        let mut sent = sent.clone();
        let base = nanos(sent.until);
        self.go_to(nanos(to), base, |file, begins, own| {
            sent.until = time(begins);
            file.seek_behind(&sent, own)
        })
    }

    fn nothing_sent(&self) -> Sent {
        let mut sent = self.file.nothing_sent();
        sent.next.push(0);
        sent
    }

    fn played(&self) -> Duration {
        self.file.played()
    }
}
