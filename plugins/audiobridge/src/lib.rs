//! The Audio Bridge plugin, `janus.plugin.audiobridge`: rooms in which each participant hears the
//! mix of the others. The plugin is control logic only: `portunus-audio` makes the mixes, and the
//! media plane routes them like any source.
#![forbid(unsafe_code)]

mod broadcast;
mod client_handle;
mod cluster;
mod codec;
mod config;
mod forwarder_options;
mod home;
mod line;
mod management;
mod options;
mod plugin;
mod refusal;
mod requests;
mod room;
mod settings;
mod shared;
mod target;
#[cfg(feature = "testing")]
pub mod testing;

pub use cluster::{ClusterRooms, OtherNodes, OwnRoom, RoomRecord};
pub use config::{AudioBridgeConfig, ConfiguredRoom, rewrite_saved};
pub use plugin::{AudioBridge, StartError};
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Participation};

/// The name that clients attach to.
const PACKAGE: &str = "janus.plugin.audiobridge";
