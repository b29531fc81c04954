//! The result of a negotiation.

use std::net::SocketAddr;

use portunus_rtp::{Mid, Pt};

use crate::codecs::CodecSpec;
use crate::description::{Direction, Extmap};
use crate::negotiated::{Codec, Kind};

use super::crypto::SdesKey;

/// The result of the negotiation for one m-line of a far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainMedia {
    /// Audio or video.
    pub kind: Kind,
    /// The `mid` of the browser's m-line.
    pub mid: Mid,
    /// The direction from this side's point of view.
    pub direction: Direction,
    /// The direction from the far end's point of view.
    pub far_direction: Direction,
    /// The far end's address for RTP. `None` while it has no reachable address.
    pub rtp: Option<SocketAddr>,
    /// The far end's address for RTCP.
    pub rtcp: Option<SocketAddr>,
    /// Whether RTP and RTCP share a port, on both sides.
    pub rtcp_mux: bool,
    /// The codecs in order of preference, without telephone events. Empty only with `transcoding`.
    pub codecs: Vec<PlainCodec>,
    /// Telephone events. Those with the clock rate of the first codec come first.
    pub events: Vec<PlainCodec>,
    /// Offered formats that the answer leaves out although it has another format of the same codec.
    /// The far end may send their payload types all the same, as baresip does with H.264.
    pub unanswered: Vec<CodecSpec>,
    /// The transcoding of audio if the two sides have no common codec.
    pub transcoding: Option<Transcoding>,
    /// Header extensions that both sides know, with the far end's ids.
    pub extensions: Vec<Extmap>,
    /// This side's SRTP key.
    pub local_key: Option<SdesKey>,
    /// The far end's SRTP key. `None` means plain RTP.
    pub remote_key: Option<SdesKey>,
    /// Whether the far end accepts picture loss indications.
    pub pli: bool,
}

impl PlainMedia {
    /// Returns whether media is to be sent to the far end.
    pub fn sends(&self) -> bool {
        self.direction.sends() && self.far_direction.receives() && self.rtp.is_some()
    }

    /// Returns whether media is expected from the far end.
    pub fn receives(&self) -> bool {
        self.direction.receives() && self.far_direction.sends()
    }
}

/// A codec that both sides know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainCodec {
    /// The codec as the browser describes it, with its payload type.
    pub spec: CodecSpec,
    /// The codec's identity.
    pub codec: Codec,
    /// The payload type of packets to the far end.
    pub send: Pt,
    /// The payload type of packets from the far end.
    pub recv: Pt,
    /// The far end's format parameters.
    pub far_fmtp: Option<String>,
}

/// Audio transcoding between two sides without a common codec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcoding {
    /// The codec of the browser.
    pub browser: CodecSpec,
    /// The codec of the far end.
    pub far: PlainCodec,
}
