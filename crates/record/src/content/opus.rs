//! The packets of an Opus source as an Ogg file.

use std::time::Instant;

use portunus_files::assembly::InOrder;
use portunus_files::opus::{OggOpusWriter, OpusHead, OpusTags, Placed};
use portunus_media::TappedPacket;
use portunus_rtp::{SeqNo, red};
use portunus_sdp::negotiated::Codec;

use super::Put;
use super::timeline::Timeline;
use crate::RecordedMedia;

/// The content of an Ogg file.
#[derive(Debug)]
pub(crate) struct OpusContent {
    writer: OggOpusWriter<Vec<u8>>,
    order: InOrder<Arrived>,
    /// The arrival of the first packet.
    first: Option<Instant>,
    timeline: Timeline,
}

/// A packet that waits for its turn.
#[derive(Debug)]
struct Arrived {
    at: Instant,
    timestamp: u32,
    payload: Vec<u8>,
}

impl OpusContent {
    /// Starts a file whose stream has this serial number.
    pub(super) fn begin(media: &RecordedMedia, serial: u32) -> std::io::Result<Self> {
        let tags = match media.description() {
            Some(title) => OpusTags::default().with("TITLE", title),
            None => OpusTags::default(),
        };
        Ok(Self {
            writer: OggOpusWriter::new(Vec::new(), serial, &OpusHead::default(), &tags)?,
            order: InOrder::new(),
            first: None,
            timeline: Timeline::default(),
        })
    }

    /// Takes a packet, and writes the packets whose turn has come.
    pub(super) fn put(&mut self, packet: &TappedPacket) -> Put {
        let is_taken = match packet.codec() {
            Codec::Opus => self.take(packet, (0, 0), packet.payload()),
            Codec::Red => self.take_apart(packet),
            _ => return Put::default(),
        };
        let mut put = self.write_due();
        put.left_out += u64::from(!is_taken);
        put
    }

    /// Splits redundant audio (RFC 2198): first earlier packets, which may be lost, then its own.
    fn take_apart(&mut self, packet: &TappedPacket) -> bool {
        let mut is_taken = false;
        for block in red::unpack(packet.payload()) {
            // An empty block replaces no packet.
            if !block.payload.is_empty() {
                let before = (block.after as u64, block.offset);
                is_taken = self.take(packet, before, block.payload);
            }
        }
        is_taken
    }

    /// Takes the audio of a packet, or of one that is `before` it by so many packets and so much
    /// time. Returns false if it is a duplicate or too late.
    fn take(&mut self, packet: &TappedPacket, before: (u64, u32), payload: &[u8]) -> bool {
        let Some(seq) = packet.seq().0.checked_sub(before.0) else {
            return false;
        };
        let arrived = Arrived {
            at: packet.arrival(),
            timestamp: packet.timestamp().wrapping_sub(before.1),
            payload: payload.to_vec(),
        };
        let first = *self.first.get_or_insert(arrived.at);
        let since = arrived.at.saturating_duration_since(first);
        self.order.push(SeqNo(seq), since, payload.len(), arrived)
    }

    /// Writes the packets that still wait for earlier ones.
    pub(super) fn end(&mut self) -> Put {
        self.order.end();
        self.write_due()
    }

    fn write_due(&mut self) -> Put {
        let mut put = Put::default();
        while let Some(packet) = self.order.pop() {
            let end = self.writer.end();
            let at = self.timeline.place(packet.timestamp, packet.at, end);
            match self.writer.packet(at, &packet.payload) {
                Ok(Placed::Written) => put.written += 1,
                Ok(Placed::Late) | Err(_) => put.left_out += 1,
            }
        }
        put
    }

    /// Moves the written bytes to the end of `buffer`.
    pub(super) fn hand_over(&mut self, buffer: &mut Vec<u8>) {
        buffer.append(self.writer.out());
    }

    /// Ends the stream.
    pub(super) fn finish(self, buffer: &mut Vec<u8>) {
        let end = self.writer.end();
        // Writing to memory does not fail.
        if let Ok(mut rest) = self.writer.finish(end) {
            buffer.append(&mut rest);
        }
    }
}
