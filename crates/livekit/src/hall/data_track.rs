//! Data tracks: frames of publishers for those who subscribe to them.

use std::sync::Arc;

use livekit_protocol::DataTrackInfo;

use super::member::Member;

/// A data track of a participant.
#[derive(Debug)]
pub(crate) struct DataTrack {
    /// Its description.
    pub(crate) info: DataTrackInfo,
    /// Who receives it.
    pub(crate) receivers: Vec<Receiver>,
}

/// A receiver of a data track.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) member: Arc<Member>,
    /// The number of the track in packets to it.
    pub(crate) handle: u16,
}
