//! The state that all handles of the plugin share.

use portunus_resources::Resources;

use crate::config::Intake;
use crate::post::BackEnds;
use crate::room::{Room, Surroundings};

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rooms: Resources<Room>,
    pub(crate) intake: Intake,
    pub(crate) back_ends: BackEnds,
    pub(crate) surroundings: Surroundings,
}
