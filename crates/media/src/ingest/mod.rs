//! Ingests: sources whose packets come without a PeerConnection, from UDP sockets or from the control plane.
//!
//! What is public is asked for through [`crate::MediaPlane`]. The rest is state without sockets and
//! clocks, which `worker/ingests` drives.

mod continuity;
mod feed;
mod listening;
mod options;
mod parameter_sets;
mod plane;
mod protection;
mod refused;
mod skew;
mod socket;
mod status;
mod thread_feed;
mod upstream;

pub(crate) use continuity::{Continuity, Place};
pub(crate) use feed::Fed;
pub use feed::{FeedError, PacketFeed, PacketReceiver, packet_feed};
pub use listening::{Heard, Listening, Sound};
pub use options::{
    DataIngest, Ingest, IngestFeed, IngestId, IngestMedia, IngestOptions, IngestSrtp, RtpIngest,
    SrtpSuite,
};
pub use parameter_sets::{ParameterSets, ParameterSetsError};
pub use plane::IngestEnd;
pub(crate) use protection::Protection;
pub(crate) use refused::Refusals;
pub use refused::Refused;
pub(crate) use skew::Skew;
pub use socket::{
    IngestBind, IngestError, IngestSocket, SharedSocket, interface_address, probe_interface,
};
pub use status::{IngestStatus, Refusal};
#[cfg(all(test, feature = "testing"))]
pub(crate) use thread_feed::thread_feed;
pub(crate) use thread_feed::{Delivered, ThreadFeedEnd};
pub use thread_feed::{SharedClock, ThreadFeed};
pub(crate) use upstream::{Lowest, Remote, Upstream};

/// Bytes of the longest packet or message that is taken: with extensions and tag it still fits a datagram of ours.
pub(crate) const MAX_PACKET: usize = 1_800;
