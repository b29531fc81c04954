//! The intake of packets: each gets its place among the others.

use super::buffer::{Inserted, Waiting};
use super::opus_packet::OpusPacket;
use super::receiver::{Receiver, State};
use super::timeline::Place;
use super::{Content, IncomingPacket, red};
use crate::AudioCodec;

/// The longest packet of G.711 and G.722 in bytes: as long as the longest of Opus.
const LONGEST_PHONE: usize = 960;

impl Receiver {
    /// Takes a packet. Unusable ones are counted in [`stats`](Self::stats).
    pub fn push(&mut self, packet: &IncomingPacket<'_>) {
        match packet.content {
            Content::Codec => match self.described(packet.payload) {
                Some(described) => self.take(packet, described),
                None => self.stats.invalid += 1,
            },
            Content::Red => {
                let mut described = None;
                red::blocks(packet.payload, |block| {
                    if block.offset == 0 {
                        described = self.described(block.payload);
                    }
                });
                match described {
                    Some(described) => self.take(packet, described),
                    None => self.stats.invalid += 1,
                }
            }
        }
    }

    /// Takes a packet whose own audio is `described`.
    fn take(&mut self, packet: &IncomingPacket<'_>, described: OpusPacket) {
        let scale = 48_000 / self.options.codec.clock_rate();
        let least = self.delay.least_transit();
        let Some(place) =
            self.timeline
                .place(packet.seq, packet.timestamp, scale, packet.arrival, least)
        else {
            self.stats.invalid += 1;
            return;
        };
        self.stats.received += 1;
        self.delay
            .observe(place.arrival, place.media, i64::from(described.len));
        if packet.content == Content::Codec {
            self.insert(place, described, packet.level, false, packet.payload);
            self.expect_redundancy(described.fec > 0);
            return;
        }
        let mut redundancy = described.fec > 0;
        red::blocks(packet.payload, |block| {
            if block.offset == 0 {
                self.insert(place, described, packet.level, false, block.payload);
            } else if let Some(described) = self.described(block.payload).filter(|_| !place.anew) {
                redundancy = true;
                let media = place.media - i64::from(block.offset) * i64::from(scale);
                let seq = place.seq - i64::from(block.after);
                self.insert(
                    Place {
                        seq,
                        media,
                        ..place
                    },
                    described,
                    None,
                    true,
                    block.payload,
                );
            }
        });
        self.expect_redundancy(redundancy);
    }

    fn expect_redundancy(&mut self, seen: bool) {
        self.redundancy = if seen {
            u8::MAX
        } else {
            self.redundancy.saturating_sub(1)
        };
    }

    fn insert(
        &mut self,
        place: Place,
        described: OpusPacket,
        level: Option<u8>,
        redundant: bool,
        payload: &[u8],
    ) {
        if !redundant {
            self.relay.size.add(payload.len());
        }
        let waiting = Waiting {
            seq: place.seq,
            media: place.media,
            len: i64::from(described.len),
            fec: i64::from(described.fec),
            level,
            dtx: described.dtx,
            relayable: self.is_relayable(described),
            redundant,
            anew: place.anew,
            payload: Vec::new(),
        };
        let late = waiting.end() <= self.next;
        if late && redundant {
            return;
        }
        if late && self.state != State::Skipped {
            self.stats.late += 1;
            return;
        }
        match self.buffer.insert(waiting, payload) {
            Inserted::Yes => {}
            Inserted::Full => self.stats.overflow += 1,
            Inserted::Duplicate | Inserted::Misfit if redundant => {}
            Inserted::Duplicate => self.stats.duplicate += 1,
            Inserted::Misfit => self.stats.late += 1,
        }
    }

    /// Returns the properties of a payload that can be read without decoding.
    fn described(&self, payload: &[u8]) -> Option<OpusPacket> {
        match self.options.codec {
            AudioCodec::Opus => OpusPacket::parse(payload),
            AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => (1..=LONGEST_PHONE)
                .contains(&payload.len())
                .then(|| OpusPacket {
                    len: payload.len() as u32 * 6,
                    dtx: false,
                    fec: 0,
                    rate: self.options.codec.sample_rate(),
                    stereo: false,
                    silk: false,
                }),
        }
    }
}
