//! A container and the messages that were recorded beside it, on one time line.

use std::time::Duration;

use super::messages::Messages;
use super::{nanos, time};
use crate::demux::Nanos;
use crate::{FileError, MediaFile, Play, Sent, TimedPacket};

/// A container, and messages beside it.
#[derive(Debug)]
pub(super) struct Beside {
    file: MediaFile,
    messages: Messages,
    /// The messages' number among the tracks.
    track: usize,
    /// How much earlier than the container the messages begin.
    lead: Nanos,
    /// Where the line ends.
    duration: Option<Duration>,
    /// Where it was gone to, and where that is on the endless time line, until the container's first packet is known.
    gone_to: Option<(Nanos, Nanos)>,
    /// Where the last message was.
    until: Nanos,
    /// What is wrong with the container, until all messages are played.
    error: Option<FileError>,
}

impl Beside {
    /// Both from their beginning on.
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

    /// When the container's next packet is due. What is wrong with it is kept.
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

    /// Messages go where the container has gone.
    fn follow(&mut self) {
        if let Some((to, base)) = self.gone_to.take() {
            let own = to.saturating_sub(self.lead);
            let shift = base.saturating_sub(own);
            // It begins at a keyframe before that, unless there is nothing of it any more.
            self.messages
                .go_to(base, self.file.shift().unwrap_or(shift));
        }
    }

    /// Has the container go to `to` of the line of both, which is at `base` of the endless one.
    fn go_to(
        &mut self,
        (to, base): (Nanos, Nanos),
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

impl Play for Beside {
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
        self.go_to((nanos(to), base), |file, begins, own| {
            file.wait_until(begins);
            file.seek(own)
        })
    }

    fn seek_behind(&mut self, sent: &Sent, to: Duration) -> Result<(), FileError> {
        let mut sent = sent.clone();
        let base = nanos(sent.until);
        self.go_to((nanos(to), base), |file, begins, own| {
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
