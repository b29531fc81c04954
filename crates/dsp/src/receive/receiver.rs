//! A participant's packets in order, and frames of sound made of them.

use std::collections::VecDeque;
use std::time::Instant;

use super::decoder::Decoder;
use super::{Content, IncomingPacket, ReceiverStats};
use crate::{AudioCodec, Format};

/// What a receiver is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// What the participant sends.
    pub codec: AudioCodec,
    /// The form of the room's sound.
    pub format: Format,
}

/// What a frame is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Nothing is due: all samples are zero.
    Silence,
    /// The participant's sound.
    Sound {
        /// Some of it is made up for what was missing.
        concealed: bool,
    },
}

/// How many packets wait at most.
const MOST_PACKETS: usize = 64;
/// How many frames wait before the first is played.
const FIRST_WAIT: usize = 2;
/// How many frames are made up at a stretch, at most.
const MOST_CONCEALED: u32 = 5;

/// One participant's way in: takes packets as they come, gives a frame of sound each 20 ms.
///
/// Each tick of a room takes either [`play`](Self::play) or [`skip`](Self::skip), once. A receiver that is skipped decodes
/// nothing.
#[derive(Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    stats: ReceiverStats,
    decoder: Option<Decoder>,
    packets: VecDeque<Packet>,
    /// Sound that was decoded and not played yet.
    decoded: Vec<f32>,
    /// The packet to be decoded next, once playing has begun.
    next: Option<u64>,
    concealed: u32,
}

#[derive(Debug)]
struct Packet {
    seq: u64,
    level: Option<u8>,
    /// Samples a channel.
    len: usize,
    payload: Vec<u8>,
}

impl Receiver {
    /// A receiver that has seen nothing yet. Its decoder is made when it is first needed.
    pub fn new(options: ReceiverOptions) -> Self {
        Self {
            options,
            stats: ReceiverStats::default(),
            decoder: None,
            packets: VecDeque::new(),
            decoded: Vec::new(),
            next: None,
            concealed: 0,
        }
    }

    /// Takes a packet. What cannot be used is counted in [`stats`](Self::stats).
    pub fn push(&mut self, packet: &IncomingPacket<'_>) {
        let Some(len) = self.packet_len(packet) else {
            self.stats.invalid += 1;
            return;
        };
        if self.next.is_some_and(|next| packet.seq < next) {
            self.stats.late += 1;
            return;
        }
        let place = self
            .packets
            .partition_point(|waiting| waiting.seq < packet.seq);
        if self
            .packets
            .get(place)
            .is_some_and(|waiting| waiting.seq == packet.seq)
        {
            self.stats.duplicate += 1;
            return;
        }
        if self.packets.len() >= MOST_PACKETS {
            self.stats.overflow += 1;
            return;
        }
        self.stats.received += 1;
        self.packets.insert(
            place,
            Packet {
                seq: packet.seq,
                level: packet.level,
                len,
                payload: packet.payload.to_vec(),
            },
        );
    }

    /// Writes the frame that is due to `into`, which is as long as [`Format::frame_len`] says; the rest of a longer one is
    /// silence.
    pub fn play(&mut self, _now: Instant, into: &mut [f32]) -> Played {
        let mut concealed = false;
        if self.next.is_none() && self.packets.len() >= FIRST_WAIT {
            self.next = self.packets.front().map(|packet| packet.seq);
        }
        let frame = self.options.format.frame_len();
        while self.decoded.len() < frame {
            let Some(next) = self.next else { break };
            if self.decoder.is_none() {
                self.decoder = Decoder::new(self.options.codec, self.options.format).ok();
            }
            let Some(decoder) = &mut self.decoder else {
                break;
            };
            let due = self
                .packets
                .front()
                .is_some_and(|packet| packet.seq <= next);
            if let Some(packet) = due.then(|| self.packets.pop_front()).flatten() {
                self.concealed = 0;
                self.next = Some(next + 1);
                if decoder
                    .decode(&packet.payload, packet.len, &mut self.decoded)
                    .is_err()
                {
                    self.stats.invalid += 1;
                }
            } else if self.concealed < MOST_CONCEALED {
                self.concealed += 1;
                concealed = true;
                if !self.packets.is_empty() {
                    self.next = Some(next + 1);
                }
                if decoder
                    .conceal(self.options.format.rate.frame_len(), &mut self.decoded)
                    .is_err()
                {
                    break;
                }
            } else {
                self.concealed = 0;
                self.next = None;
            }
        }
        into.fill(0.0);
        if self.decoded.is_empty() {
            return Played::Silence;
        }
        for (to, from) in into
            .iter_mut()
            .zip(self.decoded.drain(..frame.min(self.decoded.len())))
        {
            *to = from;
        }
        self.stats.played += 1;
        self.stats.concealed += u64::from(concealed);
        Played::Sound { concealed }
    }

    /// Passes over the frame that is due without decoding it.
    ///
    /// What is played after frames were skipped fades in. What is skipped after frames were played should be faded out by
    /// playing one more frame.
    pub fn skip(&mut self, _now: Instant) {
        self.decoded.clear();
        if self.packets.len() > FIRST_WAIT {
            self.packets.pop_front();
        }
        self.next = self.packets.front().map(|packet| packet.seq);
    }

    /// How loud the frame is that is due, in -dBov, as its packet tells; it is not decoded. None: nothing is due, or packets
    /// do not tell.
    pub fn due_level(&self, _now: Instant) -> Option<u8> {
        self.packets.front().and_then(|packet| packet.level)
    }

    /// What was counted, and the delay now.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Samples a channel of a packet, if it holds the codec.
    fn packet_len(&self, packet: &IncomingPacket<'_>) -> Option<usize> {
        if packet.content == Content::Red {
            return None;
        }
        match self.options.codec {
            AudioCodec::Opus => {
                opusic_c::utils::get_nb_samples(packet.payload, opusic_c::SampleRate::Hz48000)
                    .ok()
                    .map(|len| len * self.options.format.rate.hertz() as usize / 48_000)
            }
            AudioCodec::Pcma | AudioCodec::Pcmu => {
                (!packet.payload.is_empty()).then_some(packet.payload.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channels, SampleRate, g711, g711::Law, level};

    #[test]
    fn a_tone_is_heard() {
        let format = Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        };
        let mut receiver = Receiver::new(ReceiverOptions {
            codec: AudioCodec::Pcmu,
            format,
        });
        let mut frame = vec![0.0; format.frame_len()];
        let now = Instant::now();
        let mut heard = 0;
        for seq in 0..20 {
            let tone: Vec<f32> = (0..160)
                .map(|index| 0.5 * (index as f32 * std::f32::consts::TAU / 16.0).sin())
                .collect();
            let mut payload = Vec::new();
            g711::encode(Law::Mu, &tone, &mut payload);
            let timestamp = seq as u32 * 160;
            receiver.push(&IncomingPacket {
                seq,
                timestamp,
                payload: &payload,
                content: Content::Codec,
                level: None,
                arrival: now,
            });
            if receiver.play(now, &mut frame) == (Played::Sound { concealed: false })
                && level::level(&frame) < 12
            {
                heard += 1;
            }
        }
        assert!(heard >= 17, "{heard} frames of 20");
    }
}
