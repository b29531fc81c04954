//! Announcements: sound that is no participant's.

use opusic_c::Decoder;

use super::AnnouncementState;
use crate::mix::{LARGEST_PACKET, libopus};
use crate::{CodecError, Format};

/// An announcement of a room, as whoever runs the room numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnnouncementId(pub u64);

/// What a source of an announcement has next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPacket {
    /// A packet of Opus.
    Packet,
    /// Nothing yet. The room goes on without, and asks again in 20 ms.
    NotYet,
    /// The announcement is over.
    End,
    /// It cannot be read on.
    Broken,
}

/// Where the packets of an announcement come from: a file, as a rule, that somebody else reads ahead.
pub trait AnnouncementSource: Send {
    /// Writes the next Opus packet, of any duration, into `packet`, which is empty. It is called while the room ticks and
    /// must not wait for anything.
    fn next_packet(&mut self, packet: &mut Vec<u8>) -> NextPacket;
}

/// Frames of the longest Opus packet: 120 ms.
const LONGEST: usize = 6;

/// Frames without packets that are made up before there is silence.
const MOST_CONCEALED: u32 = 3;

/// An announcement that plays.
pub(super) struct Announcement {
    pub(super) id: AnnouncementId,
    pub(super) group: Option<usize>,
    source: Box<dyn AnnouncementSource>,
    decoder: Decoder,
    channels: usize,
    packet: Vec<u8>,
    /// What a packet holds, and what of packets was not played yet.
    scratch: Vec<f32>,
    decoded: Vec<f32>,
    /// The frame of this tick.
    sound: Vec<f32>,
    state: State,
    concealed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was heard yet.
    Waiting,
    Playing,
    /// The next frame is the last.
    Stopping,
    /// All that is left is what is decoded.
    Over,
}

impl std::fmt::Debug for Announcement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcement")
            .field("id", &self.id)
            .field("group", &self.group)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Announcement {
    pub(super) fn new(
        id: AnnouncementId,
        group: Option<usize>,
        source: Box<dyn AnnouncementSource>,
        format: Format,
    ) -> Result<Self, CodecError> {
        let frame = format.frame_len();
        Ok(Announcement {
            id,
            group,
            source,
            decoder: Decoder::new(
                libopus::channels(format.channels),
                libopus::rate(format.rate),
            )?,
            channels: format.channels.count(),
            packet: Vec::with_capacity(LARGEST_PACKET),
            scratch: vec![0.0; frame * LONGEST],
            decoded: Vec::with_capacity(frame * (LONGEST + 1)),
            sound: vec![0.0; frame],
            state: State::Waiting,
            concealed: 0,
        })
    }

    /// It fades out over the next frame.
    pub(super) fn stop(&mut self) {
        self.state = match self.state {
            State::Playing => State::Stopping,
            State::Waiting | State::Stopping | State::Over => {
                self.decoded.clear();
                State::Over
            }
        };
    }

    /// The frame of this tick; none: it has no sound now.
    pub(super) fn sound(&self) -> Option<&[f32]> {
        (!self.sound.is_empty()).then_some(&self.sound)
    }

    /// Makes the next frame. Tells what is to be told; an announcement that ended or failed is over.
    pub(super) fn tick(&mut self, frame: usize) -> Option<AnnouncementState> {
        let before = self.state;
        if before != State::Over {
            self.read(frame);
        }
        let length = self.decoded.len().min(frame);
        self.sound.clear();
        self.sound.extend(self.decoded.drain(..length));
        if length == 0 {
            return match (before, self.state) {
                (State::Waiting, State::Over) => Some(AnnouncementState::Failed),
                (_, State::Over) => Some(AnnouncementState::Ended),
                (_, State::Stopping) => Some(AnnouncementState::Ended),
                (_, State::Waiting | State::Playing) => None,
            };
        }
        self.sound.resize(frame, 0.0);
        match before {
            State::Waiting => {
                if self.state == State::Waiting {
                    self.state = State::Playing;
                }
                return Some(AnnouncementState::Started);
            }
            State::Stopping => {
                fade_out(&mut self.sound, self.channels);
                self.decoded.clear();
                self.state = State::Over;
            }
            State::Playing | State::Over => {}
        }
        None
    }

    /// Decodes packets until there is a frame.
    fn read(&mut self, frame: usize) {
        while self.decoded.len() < frame {
            self.packet.clear();
            match self.source.next_packet(&mut self.packet) {
                NextPacket::Packet => {
                    self.concealed = 0;
                    if !self.decode() {
                        self.state = State::Over;
                        return;
                    }
                }
                NextPacket::NotYet => {
                    if self.state != State::Waiting && self.concealed < MOST_CONCEALED {
                        self.concealed += 1;
                        let missing = frame - self.decoded.len();
                        let scratch = self.scratch.get_mut(..missing).unwrap_or_default();
                        if self
                            .decoder
                            .decode_float_to_slice(&[], scratch, false)
                            .is_ok()
                        {
                            self.decoded.extend_from_slice(scratch);
                        }
                    }
                    return;
                }
                NextPacket::End | NextPacket::Broken => {
                    self.state = State::Over;
                    return;
                }
            }
        }
    }

    /// Decodes the packet; false: it is no Opus.
    fn decode(&mut self) -> bool {
        // To libopus an empty packet is one that was lost.
        if self.packet.is_empty() {
            return false;
        }
        let scratch = &mut self.scratch;
        let Ok(length) = self
            .decoder
            .decode_float_to_slice(&self.packet, scratch, false)
        else {
            return false;
        };
        let sound = scratch.get(..length * self.channels).unwrap_or_default();
        self.decoded.extend_from_slice(sound);
        true
    }
}

fn fade_out(sound: &mut [f32], channels: usize) {
    let frames = sound.len() / channels;
    let step = 1.0 / frames.max(1) as f32;
    for (at, samples) in sound.chunks_exact_mut(channels).enumerate() {
        for sample in samples {
            *sample *= 1.0 - (at + 1) as f32 * step;
        }
    }
}
