//! Publishers whose clients are at other nodes of the cluster.
//!
//! Each of their streams is an ingest here, whose packets come from the node of the client as soon
//! as somebody here can see them.

use std::sync::Arc;

use portunus_media::ingest::{Heard, Listening};
use portunus_media::{IngestId, MediaPlane, SourceRef, TalkDetection};
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use portunus_rtp::{ExtensionKind, ExtensionMap, Mid};
use tokio::sync::mpsc;

use super::{Origin, Publication, Publications, Stream, StreamFormat};
use crate::PersonId;

/// The bound of the queue of [`Heard`].
const SOUNDS: usize = 64;
/// The encodings of a stream with simulcast.
const ENCODINGS: u8 = 3;

/// The media of a publisher at another node.
#[derive(Debug, Clone)]
pub struct Relayed {
    media: MediaPlane,
    sources: Arc<dyn Sources>,
    streams: Vec<Taken>,
    heard: mpsc::Sender<Heard>,
}

/// A stream of a publisher at another node, and its ingest here.
#[derive(Debug, Clone, Copy)]
struct Taken {
    mid: Mid,
    source: SourceId,
    ingest: IngestId,
}

/// A stream of a publisher at another node.
#[derive(Debug)]
pub struct RelayedStream {
    /// The stream.
    pub stream: Stream,
    /// What the other node offers. `None` while there is no media, and for data.
    pub offer: Option<Offer>,
    /// Whether its publisher sends it.
    pub open: bool,
}

impl Relayed {
    /// Returns the media of a publisher without streams. The receiver gets the levels of its audio,
    /// for [`crate::hear`].
    pub fn new(media: MediaPlane, sources: Arc<dyn Sources>) -> (Self, mpsc::Receiver<Heard>) {
        let (heard, hears) = mpsc::channel(SOUNDS);
        let relayed = Relayed {
            media,
            sources,
            streams: Vec::new(),
            heard,
        };
        (relayed, hears)
    }

    /// Returns the ingest of a stream.
    pub(crate) fn source(&self, mid: Mid) -> Option<IngestId> {
        let known = self.streams.iter().find(|known| known.mid == mid);
        known.map(|known| known.ingest)
    }

    /// Returns the stream of an ingest.
    fn mid_of(&self, ingest: IngestId) -> Option<Mid> {
        let known = self.streams.iter().find(|known| known.ingest == ingest);
        known.map(|known| known.mid)
    }

    /// Monitors a stream: for talking, and for the share of speech.
    pub(crate) fn listen(&self, mid: Mid, talking: Option<TalkDetection>, speech: bool) {
        if let Some(ingest) = self.source(mid) {
            let listening = (talking.is_some() || speech).then(|| Listening {
                talking,
                speech,
                tell: self.heard.clone(),
            });
            self.media.listen(ingest, listening);
        }
    }

    /// Takes what the other node offers of a stream, in place of what it offered before.
    fn take(&mut self, mid: Mid, offer: Option<&Offer>) {
        let known = self.streams.iter().find(|known| known.mid == mid).copied();
        if known.map(|known| known.source) == offer.map(|offer| offer.id) {
            return;
        }
        if let Some(known) = known {
            self.streams.retain(|it| it.mid != mid);
            self.sources.release(known.ingest);
        }
        let Some(offer) = offer else { return };
        // Without its node there is nothing to take; the node tells that its people are gone.
        if let Some(ingest) = self.sources.take(offer) {
            let source = offer.id;
            self.streams.push(Taken {
                mid,
                source,
                ingest,
            });
        }
    }

    /// Releases all ingests.
    pub(crate) fn close(&self) {
        for known in &self.streams {
            self.sources.release(known.ingest);
        }
    }
}

impl Publications {
    /// Takes the streams of a publisher at another node: new ones, and changes of known ones.
    /// Returns whether participants see a change, or `None` if there is no such publisher.
    pub(crate) fn update_relayed(
        &mut self,
        id: &PersonId,
        updates: Vec<RelayedStream>,
    ) -> Option<bool> {
        let publication = self.by_feed.get_mut(id)?;
        let mut news = false;
        for update in updates {
            news |= publication.update_relayed(update)?;
        }
        Some(news)
    }

    /// Forgets an ingest that has ended. Returns whether it was one of this publisher.
    pub(crate) fn forget_relayed(&mut self, id: &PersonId, ingest: IngestId) -> bool {
        let Some(publication) = self.by_feed.get_mut(id) else {
            return false;
        };
        let Origin::Relayed(relayed) = &mut publication.origin else {
            return false;
        };
        let before = relayed.streams.len();
        relayed.streams.retain(|known| known.ingest != ingest);
        relayed.streams.len() < before
    }

    /// Returns the mid of an ingest of a publisher at another node.
    pub(super) fn mid_of_relayed(relayed: &Relayed, ingest: IngestId) -> Option<Mid> {
        relayed.mid_of(ingest)
    }

    /// Sets the highest layer of a stream that anybody at other nodes can see. Returns whether that
    /// is a change.
    pub(crate) fn set_far_layer(&mut self, id: &PersonId, mid: Mid, layer: Option<u8>) -> bool {
        let stream = self.stream_mut(id, mid);
        stream.is_some_and(|stream| std::mem::replace(&mut stream.far_layer, layer) != layer)
    }

    /// Returns a stream of this node as other nodes need to know it, if its media is up.
    pub(crate) fn offered(
        &self,
        id: &PersonId,
        mid: Mid,
    ) -> Option<(SourceRef, SourceDescription)> {
        let (publication, stream) = self.track(id, mid)?;
        if let Origin::Relayed(_) = publication.origin {
            return None;
        }
        let source = publication.origin.source(mid)?;
        let description = describe(&stream.format, publication.e2ee)?;
        Some((source, description))
    }
}

impl Publication {
    /// Returns whether participants see a change, or `None` if it is of another origin.
    fn update_relayed(&mut self, update: RelayedStream) -> Option<bool> {
        let Origin::Relayed(relayed) = &mut self.origin else {
            return None;
        };
        let RelayedStream {
            mut stream,
            offer,
            open,
        } = update;
        let (mid, index) = (stream.mid, stream.index);
        stream.gate.send = open;
        let count = self.streams.len();
        let news = match self.streams.get_mut(index) {
            Some(known) if known.mid == mid && known.kind == stream.kind => {
                let before = (&known.description, known.disabled, &known.format);
                let news = before != (&stream.description, stream.disabled, &stream.format);
                known.description = stream.description;
                known.disabled = stream.disabled;
                known.format = stream.format;
                known.gate.send = open;
                news
            }
            Some(known) => {
                relayed.take(known.mid, None);
                *known = stream;
                true
            }
            // Indices come in order.
            None if index == count => {
                self.streams.push(stream);
                true
            }
            None => return Some(false),
        };
        let is_sent = self.streams.get(index).is_some_and(|it| !it.disabled);
        relayed.take(mid, offer.as_ref().filter(|_| is_sent));
        Some(news)
    }
}

/// Returns the format of a stream as other nodes need to know it.
fn describe(format: &StreamFormat, e2ee: bool) -> Option<SourceDescription> {
    let ids = format.extensions;
    let mut extensions = ExtensionMap::default();
    let known = [
        (ExtensionKind::AudioLevel, ids.audio_level),
        (ExtensionKind::VideoOrientation, ids.video_orientation),
        (ExtensionKind::PlayoutDelay, ids.playout_delay),
        (
            ExtensionKind::DependencyDescriptor,
            ids.dependency_descriptor,
        ),
    ];
    for (kind, id) in known {
        if let Some(id) = id {
            extensions.set(kind, id);
        }
    }
    Some(SourceDescription {
        encodings: if format.simulcast { ENCODINGS } else { 1 },
        fmtp: format.fmtp.clone(),
        opaque: e2ee,
        ..SourceDescription::new(format.codec?).with_extensions(&extensions)
    })
}
