//! What is recorded of a peer for statistics and captures.

use super::minute::Minute;
use crate::capture::Capturing;

/// What is recorded of a peer.
#[derive(Default)]
pub(in crate::worker) struct Record {
    /// Datagrams and candidates that were refused.
    refused: u64,
    /// Packets that were too large.
    too_large: u64,
    /// The last estimate of the peer (REMB), in bit/s.
    remb: Option<u64>,
    /// `None` before the first packet in either direction.
    minute: Option<Box<Minute>>,
    capture: Option<Box<Capturing>>,
}

impl Record {
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    pub(in crate::worker) fn count_refused(&mut self) {
        self.refused += 1;
    }

    pub(super) fn too_large(&self) -> u64 {
        self.too_large
    }

    /// Counts a packet that is refused because it is too large.
    pub(in crate::worker) fn count_too_large(&mut self) {
        self.refused += 1;
        self.too_large += 1;
    }

    pub(super) fn remb(&self) -> Option<u64> {
        self.remb
    }

    pub(in crate::worker) fn set_remb(&mut self, bitrate: u64) {
        self.remb = Some(bitrate);
    }

    pub(super) fn minute(&self) -> Option<&Minute> {
        self.minute.as_deref()
    }

    /// Takes the last minute out.
    pub(super) fn take_minute(&mut self) -> Option<Box<Minute>> {
        self.minute.take()
    }

    pub(super) fn set_minute(&mut self, minute: Box<Minute>) {
        self.minute = Some(minute);
    }

    pub(super) fn capture(&self) -> Option<&Capturing> {
        self.capture.as_deref()
    }

    pub(super) fn set_capture(&mut self, capture: Capturing) {
        self.capture = Some(Box::new(capture));
    }

    /// Takes the capture out.
    pub(super) fn take_capture(&mut self) -> Option<Capturing> {
        self.capture.take().map(|capture| *capture)
    }
}
