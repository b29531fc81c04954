//! The input of an [`super::Assembler`].

use std::time::Duration;

use portunus_rtp::SeqNo;

use crate::container::Rotation;
use crate::track::Codec;

/// The plan of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tracks that are known from the start, numbered from 0.
    pub tracks: Vec<PlannedTrack>,
    /// Whether VP8, VP9 and AV1 start a new part when the size of pictures changes, as containers
    /// with one setup per track need it. H.264 and H.265 always do.
    pub split_on_size: bool,
    /// The time for which the first frames wait until each open track has its setup.
    pub hold: Duration,
}

impl Plan {
    /// The default of [`Plan::hold`].
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
    /// The codec's parameters in SDP, which may contain parameter sets.
    pub fmtp: Option<String>,
    /// Whether it is recorded from the start ([`super::Assembler::gate`]).
    pub open: bool,
}

/// The number of a stream of a track. The timestamps of a stream are one count by one clock.
/// Another simulcast encoding, SSRC or sender is another stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamKey(pub u32);

/// The codec of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coded {
    /// A codec that files can have.
    Codec(Codec),
    /// Redundant audio (RFC 2198) of the track's codec.
    Red,
    /// Any other, which is left out.
    Other,
}

/// A packet that has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// Its arrival by the server's clock, from any origin that all times share.
    pub at: Duration,
    /// Its stream.
    pub stream: StreamKey,
    /// Its number among all packets of the track, over all streams. A missing number is a missing
    /// packet.
    pub seq: SeqNo,
    /// The timestamp of its sender.
    pub timestamp: u32,
    /// The marker bit. For video it marks the end of a frame.
    pub marker: bool,
    /// The number of its simulcast encoding, or 0.
    pub encoding: u8,
    /// The codec of the payload.
    pub codec: Coded,
    /// Its payload without padding.
    pub payload: &'a [u8],
    /// Its level in -dBov: 0 (loudest) to 127 (silent), see RFC 6464.
    pub level: Option<u8>,
    /// The rotation of its picture, if it has one.
    pub rotation: Option<Rotation>,
    /// Its capture time by the sender's clock: seconds since 1900 as 32.32 bits (abs-capture-time).
    pub capture: Option<u64>,
}

/// The content of a sender report (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Its arrival, like [`Arrived::at`].
    pub at: Duration,
    /// Its stream. The report may come before the stream's first packet.
    pub stream: StreamKey,
    /// The sender's clock: seconds since 1900 as 32.32 bits.
    pub ntp: u64,
    /// The stream's timestamp at that time.
    pub timestamp: u32,
    /// The last round trip to the sender, if it is known.
    pub rtt: Option<Duration>,
}
