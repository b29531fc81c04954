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
mod stream;
mod talking;

use std::collections::{BTreeMap, HashMap};

use portunus_media::MediaPlane;
use portunus_record::{JointRecording, Recorder, WeakSession};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};

pub(crate) use answer::{answer, answer_options, single};
pub use configure::{Configure, RecordChange, StreamSetting};
pub(crate) use forward::MAX_FORWARDERS;
pub use forward::{ForwardRequest, Forwarder};
pub(crate) use origin::Origin;
pub(crate) use placeholder::{dummy_streams, placeholder};
pub use recording::FileNames;
pub(crate) use recording::Recorded;
pub use remote::{MAX_STREAMS, Place, Remote, RemotePublication};
pub use stream::{ExtensionIds, Stream};
pub(crate) use talking::detection;

use crate::{PersonId, Refusal};

/// What is published in a room. Others see it, but only these methods change it.
///
/// Those whose media is up have a place in the order in which it came up, and nobody else has.
#[derive(Debug)]
pub(crate) struct Publications {
    pub(crate) media: MediaPlane,
    recorder: Recorder,
    names: FileNames,
    /// What recordings of the room belong to, as long as there are any.
    recorded: WeakSession,
    by_feed: HashMap<PersonId, Publication>,
    in_order: BTreeMap<u64, PersonId>,
    next_place: u64,
}

/// What a participant publishes.
#[derive(Debug)]
pub struct Publication {
    /// Where its media comes from.
    pub(crate) origin: Origin,
    /// Its place among those whose media is up; none as long as it is not.
    place: Option<u64>,
    /// Whether it is encrypted end to end.
    pub e2ee: bool,
    /// One for each m-line.
    streams: Vec<Stream>,
    /// All streams in one file, if they are recorded so.
    recording: Option<JointRecording>,
    /// The other servers that it is published on.
    pub(crate) remotes: Vec<RemotePublication>,
}

impl Publications {
    /// Nothing is published yet.
    pub(crate) fn new(media: MediaPlane, recorder: Recorder, names: FileNames) -> Self {
        Publications {
            media,
            recorder,
            names,
            recorded: WeakSession::default(),
            by_feed: HashMap::new(),
            in_order: BTreeMap::new(),
            next_place: 0,
        }
    }

    /// What somebody publishes, whether its media is up or not.
    pub(crate) fn get(&self, feed: &PersonId) -> Option<&Publication> {
        self.by_feed.get(feed)
    }

    /// What somebody publishes whose media is up.
    pub(crate) fn up(&self, feed: &PersonId) -> Option<&Publication> {
        self.by_feed.get(feed).filter(|known| known.place.is_some())
    }

    /// What somebody publishes whose media has to be up.
    pub(crate) fn published(&self, feed: &PersonId) -> Result<&Publication, Refusal> {
        self.up(feed)
            .ok_or_else(|| Refusal::NoSuchFeed(feed.to_string()))
    }

    /// A stream of somebody whose media is up, unless it is disabled.
    pub(crate) fn track(&self, feed: &PersonId, mid: Mid) -> Option<(&Publication, &Stream)> {
        let publication = self.up(feed)?;
        let stream = publication.stream(mid)?;
        (!stream.disabled).then_some((publication, stream))
    }

    /// The feeds whose media is up, in the order in which it came up.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&PersonId, &Publication)> {
        let known = |id| self.by_feed.get(id).map(|publication| (id, publication));
        self.in_order.values().filter_map(known)
    }

    /// The publishers whose media is up, in the order in which it came up: no dummies.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = &PersonId> {
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
    pub(crate) fn start(
        &mut self,
        id: &PersonId,
        origin: Origin,
        e2ee: bool,
        streams: Vec<Stream>,
    ) {
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
    pub(crate) fn came_up(&mut self, id: &PersonId) -> bool {
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
    pub(crate) fn end(&mut self, id: &PersonId) -> Option<Publication> {
        let publication = self.by_feed.remove(id)?;
        if let Some(place) = publication.place {
            self.in_order.remove(&place);
        }
        Some(publication)
    }

    /// A stream turned out to have layers, which its publisher did not say.
    pub(crate) fn found_svc(&mut self, feed: &PersonId, mid: Mid) {
        if let Some(stream) = self.stream_mut(feed, mid) {
            stream.svc = true;
        }
    }

    /// Closes or opens a stream against its publisher's will; gives its place, if that changes anything.
    pub(crate) fn moderate(
        &mut self,
        feed: &PersonId,
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

    fn stream_mut(&mut self, feed: &PersonId, mid: Mid) -> Option<&mut Stream> {
        self.by_feed.get_mut(feed)?.stream_mut(mid)
    }
}

impl Publication {
    /// One for each m-line.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Whether it only holds places.
    pub(crate) const fn is_dummy(&self) -> bool {
        matches!(self.origin, Origin::Dummy)
    }

    /// The stream of m-line `mid`.
    pub fn stream(&self, mid: Mid) -> Option<&Stream> {
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
    pub fn codec(&self, kind: Kind) -> Option<CodecName> {
        let mut streams = self.streams.iter();
        let codec = |stream: &Stream| {
            stream
                .codec
                .filter(|_| !stream.disabled && stream.kind == kind)
        };
        streams.find_map(codec)
    }

    /// Whether somebody talks on any stream, or `None` if no audio says how loud it is.
    pub fn talking(&self) -> Option<bool> {
        let mut heard = self.streams.iter().filter(|stream| stream.has_levels());
        let first = heard.next()?;
        Some(first.talk.talking || heard.any(|stream| stream.talk.talking))
    }

    /// The name of the file that a stream is recorded into now, by itself or with the others.
    pub fn recorded(&self, stream: &Stream) -> Option<String> {
        let single = stream.recording.as_ref();
        if let Some(single) = single.filter(|recording| !recording.is_over()) {
            return Some(single.file_name());
        }
        let joint = self.recording.as_ref()?;
        let is_in = joint.keys().any(|key| key == stream.mid.as_str());
        joint.file_names().into_iter().next().filter(|_| is_in)
    }

    /// Takes nothing in any more, where another server sent it.
    pub(crate) fn close(&self) {
        if let Origin::Remote(remote) = &self.origin {
            remote.close();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use portunus_record::RecorderConfig;

    use super::*;
    use crate::RoomSettings;

    fn people() -> [PersonId; 2] {
        ["al".into(), "bo".into()]
    }

    fn publications() -> Publications {
        let (media, _, _) = MediaPlane::detached();
        Publications::new(
            media,
            Recorder::new(RecorderConfig::default()),
            FileNames::default(),
        )
    }

    fn start(publications: &mut Publications, id: &PersonId) -> Mid {
        let mid = Mid::new("0").unwrap();
        let options = RoomSettings::default();
        let stream = placeholder(&options, CodecName::Vp8, None, mid, 0);
        publications.start(id, Origin::Dummy, false, vec![stream]);
        mid
    }

    fn in_order(publications: &Publications) -> Vec<PersonId> {
        let feeds = publications.in_order();
        feeds.map(|(feed, _)| feed.clone()).collect()
    }

    #[test]
    fn whose_media_is_up_has_a_place_as_long_as_it_publishes() {
        let (mut publications, [al, bo]) = (publications(), people());
        assert!(!publications.came_up(&al));
        start(&mut publications, &al);
        start(&mut publications, &bo);
        assert!(publications.up(&al).is_none());
        assert!(publications.came_up(&bo));
        assert!(publications.came_up(&al));
        assert!(!publications.came_up(&al), "it is up");
        assert_eq!(in_order(&publications), [bo.clone(), al.clone()]);
        publications.end(&bo);
        start(&mut publications, &bo);
        assert_eq!(in_order(&publications), std::slice::from_ref(&al));
        assert!(publications.came_up(&bo));
        assert_eq!(in_order(&publications), [al, bo]);
    }

    #[test]
    fn dummies_are_no_publishers() {
        let (mut publications, [al, _]) = (publications(), people());
        start(&mut publications, &al);
        publications.came_up(&al);
        assert_eq!(publications.publishers().count(), 0);
        assert!(publications.check_limit(1).is_ok());
        assert!(publications.check_limit(0).is_err());
        assert!(publications.forwardable(&al).is_err());
    }

    #[test]
    fn a_moderator_closes_a_stream_once() {
        let (mut publications, [al, bo]) = (publications(), people());
        start(&mut publications, &al);
        let is_open = |publications: &Publications| {
            let stream = publications.get(&people()[0]).unwrap().streams().first();
            stream.unwrap().is_open()
        };
        assert_eq!(publications.moderate(&al, "0", true).unwrap(), Some(0));
        assert!(!is_open(&publications));
        assert_eq!(publications.moderate(&al, "0", true).unwrap(), None);
        assert_eq!(publications.moderate(&al, "0", false).unwrap(), Some(0));
        assert!(is_open(&publications));
        assert!(publications.moderate(&al, "1", true).is_err());
        assert!(publications.moderate(&bo, "0", true).is_err());
    }
}
