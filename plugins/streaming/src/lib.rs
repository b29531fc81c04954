//! The Streaming plugin, `janus.plugin.streaming`: one source to many viewers.
//!
//! A mountpoint has a source that viewers can watch: RTP from elsewhere, a file, an RTSP server, or
//! a client that publishes. The plugin programs routes from the source to the viewers. It never
//! touches a packet on its way.
#![forbid(unsafe_code)]

mod bounds;
mod broadcast;
mod cluster;
mod config;
mod definition;
mod management;
mod mountpoint;
mod plugin;
mod refusal;
mod requests;
mod shared;
mod spec;
mod stream_message;
mod viewer;

pub use cluster::{Mountpoints, OwnData, OwnMountpoint, OwnSource};
pub use config::{ConfiguredMountpoint, StreamingConfig, rewrite_saved};
pub use definition::{Definition, DefinitionError};
pub use plugin::Streaming;
pub use portunus_core::configuration::PortRange;
pub use portunus_resources::{Id, SavedError};
pub use requests::Request;
pub use spec::SpecProblem;
pub use stream_message::{StreamMessage, StreamMessageError};
