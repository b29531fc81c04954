//! Mountpoints whose media comes from another node of the cluster.
//!
//! Their streams have sources only while there are viewers: an ingest for each, whose packets cross
//! as soon as one of the viewers can see them.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::SourceRef;
use portunus_core::media::ingest::{IngestFeed, IngestId, IngestOptions, PacketFeed, packet_feed};
use portunus_relay::{Offer, SourceId, Sources};
use tokio::time::Instant;

use super::{Age, Mountpoint, Stream, lock, opening};
use crate::definition::{Definition, StreamDefinition};
use crate::refusal::Refusal;
use crate::spec::{Details, MediaKind, SourceSpec, StreamCodec};
use crate::stream_message::StreamMessage;

/// How long sources are kept after the last viewer has left.
const KEPT: Duration = Duration::from_secs(5);

/// What the other node has told of a mountpoint, and what is taken from it.
#[derive(Debug, Default)]
pub(super) struct Relay {
    sources: Option<Arc<dyn Sources>>,
    has_secret: bool,
    /// For each stream.
    streams: Vec<Taking>,
    /// Since when nobody watches.
    unwatched: Option<Instant>,
}

/// A stream's source, if the other node has one, and its ingest here.
#[derive(Debug, Default)]
struct Taking {
    offer: Option<Offer>,
    ingest: Option<IngestId>,
    /// Of a data stream that is taken.
    messages: Option<Messages>,
}

/// The messages of a data stream.
#[derive(Debug)]
struct Messages {
    feed: PacketFeed,
    /// The last one, if new viewers get it.
    last: Option<Vec<u8>>,
}

impl Taking {
    fn source(&self) -> Option<SourceId> {
        self.offer.as_ref().map(|offer| offer.id)
    }
}

impl Mountpoint {
    /// Returns the node that has it, or `None` if that is this one.
    pub(crate) fn home(&self) -> Option<&str> {
        match &self.spec.source {
            SourceSpec::Relayed(relayed) => Some(&relayed.node),
            _ => None,
        }
    }

    /// Fails if the mountpoint is one of another node, which alone can change it.
    pub(crate) fn check_home(&self) -> Result<(), Refusal> {
        match self.home() {
            Some(node) => Err(Refusal::Elsewhere(node.to_owned())),
            None => Ok(()),
        }
    }

    /// Returns whether the requests that manage it need a secret.
    pub(crate) fn has_secret(&self) -> bool {
        lock(&self.relay).has_secret || self.details().access.secret.is_some()
    }

    /// Takes what the node that has the mountpoint tells of it. Its streams are the same ones.
    pub(crate) fn follow(&self, definition: &Definition, sources: Arc<dyn Sources>) {
        let mut details = Details {
            description: definition.description.clone(),
            metadata: definition.metadata.clone(),
            ..Details::default()
        };
        details.access.is_private = definition.is_private;
        details.access.pin.clone_from(&definition.pin);
        *self.details() = details;
        self.described
            .store(definition.described, std::sync::atomic::Ordering::Release);
        let ended = {
            let mut relay = lock(&self.relay);
            relay.has_secret = definition.has_secret;
            let former = relay.sources.replace(sources);
            let len = self.streams.len();
            relay.streams.resize_with(len, Taking::default);
            let mut ended = Vec::new();
            let (mut media, mut data) = (definition.streams.iter(), definition.data.iter());
            let all = relay.streams.iter_mut().zip(&self.streams);
            for (index, (taking, stream)) in all.enumerate() {
                if stream.kind() == MediaKind::Data {
                    stream.set_fed(data.next().is_some_and(|told| told.is_fed));
                    continue;
                }
                let Some(told) = media.next() else { break };
                let next = told.offer.as_ref().map(|offer| offer.id);
                let is_other = taking.source() != next;
                if let Some(ingest) = taking.ingest.take_if(|_| is_other) {
                    stream.live().source = None;
                    if let Some(former) = &former {
                        former.release(ingest);
                    }
                    ended.push(index);
                }
                taking.offer.clone_from(&told.offer);
                stream.set_format(told);
            }
            ended
        };
        self.forget_routes(&ended);
        if self.viewer_count() > 0 {
            self.take_sources();
        }
        match self.is_enabled() == definition.enabled {
            true => self.connect_viewers(),
            false => self.enable(definition.enabled),
        }
    }

    /// Takes the missing sources from the other node. Nothing crosses yet.
    pub(super) fn take_sources(&self) {
        let mut relay = lock(&self.relay);
        relay.unwatched = None;
        let Some(sources) = relay.sources.clone() else {
            return;
        };
        for (taking, stream) in relay.streams.iter_mut().zip(&self.streams) {
            if stream.kind() == MediaKind::Data {
                self.take_messages(taking, stream);
                continue;
            }
            let Some(offer) = taking.offer.as_ref().filter(|_| taking.ingest.is_none()) else {
                continue;
            };
            taking.ingest = sources.take(offer);
            stream.live().source = taking.ingest.map(SourceRef::from);
        }
    }

    /// Makes the ingest of a data stream, unless there is one.
    fn take_messages(&self, taking: &mut Taking, stream: &Stream) {
        if taking.messages.is_some() {
            return;
        }
        let (feed, packets) = packet_feed(1);
        let data = opening::data_ingest(&stream.spec);
        let options = IngestOptions::data(data, IngestFeed::Packets(packets));
        let ingest = self.media.add_ingest(options).id;
        stream.live().source = Some(ingest.into());
        taking.ingest = Some(ingest);
        taking.messages = Some(Messages { feed, last: None });
    }

    /// Returns whether viewers get messages of its data streams, which the other node has to send.
    pub(crate) fn takes_messages(&self) -> bool {
        let relay = lock(&self.relay);
        relay.streams.iter().any(|it| it.messages.is_some())
    }

    /// Passes a message of the other node to viewers.
    pub(crate) fn give(&self, message: &StreamMessage) {
        let mut relay = lock(&self.relay);
        let mut all = relay.streams.iter_mut().zip(&self.streams);
        let named = all.find(|(_, stream)| stream.mid().as_str() == message.mid);
        let Some((taking, stream)) = named else {
            return;
        };
        let Some(messages) = &mut taking.messages else {
            return;
        };
        let content = message.content();
        if message.is_kept && messages.last.as_deref() == Some(content) {
            return;
        }
        match messages.feed.send(0, content) {
            Ok(()) if stream.spec.buffermsg => messages.last = Some(content.to_vec()),
            Ok(()) => {}
            Err(error) => tracing::debug!(id = %self.id, "a message of another node: {error}"),
        }
    }

    /// Takes the missing sources, since the other node can be reached again.
    pub(crate) fn take_again(&self) {
        if self.viewer_count() > 0 {
            self.take_sources();
            self.connect_viewers();
        }
    }

    /// Releases the sources if nobody has watched for [`KEPT`].
    pub(crate) fn release_unwatched(&self, now: Instant) {
        let mut relay = lock(&self.relay);
        if self.viewer_count() > 0 {
            relay.unwatched = None;
            return;
        }
        let since = *relay.unwatched.get_or_insert(now);
        if now.saturating_duration_since(since) >= KEPT {
            self.release(&mut relay);
        }
    }

    /// Releases the sources, because the mountpoint ends.
    pub(super) fn release_all(&self) {
        self.release(&mut lock(&self.relay));
    }

    fn release(&self, relay: &mut Relay) {
        for (taking, stream) in relay.streams.iter_mut().zip(&self.streams) {
            let Some(ingest) = taking.ingest.take() else {
                continue;
            };
            stream.live().source = None;
            if taking.messages.take().is_some() {
                self.media.remove_ingest(ingest);
            } else if let Some(sources) = &relay.sources {
                sources.release(ingest);
            }
        }
    }

    /// Forgets an ingest that has ended. Returns false if it is not one of these.
    pub(crate) fn lose_source(&self, ingest: IngestId) -> bool {
        let index = {
            let mut relay = lock(&self.relay);
            let mut all = relay.streams.iter_mut();
            let index = all.position(|taking| taking.ingest == Some(ingest));
            if let Some(index) = index
                && let Some((taking, stream)) =
                    relay.streams.get_mut(index).zip(self.streams.get(index))
            {
                taking.ingest = None;
                stream.live().source = None;
            }
            index
        };
        self.forget_routes(index.as_slice());
        index.is_some()
    }

    /// Ends the routes from streams whose ingests are gone.
    fn forget_routes(&self, streams: &[usize]) {
        if streams.is_empty() {
            return;
        }
        for viewer in self.viewers() {
            viewer.forget_routes(self, streams);
        }
    }
}

impl Stream {
    fn set_format(&self, told: &StreamDefinition) {
        let mut live = self.live();
        live.codec = told.known_codec();
        live.pt = match told.pt {
            0 => live.codec.map_or(0, StreamCodec::default_pt),
            pt => pt,
        };
        live.fmtp.clone_from(&told.fmtp);
        live.channels = told.channels;
        live.simulcast = told.simulcast;
        live.svc = told.svc;
        drop(live);
        self.set_fed(told.is_fed);
    }

    fn set_fed(&self, is_fed: bool) {
        let mut live = self.live();
        live.age = match (is_fed, &live.age) {
            (true, _) => Age::Now,
            (false, Age::Now) => Age::Since(Instant::now()),
            (false, age) => age.clone(),
        };
    }
}
