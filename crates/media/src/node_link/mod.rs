//! Node links: the media of sources that cross from this server to another one, and back.
//!
//! A link joins two media planes by SRTP over UDP, with a key for each direction. Each worker has a
//! socket for the links to all other nodes. A source crosses a link as one stream for each encoding
//! that somebody beyond can see: an outlet on its worker ([`crate::MediaPlane::relay`]) sends it, an
//! ingest of the other node ([`crate::IngestFeed::Node`]) takes it. The control plane decides
//! which, and gives both sides keys, addresses and SSRCs. The private part is state without
//! sockets and clocks, which `worker/node_links` drives.
//!
//! - The receiver chooses the SSRCs of streams. None is used twice with one key.
//! - The highest bit of an SSRC says which key a packet has, so that a new key can be used while
//!   streams flow ([`crate::MediaPlane::set_node_link_key`]).
//! - Each worker has one SSRC for its RTCP, above those of all streams.

mod demand_reports;
mod far_worker;
mod incoming;
mod key;
mod link;
mod options;
mod payload_types;
mod refusal;
mod status;

pub(crate) use demand_reports::IngestDemand;
pub use demand_reports::{DemandReports, NodeFeed};
pub(crate) use far_worker::FarWorker;
pub(crate) use incoming::Incoming;
pub use key::NodeLinkKey;
pub(crate) use link::{NodeLinkState, Received};
pub(crate) use options::{KeyChange, KeyUse, rtcp_ssrc, with_key};
pub use options::{MAX_SSRC, NodeLink, NodeLinkId, NodeLinkOptions, RelayOptions, RelayedStream};
pub(crate) use payload_types::payload_type;
pub(crate) use refusal::LinkRefusal;
pub(crate) use status::NodeLinkStatus;
pub use status::{NodeLinkStats, RelayCount, SignsOfLife};
