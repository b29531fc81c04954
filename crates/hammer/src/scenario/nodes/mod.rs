//! Load on several nodes of a cluster at once: viewers of one source at all of them, sources that
//! cross to one other node, and rooms while nodes and links fail.

mod events;
mod feeds;
mod relays;
mod seat;
mod steady;

use std::time::Duration;

use super::load::Media;

pub(crate) use events::{Cue, play};
pub(crate) use relays::relays;
pub(crate) use steady::{alone, spread};

/// A server under load.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Its name in reports.
    pub(crate) name: String,
    /// Its Janus API over WebSocket.
    pub(crate) url: String,
    /// Its process.
    pub(crate) pid: i32,
}

/// The load.
#[derive(Debug, Clone)]
pub(crate) struct Demand {
    /// The media of each source.
    pub(crate) media: Media,
    /// Viewers of the one source at each node.
    pub(crate) viewers: u32,
    /// Sources that cross to one other node.
    pub(crate) sources: u32,
    /// Viewers at each node of each publisher in the room, and of the mountpoint, while the script
    /// runs.
    pub(crate) guests: u32,
    /// The share of viewers that decrypt. The first one always does.
    pub(crate) check_share: f64,
    /// How long each number of viewers is measured.
    pub(crate) duration: Duration,
    /// The wait before.
    pub(crate) settle: Duration,
    /// Each viewer has a socket.
    pub(crate) own_sockets: bool,
    /// The servers' API secret.
    pub(crate) api_secret: String,
    /// The room that each node has by its configuration.
    pub(crate) room: u64,
}
