//! What an [`super::Assembler`] says is to be done.

use std::time::Duration;

use crate::bitstream::Picture;
use crate::container::{FrameOut, Rotation, TrackSetup};

/// The next thing to be done with the file. All times are since the beginning of the part that is being written.
#[derive(Debug)]
pub enum Step<'a> {
    /// A track is known now: it comes before the track's first frame in each part, and again with a picture that is larger than
    /// all before in the part.
    Setup {
        /// The track.
        track: usize,
        /// What is said of it.
        setup: TrackSetup,
    },
    /// A frame is to be written.
    Frame(FrameOut<'a>),
    /// The file is to be ended, and another one begun: setups and frames follow. [`super::Assembler::started`] is the
    /// beginning of the new one.
    NewPart {
        /// Why.
        why: PartReason,
    },
    /// The source of the track is to be asked for a keyframe: at most once a second.
    WantKeyframe {
        /// The track.
        track: usize,
    },
    /// Something that a manifest tells.
    Note {
        /// The track.
        track: usize,
        /// What.
        note: Note,
    },
}

/// Why a new part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartReason {
    /// A track has another codec.
    Codec,
    /// The pictures of a track are turned another way.
    Rotation,
    /// The pictures of a track have another size, or need another decoder setup.
    Picture,
    /// The part is as long as times in files reach.
    Length,
}

/// What a manifest tells of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Nothing was recorded.
    Gap {
        /// The end of what there is before it.
        from: Duration,
        /// The beginning of what there is behind it.
        to: Duration,
        /// Why.
        why: GapReason,
    },
    /// Another simulcast encoding is recorded.
    Layer {
        /// Since when.
        at: Duration,
        /// Which.
        encoding: u8,
    },
    /// The pictures change within the part.
    Change {
        /// Since when.
        at: Duration,
        /// Their size, if it is known.
        picture: Option<Picture>,
        /// How they are turned.
        rotation: Rotation,
    },
    /// What the track's times go by has changed.
    Clock(ClockKind),
    /// The clocks of two tracks disagree by so much: their reports say when they were captured, and they do not come so.
    ClockDoubt(Duration),
    /// Somebody talked.
    Talks {
        /// Since when.
        from: Duration,
        /// Until when.
        to: Duration,
    },
}

/// Why nothing was recorded.
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
    /// A keyframe was waited for.
    Keyframe,
}

/// What a track's times go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClockKind {
    /// When its packets arrive.
    #[default]
    Arrival,
    /// The capture times in its packets (abs-capture-time).
    Capture,
    /// Sender reports (RTCP).
    Reports,
}

/// What became of a track so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackStats {
    /// Packets that came, each once.
    pub packets: u64,
    /// Packets that never came, or too late. What redundant audio gave back is not among them.
    pub lost: u64,
    /// Packets that came too late, and those that came twice.
    pub late: u64,
    /// Packets that are of no use: malformed ones, and those of codecs that no file has.
    pub unfit: u64,
    /// Frames that were handed out.
    pub frames: u64,
    /// Frames that were left out: broken ones, those that nothing can be made of before the next keyframe, and sound that was ahead
    /// of its clock.
    pub left_out: u64,
    /// Sound that was made up for what did not come.
    pub filled: Duration,
    /// What its times go by.
    pub clock: ClockKind,
    /// The most by which its clock was in doubt ([`Note::ClockDoubt`]).
    pub clock_doubt: Option<Duration>,
    /// When its first frame of this part is, since the part's beginning.
    pub offset: Option<Duration>,
}

impl Note {
    /// The same with times since `started`, which they have been on the server's clock.
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
