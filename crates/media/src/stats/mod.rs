//! Statistics of a peer, for the admin API and the pages.

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

/// The present statistics of one peer. Times count from its creation.
#[derive(Debug, Clone, Default)]
pub struct PeerStats {
    /// The age of the peer.
    pub age: Duration,
    /// Candidates and pairs.
    pub ice: IceStats,
    /// The handshake, and the protection of media.
    pub dtls: DtlsStats,
    /// Whether there is an SCTP association for data channels.
    pub sctp: bool,
    /// The agreed header extensions and their ids.
    pub extensions: Vec<(ExtensionKind, u8)>,
    /// The id of the header extension for transport-wide feedback (transport-cc), if agreed.
    pub transport_cc: Option<u8>,
    /// The m-lines, in order.
    pub media: Vec<MediaStats>,
    /// What the link to the peer carries, if anything that is sent can be adapted to it.
    pub bandwidth: Option<BandwidthStats>,
    /// The packets in the pacer, if packets to the peer are paced.
    pub pacer: Option<PacerStats>,
    /// The last estimate of the peer (REMB), in bit/s.
    pub remb: Option<u64>,
    /// The cap of what the peer sends (REMB), in bit/s, because of the plugin or of viewers. `None`
    /// means no cap.
    pub bitrate_cap: Option<u64>,
    /// Datagrams received from the peer.
    pub received_datagrams: u64,
    /// Datagrams that were refused: malformed, unauthenticated, replayed or unexpected.
    pub refused: u64,
    /// Packets of the peer that were dropped because they are too large to be relayed.
    pub too_large: u64,
    /// The last minute, one sample a second, the oldest first.
    pub series: Vec<Sample>,
    /// The capture of its packets that is running, or that has ended by itself.
    pub capture: Option<CaptureStats>,
}

/// What the m-lines of one peer carry.
#[derive(Debug, Clone, Default)]
pub struct LineStats {
    /// The m-lines, in order.
    pub media: Vec<MediaStats>,
    /// The last estimate of the peer (REMB), in bit/s.
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
