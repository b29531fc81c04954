//! The video of a track: its decodable pictures, and its setup.

use portunus_rtp::depacketize::{Depacketizer, Frame, Outcome, Payload, PayloadKind};

use crate::bitstream::{Picture, Setup, read_setup};
use crate::container::{Rotation, TrackSetup};
use crate::track::Codec;

use super::lipsync::{Lipsync, Stamp};
use super::merge::{Opening, Queued};
use super::parts::{Change, change};
use super::track::{Out, Packet};
use super::{GapReason, MS, Nanos, Note, PartReason, SECOND, StreamKey, duration};

/// A picture that stays for so long is noted as silence.
const SILENCE: Nanos = 5 * SECOND;

/// The video of a track.
#[derive(Debug)]
pub(super) struct Video {
    depacketizer: Depacketizer,
    pictures: Pictures,
    stream: Option<StreamKey>,
}

#[derive(Debug)]
struct Pictures {
    codec: Codec,
    split_on_size: bool,
    /// The setup of the track. Before the first keyframe, that of the SDP.
    setup: Option<Setup>,
    picture: Option<Picture>,
    /// Whether a frame was returned with this setup.
    has_begun: bool,
    /// The rotation of the part's pictures.
    rotation: Rotation,
    /// The rotation in the last packet.
    turned: Rotation,
    /// The reason for another part before the first keyframe of another codec.
    part: Option<PartReason>,
    /// Whether a keyframe is needed.
    waits: bool,
    /// The timestamps of the last two frames.
    stamps: [Option<(u32, Stamp, Nanos)>; 2],
}

impl Video {
    pub(super) fn new(codec: Codec, setup: Option<Setup>, split_on_size: bool) -> Self {
        Self {
            depacketizer: Depacketizer::new(kind(codec)),
            pictures: Pictures {
                codec,
                split_on_size,
                setup,
                picture: None,
                has_begun: false,
                rotation: Rotation::R0,
                turned: Rotation::R0,
                part: None,
                waits: true,
                stamps: [None; 2],
            },
            stream: None,
        }
    }

    /// Notes whether the track had another codec before, so that another part starts.
    pub(super) fn after(mut self, another: bool) -> Self {
        self.pictures.part = another.then_some(PartReason::Codec);
        self
    }

    pub(super) fn codec(&self) -> Codec {
        self.pictures.codec
    }

    /// Takes the next packet.
    pub(super) fn push(&mut self, packet: &Packet<'_>, lipsync: &mut Lipsync, out: &mut Out) {
        if self
            .stream
            .is_some_and(|stream| stream != packet.stamp.stream)
        {
            self.interrupt(lipsync, out);
        }
        self.stream = Some(packet.stamp.stream);
        let Self {
            depacketizer,
            pictures,
            ..
        } = self;
        if let Some(rotation) = packet.rotation {
            pictures.turned = rotation;
        }
        pictures.remember(packet);
        let payload = Payload {
            seq: packet.seq,
            timestamp: packet.timestamp,
            marker: packet.marker,
            bytes: packet.payload,
        };
        depacketizer.push(&payload, |outcome| pictures.take(&outcome, lipsync, out));
    }

    /// Notes that the following frames do not depend on earlier ones.
    pub(super) fn interrupt(&mut self, lipsync: &mut Lipsync, out: &mut Out) {
        let Self {
            depacketizer,
            pictures,
            ..
        } = self;
        depacketizer.end(|outcome| pictures.take(&outcome, lipsync, out));
        self.stream = None;
        self.pictures.waits = true;
        out.miss(GapReason::Keyframe);
    }

    /// Whether a keyframe is needed to continue.
    pub(super) fn waits(&self) -> bool {
        self.pictures.waits
    }
}

impl Pictures {
    fn remember(&mut self, packet: &Packet<'_>) {
        let [last, before] = &mut self.stamps;
        if last.is_none_or(|(timestamp, ..)| timestamp != packet.timestamp) {
            *before = *last;
            *last = Some((packet.timestamp, packet.stamp, packet.at));
        }
    }

    fn stamp(&self, timestamp: u32) -> Option<(Stamp, Nanos)> {
        let mut stamps = self.stamps.iter().flatten();
        let (_, stamp, at) = stamps.find(|(of, ..)| *of == timestamp)?;
        Some((*stamp, *at))
    }

    fn take(&mut self, outcome: &Outcome<'_>, lipsync: &mut Lipsync, out: &mut Out) {
        match outcome {
            Outcome::Frame(frame) => self.frame(frame, lipsync, out),
            Outcome::Broken { droppable, .. } => {
                out.stats.left_out = out.stats.left_out.saturating_add(1);
                if !droppable {
                    self.waits = true;
                    out.miss(GapReason::Loss);
                    out.want_keyframe();
                }
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, lipsync: &mut Lipsync, out: &mut Out) {
        let Some((stamp, arrival)) = self.stamp(frame.timestamp) else {
            return;
        };
        let may_step = frame.keyframe;
        let at = lipsync.place(out.track, stamp, arrival, may_step);
        out.progress = out.progress.max(at);
        let mut opening = None;
        if frame.keyframe {
            opening = self.open(frame.data, at, out);
            if self.has_begun {
                self.waits = false;
            }
        } else if self.turned != self.rotation {
            out.want_keyframe();
        }
        if self.waits {
            out.stats.left_out = out.stats.left_out.saturating_add(1);
            out.want_keyframe();
            return;
        }
        // Times of a track never go back, and players need them to differ.
        let at = (out.end).map_or(at, |end| at.max(end.saturating_add(MS)));
        let notes = out.notes_at(at, SILENCE);
        out.end = Some(at);
        out.push(Queued {
            at,
            duration: 0,
            keyframe: frame.keyframe,
            data: frame.data.to_vec(),
            opening,
            notes,
        });
    }

    /// Returns the new setup of the track by a keyframe, if it has changed.
    fn open(&mut self, data: &[u8], at: Nanos, out: &mut Out) -> Option<Box<Opening>> {
        let (setup, picture) = read_setup(self.codec, data, self.setup.as_ref())?;
        let before = self.setup.as_ref().filter(|_| self.has_begun);
        let change = match before {
            Some(before) => change(
                (before, self.picture),
                (&setup, picture),
                self.split_on_size,
            ),
            None => Change::None,
        };
        let is_first = before.is_none();
        let is_turned = self.turned != self.rotation;
        let part = match (self.part.take(), is_first, is_turned, change) {
            (Some(part), ..) => Some(part),
            (_, true, ..) => None,
            (_, _, true, _) => Some(PartReason::Rotation),
            (_, _, _, Change::Part) => Some(PartReason::Picture),
            _ => None,
        };
        self.rotation = self.turned;
        self.setup = Some(setup.clone());
        self.picture = picture;
        self.has_begun = true;
        if !is_first && part.is_none() && change == Change::Inside {
            out.notes.push(Note::Change {
                at: duration(at),
                picture,
                rotation: self.rotation,
            });
        }
        let setup = TrackSetup {
            setup,
            picture,
            rotation: self.rotation,
            name: None,
        };
        let is_new = is_first || part.is_some() || change != Change::None;
        is_new.then(|| Box::new(Opening { setup, part }))
    }
}

fn kind(codec: Codec) -> PayloadKind {
    match codec {
        Codec::Vp8 => PayloadKind::Vp8,
        Codec::Vp9 => PayloadKind::Vp9,
        Codec::Av1 => PayloadKind::Av1,
        Codec::H264 => PayloadKind::H264,
        Codec::H265 => PayloadKind::H265,
        Codec::Opus | Codec::Pcmu | Codec::Pcma => PayloadKind::Whole,
    }
}
