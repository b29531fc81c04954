//! The workers of the media plane, and their sockets.
//!
//! [`MediaPlane`] is the control plane's handle on the workers. A worker runs the routes between
//! sources and sinks. Their state is in `portunus-graph`, whose public types are re-exported here.

mod addresses;
mod backlog;
mod candidates;
mod capture;
mod command;
mod config;
mod error;
mod event;
mod identity;
mod inbox;
pub mod ingest;
pub mod leg;
mod metrics;
mod node_link;
mod outlet;
mod peer_state;
mod plane;
mod settings;
mod stats;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod totals;
mod turn;
mod user_fragment;
mod wakeup;
mod worker;

pub use addresses::{Reachable, reachable};
pub use candidates::PublicAddress;
pub use capture::{CaptureEnd, CaptureError, CaptureFormat, CaptureOptions, CaptureStats};
pub use config::{AnnouncedAddress, MediaConfig};
pub use error::MediaError;
pub use event::{CloseReason, DataMessage, DataPayload, Event, PeerEvent};
pub use identity::MediaIdentity;
pub use ingest::{
    Ingest, IngestBind, IngestError, IngestFeed, IngestMedia, IngestOptions, IngestSocket,
    IngestStatus, PacketFeed, SharedSocket, ThreadFeed, packet_feed,
};
pub use node_link::{
    DemandReports, MAX_SSRC, NodeFeed, NodeLink, NodeLinkId, NodeLinkKey, NodeLinkOptions,
    NodeLinkStats, RelayCount, RelayOptions, RelayedStream, SignsOfLife,
};
pub use outlet::{
    Collected, Collector, Encodings, ForwardOptions, ForwardRtcp, Framing, Tap, TapOptions,
    TapRoom, Tapped, TappedMessage, TappedPacket, TappedReport,
};
pub use peer_state::{DtlsState, IceState};
pub use plane::{MediaPlane, PeerOptions};
pub use portunus_graph::{
    Demand, IngestId, KeyframeCache, KeyframeInterval, Layer, LayerReason, PeerId, Priority,
    RouteId, RouteOptions, SentLayers, SharedClock, SourceRef, SpeechActivity, TalkDetection,
    TrackRef, layer_number,
};
pub use portunus_rtc::bandwidth::Reason;
pub use portunus_rtc::data::{DataOptions, MAX_LABEL, Reliability};
pub use portunus_rtc::{Carrier, IceAttempt, IceCause, Path, RemoteCandidate, Scope, SelectedPair};
pub use portunus_turn_client::{Fault as TurnFault, Login as TurnLogin};
pub use settings::MediaSettings;
pub use stats::{
    BandwidthStats, CandidateStats, DtlsStats, IceStats, LayerStats, LineStats, MediaStats,
    MessageStats, PacerStats, PairState, PairStats, PayloadStats, PeerStats, ReportTimes, Sample,
    SampledLayers, StreamStats, Traffic, WorkerStats,
};
pub use totals::{MediaTotals, TcpTotals};
pub use turn::{RelayedTotals, TurnServer, TurnState};
