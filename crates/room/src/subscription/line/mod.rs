//! An m-line of a subscription: what it receives, as what it is offered, and how it is relayed.

mod offer;
mod relay;

use portunus_media::{Layer, LayerReason, MediaPlane, RouteId, RouteOptions, SourceRef};
use portunus_rtp::{ExtensionKind, Mid, Pt};
use portunus_sdp::{CodecName, CodecSpec, Kind, Media};

pub(super) use offer::{fmtp, offered_extensions};

use super::change::Track;
use super::configure::LineSetting;
use super::layers::{LayerKind, LayerRequest, RequestedLayers, current_among};
use super::seat::Seat;
use crate::PersonId;
use crate::publication::{Publication, Publications, Stream};

/// An m-line. It keeps its mid and its kind for good; while it has no source it has no routes.
#[derive(Debug)]
pub struct Line {
    /// The kind of media.
    pub kind: Kind,
    /// Its identification.
    pub mid: Mid,
    source: Source,
    format: Format,
    /// The client's name for it.
    pub crossrefid: Option<String>,
    /// Whether its media is let through.
    pub send: bool,
    /// Whether the client has accepted it.
    pub ready: bool,
    /// What the viewer wants of it.
    pub requested: RequestedLayers,
    /// The layers that are relayed now.
    pub current: Layer,
    /// Why these layers came when they did.
    pub reason: Option<LayerReason>,
    /// One, and of data one for each publisher.
    routes: Vec<Relayed>,
    /// It is bound to no publisher, see [`super::seat`].
    pub(super) seat: Option<Seat>,
}

/// Where the media of an m-line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// Nowhere; the m-line only keeps its place.
    None,
    /// A stream of a publisher.
    Track { feed: PersonId, mid: Mid },
    /// The data channels of publishers.
    Data(Vec<PersonId>),
}

/// How an m-line is offered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Format {
    codec: Option<CodecName>,
    /// Those of audio, where they are not the codec's usual ones.
    channels: Option<u8>,
    /// As it was offered last.
    pt: Option<Pt>,
    fmtp: Option<String>,
    /// Those of the header extensions that depend on the source.
    extensions: Vec<(ExtensionKind, u8)>,
}

/// A route that feeds an m-line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Relayed {
    route: RouteId,
    from: SourceRef,
    options: RouteOptions,
}

impl Line {
    pub(super) fn new(kind: Kind, mid: Mid) -> Self {
        Line {
            kind,
            mid,
            source: Source::None,
            format: Format::default(),
            crossrefid: None,
            send: true,
            ready: false,
            requested: RequestedLayers::default(),
            current: Layer::default(),
            reason: None,
            routes: Vec::new(),
            seat: None,
        }
    }

    /// One that is bound to no publisher, with the header extensions that it is offered with.
    pub(super) fn with_seat(
        kind: Kind,
        mid: Mid,
        seat: Seat,
        extensions: Vec<(ExtensionKind, u8)>,
    ) -> Self {
        let mut line = Line::new(kind, mid);
        line.seat = Some(seat);
        line.format.extensions = extensions;
        line
    }

    pub(super) const fn codec(&self) -> Option<CodecName> {
        self.format.codec
    }

    /// Whether it receives nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.source == Source::None
    }

    /// The publishers that it receives something of.
    pub fn feeds(&self) -> &[PersonId] {
        match &self.source {
            Source::None => &[],
            Source::Track { feed, .. } => std::slice::from_ref(feed),
            Source::Data(feeds) => feeds,
        }
    }

    /// The publisher's stream that it carries, by publisher and mid. `None` for data and for an m-line without a source.
    pub const fn source(&self) -> Option<(&PersonId, Mid)> {
        match &self.source {
            Source::Track { feed, mid } => Some((feed, *mid)),
            Source::None | Source::Data(_) => None,
        }
    }

    /// Whether it carries the data channels of publishers.
    pub const fn carries_data(&self) -> bool {
        matches!(self.source, Source::Data(_))
    }

    /// Its place among those that follow the speakers or one publisher, if it does.
    pub fn slot(&self) -> Option<usize> {
        self.seat.as_ref().map(|seat| seat.slot)
    }

    /// The least and the greatest playout delay in units of 10 ms, if the viewer or the publisher of `stream` asks for it.
    pub fn playout_delay(&self, stream: &Stream) -> Option<(u16, u16)> {
        self.requested.delay.range().or(stream.delay.range())
    }

    /// Whether it receives this stream.
    pub(super) fn receives(&self, feed: &PersonId, stream: &Stream) -> bool {
        match &self.source {
            Source::None => false,
            Source::Track { feed: from, mid } => from == feed && *mid == stream.mid,
            Source::Data(feeds) => stream.kind == Kind::Data && feeds.contains(feed),
        }
    }

    /// Whether it receives what somebody publishes as `mid`, or anything of theirs if none is named; `data` is the mid of
    /// their data channels.
    pub(super) fn is_from(&self, feed: &PersonId, mid: Option<&str>, data: Option<Mid>) -> bool {
        let is_mid = |known: Mid| mid.is_none_or(|mid| mid == known.as_str());
        match &self.source {
            Source::None => false,
            Source::Track { feed: from, mid } => from == feed && is_mid(*mid),
            Source::Data(feeds) => feeds.contains(feed) && data.is_none_or(is_mid),
        }
    }

    /// The stream that it receives, if there is media of it.
    pub(super) fn track<'a>(
        &'a self,
        publications: &'a Publications,
    ) -> Option<(&'a PersonId, &'a Publication, &'a Stream)> {
        let (feed, mid) = self.source()?;
        let (publication, stream) = publications.track(feed, mid)?;
        Some((feed, publication, stream))
    }

    /// Receives a stream from the next offer on.
    pub(super) fn receive(&mut self, track: Track) {
        let request = track.request;
        self.format.codec = track.codec;
        self.source = match self.kind {
            Kind::Data => Source::Data(vec![request.feed]),
            Kind::Audio | Kind::Video => Source::Track {
                feed: request.feed,
                mid: track.mid,
            },
        };
        self.crossrefid = request.crossrefid;
        self.send = request.send;
        self.ready = false;
        self.requested = RequestedLayers::default();
        if self.kind == Kind::Video {
            self.requested.apply(&request.layers);
        }
    }

    /// Receives the data channels of one more publisher; says whether that has to be offered.
    pub(super) fn add_data(&mut self, feed: PersonId) -> bool {
        match &mut self.source {
            Source::Data(feeds) => {
                if !feeds.contains(&feed) {
                    feeds.push(feed);
                }
                false
            }
            Source::None | Source::Track { .. } => {
                self.source = Source::Data(vec![feed]);
                true
            }
        }
    }

    /// Receives nothing of `feed` any more; says whether it has nothing to send now, which has to be offered.
    pub(super) fn remove_feed(&mut self, media: &MediaPlane, feed: &PersonId) -> bool {
        if !self.feeds().contains(feed) {
            return false;
        }
        if let Source::Data(feeds) = &mut self.source {
            feeds.retain(|known| known != feed);
            if !feeds.is_empty() {
                self.end_route_of(media, feed);
                return false;
            }
        }
        self.end_routes(media);
        // Whoever takes a seat over finds out who had it.
        if self.seat.is_some() {
            return false;
        }
        self.source = Source::None;
        self.ready = false;
        true
    }

    /// Receives nothing any more; false if it did not before.
    pub(super) fn clear(&mut self, media: &MediaPlane) -> bool {
        if self.is_empty() {
            return false;
        }
        self.end_routes(media);
        self.source = Source::None;
        self.ready = false;
        true
    }

    /// Whether a stream may take this m-line over without a negotiation.
    pub(super) fn fits(&self, stream: &Stream) -> bool {
        let format = &self.format;
        let codec = (stream.codec, stream.channels) == (format.codec, format.channels);
        stream.kind == self.kind
            && codec
            && !stream.disabled
            && self.kind != Kind::Data
            && self.seat.is_none()
    }

    /// Takes another stream that fits; none if it has that already. If it was inactive, which is given back, it has to be
    /// offered anew. `stable`: all offers were answered.
    pub(super) fn switch(
        &mut self,
        (feed, mid): (&PersonId, Mid),
        layers: &LayerRequest,
        publications: &Publications,
        stable: bool,
    ) -> Option<bool> {
        let source = Source::Track {
            feed: feed.clone(),
            mid,
        };
        if self.source == source {
            return None;
        }
        // The offer that waits for its answer may say so.
        let inactive = match stable {
            true => !self.ready,
            false => self.track(publications).is_none(),
        };
        let revived = inactive || self.is_empty();
        self.source = source;
        self.send = true;
        self.current = Layer::default();
        // How important a picture is depends on its place.
        self.requested = RequestedLayers {
            priority: self.requested.priority,
            ..RequestedLayers::default()
        };
        self.requested.apply(layers);
        self.ready &= !revived;
        Some(revived)
    }

    /// Receives what a seat's publisher sends from now on, or nothing; false if it did before.
    pub(super) fn occupy(&mut self, track: Option<(&PersonId, &Stream)>) -> bool {
        let source = match track {
            Some((feed, stream)) => Source::Track {
                feed: feed.clone(),
                mid: stream.mid,
            },
            None => Source::None,
        };
        if self.source == source {
            return false;
        }
        self.source = source;
        self.format.codec = track.and_then(|(_, stream)| stream.codec);
        self.format.channels = track.and_then(|(_, stream)| stream.channels);
        self.current = Layer::default();
        true
    }

    /// The client has answered it.
    pub(super) fn answered(&mut self, answer: &Media) {
        let takes = self.kind == Kind::Data || answer.direction.receives();
        let offered = !self.is_empty() || self.seat.is_some();
        self.ready = offered && !answer.rejected && takes;
        if let Some(seat) = &mut self.seat {
            let codecs = answer.codecs.iter().filter_map(CodecSpec::codec_name);
            seat.keep(&codecs.collect::<Vec<_>>());
        }
    }

    /// It was in the client's own offer, which was answered.
    pub(super) fn negotiated(&mut self) {
        self.ready = self.seat.is_some();
    }

    /// Applies what is requested of it; gives the layers that are requested and there already, and why they are.
    pub(super) fn configure(
        &mut self,
        setting: &LineSetting,
        publications: &Publications,
    ) -> Vec<(LayerKind, u8, LayerReason)> {
        if self.is_empty() && self.seat.is_none() {
            return Vec::new();
        }
        self.send = setting.send.unwrap_or(self.send);
        if self.kind != Kind::Video {
            return Vec::new();
        }
        self.requested.apply(&setting.layers);
        let Some((_, _, stream)) = self.track(publications) else {
            return Vec::new();
        };
        let layered = (stream.simulcast, stream.svc);
        current_among(&setting.layers, layered, self.current, self.reason)
    }

    /// Whether it is fed by this route.
    pub(super) fn has_route(&self, route: RouteId) -> bool {
        self.routes.iter().any(|known| known.route == route)
    }
}
