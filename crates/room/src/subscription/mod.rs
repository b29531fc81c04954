//! The subscriptions of a room. A subscription is a PeerConnection with any number of streams.

mod admission;
mod change;
mod format;
mod layers;
mod line;
mod negotiation;
mod payloads;
mod request;
mod seat;
mod seating;
mod settings;
mod single_exchange;
mod subscriber;
mod switches;
mod taking;
mod track;

use std::collections::{BTreeSet, HashMap, HashSet};

use portunus_media::PeerId;
use portunus_rtp::Mid;
use portunus_sdp::MAX_MEDIA;

pub use admission::{LastN, SubscriberJoin};
pub use layers::{LayerKind, LayerRequest, RequestedLayers};
pub(crate) use layers::{RelayedLayer, changed_layers};
pub use line::Line;
pub(crate) use negotiation::Offer;
pub use request::{Change, LineSetting, Subscribe, SubscriberConfigure, Unsubscribe};
pub(crate) use seating::Follow;
pub use single_exchange::{MAX_SPEAKERS, Watch};
pub use subscriber::Subscriber;
pub(crate) use subscriber::Viewer;
pub(crate) use switches::Switching;
pub use switches::{Switch, SwitchEntry};
pub use taking::Missing;

use crate::publication::{Publication, Publications, Stream};
use crate::{ConnectionId, PersonId, Refusal};

/// The limit of m-lines of audio and video of a subscription. One of data is left, within the limit
/// for answers.
const MAX_LINES: usize = MAX_MEDIA - 1;

/// The subscriptions of a room, by their connections.
///
/// [`Subscriptions::change`] alone changes one, because it updates the indexes: the receivers of
/// each publisher, the subscriptions with seats, and those of each owner.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    by_connection: HashMap<ConnectionId, Entry>,
    receivers: Index<PersonId>,
    owned: Index<PersonId>,
    followers: BTreeSet<ConnectionId>,
}

/// A subscription, with its keys in the indexes.
#[derive(Debug)]
struct Entry {
    subscriber: Subscriber,
    feeds: HashSet<PersonId>,
}

/// The subscriptions that each has.
type Index<K> = HashMap<K, BTreeSet<ConnectionId>>;

impl Subscriptions {
    /// Adds a subscription.
    pub(crate) fn insert(&mut self, subscriber: Subscriber) {
        let key = subscriber.connection.id();
        self.remove(key);
        if let Some(owner) = &subscriber.owner {
            self.owned.entry(owner.clone()).or_default().insert(key);
        }
        let feeds = HashSet::new();
        self.by_connection.insert(key, Entry { subscriber, feeds });
        self.index(key);
    }

    /// Takes a subscription out, which ends its routes.
    pub(crate) fn remove(&mut self, key: ConnectionId) {
        if self.change(key, Subscriber::end).is_err() {
            return;
        }
        if let Some(Entry { subscriber, .. }) = self.by_connection.remove(&key)
            && let Some(owner) = &subscriber.owner
        {
            remove(&mut self.owned, owner, key);
        }
    }

    /// Removes all subscriptions and closes their PeerConnections.
    pub(crate) fn close_all(&mut self) {
        for entry in std::mem::take(self).by_connection.into_values() {
            entry.subscriber.connection.close();
        }
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_connection.is_empty()
    }

    /// Returns all subscriptions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Subscriber> {
        self.by_connection.values().map(|entry| &entry.subscriber)
    }

    /// Returns a subscription.
    pub(crate) fn get(&self, key: ConnectionId) -> Result<&Subscriber, Refusal> {
        let entry = self.by_connection.get(&key).ok_or(Refusal::NotInRoom)?;
        Ok(&entry.subscriber)
    }

    /// Changes a subscription.
    pub(crate) fn change<T>(
        &mut self,
        key: ConnectionId,
        change: impl FnOnce(&mut Subscriber) -> T,
    ) -> Result<T, Refusal> {
        let entry = self.by_connection.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        let changed = change(&mut entry.subscriber);
        self.index(key);
        Ok(changed)
    }

    /// Updates the indexes for a subscription.
    fn index(&mut self, key: ConnectionId) {
        let Some(Entry { subscriber, feeds }) = self.by_connection.get_mut(&key) else {
            return;
        };
        match subscriber.seating.follow {
            Follow::Nobody => self.followers.remove(&key),
            Follow::Feed(_) | Follow::Speakers(_) => self.followers.insert(key),
        };
        let now: HashSet<&PersonId> = subscriber.feeds().collect();
        feeds.retain(|feed| {
            let stays = now.contains(feed);
            if !stays {
                remove(&mut self.receivers, feed, key);
            }
            stays
        });
        for feed in now {
            if feeds.insert(feed.clone()) {
                let receivers = self.receivers.entry(feed.clone()).or_default();
                receivers.insert(key);
            }
        }
    }

    /// Returns the subscriptions that have seats.
    pub(crate) fn followers(&self) -> Vec<ConnectionId> {
        self.followers.iter().copied().collect()
    }

    /// Returns the greatest number of speakers that a subscription follows, if one follows any.
    pub(crate) fn most_followed(&self) -> Option<usize> {
        let speakers = |key| self.by_connection.get(key)?.subscriber.seating.speakers();
        self.followers.iter().filter_map(speakers).max()
    }

    /// Removes the owner of all its subscriptions. Returns these.
    pub(crate) fn disown(&mut self, owner: &PersonId) -> BTreeSet<ConnectionId> {
        let owned = self.owned.remove(owner).unwrap_or_default();
        for key in &owned {
            if let Some(entry) = self.by_connection.get_mut(key) {
                entry.subscriber.owner = None;
            }
        }
        owned
    }

    /// Removes the streams of a publisher. Returns the subscriptions for which an offer is due.
    pub(crate) fn remove_feed(&mut self, feed: &PersonId) -> Vec<ConnectionId> {
        let receivers = self.receivers.get(feed).cloned().unwrap_or_default();
        let changed = receivers.into_iter().filter(|key| {
            let removed = self.change(*key, |subscriber| subscriber.remove_feed(feed));
            removed.unwrap_or(false)
        });
        changed.collect()
    }

    /// Brings the routes of one stream up to date.
    pub(crate) fn relay_stream(
        &mut self,
        feed: &PersonId,
        stream: &Stream,
        publications: &Publications,
    ) {
        for key in self.receivers.get(feed).into_iter().flatten() {
            if let Some(entry) = self.by_connection.get_mut(key) {
                entry.subscriber.relay_stream(feed, stream, publications);
            }
        }
    }

    /// Makes the routes of all who receive something of a publisher what they should be.
    pub(crate) fn relay_feed(&mut self, feed: &PersonId, publications: &Publications) {
        for key in self.receivers.get(feed).into_iter().flatten() {
            if let Some(entry) = self.by_connection.get_mut(key) {
                entry.subscriber.relay(publications);
            }
        }
    }

    /// Returns the subscriptions that receive something of a publisher, with the mids of its
    /// streams.
    pub(crate) fn receivers_of<'a>(
        &'a self,
        feed: &'a PersonId,
        media: &'a Publication,
    ) -> impl Iterator<Item = (ConnectionId, Mid)> {
        let keys = self.receivers.get(feed).into_iter().flatten();
        let entries = keys.filter_map(|key| Some((*key, self.by_connection.get(key)?)));
        entries.flat_map(move |(key, entry)| {
            let subscriber = &entry.subscriber;
            let received = media.streams().iter();
            let received = received.filter(move |stream| subscriber.lines_of(feed, stream) > 0);
            received.map(move |stream| (key, stream.mid))
        })
    }

    /// Returns the PeerConnections that receive the data channels of a publisher now.
    pub(crate) fn data_receivers(&self, feed: &PersonId) -> impl Iterator<Item = PeerId> {
        let keys = self.receivers.get(feed).into_iter().flatten();
        let entries = keys.filter_map(|key| self.by_connection.get(key));
        let taking = entries.filter(move |entry| entry.subscriber.takes_data(feed));
        taking.filter_map(|entry| entry.subscriber.connection.peer())
    }

    /// Returns the highest layer of a stream that any subscription requests, or `None` if none is
    /// relayed to any.
    pub(crate) fn wanted_layer(&self, feed: &PersonId, stream: &Stream) -> Option<u8> {
        let keys = self.receivers.get(feed).into_iter().flatten();
        let entries = keys.filter_map(|key| self.by_connection.get(key));
        entries
            .filter_map(|entry| entry.subscriber.wanted_layer(feed, stream))
            .max()
    }

    /// Returns the number of m-lines that receive a stream.
    pub(crate) fn receivers(&self, feed: &PersonId, stream: &Stream) -> usize {
        let keys = self.receivers.get(feed).into_iter().flatten();
        let entries = keys.filter_map(|key| self.by_connection.get(key));
        let lines = entries.map(|entry| entry.subscriber.lines_of(feed, stream));
        lines.sum()
    }
}

/// Takes a subscription out of an index.
fn remove(index: &mut Index<PersonId>, id: &PersonId, key: ConnectionId) {
    if let Some(keys) = index.get_mut(id) {
        keys.remove(&key);
        if keys.is_empty() {
            index.remove(id);
        }
    }
}
