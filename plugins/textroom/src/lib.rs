//! The Text Room plugin, `janus.plugin.textroom`: rooms whose members write to each other over data channels. What they write
//! is passed on in the order in which it came, remembered for those who come later, and posted to HTTP back-ends.
#![forbid(unsafe_code)]

mod attached;
mod config;
mod guest;
mod manage;
mod options;
mod pace;
mod plugin;
mod post;
mod refusal;
mod requests;
mod room;
mod tally;

pub use config::{ConfiguredRoom, TextRoomConfig, rewrite_saved};
pub use plugin::TextRoom;
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Membership, Negotiation};
