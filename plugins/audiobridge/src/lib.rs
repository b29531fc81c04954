//! The Audio Bridge plugin, `janus.plugin.audiobridge`: rooms in which all hear the mix of all others. It is control logic only:
//! the mix is made by `portunus-audio`, and routed as any source is.
#![forbid(unsafe_code)]

mod attached;
mod broadcast;
mod codec;
mod config;
mod forward;
mod line;
mod manage;
mod options;
mod plugin;
mod refusal;
mod requests;
mod room;
mod settings;
mod target;

pub use config::{AudioBridgeConfig, ConfiguredRoom, rewrite_saved};
pub use plugin::{AudioBridge, StartError};
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Participation};
