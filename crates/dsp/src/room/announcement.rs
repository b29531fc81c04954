//! Announcements: audio that does not come from a participant.

use opusic_c::Decoder;

use super::AnnouncementState;
use crate::mix::{LARGEST_PACKET, libopus};
use crate::{CodecError, Format};

/// The number of an announcement in a room, chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AnnouncementId(pub u64);

/// The result of reading from an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPacket {
    /// A packet of Opus.
    Packet,
    /// No packet yet. The room asks again in 20 ms.
    NotYet,
    /// The announcement has ended.
    End,
    /// It cannot be read any further.
    Broken,
}

/// The source of an announcement's packets: usually a file that another thread reads ahead.
pub trait AnnouncementSource: Send {
    /// Writes the next Opus packet, of any duration, into `packet`, which is empty. It is called
    /// during a tick, and must not block.
    fn next_packet(&mut self, packet: &mut Vec<u8>) -> NextPacket;
}

/// The frames of the longest Opus packet: 120 ms.
const LONGEST: usize = 6;

/// The missing frames that are concealed before silence.
const MOST_CONCEALED: u32 = 3;

/// An announcement that plays.
pub(super) struct Announcement {
    pub(super) id: AnnouncementId,
    pub(super) group: Option<usize>,
    source: Box<dyn AnnouncementSource>,
    decoder: Decoder,
    channels: usize,
    packet: Vec<u8>,
    /// The decoded audio that was not played yet.
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
    /// Only decoded audio is left.
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

    /// Fades out over the next frame.
    pub(super) fn stop(&mut self) {
        self.state = match self.state {
            State::Playing => State::Stopping,
            State::Waiting | State::Stopping | State::Over => {
                self.decoded.clear();
                State::Over
            }
        };
    }

    /// Returns the frame of this tick, or `None` if it has no audio now.
    pub(super) fn sound(&self) -> Option<&[f32]> {
        (!self.sound.is_empty()).then_some(&self.sound)
    }

    /// Makes the next frame. Returns its change of state, if any. It is over after its end or a
    /// failure.
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

    /// Decodes the packet. Returns false if it is not Opus.
    fn decode(&mut self) -> bool {
        // For libopus, an empty packet means a lost one.
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
