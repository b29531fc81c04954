//! What participants publish: the streams of each, who forwards, records and listens to them, and the order in which they
//! came.

mod answer;
mod configure;
mod forward;
mod keyframes;
mod origin;
mod placeholder;
mod recording;
mod remote;
mod show;
mod stream;
mod talking;

use std::collections::{BTreeMap, HashMap};

use portunus_core::Mid;
use portunus_core::media::MediaPlane;
use portunus_core::record::{JointRecording, Recorder, WeakSession};
use portunus_core::sdp::{CodecName, Kind};
use portunus_resources::Id;

pub(crate) use answer::answer;
pub(crate) use configure::Configure;
pub(crate) use forward::{
    ForwardRequest, Forwarder, Host, MAX_FORWARDERS, PATIENCE, address, port, required_port, srtp,
};
pub(crate) use origin::Origin;
pub(crate) use placeholder::{dummy_streams, placeholder};
pub(crate) use recording::Recorded;
pub(crate) use remote::{MAX_STREAMS, Place, Remote, RemotePublication, StreamUpdate};
pub(crate) use show::{listed, published, state};
pub(crate) use stream::{ExtensionIds, Stream, medium};
pub(crate) use talking::detection;

use crate::refusal::Refusal;

/// What is published in a room. Others see it, but only these methods change it.
///
/// Those whose media is up have a place in the order in which it came up, and nobody else has.
#[derive(Debug)]
pub(crate) struct Publications {
    media: MediaPlane,
    recorder: Recorder,
    /// What recordings of the room belong to, as long as there are any.
    recorded: WeakSession,
    by_feed: HashMap<Id, Publication>,
    in_order: BTreeMap<u64, Id>,
    next_place: u64,
}

/// What a participant publishes.
#[derive(Debug)]
pub(crate) struct Publication {
    origin: Origin,
    /// Its place among those whose media is up; none as long as it is not.
    place: Option<u64>,
    e2ee: bool,
    /// One for each m-line.
    streams: Vec<Stream>,
    /// All streams in one file, if they are recorded so.
    recording: Option<JointRecording>,
    /// The other servers that it is published on.
    remotes: Vec<RemotePublication>,
}

impl Publications {
    /// Nothing is published yet.
    pub(crate) fn new(media: MediaPlane, recorder: Recorder) -> Self {
        Publications {
            media,
            recorder,
            recorded: WeakSession::default(),
            by_feed: HashMap::new(),
            in_order: BTreeMap::new(),
            next_place: 0,
        }
    }

    /// What somebody publishes, whether its media is up or not.
    pub(crate) fn get(&self, feed: &Id) -> Option<&Publication> {
        self.by_feed.get(feed)
    }

    /// What somebody publishes whose media is up.
    pub(crate) fn up(&self, feed: &Id) -> Option<&Publication> {
        self.by_feed.get(feed).filter(|known| known.place.is_some())
    }

    /// What somebody publishes whose media has to be up.
    pub(crate) fn published(&self, feed: &Id) -> Result<&Publication, Refusal> {
        self.up(feed)
            .ok_or_else(|| Refusal::NoSuchFeed(feed.to_string()))
    }

    /// A stream of somebody whose media is up, unless it is disabled.
    pub(crate) fn track(&self, feed: &Id, mid: Mid) -> Option<(&Publication, &Stream)> {
        let publication = self.up(feed)?;
        let stream = publication.stream(mid)?;
        (!stream.disabled).then_some((publication, stream))
    }

    /// The feeds whose media is up, in the order in which it came up.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&Id, &Publication)> {
        let known = |id| self.by_feed.get(id).map(|publication| (id, publication));
        self.in_order.values().filter_map(known)
    }

    /// The publishers whose media is up, in the order in which it came up: no dummies.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = &Id> {
        let real = |(id, publication): (_, &Publication)| (!publication.is_dummy()).then_some(id);
        self.in_order().filter_map(real)
    }

    /// Checks that there may be one more publisher, of `most`.
    pub(crate) fn check_limit(&self, most: u64) -> Result<(), Refusal> {
        let publishing = self.by_feed.values().filter(|known| !known.is_dummy());
        match u64::try_from(publishing.count()) {
            Ok(publishing) if publishing < most => Ok(()),
            Ok(_) | Err(_) => Err(Refusal::PublishersFull(most)),
        }
    }

    /// Somebody publishes from now on; its media is not up yet.
    pub(crate) fn start(&mut self, id: &Id, origin: Origin, e2ee: bool, streams: Vec<Stream>) {
        let publication = Publication {
            origin,
            place: None,
            e2ee,
            streams,
            recording: None,
            remotes: Vec::new(),
        };
        self.end(id);
        self.by_feed.insert(id.clone(), publication);
    }

    /// Somebody's media is up; false if it was before, or nothing is published.
    pub(crate) fn came_up(&mut self, id: &Id) -> bool {
        let known = self.by_feed.get_mut(id);
        let Some(publication) = known.filter(|known| known.place.is_none()) else {
            return false;
        };
        publication.place = Some(self.next_place);
        self.in_order.insert(self.next_place, id.clone());
        self.next_place += 1;
        true
    }

    /// Takes out what somebody publishes.
    pub(crate) fn end(&mut self, id: &Id) -> Option<Publication> {
        let publication = self.by_feed.remove(id)?;
        if let Some(place) = publication.place {
            self.in_order.remove(&place);
        }
        Some(publication)
    }

    /// A stream turned out to have layers, which its publisher did not say.
    pub(crate) fn found_svc(&mut self, feed: &Id, mid: Mid) {
        if let Some(stream) = self.stream_mut(feed, mid) {
            stream.svc = true;
        }
    }

    /// Closes or opens a stream against its publisher's will; gives its place, if that changes anything.
    pub(crate) fn moderate(
        &mut self,
        feed: &Id,
        mid: &str,
        mute: bool,
    ) -> Result<Option<usize>, Refusal> {
        let publication = self.by_feed.get_mut(feed);
        let streams = publication.into_iter().flat_map(|known| &mut known.streams);
        let mut named = streams.filter(|stream| stream.mid.as_str() == mid);
        let Some(stream) = named.next() else {
            return Err(Refusal::NoSuchStream(mid.to_owned()));
        };
        let before = std::mem::replace(&mut stream.moderated, mute);
        Ok((before != mute).then_some(stream.index))
    }

    fn stream_mut(&mut self, feed: &Id, mid: Mid) -> Option<&mut Stream> {
        self.by_feed.get_mut(feed)?.stream_mut(mid)
    }
}

impl Publication {
    /// Whether it is encrypted end to end.
    pub(crate) const fn e2ee(&self) -> bool {
        self.e2ee
    }

    /// One for each m-line.
    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Where its media comes from.
    pub(crate) const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The other servers that it is published on.
    pub(crate) fn remotes(&self) -> &[RemotePublication] {
        &self.remotes
    }

    /// Whether it only holds places.
    pub(crate) const fn is_dummy(&self) -> bool {
        matches!(self.origin, Origin::Dummy)
    }

    /// The stream of m-line `mid`.
    pub(crate) fn stream(&self, mid: Mid) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.mid == mid)
    }

    fn stream_mut(&mut self, mid: Mid) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.mid == mid)
    }

    /// The streams that carry data.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Stream> {
        let carries = |stream: &&Stream| stream.kind == Kind::Data && !stream.disabled;
        self.streams.iter().filter(carries)
    }

    /// The codec of the first stream of `kind` that has one.
    pub(crate) fn codec(&self, kind: Kind) -> Option<&'static str> {
        let streams = self.streams.iter().filter(|stream| !stream.disabled);
        let mut codecs = streams
            .filter(|stream| stream.kind == kind)
            .filter_map(|stream| stream.codec);
        codecs.next().map(CodecName::name)
    }

    /// The true state, if some audio says how loud it is.
    pub(crate) fn talking(&self) -> Option<bool> {
        let mut heard = self.streams.iter().filter(|stream| stream.has_levels());
        let first = heard.next()?;
        Some(first.talk.talking || heard.any(|stream| stream.talk.talking))
    }

    /// Takes nothing in any more, where another server sent it.
    pub(crate) fn close(&self) {
        if let Origin::Remote(remote) = &self.origin {
            remote.close();
        }
    }
}

/// Checks that a publisher who is encrypted end to end, or is not, may be in a room that needs that, or does not.
pub(crate) fn check_e2ee(required: bool, e2ee: bool) -> Result<(), Refusal> {
    match required && !e2ee {
        true => Err(Refusal::Unauthorized(
            "this room needs end-to-end encryption",
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use portunus_core::record::RecorderConfig;

    use super::*;
    use crate::options::RoomOptions;

    const AL: Id = Id::Number(1);
    const BO: Id = Id::Number(2);

    fn publications() -> Publications {
        let (media, _, _) = MediaPlane::detached();
        Publications::new(media, Recorder::new(RecorderConfig::default()))
    }

    fn start(publications: &mut Publications, id: &Id) -> Mid {
        let mid = Mid::new("0").unwrap();
        let options = RoomOptions::default();
        let stream = placeholder(&options, CodecName::Vp8, None, mid, 0);
        publications.start(id, Origin::Dummy, false, vec![stream]);
        mid
    }

    fn in_order(publications: &Publications) -> Vec<Id> {
        let feeds = publications.in_order();
        feeds.map(|(feed, _)| feed.clone()).collect()
    }

    #[test]
    fn whose_media_is_up_has_a_place_as_long_as_it_publishes() {
        let mut publications = publications();
        assert!(!publications.came_up(&AL));
        start(&mut publications, &AL);
        start(&mut publications, &BO);
        assert!(publications.up(&AL).is_none());
        assert!(publications.came_up(&BO));
        assert!(publications.came_up(&AL));
        assert!(!publications.came_up(&AL), "it is up");
        assert_eq!(in_order(&publications), [BO, AL]);
        publications.end(&BO);
        start(&mut publications, &BO);
        assert_eq!(in_order(&publications), [AL]);
        assert!(publications.came_up(&BO));
        assert_eq!(in_order(&publications), [AL, BO]);
    }

    #[test]
    fn dummies_are_no_publishers() {
        let mut publications = publications();
        start(&mut publications, &AL);
        publications.came_up(&AL);
        assert_eq!(publications.publishers().count(), 0);
        assert!(publications.check_limit(1).is_ok());
        assert!(publications.check_limit(0).is_err());
        assert!(publications.forwardable(&AL).is_err());
    }

    #[test]
    fn a_moderator_closes_a_stream_once() {
        let mut publications = publications();
        start(&mut publications, &AL);
        let is_open = |publications: &Publications| {
            let stream = publications.get(&AL).unwrap().streams().first();
            stream.unwrap().is_open()
        };
        assert_eq!(publications.moderate(&AL, "0", true).unwrap(), Some(0));
        assert!(!is_open(&publications));
        assert_eq!(publications.moderate(&AL, "0", true).unwrap(), None);
        assert_eq!(publications.moderate(&AL, "0", false).unwrap(), Some(0));
        assert!(is_open(&publications));
        assert!(publications.moderate(&AL, "1", true).is_err());
        assert!(publications.moderate(&BO, "0", true).is_err());
    }
}
