//! The Video Room plugin, `janus.plugin.videoroom`: rooms in which many publish and many watch.
//!
//! It is the door of the Janus API to the conferences of `portunus_room`. It reads the requests of
//! clients (`read`), checks secrets and tokens (`room`), manages rooms (`manage`), and writes the
//! notices (`show`). `client_handle` has the commands of participants and subscribers.
#![forbid(unsafe_code)]

mod broadcast;
mod client;
mod client_handle;
mod config;
mod definition;
mod directory;
mod entry;
mod management;
mod messages;
mod options;
mod plugin;
mod preparation;
mod prepared;
mod question;
mod refusal;
mod requests;
mod room;
mod shared;
#[cfg(feature = "testing")]
pub mod testing;

pub use config::{ConfiguredRoom, VideoRoomConfig, rewrite_saved};
pub use plugin::VideoRoom;
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Participation};
