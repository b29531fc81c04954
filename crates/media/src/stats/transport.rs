//! ICE and DTLS of a peer.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::{Carrier, IceAttempt, Path};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::Traffic;
use crate::{DtlsState, IceState};

/// The ICE agent of a peer. Times are counted from when the peer was made.
#[derive(Debug, Clone, Default)]
pub struct IceStats {
    /// Its state.
    pub state: Option<IceState>,
    /// Whether this side is the controlling one.
    pub controlling: bool,
    /// Whether this side only answers connectivity checks (RFC 8445 section 2.5).
    pub lite: bool,
    /// When this side's candidates were there: at once, as they are those of the worker.
    pub gathered: Option<Duration>,
    /// When a pair worked first.
    pub connected: Option<Duration>,
    /// Since when no pair works, after one did.
    pub disconnected: Option<Duration>,
    /// This side's candidates, as they stand in SDP after `candidate:`.
    pub local: Vec<String>,
    /// The peer's, the same: those that it named and are of use, and those that its checks showed.
    pub remote: Vec<String>,
    /// Candidates of the peer that are of no use here, as they hide its address (mDNS names).
    pub ignored_mdns: u32,
    /// Those that are of no use as nobody connects by them (TCP).
    pub ignored_tcp: u32,
    /// What is known of the attempt to connect. `None` while a pair works, and before the peer's side is known.
    pub attempt: Option<IceAttempt>,
    /// Between which addresses media travels, and by what, once a pair is selected. Ours is the bound one.
    pub selected: Option<Path>,
    /// The pairs, that in use first.
    pub pairs: Vec<PairStats>,
    /// Round trip of the last check that was answered on the pair in use.
    pub round_trip: Option<Duration>,
}

/// A candidate of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidateStats {
    /// Its address; that of ours is the one that peers are told.
    pub address: SocketAddr,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub kind: &'static str,
    /// What carries datagrams to it.
    pub carrier: Carrier,
}

/// A pair of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairStats {
    /// Ours.
    pub local: CandidateStats,
    /// The peer's.
    pub remote: CandidateStats,
    /// What is known of it.
    pub state: PairState,
    /// Whether it is the one in use.
    pub nominated: bool,
    /// Round trip of the last check that was answered.
    pub round_trip: Option<Duration>,
    /// Checks of ours that left.
    pub checks_sent: u32,
    /// Those of them that were answered.
    pub checks_answered: u32,
    /// Checks of the peer that came.
    pub checks_received: u32,
}

/// What is known of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairState {
    /// It was not tried yet.
    Waiting,
    /// Checks are under way; none was answered yet.
    InProgress,
    /// A check was answered lately, or one of the peer came if this side makes none.
    Succeeded,
    /// Checks are not answered.
    Failed,
}

impl PairState {
    /// The word for it, which is that of W3C's `RTCStatsIceCandidatePairState`.
    pub const fn name(self) -> &'static str {
        match self {
            PairState::Waiting => "waiting",
            PairState::InProgress => "in-progress",
            PairState::Succeeded => "succeeded",
            PairState::Failed => "failed",
        }
    }
}

/// DTLS of a peer. Times are counted from when the peer was made.
#[derive(Debug, Clone, Default)]
pub struct DtlsStats {
    /// The state of the handshake; none before it began.
    pub state: Option<DtlsState>,
    /// The role of this side, once negotiated.
    pub role: Option<DtlsRole>,
    /// Flights that were sent again.
    pub retransmissions: u32,
    /// When the handshake began.
    pub started: Option<Duration>,
    /// When it was done.
    pub connected: Option<Duration>,
    /// The fingerprints of the peer's certificate, as its SDP has them. Once connected, one of them matched.
    pub remote_fingerprints: Vec<Fingerprint>,
    /// SRTP profile by its OpenSSL name.
    pub srtp_profile: Option<&'static str>,
    /// Datagrams of DTLS that came: the handshake, and data channels.
    pub received: Traffic,
    /// Datagrams of DTLS that left.
    pub sent: Traffic,
}
