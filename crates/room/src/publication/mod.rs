//! Publications of participants: their streams, recordings, forwarders and levels, and the order in
//! which their media came up.

mod answer;
mod forwarders;
mod keyframes;
mod origin;
mod placeholder;
mod recording;
mod relayed;
mod remote;
mod settings;
mod stream;
mod talkers;

use std::collections::{BTreeMap, HashMap};

use portunus_media::MediaPlane;
use portunus_record::{JointRecording, Recorder, WeakSession};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Kind};

pub(crate) use answer::{AnswerRequest, Answered, answer_options, single};
pub(crate) use forwarders::MAX_FORWARDERS;
pub use forwarders::{ForwardRequest, Forwarder, RtcpPorts};
pub(crate) use origin::Origin;
pub(crate) use placeholder::{dummy_streams, placeholder};
pub use recording::FileNames;
pub(crate) use recording::Recorded;
pub use relayed::{Relayed, RelayedStream};
pub use remote::{MAX_STREAMS, Place, Remote, RemotePublication};
pub use settings::{Configure, LineWish, RecordChange, StreamDescription, StreamSetting};
pub(crate) use stream::Layering;
pub use stream::{ExtensionIds, Stream, StreamFormat};
pub use talkers::Talk;
pub(crate) use talkers::detection;

use crate::{PersonId, Refusal};

/// The publications of a room. Other parts read them; only its methods change them.
///
/// A publication has a place in the order exactly while its media is up.
#[derive(Debug)]
pub(crate) struct Publications {
    pub(crate) media: MediaPlane,
    recorder: Recorder,
    names: FileNames,
    /// The session of the room's recordings, as long as there are any.
    recorded: WeakSession,
    by_feed: HashMap<PersonId, Publication>,
    in_order: BTreeMap<u64, PersonId>,
    next_place: u64,
}

/// The publication of a participant.
#[derive(Debug)]
pub struct Publication {
    /// The origin of its media.
    pub(crate) origin: Origin,
    /// Its place in the order, or `None` while its media is not up.
    place: Option<u64>,
    /// Whether it is encrypted end to end.
    pub e2ee: bool,
    /// The streams, one for each m-line.
    streams: Vec<Stream>,
    /// The recording of all streams in one file.
    recording: Option<JointRecording>,
    /// The other servers that it is published on.
    pub(crate) remotes: Vec<RemotePublication>,
}

impl Publications {
    /// Returns a room's publications without any yet.
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

    /// Returns a participant's publication, whether its media is up or not.
    pub(crate) fn get(&self, feed: &PersonId) -> Option<&Publication> {
        self.by_feed.get(feed)
    }

    /// Returns all publications.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Publication> {
        self.by_feed.values()
    }

    /// Returns a participant's publication if its media is up.
    pub(crate) fn up(&self, feed: &PersonId) -> Option<&Publication> {
        self.by_feed.get(feed).filter(|known| known.place.is_some())
    }

    /// Returns a participant's publication. Its media has to be up.
    pub(crate) fn published(&self, feed: &PersonId) -> Result<&Publication, Refusal> {
        self.up(feed)
            .ok_or_else(|| Refusal::NoSuchFeed(feed.to_string()))
    }

    /// Returns a stream whose media is up, unless it is disabled.
    pub(crate) fn track(&self, feed: &PersonId, mid: Mid) -> Option<(&Publication, &Stream)> {
        let publication = self.up(feed)?;
        let stream = publication.stream(mid)?;
        (!stream.disabled).then_some((publication, stream))
    }

    /// Returns the publications whose media is up, in the order in which it came up.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (&PersonId, &Publication)> {
        let known = |id| self.by_feed.get(id).map(|publication| (id, publication));
        self.in_order.values().filter_map(known)
    }

    /// Returns the publishers whose media is up, in order, without dummies.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = &PersonId> {
        let real = |(id, publication): (_, &Publication)| (!publication.is_dummy()).then_some(id);
        self.in_order().filter_map(real)
    }

    /// Checks that there are fewer publishers than `most`, with those that other nodes have
    /// `claimed`.
    pub(crate) fn check_limit(&self, most: u64, claimed: usize) -> Result<(), Refusal> {
        let publishing = self.by_feed.values().filter(|known| !known.is_dummy());
        match u64::try_from(publishing.count().saturating_add(claimed)) {
            Ok(publishing) if publishing < most => Ok(()),
            Ok(_) | Err(_) => Err(Refusal::PublishersFull(most)),
        }
    }

    /// Adds a publication whose media is not up yet.
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

    /// Notes that media is up. Returns false if it was before, or nothing is published.
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

    /// Removes a publication.
    pub(crate) fn end(&mut self, id: &PersonId) -> Option<Publication> {
        let publication = self.by_feed.remove(id)?;
        if let Some(place) = publication.place {
            self.in_order.remove(&place);
        }
        Some(publication)
    }

    /// Notes that a stream has spatial layers, which its publisher did not announce.
    pub(crate) fn found_svc(&mut self, feed: &PersonId, mid: Mid) {
        if let Some(stream) = self.stream_mut(feed, mid) {
            stream.format.svc = true;
        }
    }

    /// Mutes or unmutes a stream for a moderator. Returns its index if that is a change.
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
        let before = std::mem::replace(&mut stream.gate.muted, mute);
        Ok((before != mute).then_some(stream.index))
    }

    fn stream_mut(&mut self, feed: &PersonId, mid: Mid) -> Option<&mut Stream> {
        self.by_feed.get_mut(feed)?.stream_mut(mid)
    }
}

impl Publication {
    /// Returns its streams, one for each m-line.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns whether it is a placeholder.
    pub(crate) const fn is_dummy(&self) -> bool {
        matches!(self.origin, Origin::Dummy)
    }

    /// Returns the stream of m-line `mid`.
    pub fn stream(&self, mid: Mid) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.mid == mid)
    }

    fn stream_mut(&mut self, mid: Mid) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.mid == mid)
    }

    /// Returns the streams that carry data.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Stream> {
        let carries = |stream: &&Stream| stream.kind == Kind::Data && !stream.disabled;
        self.streams.iter().filter(carries)
    }

    /// Returns the codec of the first stream of `kind` that has one.
    pub fn codec(&self, kind: Kind) -> Option<CodecName> {
        let mut streams = self.streams.iter();
        let codec = |stream: &Stream| {
            let codec = stream.format.codec;
            codec.filter(|_| !stream.disabled && stream.kind == kind)
        };
        streams.find_map(codec)
    }

    /// Returns whether a stream talks, or `None` if no audio has levels.
    pub fn talking(&self) -> Option<bool> {
        let mut heard = self.streams.iter().filter(|stream| stream.has_levels());
        let first = heard.next()?;
        Some(first.is_talking() || heard.any(Stream::is_talking))
    }

    /// Returns the name of the file that a stream is recorded into now, alone or with the others.
    pub fn recorded(&self, stream: &Stream) -> Option<String> {
        let single = stream.recording.as_ref();
        if let Some(single) = single.filter(|recording| !recording.is_over()) {
            return Some(single.file_name());
        }
        let joint = self.recording.as_ref()?;
        let is_in = joint.keys().any(|key| key == stream.mid.as_str());
        joint.file_names().into_iter().next().filter(|_| is_in)
    }

    /// Closes the ports of media from another server, and releases that from another node.
    pub(crate) fn close(&self) {
        match &self.origin {
            Origin::Remote(remote) => remote.close(),
            Origin::Relayed(relayed) => relayed.close(),
            Origin::Client(_) | Origin::Dummy => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
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
        assert!(publications.check_limit(1, 0).is_ok());
        assert!(publications.check_limit(0, 0).is_err());
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
