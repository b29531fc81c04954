//! What follows for subscriptions from what happens to others: who is on their seats, what is relayed, and by which layers.

use portunus_media::{Layer, LayerReason, RouteId};

use super::State;
use crate::publication::Publication;
use crate::subscription::{CurrentLayer, Subscriber, changed_layers};
use crate::{ConnectionId, Notice, PersonId, Refusal};

impl State {
    /// Lets those who are followed take the seats, in all subscriptions that have some.
    pub(super) fn reseat_all(&mut self) {
        self.reseat_followers(false);
    }

    /// Gives the seats of all subscriptions away anew. For the `dominant` speaker, all who follow the speakers are told.
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

    /// Gives the seats of one subscription away anew; its client is told of the changes, and if the `dominant` speaker has.
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
        self.tell_subscriber(key, Notice::Seats(key, &changed));
    }

    /// Gives the seats of a new subscription away, of which its client is told with all the rest.
    pub(super) fn seat(&mut self, key: ConnectionId) {
        let speakers = self.subscriptions.get(key).ok();
        let ranked = self.ranked(speakers.and_then(|known| known.seating.speakers()));
        let seated = self.change_subscriber(key, |it, all| it.reseat(&ranked, all));
        drop(seated);
    }

    /// Follows another number of speakers, of as many at most as there are seats for.
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

    /// The first publishers, for those who follow so many speakers: those who spoke, the most recent first, and then the
    /// others in the order in which they came.
    fn ranked(&self, followed: Option<usize>) -> Vec<PersonId> {
        // One more than anybody follows, because nobody sees itself.
        let most = followed.map_or(0, |most| most.saturating_add(1));
        self.speakers.ranked(self.publications.publishers(), most)
    }

    /// Makes the routes of one stream what they should be.
    pub(super) fn relay_stream(&mut self, feed: &PersonId, index: usize) {
        let publications = &self.publications;
        publications.gate_forwarders(feed, index);
        let streams = publications.get(feed).map(|known| known.streams());
        if let Some(stream) = streams.and_then(|streams| streams.get(index)) {
            self.subscriptions.relay_stream(feed, stream, publications);
        }
    }

    /// Makes the routes of all that somebody publishes what they should be, whatever mids it had before.
    pub(super) fn relay_feed(&mut self, feed: &PersonId) {
        for index in 0..self.streams(feed).len() {
            self.publications.gate_forwarders(feed, index);
        }
        self.subscriptions.relay_feed(feed, &self.publications);
    }

    /// Takes what somebody published, which is gone, off all subscriptions.
    pub(super) fn unsubscribe_all(&mut self, feed: &PersonId, media: &Publication) {
        self.notify_ended(feed, media);
        for key in self.subscriptions.remove_feed(feed) {
            self.offer_removal(key);
        }
        self.reseat_all();
    }

    /// A route relays another layer: the client is told.
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
        let (simulcast, svc, index) = (stream.simulcast, stream.svc, stream.index);
        // Not all publishers can say of themselves that they send it.
        let found = !simulcast && !svc && layer.spatial.is_some();
        if found {
            self.publications.found_svc(&change.feed, change.feed_mid);
            self.relay_stream(&change.feed, index);
            self.tell_updated(&change.feed);
        }
        for (kind, layer) in changed_layers((simulcast, svc || found), change.before, layer) {
            self.tell_layer(key, (change.mid, kind, layer, reason));
        }
    }

    /// Tells the client of a subscription which layer an m-line receives.
    pub(super) fn tell_layer(&self, key: ConnectionId, (mid, kind, layer, reason): CurrentLayer) {
        let notice = Notice::Layer {
            mid,
            kind,
            layer,
            reason,
        };
        self.tell_subscriber(key, notice);
    }
}
