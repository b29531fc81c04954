//! The Streaming plugin, `janus.plugin.streaming`: one source to many viewers.
//!
//! A mountpoint is what can be watched. Its media comes as RTP from elsewhere, from a file, from an RTSP server, or
//! from a client that publishes. The plugin programs routes from its sources to its viewers; it never touches a packet
//! on its way.
#![forbid(unsafe_code)]

mod bounds;
mod broadcast;
mod config;
mod manage;
mod mountpoint;
mod plugin;
mod refusal;
mod requests;
mod spec;
mod viewer;

pub use config::{ConfiguredMountpoint, StreamingConfig, rewrite_saved};
pub use plugin::Streaming;
pub use portunus_core::configuration::PortRange;
pub use portunus_resources::{Id, SavedError};
pub use requests::Request;
pub use spec::SpecProblem;
