//! The packets and messages of a source in Janus's format.

use std::time::{Duration, Instant};

use portunus_files::mjr::FrameWriter;
use portunus_media::{DataPayload, TappedMessage, TappedPacket};
use portunus_rtp::{ExtensionKind, Ssrc};

use super::Put;
use crate::RecordedMedia;
use crate::clock::Clock;

/// The time after which a recording of video starts without a keyframe.
const KEYFRAME_WAIT: Duration = Duration::from_secs(5);

/// The content of a file in Janus's format.
#[derive(Debug)]
pub(crate) struct MjrContent {
    media: RecordedMedia,
    writer: FrameWriter,
    clock: Clock,
    /// The arrival of the first packet, while a keyframe is awaited.
    waits: Option<Option<Instant>>,
    packet: Vec<u8>,
}

impl MjrContent {
    pub(super) fn begin(media: &RecordedMedia, buffer: &mut Vec<u8>) -> Self {
        let clock = Clock::now();
        Self {
            writer: FrameWriter::new(media.info(clock.started()), buffer),
            clock,
            waits: media.has_keyframes().then_some(None),
            media: media.clone(),
            packet: Vec::new(),
        }
    }

    pub(super) fn put_packet(&mut self, packet: &TappedPacket, buffer: &mut Vec<u8>) -> Put {
        let Some(pt) = self.media.payload_type(packet.codec()) else {
            return Put::default();
        };
        if let Some(since) = &mut self.waits {
            let since = *since.get_or_insert(packet.arrival());
            let waited = packet.arrival().saturating_duration_since(since);
            if !packet.is_keyframe() && waited < KEYFRAME_WAIT {
                return Put::default();
            }
            self.waits = None;
        }
        self.writer.set_info(|info| {
            let known = ExtensionKind::ALL.into_iter();
            let numbered = known.filter_map(|kind| Some((packet.extensions().id(kind)?, kind)));
            info.extensions = numbered
                .map(|(id, kind)| (id, kind.uri().to_owned()))
                .collect();
        });
        packet.write_to(Some(pt), &mut self.packet);
        if self.packet.is_empty() {
            return Put::default();
        }
        // The SSRC field, see RFC 3550 section 5.1.
        if let (Some(Ssrc(ssrc)), Some(field)) = (self.media.ssrc(), self.packet.get_mut(8..12)) {
            field.copy_from_slice(&ssrc.to_be_bytes());
        }
        let at = self.clock.at(packet.arrival());
        Put::of(self.writer.packet(at, &self.packet, buffer))
    }

    pub(super) fn put_message(&mut self, message: &TappedMessage, buffer: &mut Vec<u8>) -> Put {
        let bytes = match &message.payload {
            DataPayload::Text(text) => text.as_bytes(),
            DataPayload::Binary(bytes) => bytes,
        };
        let at = self.clock.at(message.arrival);
        Put::of(self.writer.message(at, bytes, buffer))
    }
}
