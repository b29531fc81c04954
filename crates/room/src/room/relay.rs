//! Updates of subscriptions after changes of others: their seats, routes and layers.

use portunus_media::{Layer, LayerReason, RouteId};
use portunus_rtp::Mid;

use super::State;
use crate::publication::{Layering, Publication};
use crate::subscription::{RelayedLayer, Subscriber, changed_layers};
use crate::{ConnectionId, Notice, PersonId, Refusal};

impl State {
    /// Assigns the seats of all subscriptions.
    pub(super) fn reseat_all(&mut self) {
        self.reseat_followers(false);
    }

    /// Assigns the seats of all subscriptions. If the `dominant` speaker has changed, tells all
    /// subscribers that follow the speakers.
    pub(super) fn reseat_followers(&mut self, dominant: bool) {
        let followers = self.subscriptions.followers();
        if followers.is_empty() {
            return;
        }
        let ranked = self.ranked(self.subscriptions.most_followed());
        for key in followers {
            self.reseat(key, &ranked, dominant);
        }
    }

    /// Assigns the seats of one subscription, and tells its client the changes.
    fn reseat(&mut self, key: ConnectionId, ranked: &[PersonId], dominant: bool) {
        let changed = self.change_subscriber(key, |subscriber, publications| {
            let changed = subscriber.reseat(ranked, publications);
            if !changed.is_empty() {
                subscriber.relay(publications);
            }
            changed
        });
        let (Ok(changed), Ok(subscriber)) = (changed, self.subscriptions.get(key)) else {
            return;
        };
        if changed.is_empty() && !(dominant && subscriber.seating.speakers().is_some()) {
            return;
        }
        self.send_to_subscriber(key, Notice::Seats(key, &changed));
    }

    /// Assigns the seats of a new subscription. The answer to its client will contain them.
    pub(super) fn seat(&mut self, key: ConnectionId) {
        let speakers = self.subscriptions.get(key).ok();
        let ranked = self.ranked(speakers.and_then(|known| known.seating.speakers()));
        let seated = self.change_subscriber(key, |it, all| it.reseat(&ranked, all));
        drop(seated);
    }

    /// Changes the number of speakers that a subscription follows, up to the number of its slots.
    pub(super) fn follow_speakers(
        &mut self,
        key: ConnectionId,
        last_n: usize,
    ) -> Result<(), Refusal> {
        let follow = |subscriber: &mut Subscriber| subscriber.seating.set_speakers(last_n);
        if !self.subscriptions.change(key, follow)? {
            return Err(Refusal::TooFewSeats);
        }
        let ranked = self.ranked(Some(last_n));
        self.reseat(key, &ranked, false);
        Ok(())
    }

    /// Returns the publishers to assign to `followed` slots: first the speakers, the most recent
    /// one first, then the others in order.
    fn ranked(&self, followed: Option<usize>) -> Vec<PersonId> {
        // One more, because a participant does not see itself.
        let most = followed.map_or(0, |most| most.saturating_add(1));
        self.speakers.ranked(self.publications.publishers(), most)
    }

    /// Brings the routes of one stream up to date.
    pub(super) fn relay_stream(&mut self, feed: &PersonId, index: usize) {
        let publications = &self.publications;
        publications.gate_forwarders(feed, index);
        let streams = publications.get(feed).map(|known| known.streams());
        if let Some(stream) = streams.and_then(|streams| streams.get(index)) {
            self.subscriptions.relay_stream(feed, stream, publications);
        }
    }

    /// Brings the routes of all streams of a publication up to date, also after new mids.
    pub(super) fn relay_feed(&mut self, feed: &PersonId) {
        for index in 0..self.streams(feed).len() {
            self.publications.gate_forwarders(feed, index);
        }
        self.subscriptions.relay_feed(feed, &self.publications);
    }

    /// Removes an ended publication from all subscriptions.
    pub(super) fn unsubscribe_all(&mut self, feed: &PersonId, media: &Publication) {
        self.notify_ended(feed, media);
        for key in self.subscriptions.remove_feed(feed) {
            self.offer_removal(key);
        }
        self.note_wanted_data();
        self.reseat_all();
    }

    /// Returns the stream that a route to a subscriber relays.
    pub fn source_of(&self, key: ConnectionId, route: RouteId) -> Option<(&PersonId, Mid)> {
        let mut lines = self.subscriptions.get(key).ok()?.lines.iter();
        lines.find(|line| line.has_route(route))?.source()
    }

    /// Tells a subscriber that a route relays another layer.
    pub fn layer_changed(
        &mut self,
        key: ConnectionId,
        route: RouteId,
        layer: Layer,
        reason: LayerReason,
    ) {
        let change = self.subscriptions.change(key, |subscriber| {
            subscriber.layer_changed(route, layer, reason)
        });
        let Ok(Some(change)) = change else { return };
        let publication = self.publications.up(&change.feed);
        let Some(stream) = publication.and_then(|known| known.stream(change.feed_mid)) else {
            return;
        };
        let (mut layering, index) = (stream.format.layering(), stream.index);
        // Not all publishers can announce SVC.
        if layering == Layering::Single && layer.spatial.is_some() {
            layering = Layering::Svc;
            self.publications.found_svc(&change.feed, change.feed_mid);
            self.relay_stream(&change.feed, index);
            self.send_updated(&change.feed);
        }
        let mid = change.mid;
        for (kind, layer) in changed_layers(layering, change.before, layer) {
            let relayed = RelayedLayer {
                mid,
                kind,
                layer,
                reason,
            };
            self.send_layer(key, relayed);
        }
    }

    /// Tells a subscriber which layer an m-line receives.
    pub(super) fn send_layer(&self, key: ConnectionId, relayed: RelayedLayer) {
        let notice = Notice::Layer {
            mid: relayed.mid,
            kind: relayed.kind,
            layer: relayed.layer,
            reason: relayed.reason,
        };
        self.send_to_subscriber(key, notice);
    }
}
