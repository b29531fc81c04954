//! Figures of a peer, as the admin API and the pages show them.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtp::{Mid, Ssrc};

use crate::{DtlsState, IceState};

/// Figures of one peer at one moment.
#[derive(Debug, Clone, Default)]
pub struct PeerStats {
    /// ICE state.
    pub ice: Option<IceState>,
    /// Our bound address and the remote one, once a pair is selected.
    pub selected_pair: Option<(SocketAddr, SocketAddr)>,
    /// DTLS state.
    pub dtls: Option<DtlsState>,
    /// SRTP profile by its OpenSSL name.
    pub srtp_profile: Option<&'static str>,
    /// Round trip of the last STUN check.
    pub rtt: Option<Duration>,
    /// One entry an m-line.
    pub media: Vec<MediaStats>,
    /// Datagrams that were refused: malformed, unauthenticated, replayed or unexpected.
    pub refused: u64,
}

/// Figures of one m-line.
#[derive(Debug, Clone)]
pub struct MediaStats {
    /// Its identification.
    pub mid: Mid,
    /// What comes in, an entry an encoding, lowest first.
    pub received: Vec<StreamStats>,
    /// What goes out.
    pub sent: StreamStats,
}

/// Figures of one RTP stream.
#[derive(Debug, Clone, Default)]
pub struct StreamStats {
    /// Its SSRC, once known.
    pub ssrc: Option<Ssrc>,
    /// The SSRC that repairs it.
    pub rtx_ssrc: Option<Ssrc>,
    /// RTP packets, retransmissions excluded.
    pub packets: u64,
    /// RTP payload bytes.
    pub bytes: u64,
    /// Packets that never came (received) or were reported lost (sent).
    pub lost: u64,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    pub jitter: Duration,
    /// Sequence numbers asked for again by NACK.
    pub nacks: u64,
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Keyframe requests (PLI, FIR).
    pub keyframe_requests: u64,
    /// Round trip by SR/RR.
    pub rtt: Option<Duration>,
}
