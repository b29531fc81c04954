//! What an [`super::Assembler`] is told.

use std::time::Duration;

use portunus_rtp::SeqNo;

use crate::container::Rotation;
use crate::track::Codec;

/// What is to be assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tracks that are known from the start, numbered from 0.
    pub tracks: Vec<PlannedTrack>,
    /// Whether VP8, VP9 and AV1 begin a new part when their pictures change, as a container needs that has one setup for all
    /// of a track. H.264 and H.265 always do.
    pub split_on_size: bool,
    /// How long the first frames are held until each open track has its setup.
    pub hold: Duration,
}

impl Plan {
    /// How long the first frames are held, if nothing else is said.
    pub const HOLD: Duration = Duration::from_millis(1_500);
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            tracks: Vec::new(),
            split_on_size: false,
            hold: Self::HOLD,
        }
    }
}

/// A track that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTrack {
    /// Its codec, until packets of another one come.
    pub codec: Codec,
    /// The codec's parameters in SDP: parameter sets may be told there.
    pub fmtp: Option<String>,
    /// Whether it is recorded from the start ([`super::Assembler::gate`]).
    pub open: bool,
}

/// Which stream of a track a packet is of. The timestamps of one stream are one count by one clock: another simulcast
/// encoding, another SSRC, another sender are other streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamKey(pub u32);

/// What a packet's payload is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coded {
    /// A codec that files can have.
    Codec(Codec),
    /// Redundant audio (RFC 2198) with packets of the track's codec in it.
    Red,
    /// Anything else: it is left out.
    Other,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// When, since whatever moment all times of the assembler are counted from, by the server's clock.
    pub at: Duration,
    /// Its stream.
    pub stream: StreamKey,
    /// Its number among all packets of the track, whatever their stream: a number that is missing is a packet that is.
    pub seq: SeqNo,
    /// The timestamp that its sender gave it.
    pub timestamp: u32,
    /// The marker bit: of video, the frame ends here.
    pub marker: bool,
    /// Which simulcast encoding it is of; 0 if there is one.
    pub encoding: u8,
    /// What the payload is of.
    pub codec: Coded,
    /// Its payload without padding.
    pub payload: &'a [u8],
    /// How loud it is, in dB below overload: 0 is the loudest, 127 silence (RFC 6464).
    pub level: Option<u8>,
    /// How its picture is to be turned, where it says so.
    pub rotation: Option<Rotation>,
    /// When it was captured, by its sender's clock: seconds since 1900 as 32.32 bits (abs-capture-time).
    pub capture: Option<u64>,
}

/// What a sender report says (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// When it arrived, counted as [`Arrived::at`].
    pub at: Duration,
    /// The stream that it is about. It may come before the stream's first packet.
    pub stream: StreamKey,
    /// The sender's clock: seconds since 1900 as 32.32 bits.
    pub ntp: u64,
    /// The stream's timestamp at that time.
    pub timestamp: u32,
    /// The last round trip to the sender, if it is known.
    pub rtt: Option<Duration>,
}
