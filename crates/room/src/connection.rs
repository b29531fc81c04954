//! A client's PeerConnection, as a room uses it.

use std::fmt;

use portunus_media::{MediaPlane, PeerId, TrackRef};
use portunus_record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_rtp::Mid;
use portunus_sdp::{Description, Kind, LocalJsep, Msid};

use crate::{ConnectionId, PersonId, Refusal};

/// A client's PeerConnection. A door implements it together with [`crate::Client`].
///
/// The room calls all methods under its lock: they must neither block nor lock the room. A
/// connection may outlive its client; its methods then have no effect.
pub trait Connection: fmt::Debug + Send + Sync {
    /// Returns the connection's id.
    fn id(&self) -> ConnectionId;

    /// Returns the PeerConnection in the media plane, or `None` if there is none.
    fn peer(&self) -> Option<PeerId>;

    /// Offers `description`, with new ICE credentials if `restart`. The room hands the result back
    /// to the door: as the outcome of a request, or with a [`crate::Notice`].
    fn offer(&self, description: Description, restart: bool) -> Result<LocalJsep, Refusal>;

    /// Answers the client's offer with `description`. The result is the outcome of the request.
    fn answer(&self, description: Description) -> Result<LocalJsep, Refusal>;

    /// Closes the PeerConnection, if there is one.
    fn close(&self);

    /// Returns the stream and the track that name m-line `mid` of `feed` in offers to this client.
    /// `None` means those of [`crate::SubscriberJoin::use_msid`].
    fn msid(&self, _feed: &PersonId, _mid: Mid) -> Option<Msid> {
        None
    }

    /// Returns whether video to this client may pause while its link does not carry the lowest
    /// layer. [`crate::State::source_of`] returns the stream of a route that has.
    fn may_pause(&self) -> bool {
        false
    }

    /// Records m-line `mid` of the client, with its gate `open` or closed. The door tells the
    /// client when the recording fails or is complete. Returns `None` if it cannot be recorded.
    fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        client: RecordedClient<'_>,
    ) -> Option<Recording>;

    /// Records several m-lines of the client in one file, as [`Connection::record`] does for one.
    fn record_jointly(&self, spec: JointSpec, client: RecordedClient<'_>)
    -> Option<JointRecording>;
}

/// The parts of a recording's messages to its client that only the room knows.
#[derive(Debug, Clone, Copy)]
pub struct RecordedClient<'a> {
    /// The room's name.
    pub room: &'a str,
    /// The recorded stream. `None` if all streams are in one file.
    pub stream: Option<(Mid, Kind)>,
    /// Whether the client may know why a recording failed.
    pub told_why: bool,
}

impl dyn Connection + '_ {
    /// Returns m-line `mid` as a source and a sink of routes, or `None` without a PeerConnection.
    pub(crate) fn track(&self, mid: Mid) -> Option<TrackRef> {
        let peer = self.peer()?;
        Some(TrackRef { peer, mid })
    }

    /// Caps the client's bitrate, in bit/s; 0 removes the cap.
    pub(crate) fn cap(&self, media: &MediaPlane, bitrate: u64) {
        if let Some(peer) = self.peer() {
            media.set_bitrate(peer, (bitrate > 0).then_some(bitrate));
        }
    }
}
