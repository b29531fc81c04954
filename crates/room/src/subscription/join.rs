//! Joining to receive.

use portunus_sdp::Kind;
use serde::Deserialize;

use super::request::{Subscribe, yes};
use super::seating::Follow;
use super::track::{e2ee_of, tracks};
use super::{Subscriber, Viewer};
use crate::publication::Publications;
use crate::{Refusal, RoomSettings};

/// The join of a subscriber.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SubscriberJoin {
    /// The private id of the participant to whom the subscription belongs.
    pub private_id: Option<u64>,
    /// Streams are named by their publishers in `a=msid`.
    pub use_msid: bool,
    /// Whether the room makes a new offer by itself when a publisher goes.
    #[serde(default = "yes")]
    pub autoupdate: bool,
    /// Whether there is an m-line for data of the door, first of all and without a source. Such a
    /// subscription may be without streams.
    #[serde(skip)]
    pub own_data: bool,
    /// The streams. They are not read with the rest.
    #[serde(skip)]
    pub streams: Vec<Subscribe>,
    /// The kinds of media to receive of `streams`. `None` means all.
    #[serde(skip)]
    pub kinds: Option<Vec<Kind>>,
    /// The most recent speakers to follow. `None` follows none.
    #[serde(skip)]
    pub last_n: Option<LastN>,
}

/// A request to follow the most recent speakers.
#[derive(Debug, Clone)]
pub struct LastN {
    /// Their number, at most [`super::MAX_SPEAKERS`].
    pub speakers: usize,
    /// The kinds of their media to receive.
    pub kinds: Vec<Kind>,
}

impl SubscriberJoin {
    /// Returns the requested subscription. Its m-lines are not offered yet.
    pub(crate) fn subscriber(
        self,
        viewer: Viewer,
        options: &RoomSettings,
        publications: &Publications,
    ) -> Result<Subscriber, Refusal> {
        let mut tracks = tracks(self.streams, publications)?;
        if let Some(kinds) = &self.kinds {
            tracks.retain(|track| kinds.contains(&track.kind));
        }
        let speakers = self.last_n.filter(|last_n| !last_n.kinds.is_empty());
        if tracks.is_empty() && speakers.is_none() && !self.own_data {
            return Err(Refusal::NothingToOffer);
        }
        // The door's clients know which streams are encrypted.
        let e2ee = match self.own_data {
            true => None,
            false => e2ee_of(&tracks, publications)?,
        };
        let e2ee = e2ee.unwrap_or(options.require_e2ee);
        let mut subscriber = Subscriber::new(viewer, self.private_id, e2ee);
        subscriber.use_msid = self.use_msid;
        subscriber.autoupdate = self.autoupdate;
        if self.own_data {
            subscriber.add_own_data()?;
        }
        for track in tracks {
            subscriber.subscribe(track)?;
        }
        if let Some(LastN { speakers, kinds }) = speakers {
            let follow = Follow::Speakers(speakers);
            subscriber.add_seats(follow, speakers, &kinds, options)?;
        }
        Ok(subscriber)
    }
}
