//! The Text Room plugin, `janus.plugin.textroom`: rooms whose members exchange messages over data
//! channels. The plugin sends them on in order, keeps a history for later members, and posts them
//! to HTTP back-ends.
#![forbid(unsafe_code)]

mod client_handle;
mod cluster;
mod config;
mod contact;
mod guest;
mod management;
mod options;
mod other_nodes;
mod pace;
mod plugin;
mod post;
mod refusal;
mod requests;
mod room;
mod shared;
mod tally;
#[cfg(feature = "testing")]
pub mod testing;

pub use cluster::TextRooms;
pub use config::{ConfiguredRoom, TextRoomConfig, rewrite_saved};
pub use plugin::TextRoom;
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Membership, Negotiation};
