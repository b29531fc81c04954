//! The output of an [`super::Assembler`].

use std::time::Duration;

use crate::bitstream::Picture;
use crate::container::{FrameOut, Rotation, TrackSetup};

/// The next action on the file. All times count from the start of the current part.
#[derive(Debug)]
pub enum Step<'a> {
    /// The setup of a track. It comes before the track's first frame in each part, and again with a
    /// picture that is larger than all before in the part.
    Setup {
        /// The track.
        track: usize,
        /// Its setup.
        setup: TrackSetup,
    },
    /// A frame is to be written.
    Frame(FrameOut<'a>),
    /// The file ends and another one starts. Setups and frames follow.
    /// [`super::Assembler::started`] is the start of the new one.
    NewPart {
        /// The reason.
        why: PartReason,
    },
    /// The source of the track is to be asked for a keyframe: at most once a second.
    WantKeyframe {
        /// The track.
        track: usize,
    },
    /// A note for the manifest.
    Note {
        /// The track.
        track: usize,
        /// The note.
        note: Note,
    },
}

/// The reason for a new part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartReason {
    /// A track has another codec.
    Codec,
    /// The pictures of a track have another rotation.
    Rotation,
    /// The pictures of a track have another size, or need another decoder setup.
    Picture,
    /// The part has the greatest length of times in files.
    Length,
}

/// A note about a track for the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Nothing was recorded.
    Gap {
        /// The end of the content before it.
        from: Duration,
        /// The start of the content after it.
        to: Duration,
        /// The reason.
        why: GapReason,
    },
    /// Another simulcast encoding is recorded.
    Layer {
        /// The start.
        at: Duration,
        /// The number of the encoding.
        encoding: u8,
    },
    /// The pictures change within the part.
    Change {
        /// The start.
        at: Duration,
        /// Their size, if it is known.
        picture: Option<Picture>,
        /// Their rotation.
        rotation: Rotation,
    },
    /// The basis of the track's times has changed.
    Clock(ClockKind),
    /// The clocks of two tracks differ by so much: their capture times do not match their arrivals.
    ClockDoubt(Duration),
    /// The participant talked.
    Talks {
        /// The start.
        from: Duration,
        /// The end.
        to: Duration,
    },
}

/// The reason for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// Packets were lost.
    Loss,
    /// The track was closed.
    Muted,
    /// The sender sent nothing.
    Silent,
    /// Packets were dropped because the disk was too slow.
    Disk,
    /// A keyframe was awaited.
    Keyframe,
}

/// The basis of a track's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClockKind {
    /// The arrivals of its packets.
    #[default]
    Arrival,
    /// The capture times in its packets (abs-capture-time).
    Capture,
    /// Sender reports (RTCP).
    Reports,
}

/// The counts of a track so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackStats {
    /// Packets without duplicates.
    pub packets: u64,
    /// Packets that never came or came too late, unless redundant audio contained them.
    pub lost: u64,
    /// Packets that came too late, and duplicates.
    pub late: u64,
    /// Packets that are malformed, or of a codec that files cannot have.
    pub unfit: u64,
    /// Frames that were returned.
    pub frames: u64,
    /// Frames that were left out: broken ones, undecodable ones before the next keyframe, and audio
    /// that was ahead of its clock.
    pub left_out: u64,
    /// The length of filled audio.
    pub filled: Duration,
    /// The basis of its times.
    pub clock: ClockKind,
    /// The greatest doubt about its clock ([`Note::ClockDoubt`]).
    pub clock_doubt: Option<Duration>,
    /// The time of its first frame in this part.
    pub offset: Option<Duration>,
}

impl Note {
    /// Converts times on the server's clock to times since `started`.
    pub(super) fn since(self, started: super::Nanos) -> Self {
        let started = super::duration(started);
        let since = |at: Duration| at.saturating_sub(started);
        match self {
            Note::Gap { from, to, why } => Note::Gap {
                from: since(from),
                to: since(to),
                why,
            },
            Note::Layer { at, encoding } => Note::Layer {
                at: since(at),
                encoding,
            },
            Note::Change {
                at,
                picture,
                rotation,
            } => Note::Change {
                at: since(at),
                picture,
                rotation,
            },
            Note::Talks { from, to } => Note::Talks {
                from: since(from),
                to: since(to),
            },
            note @ (Note::Clock(_) | Note::ClockDoubt(_)) => note,
        }
    }
}
