//! Mountpoints whose media comes from another node of the cluster.
//!
//! Their streams have sources only while there are viewers: an ingest for each, whose packets cross
//! as soon as one of the viewers can see them.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::SourceRef;
use portunus_core::media::ingest::IngestId;
use portunus_relay::{Offer, SourceId, Sources};
use tokio::time::Instant;

use super::{Age, Mountpoint, Stream, lock};
use crate::definition::{Definition, StreamDefinition};
use crate::refusal::Refusal;
use crate::spec::{Details, SourceSpec, StreamCodec};

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
            let all = relay.streams.iter_mut().zip(&self.streams);
            for (index, ((taking, stream), told)) in all.zip(&definition.streams).enumerate() {
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
            let Some(offer) = taking.offer.as_ref().filter(|_| taking.ingest.is_none()) else {
                continue;
            };
            taking.ingest = sources.take(offer);
            stream.live().source = taking.ingest.map(SourceRef::from);
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
            if let Some((ingest, sources)) = taking.ingest.take().zip(relay.sources.as_ref()) {
                stream.live().source = None;
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
        live.age = match (told.is_fed, &live.age) {
            (true, _) => Age::Now,
            (false, Age::Now) => Age::Since(Instant::now()),
            (false, age) => age.clone(),
        };
    }
}
