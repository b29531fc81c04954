//! Figures of a peer, as the admin API and the pages show them.

mod bandwidth;
mod media;
mod series;
mod transport;
mod workers;

use std::time::Duration;

use portunus_rtp::ExtensionKind;

pub use bandwidth::{BandwidthStats, PacerStats};
pub use media::{LayerStats, MediaStats, MessageStats, PayloadStats, ReportTimes, StreamStats};
pub use series::{Sample, SampledLayers};
pub use transport::{CandidateStats, DtlsStats, IceStats, PairState, PairStats};
pub use workers::WorkerStats;

use crate::CaptureStats;

/// Figures of one peer at one moment. Times are counted from when the peer was made.
#[derive(Debug, Clone, Default)]
pub struct PeerStats {
    /// How long the peer has been there.
    pub age: Duration,
    /// Candidates, and which pair of them is in use.
    pub ice: IceStats,
    /// The handshake, and what protects media.
    pub dtls: DtlsStats,
    /// Whether there is an SCTP association, for data channels.
    pub sctp: bool,
    /// The header extensions that were agreed, with their ids.
    pub extensions: Vec<(ExtensionKind, u8)>,
    /// The id of the header extension for transport-wide feedback (transport-cc), if that was agreed.
    pub transport_cc: Option<u8>,
    /// One entry an m-line, in their order.
    pub media: Vec<MediaStats>,
    /// What the link to the peer carries, if anything that is sent to it can be adapted to that.
    pub bandwidth: Option<BandwidthStats>,
    /// What waits for its time, if packets to the peer are spread over time.
    pub pacer: Option<PacerStats>,
    /// The bitrate that the peer said last that it can receive (REMB), in bit/s.
    pub remb: Option<u64>,
    /// The most that the peer is told to send (REMB), in bit/s, for the plugin's sake or that of who receives it; none: it sends
    /// what it likes.
    pub bitrate_cap: Option<u64>,
    /// All datagrams that came from the peer.
    pub received_datagrams: u64,
    /// Datagrams that were refused: malformed, unauthenticated, replayed or unexpected.
    pub refused: u64,
    /// Packets of the peer that were dropped because they are too large to be relayed.
    pub too_large: u64,
    /// The last minute, a sample a second, the oldest first.
    pub series: Vec<Sample>,
    /// The capture of its packets that is running, or has ended by itself.
    pub capture: Option<CaptureStats>,
}

/// What the m-lines of one peer carry at one moment.
#[derive(Debug, Clone, Default)]
pub struct LineStats {
    /// One entry an m-line, in their order.
    pub media: Vec<MediaStats>,
    /// The bitrate that the peer said last that it can receive (REMB), in bit/s.
    pub remb: Option<u64>,
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets or datagrams.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}
