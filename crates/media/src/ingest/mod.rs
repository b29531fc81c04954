//! Ingests: sources without a PeerConnection, fed by UDP sockets or by the control plane.
//!
//! [`crate::MediaPlane`] adds and changes them. The private part is state without sockets and
//! clocks, which `worker/ingests` drives.

mod continuity;
mod end;
mod feed;
mod listening;
mod options;
mod parameter_sets;
mod protection;
mod refusals;
mod skew;
mod socket;
mod status;
mod thread_feed;
mod upstream;

pub(crate) use continuity::{Continuity, Place};
pub use end::IngestEnd;
pub(crate) use feed::FeedEntry;
pub use feed::{FeedError, PacketFeed, PacketReceiver, packet_feed};
pub use listening::{Heard, Listening, Sound};
pub use options::{
    DataIngest, Ingest, IngestFeed, IngestMedia, IngestOptions, IngestSrtp, RtpIngest, SrtpSuite,
};
pub use parameter_sets::{ParameterSets, ParameterSetsError};
pub use portunus_graph::{IngestId, SharedClock};
pub(crate) use protection::Protection;
pub(crate) use refusals::Refusals;
pub use refusals::Refused;
pub(crate) use skew::Skew;
pub use socket::{
    IngestBind, IngestError, IngestSocket, SharedSocket, interface_address, probe_interface,
};
pub use status::{IngestStatus, Refusal};
pub use thread_feed::ThreadFeed;
pub(crate) use thread_feed::{ThreadFeedEnd, ThreadFeedEntry, thread_feed};
pub(crate) use upstream::{Remote, Upstream};

/// The maximum length of a packet or message in bytes: with extensions and tag it still fits a
/// datagram.
pub(crate) const MAX_PACKET: usize = 1_800;
