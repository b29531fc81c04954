//! Joining to receive.

use portunus_core::sdp::Kind;
use portunus_core::{Fields, Handle};
use portunus_resources::{Id, Ids};

use super::Subscriber;
use super::change::{Subscribe, e2ee_of, tracks};
use super::layers::LayerRequest;
use super::seating::Follow;
use super::watch::last_n;
use crate::options::RoomOptions;
use crate::publication::Publications;
use crate::refusal::Refusal;

/// What a subscriber's `join` says.
#[derive(Debug)]
pub(crate) struct SubscriberJoin {
    private_id: Option<u64>,
    use_msid: bool,
    autoupdate: bool,
    streams: Vec<Subscribe>,
    last_n: Option<LastN>,
    /// In the old form: the publisher, and which kinds of media.
    legacy: Option<Legacy>,
}

#[derive(Debug)]
struct Legacy {
    feed: Id,
    audio: bool,
    video: bool,
    data: bool,
}

/// The most recent speakers are wanted.
#[derive(Debug)]
struct LastN {
    speakers: usize,
    kinds: Vec<Kind>,
}

impl LastN {
    fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let Some(speakers) = last_n(fields)? else {
            return Ok(None);
        };
        let wanted = |name| Ok::<_, Refusal>(fields.boolean(name)?.unwrap_or(true));
        let kinds = [
            (Kind::Audio, wanted("offer_audio")?),
            (Kind::Video, wanted("offer_video")?),
        ];
        let kinds = kinds.into_iter().filter(|(_, wanted)| *wanted);
        Ok(Some(LastN {
            speakers,
            kinds: kinds.map(|(kind, _)| kind).collect(),
        }))
    }
}

impl SubscriberJoin {
    pub(crate) fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, Refusal> {
        let flag = |name| fields.boolean(name);
        let private_id = fields.positive("private_id")?;
        let use_msid = flag("use_msid")?.unwrap_or(false);
        let autoupdate = flag("autoupdate")?.unwrap_or(true);
        let last_n = LastN::read(fields)?;
        let (streams, legacy) = if fields.has("streams") || last_n.is_some() {
            (
                Subscribe::list(fields, "streams", ids)?.unwrap_or_default(),
                None,
            )
        } else {
            let feed = ids.required(fields, "feed")?;
            let legacy = Legacy {
                feed: feed.clone(),
                audio: flag("offer_audio")?.unwrap_or(true),
                video: flag("offer_video")?.unwrap_or(true),
                data: flag("offer_data")?.unwrap_or(true),
            };
            let request = Subscribe {
                feed,
                mid: None,
                crossrefid: None,
                send: true,
                layers: LayerRequest::read(fields)?,
            };
            (vec![request], Some(legacy))
        };
        Ok(SubscriberJoin {
            private_id,
            use_msid,
            autoupdate,
            streams,
            last_n,
            legacy,
        })
    }
}

impl SubscriberJoin {
    /// The subscription that it asks for; its m-lines wait to be offered.
    pub(crate) fn subscriber(
        self,
        handle: &Handle,
        owner: Option<Id>,
        options: &RoomOptions,
        publications: &Publications,
    ) -> Result<Subscriber, Refusal> {
        let mut tracks = tracks(self.streams, publications)?;
        if let Some(legacy) = &self.legacy {
            tracks.retain(|track| legacy.takes(track.kind));
        }
        let speakers = self.last_n.filter(|last_n| !last_n.kinds.is_empty());
        if tracks.is_empty() && speakers.is_none() {
            return Err(Refusal::Sdp("There is nothing to offer".to_owned()));
        }
        let e2ee = e2ee_of(&tracks, publications)?.unwrap_or(options.require_e2ee);
        let mut subscriber = Subscriber::new(handle, owner, self.private_id, e2ee)
            .with_offers(self.use_msid, self.autoupdate);
        for track in tracks {
            subscriber.subscribe(track)?;
        }
        if let Some(LastN { speakers, kinds }) = speakers {
            let follow = Follow::Speakers(speakers);
            subscriber.add_seats(follow, speakers, &kinds, options)?;
        }
        Ok(subscriber)
    }

    /// The private id that it gives.
    pub(crate) const fn private_id(&self) -> Option<u64> {
        self.private_id
    }

    /// In the old form, the publisher.
    pub(crate) fn feed(&self) -> Option<&Id> {
        self.legacy.as_ref().map(|legacy| &legacy.feed)
    }
}

impl Legacy {
    fn takes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}
