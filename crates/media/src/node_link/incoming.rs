//! A stream that comes from another node.

use std::time::Instant;

use portunus_rtc::streams::{Accepted, ReceiveStream};
use portunus_rtp::{SeqNo, Ssrc};
use portunus_srtp::ReplayWindow;

use super::NodeLinkId;
use crate::IngestId;

/// A stream that comes from another node: which ingest takes it, and what is missing.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) ingest: IngestId,
    /// The slot of the ingest.
    pub(crate) slot: usize,
    pub(crate) encoding: u8,
    /// The worker of the other node that sends it.
    pub(crate) far: u16,
    /// `None` before the first packet. One for all keys: numbers go on when the key changes.
    window: Option<ReplayWindow>,
    /// The stream whose place it takes with its first packet.
    pub(crate) replaces: Option<(NodeLinkId, Ssrc)>,
    /// Another stream has taken its place.
    pub(crate) is_superseded: bool,
    pub(crate) stream: ReceiveStream,
}

impl Incoming {
    pub(crate) fn new(
        (ingest, slot): (IngestId, usize),
        encoding: u8,
        (far, ssrc): (u16, Ssrc),
        clock_rate: u32,
    ) -> Self {
        Self {
            ingest,
            slot,
            encoding,
            far,
            window: None,
            replaces: None,
            is_superseded: false,
            stream: ReceiveStream::new(ssrc, clock_rate, true),
        }
    }

    /// Returns the extended number of a packet, unless it came before or is too old to tell.
    pub(crate) fn number(&self, sequence: u16) -> Option<SeqNo> {
        let Some(window) = &self.window else {
            return Some(SeqNo(u64::from(sequence)));
        };
        let seq = SeqNo(window.highest()).nearest(sequence);
        window.is_fresh(seq.0).then_some(seq)
    }

    /// Takes an authentic packet with this number.
    pub(crate) fn accept(
        &mut self,
        seq: SeqNo,
        timestamp: u32,
        bytes: usize,
        now: Instant,
    ) -> Accepted {
        match &mut self.window {
            Some(window) => window.accept(seq.0),
            None => self.window = Some(ReplayWindow::starting_with(seq.0)),
        }
        self.stream.accept(seq, timestamp, bytes, now)
    }
}
