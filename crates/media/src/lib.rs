//! Workers, sockets and the media graph.

mod addresses;
mod capture;
mod command;
mod config;
mod error;
mod event;
mod graph;
mod identity;
mod inbox;
pub mod ingest;
pub mod leg;
mod metrics;
mod offered;
mod outlet;
mod plane;
mod settings;
mod start;
mod stats;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod totals;
mod turn;
mod user_fragment;
mod waiting;
mod worker;

pub use addresses::{Reachable, reachable};
pub use capture::{CaptureEnd, CaptureError, CaptureFormat, CaptureOptions, CaptureStats};
pub use command::{
    KeyframeCache, KeyframeInterval, Priority, RouteOptions, SourceRef, TrackRef, layer_number,
};
pub use config::{AnnouncedAddress, MediaConfig};
pub use error::MediaError;
pub use event::{
    CloseReason, DataMessage, DataPayload, DtlsState, Event, IceState, Layer, PeerEvent, SentLayers,
};
pub use graph::{LayerReason, SpeechActivity, TalkDetection};
pub use identity::MediaIdentity;
pub use ingest::{
    Ingest, IngestBind, IngestError, IngestFeed, IngestId, IngestMedia, IngestOptions,
    IngestSocket, IngestStatus, PacketFeed, SharedClock, SharedSocket, ThreadFeed, packet_feed,
};
pub use offered::PublicAddress;
pub use outlet::{
    Collected, Collector, Encodings, ForwardOptions, ForwardRtcp, Framing, Tap, TapOptions,
    TapRoom, Tapped, TappedMessage, TappedPacket, TappedReport,
};
pub use plane::{MediaPlane, PeerId, PeerOptions, RouteId};
pub use portunus_rtc::bandwidth::Reason;
pub use portunus_rtc::data::MAX_LABEL;
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
