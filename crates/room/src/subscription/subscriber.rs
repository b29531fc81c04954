//! A subscription.

use std::sync::Arc;

use portunus_media::{Layer, LayerReason, MediaPlane, RouteId};
use portunus_rtp::Mid;
use portunus_sdp::{Description, Kind, LocalJsep, OfferOptions};

use super::line::Line;
use super::negotiation::{Negotiation, Offer};
use super::seat::{Seat, SeatPlace};
use super::seating::{Follow, Seating};
use super::taking::Waiting;
use crate::publication::{Layering, Publication, Publications, Stream};
use crate::{Connection, PersonId, Refusal, RoomSettings};

/// A subscription: an m-line for each received stream, on one PeerConnection.
#[derive(Debug)]
pub struct Subscriber {
    pub(crate) connection: Arc<dyn Connection>,
    pub(super) media: MediaPlane,
    /// The participant whose private id the client gave, while it is in the room.
    pub(super) owner: Option<PersonId>,
    /// The private id that the client gave.
    pub private_id: Option<u64>,
    /// Streams are named by their publishers in `a=msid`.
    pub(super) use_msid: bool,
    /// Whether the room makes a new offer by itself when a publisher goes.
    pub(super) autoupdate: bool,
    /// Whether its media is encrypted end to end, like that of its first feed.
    pub e2ee: bool,
    /// The m-lines in their order.
    pub lines: Vec<Line>,
    pub(crate) negotiation: Negotiation,
    pub(crate) seating: Seating,
    /// Whether all media is stopped.
    pub paused: bool,
    /// Whether its owner was kicked. Nothing is relayed then.
    pub(super) owner_kicked: bool,
    /// Whether an m-line takes another stream only after its client has seen it without any.
    pub(super) careful: bool,
    /// The streams that wait for m-lines of the client's offers. `None` if the room offers.
    pub(super) waiting: Option<Waiting>,
}

/// The client of a new subscription.
#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) media: MediaPlane,
    /// The participant whose private id the client gave.
    pub(crate) owner: Option<PersonId>,
}

/// Another layer of a stream is relayed.
#[derive(Debug)]
pub(crate) struct LayerChange {
    /// The m-line.
    pub(crate) mid: Mid,
    pub(crate) before: Layer,
    /// The stream.
    pub(crate) feed: PersonId,
    pub(crate) feed_mid: Mid,
}

impl Subscriber {
    /// Returns a subscription without m-lines.
    pub(super) fn new(viewer: Viewer, private_id: Option<u64>, e2ee: bool) -> Self {
        Subscriber {
            connection: viewer.connection,
            media: viewer.media,
            owner: viewer.owner,
            private_id,
            use_msid: false,
            autoupdate: true,
            e2ee,
            lines: Vec::new(),
            negotiation: Negotiation::default(),
            seating: Seating::default(),
            paused: false,
            owner_kicked: false,
            careful: false,
            waiting: None,
        }
    }

    /// Returns whether it belongs to a participant of the room.
    pub(crate) fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Stops all media, because its owner was kicked.
    pub(crate) fn block(&mut self, publications: &Publications) {
        self.owner_kicked = true;
        self.relay(publications);
    }

    /// Returns the publishers from which it receives.
    pub(super) fn feeds(&self) -> impl Iterator<Item = &PersonId> {
        self.lines.iter().flat_map(Line::feeds)
    }

    /// Adds seats: for each slot an m-line of each kind.
    pub(crate) fn add_seats(
        &mut self,
        follow: Follow,
        slots: usize,
        kinds: &[Kind],
        options: &RoomSettings,
    ) -> Result<(), Refusal> {
        self.check_room(slots.saturating_mul(kinds.len()))?;
        for slot in 0..slots {
            for (place, kind) in kinds.iter().enumerate() {
                let Some(mid) = Mid::new(&self.lines.len().to_string()) else {
                    continue;
                };
                let earlier = kinds.iter().take(place);
                let nth = earlier.filter(|other| *other == kind).count();
                let payloads = &mut self.negotiation.payloads;
                let place = SeatPlace { slot, nth };
                let (seat, extensions) = Seat::new(*kind, place, options, payloads);
                let line = Line::with_seat(*kind, mid, seat, extensions);
                self.lines.push(line);
            }
        }
        self.seating = Seating::new(follow, slots);
        Ok(())
    }

    /// Adds the m-line for data of the door.
    pub(super) fn add_own_data(&mut self) -> Result<(), Refusal> {
        let mid = Mid::new(&self.lines.len().to_string()).ok_or(Refusal::TooManyLines)?;
        self.lines.push(Line::with_own_data(mid));
        self.careful = true;
        Ok(())
    }

    /// Has the m-lines of the client's offer.
    pub(super) fn take_lines(&mut self, lines: Vec<Line>, follow: Follow, slots: usize) {
        self.lines = lines;
        self.seating = Seating::new(follow, slots);
    }

    /// Returns whether any of its m-lines is a seat.
    pub(crate) fn has_seats(&self) -> bool {
        self.lines.iter().any(|line| line.seat.is_some())
    }

    /// Assigns the seats to the followed publishers among `ranked`. Returns the indices of the
    /// m-lines with another occupant, or none.
    pub(crate) fn reseat(
        &mut self,
        ranked: &[PersonId],
        publications: &Publications,
    ) -> Vec<usize> {
        let eligible = |id: &PersonId| {
            let same = publications.up(id).map(|known| known.e2ee == self.e2ee);
            same == Some(true) && self.owner.as_ref() != Some(id)
        };
        self.seating.assign(ranked, eligible);
        let mut changed = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate() {
            let Some(seat) = &line.seat else { continue };
            let occupant = self.seating.occupant(seat.slot());
            let track = occupant.and_then(|feed| {
                let streams = publications.up(feed)?.streams();
                Some((feed, seat.stream_of(line.kind, streams)?))
            });
            if line.occupy(track) {
                changed.push(index);
            }
        }
        changed
    }

    /// Makes an offer of all m-lines. The last one has to be answered.
    pub(crate) fn offer(
        &mut self,
        room: &str,
        options: &RoomSettings,
        publications: &Publications,
    ) -> Result<LocalJsep, Refusal> {
        for line in &mut self.lines {
            line.update_format(publications, &mut self.negotiation.payloads);
        }
        let transport_cc = options.extensions.transport_cc;
        let lines = self.lines.iter();
        let (connection, use_msid) = (&*self.connection, self.use_msid);
        let media = lines.map(|line| line.offer(connection, publications, transport_cc, use_msid));
        let description = Description::offer(OfferOptions {
            name: format!("VideoRoom {room}"),
            session_id: String::new(),
            media: media.collect(),
        });
        let offer = self
            .connection
            .offer(description, self.negotiation.restarts())?;
        self.negotiation.offered();
        Ok(offer.with_e2ee(self.e2ee))
    }

    /// Returns the offer that is due after m-lines have lost their publisher.
    pub(crate) fn offer_removal(&mut self) -> Offer {
        self.negotiation.removed(self.autoupdate)
    }

    /// Answers the client's offer, and starts its media.
    pub(crate) fn answer(
        &mut self,
        answer: Description,
        publications: &Publications,
    ) -> Result<LocalJsep, Refusal> {
        let local = self.connection.answer(answer)?;
        self.negotiation.answered_client();
        for line in &mut self.lines {
            line.negotiated();
        }
        self.relay(publications);
        Ok(local.with_e2ee(self.e2ee))
    }

    /// Takes the client's answer to our offer.
    pub(crate) fn accept(&mut self, answer: &Description, publications: &Publications) {
        self.negotiation.answered();
        for (line, answered) in self.lines.iter_mut().zip(&answer.media) {
            line.answered(answered);
        }
        self.relay(publications);
    }

    /// Stops or resumes all media.
    pub(crate) fn pause(&mut self, paused: bool, publications: &Publications) {
        self.paused = paused;
        self.relay(publications);
    }

    /// Removes all m-lines, because the PeerConnection has ended. The client can subscribe again.
    pub(crate) fn end(&mut self) {
        for line in &mut self.lines {
            line.clear(&self.media);
        }
        self.lines.clear();
        self.negotiation = Negotiation::default();
        self.seating = Seating::default();
    }

    /// Makes all routes what they should be.
    pub(crate) fn relay(&mut self, publications: &Publications) {
        let gate = self.is_open();
        for line in &mut self.lines {
            line.relay(&*self.connection, gate, publications);
        }
    }

    /// Brings the routes of one stream up to date.
    pub(super) fn relay_stream(
        &mut self,
        feed: &PersonId,
        stream: &Stream,
        publications: &Publications,
    ) {
        let gate = self.is_open();
        let lines = self.lines.iter_mut();
        for line in lines.filter(|line| line.receives(feed, stream)) {
            line.relay(&*self.connection, gate, publications);
        }
    }

    /// Returns whether it receives the data channels of a publisher now.
    pub(crate) fn takes_data(&self, feed: &PersonId) -> bool {
        let takes = |line: &Line| line.carries_data() && line.ready && line.send;
        let mut lines = self.lines.iter().filter(|line| takes(line));
        self.is_open() && lines.any(|line| line.feeds().contains(feed))
    }

    /// Returns whether anything is relayed.
    const fn is_open(&self) -> bool {
        !self.paused && !self.owner_kicked
    }

    /// Returns the streams that it receives: publishers, and their mids.
    pub(crate) fn received(&self, publications: &Publications) -> Vec<(PersonId, Mid)> {
        let mut received = Vec::new();
        for feed in self.feeds() {
            let streams = publications.get(feed).map_or(&[][..], Publication::streams);
            for stream in streams.iter().filter(|it| self.lines_of(feed, it) > 0) {
                let track = (feed.clone(), stream.mid);
                if !received.contains(&track) {
                    received.push(track);
                }
            }
        }
        received
    }

    /// Returns the highest layer that it requests of a stream, or `None` if it is not relayed.
    pub(super) fn wanted_layer(&self, feed: &PersonId, stream: &Stream) -> Option<u8> {
        let lines = self.lines.iter().filter(|line| self.is_open() && line.send);
        let lines = lines.filter(|line| line.receives(feed, stream));
        let layers = lines.map(|line| match stream.format.layering() {
            Layering::Svc => line.requested.spatial_layer,
            Layering::Simulcast | Layering::Single => line.requested.substream,
        });
        layers.max()
    }

    /// Returns the number of m-lines that receive a stream.
    pub(super) fn lines_of(&self, feed: &PersonId, stream: &Stream) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.receives(feed, stream)).count()
    }

    /// Notes that a route relays another layer. Returns `None` if the route is unknown or carries
    /// data.
    pub(crate) fn layer_changed(
        &mut self,
        route: RouteId,
        layer: Layer,
        reason: LayerReason,
    ) -> Option<LayerChange> {
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line.has_route(route))?;
        let before = std::mem::replace(&mut line.current, layer);
        line.reason = Some(reason);
        let (feed, feed_mid) = line.source()?;
        Some(LayerChange {
            mid: line.mid,
            before,
            feed: feed.clone(),
            feed_mid,
        })
    }

    /// Returns whether the last offer was answered.
    pub fn is_answered(&self) -> bool {
        self.negotiation.is_stable()
    }

    /// Returns whether something waits to be offered.
    pub const fn is_offer_pending(&self) -> bool {
        self.negotiation.pending_offer()
    }

    /// Returns whether the next offer restarts ICE.
    pub const fn is_restart_pending(&self) -> bool {
        self.negotiation.restarts()
    }
}
