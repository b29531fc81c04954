//! Joining to receive.

use std::sync::Arc;

use portunus_media::MediaPlane;
use portunus_sdp::Kind;
use serde::Deserialize;

use super::Subscriber;
use super::change::{Subscribe, e2ee_of, tracks, yes};
use super::seating::Follow;
use crate::publication::Publications;
use crate::{Connection, PersonId, Refusal, RoomSettings};

/// What somebody wants to receive who joins for that.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SubscriberJoin {
    /// The private id of the participant to whom the subscription belongs.
    pub private_id: Option<u64>,
    /// Streams are named by their publishers in `a=msid`.
    pub use_msid: bool,
    /// New offers are made without being asked for when a publisher goes.
    #[serde(default = "yes")]
    pub autoupdate: bool,
    /// The streams. They are not read with the rest.
    #[serde(skip)]
    pub streams: Vec<Subscribe>,
    /// The kinds of media that are received of `streams`; `None` means all.
    #[serde(skip)]
    pub kinds: Option<Vec<Kind>>,
    /// The most recent speakers, if they are wanted.
    #[serde(skip)]
    pub last_n: Option<LastN>,
}

/// The most recent speakers are wanted.
#[derive(Debug, Clone)]
pub struct LastN {
    /// How many; at most [`super::MAX_SPEAKERS`].
    pub speakers: usize,
    /// Which of their media.
    pub kinds: Vec<Kind>,
}

impl SubscriberJoin {
    /// The subscription that it asks for; its m-lines wait to be offered.
    pub(crate) fn subscriber(
        self,
        (connection, media): (Arc<dyn Connection>, MediaPlane),
        owner: Option<PersonId>,
        options: &RoomSettings,
        publications: &Publications,
    ) -> Result<Subscriber, Refusal> {
        let mut tracks = tracks(self.streams, publications)?;
        if let Some(kinds) = &self.kinds {
            tracks.retain(|track| kinds.contains(&track.kind));
        }
        let speakers = self.last_n.filter(|last_n| !last_n.kinds.is_empty());
        if tracks.is_empty() && speakers.is_none() {
            return Err(Refusal::NothingToOffer);
        }
        let e2ee = e2ee_of(&tracks, publications)?.unwrap_or(options.require_e2ee);
        let mut subscriber = Subscriber::new((connection, media), owner, self.private_id, e2ee);
        subscriber.use_msid = self.use_msid;
        subscriber.autoupdate = self.autoupdate;
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
