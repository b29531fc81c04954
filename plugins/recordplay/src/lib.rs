//! The Record&Play plugin, `janus.plugin.recordplay`: it records the media of a client, and plays
//! it again.
#![forbid(unsafe_code)]

mod attached;
mod cluster;
mod complete_recording;
mod config;
mod counts;
mod director;
mod lookup;
mod nfo;
mod opening;
mod player;
mod plugin;
mod recorder;
mod refusal;
mod requests;
mod session;
mod shared;
mod shelf;
#[cfg(feature = "testing")]
pub mod testing;

pub use cluster::Recordings;
pub use config::RecordPlayConfig;
pub use nfo::{MAX_NFO, MediaFiles, Nfo, NfoError};
pub use plugin::RecordPlay;
pub use requests::Request;
