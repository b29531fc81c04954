//! ICE and DTLS of a peer.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::{Carrier, IceAttempt, Path};
use portunus_sdp::negotiated::{DtlsRole, Fingerprint};

use super::Traffic;
use crate::{DtlsState, IceState};

/// The ICE agent of a peer. Times count from its creation.
#[derive(Debug, Clone, Default)]
pub struct IceStats {
    /// Its state.
    pub state: Option<IceState>,
    /// Whether our agent is the controlling one.
    pub controlling: bool,
    /// Whether our agent only answers connectivity checks (RFC 8445 section 2.5).
    pub lite: bool,
    /// When our candidates were ready: immediately, as they are those of the worker.
    pub gathered: Option<Duration>,
    /// When a pair first worked.
    pub connected: Option<Duration>,
    /// Since when no pair works any more.
    pub disconnected: Option<Duration>,
    /// Our candidates, as in SDP after `candidate:`.
    pub local: Vec<String>,
    /// The candidates of the peer in the same form: usable ones that it named, and those that its
    /// checks showed.
    pub remote: Vec<String>,
    /// Candidates of the peer that cannot be used because they hide its address (mDNS names).
    pub ignored_mdns: u32,
    /// Candidates of the peer that cannot be used because nobody connects by them (TCP).
    pub ignored_tcp: u32,
    /// The attempt to connect. `None` while a pair works, and before the peer's description is
    /// known.
    pub attempt: Option<IceAttempt>,
    /// The addresses and the protocol of the selected pair. Ours is the bound address.
    pub selected: Option<Path>,
    /// The pairs, the selected one first.
    pub pairs: Vec<PairStats>,
    /// The round trip of the last answered check on the selected pair.
    pub round_trip: Option<Duration>,
}

/// A candidate of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidateStats {
    /// The address. Ours is the announced one.
    pub address: SocketAddr,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub kind: &'static str,
    /// The transport protocol.
    pub carrier: Carrier,
}

/// A pair of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairStats {
    /// Our candidate.
    pub local: CandidateStats,
    /// The peer's candidate.
    pub remote: CandidateStats,
    /// The state of the pair.
    pub state: PairState,
    /// Whether it is the selected one.
    pub nominated: bool,
    /// The round trip of the last answered check.
    pub round_trip: Option<Duration>,
    /// Checks sent.
    pub checks_sent: u32,
    /// Checks of ours that were answered.
    pub checks_answered: u32,
    /// Checks received.
    pub checks_received: u32,
}

/// The state of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairState {
    /// It was not checked yet.
    Waiting,
    /// Checks were sent, but not answered yet.
    InProgress,
    /// A check was answered lately, or the peer has sent one if we send none.
    Succeeded,
    /// Checks are not answered.
    Failed,
}

impl PairState {
    /// The name in W3C's `RTCStatsIceCandidatePairState`.
    pub const fn name(self) -> &'static str {
        match self {
            PairState::Waiting => "waiting",
            PairState::InProgress => "in-progress",
            PairState::Succeeded => "succeeded",
            PairState::Failed => "failed",
        }
    }
}

/// DTLS of a peer. Times count from its creation.
#[derive(Debug, Clone, Default)]
pub struct DtlsStats {
    /// The state of the handshake. `None` before it starts.
    pub state: Option<DtlsState>,
    /// Our role, once negotiated.
    pub role: Option<DtlsRole>,
    /// Retransmitted flights.
    pub retransmissions: u32,
    /// When the handshake started.
    pub started: Option<Duration>,
    /// When it was completed.
    pub connected: Option<Duration>,
    /// The fingerprints of the peer's certificate in its SDP. Once connected, one of them matched.
    pub remote_fingerprints: Vec<Fingerprint>,
    /// The SRTP profile, by its OpenSSL name.
    pub srtp_profile: Option<&'static str>,
    /// Received datagrams of DTLS: the handshake, and data channels.
    pub received: Traffic,
    /// Sent datagrams of DTLS.
    pub sent: Traffic,
}
