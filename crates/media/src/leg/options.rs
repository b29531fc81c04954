//! What a leg is, and what it is told of its far end.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtp::{ExtensionMap, Pt};
use portunus_sdp::negotiated::Codec;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::{LegNews, SrtpKey};
use crate::{IngestId, IngestSocket};

/// A leg: which worker it lives on, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LegId {
    pub(crate) worker: u16,
    pub(crate) serial: u64,
}

impl LegId {
    /// The worker that it lives on.
    pub fn worker(self) -> usize {
        usize::from(self.worker)
    }

    /// What comes from the far end, as an ingest.
    pub(crate) fn ingest(self) -> IngestId {
        IngestId {
            worker: self.worker,
            serial: self.serial,
        }
    }
}

/// A leg to be.
#[derive(Debug)]
pub struct NewLeg {
    /// For RTP both ways; for RTCP, too, where both share a port.
    pub rtp: IngestSocket,
    /// For RTCP both ways.
    pub rtcp: IngestSocket,
    /// It carries video, else audio.
    pub video: bool,
    /// The worker to live on; none: the one that has the fewest ingests.
    pub worker: Option<usize>,
    /// Valid packets that do not come for so long are told ([`super::LegEvent::Silent`]); none: that is never told.
    pub silence: Option<Duration>,
    /// Telephone events that are sent to the far end are told, too.
    pub hears_source: bool,
    /// As long as no description says where the far end is, whoever sends valid packets first is heard. Else nobody is.
    pub hears_unknown: bool,
    /// Whom to tell what happens. What finds no room is lost.
    pub tell: mpsc::Sender<LegNews>,
}

/// The far end of a leg, and what was agreed on with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegRemote {
    /// Where it takes RTP; none (`c=0.0.0.0`, port 0): nothing is sent to it.
    pub rtp: Option<SocketAddr>,
    /// Where it takes RTCP.
    pub rtcp: LegRtcp,
    /// The payload types that it may send, as our description has them. What comes with another one is refused.
    pub incoming: Vec<LegPayload>,
    /// The payload types that it takes, as its description has them. Of a source's codecs the others do not reach it.
    pub outgoing: Vec<LegPayload>,
    /// The numbers of header extensions both ways. Only audio level and video orientation pass.
    pub extensions: ExtensionMap,
    /// SRTP and SRTCP; none: both are plain.
    pub srtp: Option<LegSrtp>,
    /// How it takes requests for keyframes.
    pub keyframes: KeyframeAsking,
    /// RTP is taken from wherever the first valid packet comes, and what we send goes there, too, until the description says
    /// another address, or what comes is of the address in the description. Else only the address in the description is heard.
    pub latching: bool,
}

impl LegRemote {
    /// A far end that takes and sends these payload types in the clear at `rtp`, and RTCP at the next port. Latching is on.
    pub fn new(rtp: Option<SocketAddr>, payloads: Vec<LegPayload>) -> Self {
        Self {
            rtp,
            rtcp: LegRtcp::NextPort,
            incoming: payloads.clone(),
            outgoing: payloads,
            extensions: ExtensionMap::default(),
            srtp: None,
            keyframes: KeyframeAsking::Pli,
            latching: true,
        }
    }

    /// Where RTCP goes.
    pub fn rtcp_address(&self) -> Option<SocketAddr> {
        match self.rtcp {
            LegRtcp::NextPort => {
                let rtp = self.rtp?;
                Some(SocketAddr::new(rtp.ip(), rtp.port().checked_add(1)?))
            }
            LegRtcp::At(address) => Some(address).filter(|_| self.rtp.is_some()),
            LegRtcp::Mux => self.rtp,
            LegRtcp::Never => None,
        }
    }
}

/// Where the far end takes RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegRtcp {
    /// At the port after that of RTP (RFC 3550 section 11).
    NextPort,
    /// There: `a=rtcp` (RFC 3605).
    At(SocketAddr),
    /// With RTP: `a=rtcp-mux` (RFC 5761), which both sides have said.
    Mux,
    /// Nowhere.
    Never,
}

/// A payload type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegPayload {
    /// Its number.
    pub pt: Pt,
    /// What it means. [`Codec::TelephoneEvent`] and [`Codec::ComfortNoise`] are relayed to those who take them, too.
    pub codec: Codec,
    /// RTP clock in Hz.
    pub clock_rate: u32,
}

/// The keys of a leg, as `a=crypto` (RFC 4568) has them. Whoever sends has chosen the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegSrtp {
    /// What the far end seals with: the key in its description.
    pub incoming: SrtpKey,
    /// What we seal with: the key in ours.
    pub outgoing: SrtpKey,
}

/// How a far end is asked for keyframes by RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyframeAsking {
    /// By PLI (RFC 4585 section 6.3.1), whether that was agreed on or not.
    #[default]
    Pli,
    /// By FIR (RFC 5104 section 4.3.1): where that alone was agreed on.
    Fir,
    /// Not at all.
    Never,
}

/// Which ways a leg is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegGates {
    /// The far end is sent what the source brings.
    pub send: bool,
    /// What the far end sends is taken.
    pub receive: bool,
}

impl LegGates {
    /// Both ways.
    pub const OPEN: Self = Self {
        send: true,
        receive: true,
    };
}

impl Default for LegGates {
    fn default() -> Self {
        Self::OPEN
    }
}

/// Telephone events to be sent (RFC 4733): keys of a telephone, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegTones {
    /// Events: 0 to 15 are the keys `0123456789*#ABCD`, 16 is a flash.
    pub events: SmallVec<[u8; 16]>,
    /// How long each takes. It is at least 40 ms and at most 6 s.
    pub duration: Duration,
    /// The pause after each. It is at least 30 ms and at most 6 s.
    pub gap: Duration,
    /// Who hears them.
    pub to: LegSide,
}

impl LegTones {
    /// Each takes 100 ms, and is followed by 70 ms of pause, as clients of WebRTC have it.
    pub fn new(events: &[u8], to: LegSide) -> Self {
        Self {
            events: SmallVec::from_slice(events),
            duration: Duration::from_millis(100),
            gap: Duration::from_millis(70),
            to,
        }
    }
}

/// A side of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LegSide {
    /// The far end: a telephone, a gateway.
    FarEnd,
    /// Whoever is on our side: sources that are routed into the leg, receivers of what comes out of it.
    Near,
}
