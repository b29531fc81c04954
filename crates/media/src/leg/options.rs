//! The options of legs, and of their far ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portunus_graph::{IngestId, RouteId, SourceRef};
use portunus_rtp::{ExtensionMap, Pt};
use portunus_sdp::negotiated::Codec;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::{LegNews, LegStatus, SrtpKey};
use crate::ingest::IngestSocket;

/// The id of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LegId {
    pub(crate) worker: u16,
    pub(crate) serial: u64,
}

impl LegId {
    /// The worker that the leg lives on.
    pub fn worker(self) -> usize {
        usize::from(self.worker)
    }

    /// The id of the route into the leg, for a thread that redirects it ([`crate::ThreadFeed`]).
    pub fn route(self) -> RouteId {
        RouteId {
            worker: self.worker,
            serial: self.serial,
        }
    }

    /// The ingest of what arrives from the far end.
    pub(crate) fn ingest(self) -> IngestId {
        IngestId {
            worker: self.worker,
            serial: self.serial,
        }
    }
}

/// A leg that was added.
#[derive(Debug, Clone)]
pub struct AddedLeg {
    /// Its id.
    pub id: LegId,
    /// Its statistics.
    pub status: Arc<LegStatus>,
}

impl AddedLeg {
    /// The source of what arrives from the far end.
    pub fn source(&self) -> SourceRef {
        SourceRef::Ingest(self.id.ingest())
    }
}

/// The options of a new leg.
#[derive(Debug)]
pub struct NewLeg {
    /// The socket for RTP both ways, and for RTCP if both share a port.
    pub rtp: IngestSocket,
    /// The socket for RTCP both ways.
    pub rtcp: IngestSocket,
    /// True for video, false for audio.
    pub video: bool,
    /// The worker. `None` chooses the one with the fewest ingests.
    pub worker: Option<usize>,
    /// The time without valid packets after which [`super::LegEvent::Silent`] is published. `None`
    /// disables that.
    pub silence: Option<Duration>,
    /// Telephone events to the far end are published, too.
    pub hears_source: bool,
    /// While no description says where the far end is, the first sender of valid packets is
    /// accepted.
    pub hears_unknown: bool,
    /// The channel for events. They are dropped if it is full.
    pub tell: mpsc::Sender<LegNews>,
}

/// The far end of a leg, and what was agreed on with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegRemote {
    /// The address for RTP. `None` (`c=0.0.0.0`, port 0) sends nothing.
    pub rtp: Option<SocketAddr>,
    /// The address for RTCP.
    pub rtcp: LegRtcp,
    /// The payload types that the far end may send, as in our description. Others are refused.
    pub incoming: Vec<LegPayload>,
    /// The payload types that the far end takes, as in its description. Other codecs of a source
    /// are not sent.
    pub outgoing: Vec<LegPayload>,
    /// The ids of header extensions both ways. Only audio level and video orientation are passed
    /// on.
    pub extensions: ExtensionMap,
    /// The keys of SRTP and SRTCP. `None` means no encryption.
    pub srtp: Option<LegSrtp>,
    /// How keyframes are requested.
    pub keyframes: KeyframeAsking,
    /// RTP is accepted from the address that the first valid packet came from, and sent there,
    /// until the description names another address or packets come from the described one. False
    /// accepts only the described address.
    pub latching: bool,
}

impl LegRemote {
    /// Returns a far end without encryption that takes and sends these payload types, with RTCP at
    /// the next port. Latching is on.
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

    /// The address for RTCP.
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

/// The address of a far end for RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegRtcp {
    /// The port after that of RTP (RFC 3550 section 11).
    NextPort,
    /// This address: `a=rtcp` (RFC 3605).
    At(SocketAddr),
    /// The port of RTP: `a=rtcp-mux` (RFC 5761), as both sides agreed.
    Mux,
    /// None.
    Never,
}

/// A payload type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegPayload {
    /// The payload type.
    pub pt: Pt,
    /// The codec. [`Codec::TelephoneEvent`] and [`Codec::ComfortNoise`] are relayed, too, to
    /// receivers that take them.
    pub codec: Codec,
    /// The RTP clock, in Hz.
    pub clock_rate: u32,
}

/// The keys of a leg, as in `a=crypto` (RFC 4568). Each sender has chosen its own key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegSrtp {
    /// The key of the far end, from its description.
    pub incoming: SrtpKey,
    /// Our key, from our description.
    pub outgoing: SrtpKey,
}

/// How keyframes are requested of a far end by RTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyframeAsking {
    /// By PLI (RFC 4585 section 6.3.1), whether it was agreed or not.
    #[default]
    Pli,
    /// By FIR (RFC 5104 section 4.3.1), if only that was agreed.
    Fir,
    /// Never.
    Never,
}

/// The gates of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegGates {
    /// Packets of the source are sent to the far end.
    pub send: bool,
    /// Packets of the far end are accepted.
    pub receive: bool,
}

impl LegGates {
    /// Both gates are open.
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

/// Telephone events to send (RFC 4733), one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegTones {
    /// Event numbers. 0 to 15 are the keys `0123456789*#ABCD`, 16 is a flash.
    pub events: SmallVec<[u8; 16]>,
    /// The duration of each, 40 ms to 6 s.
    pub duration: Duration,
    /// The pause after each, 30 ms to 6 s.
    pub gap: Duration,
    /// The side that hears them.
    pub to: LegSide,
}

impl LegTones {
    /// Returns events of 100 ms with pauses of 70 ms, as WebRTC clients send them.
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
    /// The far end, such as a telephone or a gateway.
    FarEnd,
    /// Our side: sources that are routed into the leg, and receivers of what comes out of it.
    Near,
}
