//! An m-line of a subscription: its source, its offers and its routes.

mod offer;
mod relay;

use portunus_media::{Layer, LayerReason, MediaPlane, RouteId, RouteOptions, SourceRef};
use portunus_rtp::{ExtensionKind, Mid};
use portunus_sdp::{CodecName, CodecSpec, Kind, Media};

use super::format::OfferedFormat;
use super::layers::{LayerRequest, RelayedLayer, RequestedLayers, current_layers, current_reason};
use super::request::LineSetting;
use super::seat::Seat;
use super::track::Track;
use crate::PersonId;
use crate::publication::{Publication, Publications, Stream};

/// An m-line. Its mid and its kind never change. Without a source it has no routes.
#[derive(Debug)]
pub struct Line {
    /// The kind of media.
    pub kind: Kind,
    /// Its identification.
    pub mid: Mid,
    source: Source,
    format: OfferedFormat,
    /// The client's name for it.
    pub crossrefid: Option<String>,
    /// Whether its media is let through.
    pub send: bool,
    /// Whether the client has accepted it.
    pub ready: bool,
    /// The wishes of the viewer.
    pub requested: RequestedLayers,
    /// The layers that are relayed now.
    pub current: Layer,
    /// Why these layers came when they did.
    pub reason: Option<LayerReason>,
    /// One route, or for data one route for each publisher.
    routes: Vec<Relayed>,
    /// It is bound to no publisher, see [`super::seat`].
    pub(super) seat: Option<Seat>,
    /// Whether the client has seen it without a source.
    pub(super) vacant: bool,
    /// Whether the client receives on it, as its own offer says.
    pub(super) takes: bool,
    /// Whether the client has rejected it in its last answer.
    rejected: bool,
}

/// The source of an m-line's media.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// None. The m-line keeps its index.
    None,
    /// A stream of a publisher.
    Track { feed: PersonId, mid: Mid },
    /// The data channels of publishers.
    Data(Vec<PersonId>),
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
            format: OfferedFormat::default(),
            crossrefid: None,
            send: true,
            ready: false,
            requested: RequestedLayers::default(),
            current: Layer::default(),
            reason: None,
            routes: Vec::new(),
            seat: None,
            vacant: true,
            takes: false,
            rejected: false,
        }
    }

    /// Returns an m-line for data of the door, which has no routes.
    pub(super) fn with_own_data(mid: Mid) -> Self {
        Line {
            source: Source::Data(Vec::new()),
            ..Line::new(Kind::Data, mid)
        }
    }

    /// Returns an m-line that is a seat, with the header extensions to offer.
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

    /// Returns whether the client does not accept its stream.
    pub(crate) fn is_refused(&self) -> bool {
        self.rejected && self.kind != Kind::Data
    }

    /// Returns whether it receives nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.source == Source::None
    }

    /// Returns the publishers from which it receives.
    pub fn feeds(&self) -> &[PersonId] {
        match &self.source {
            Source::None => &[],
            Source::Track { feed, .. } => std::slice::from_ref(feed),
            Source::Data(feeds) => feeds,
        }
    }

    /// Returns the publisher and the mid of the stream that it carries. `None` for data, and
    /// without a source.
    pub const fn source(&self) -> Option<(&PersonId, Mid)> {
        match &self.source {
            Source::Track { feed, mid } => Some((feed, *mid)),
            Source::None | Source::Data(_) => None,
        }
    }

    /// Returns whether it carries the data channels of publishers.
    pub const fn carries_data(&self) -> bool {
        matches!(self.source, Source::Data(_))
    }

    /// Returns its slot among those of followed publishers, if it is a seat.
    pub fn slot(&self) -> Option<usize> {
        self.seat.as_ref().map(Seat::slot)
    }

    /// Returns the least and the greatest playout delay, in 10 ms, if the viewer or the publisher
    /// of `stream` requests it.
    pub fn playout_delay(&self, stream: &Stream) -> Option<(u16, u16)> {
        self.requested.delay.range().or(stream.delay.range())
    }

    /// Returns whether it receives this stream.
    pub(super) fn receives(&self, feed: &PersonId, stream: &Stream) -> bool {
        match &self.source {
            Source::None => false,
            Source::Track { feed: from, mid } => from == feed && *mid == stream.mid,
            Source::Data(feeds) => stream.kind == Kind::Data && feeds.contains(feed),
        }
    }

    /// Returns whether it receives m-line `mid` of `feed`, or any of its m-lines if `mid` is
    /// `None`. `data` is the mid of the feed's data channels.
    pub(super) fn is_from(&self, feed: &PersonId, mid: Option<&str>, data: Option<Mid>) -> bool {
        let is_mid = |known: Mid| mid.is_none_or(|mid| mid == known.as_str());
        match &self.source {
            Source::None => false,
            Source::Track { feed: from, mid } => from == feed && is_mid(*mid),
            Source::Data(feeds) => feeds.contains(feed) && data.is_none_or(is_mid),
        }
    }

    /// Returns the stream that it receives, if its media is up.
    pub(super) fn track<'a>(
        &'a self,
        publications: &'a Publications,
    ) -> Option<(&'a Publication, &'a Stream)> {
        let (feed, mid) = self.source()?;
        publications.track(feed, mid)
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
        (self.vacant, self.rejected) = (false, false);
        self.requested = RequestedLayers::default();
        if self.kind == Kind::Video {
            self.requested.apply(&request.layers);
        }
    }

    /// Adds the data channels of another publisher. Returns whether an offer is due.
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

    /// Removes the media of `feed`. Returns whether it has no source now, so that an offer is due.
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
        // The next occupant of the seat replaces the source.
        if self.seat.is_some() {
            return false;
        }
        self.source = Source::None;
        self.ready = false;
        true
    }

    /// Removes its source. Returns false if it had none.
    pub(super) fn clear(&mut self, media: &MediaPlane) -> bool {
        if self.is_empty() {
            return false;
        }
        self.end_routes(media);
        self.source = Source::None;
        self.ready = false;
        true
    }

    /// Returns whether a stream may take this m-line over without a negotiation.
    pub(super) fn fits(&self, stream: &Stream) -> bool {
        let (sent, format) = (&stream.format, &self.format);
        stream.kind == self.kind
            && (sent.codec, sent.channels) == (format.codec, format.channels)
            && !stream.disabled
            && self.kind != Kind::Data
            && self.seat.is_none()
    }

    /// Takes another source that fits. Returns whether it was inactive, so that an offer is due, or
    /// `None` if it has this source already. `stable` means that all offers were answered.
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
        // The last offer may have shown it inactive if it has no stream now.
        let inactive = match stable {
            true => !self.ready,
            false => self.track(publications).is_none(),
        };
        let revived = inactive || self.is_empty();
        self.source = source;
        self.send = true;
        self.current = Layer::default();
        // The priority belongs to the place of the picture, so it stays.
        self.requested = RequestedLayers {
            priority: self.requested.priority,
            ..RequestedLayers::default()
        };
        self.requested.apply(layers);
        self.ready &= !revived;
        Some(revived)
    }

    /// Takes the stream of a seat's occupant, or none. Returns false if that is no change.
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
        self.format.codec = track.and_then(|(_, stream)| stream.format.codec);
        self.format.channels = track.and_then(|(_, stream)| stream.format.channels);
        self.current = Layer::default();
        true
    }

    /// Takes the client's answer to its offer.
    pub(super) fn answered(&mut self, answer: &Media) {
        let takes = self.kind == Kind::Data || answer.direction.receives();
        let offered = !self.is_empty() || self.seat.is_some();
        self.ready = offered && !answer.rejected && takes;
        self.vacant = !offered;
        self.rejected = offered && (answer.rejected || answer.codecs.is_empty());
        if let Some(seat) = &mut self.seat {
            let codecs = answer.codecs.iter().filter_map(CodecSpec::codec_name);
            seat.keep(&codecs.collect::<Vec<_>>());
        }
    }

    /// Notes that the client's own offer was answered.
    pub(super) fn negotiated(&mut self) {
        self.ready = self.seat.is_some();
    }

    /// Applies a setting. Returns the requested layers that are relayed already.
    pub(super) fn configure(
        &mut self,
        setting: &LineSetting,
        publications: &Publications,
    ) -> Vec<RelayedLayer> {
        if self.is_empty() && self.seat.is_none() {
            return Vec::new();
        }
        self.send = setting.send.unwrap_or(self.send);
        if self.kind != Kind::Video {
            return Vec::new();
        }
        self.requested.apply(&setting.layers);
        let Some((_, stream)) = self.track(publications) else {
            return Vec::new();
        };
        let layering = stream.format.layering();
        let current = current_layers(&setting.layers, layering, self.current).into_iter();
        let relayed = current.map(|(kind, layer)| RelayedLayer {
            mid: self.mid,
            kind,
            layer,
            reason: current_reason(self.reason),
        });
        relayed.collect()
    }

    /// Returns whether it is fed by this route.
    pub(crate) fn has_route(&self, route: RouteId) -> bool {
        self.routes.iter().any(|known| known.route == route)
    }
}
