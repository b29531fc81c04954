//! What is received in a room: subscriptions, each of them one PeerConnection with any number of streams.

mod change;
mod configure;
mod join;
mod layers;
mod line;
mod negotiation;
mod payloads;
mod seat;
mod seating;
mod subscriber;
mod switch;
mod watch;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use portunus_rtp::Mid;
use portunus_sdp::MAX_MEDIA;

pub use change::{Change, Subscribe, Unsubscribe};
pub(crate) use configure::CurrentLayer;
pub use configure::{LineSetting, SubscriberConfigure};
pub use join::{LastN, SubscriberJoin};
pub(crate) use layers::changed_layers;
pub use layers::{LayerKind, LayerRequest, RequestedLayers};
pub use line::Line;
pub(crate) use negotiation::Offer;
pub(crate) use seating::Follow;
pub use subscriber::Subscriber;
pub use switch::{Switch, SwitchEntry};
pub use watch::{MAX_SPEAKERS, Watch};

use crate::publication::{Publication, Publications, Stream};
use crate::{Connection, ConnectionId, PersonId, Refusal};

/// The most m-lines of audio and video of a subscription: with one of data, its answers can be read.
const MAX_LINES: usize = MAX_MEDIA - 1;

/// The subscriptions of a room, by their connections.
///
/// Who receives something of a publisher, who has seats and whose private id somebody gave follows from the subscriptions:
/// they are changed by [`Subscriptions::change`] only, which keeps that.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    by_connection: HashMap<ConnectionId, Entry>,
    receivers: Index<PersonId>,
    owned: Index<PersonId>,
    followers: BTreeSet<ConnectionId>,
}

/// A subscription, and what it is known by.
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

    /// Takes all subscriptions out, whose PeerConnections end.
    pub(crate) fn close_all(&mut self) {
        for entry in std::mem::take(self).by_connection.into_values() {
            entry.subscriber.connection.close();
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_connection.is_empty()
    }

    /// A subscription.
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

    /// Brings up to date what a subscription is known by.
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

    /// The subscriptions that have seats.
    pub(crate) fn followers(&self) -> Vec<ConnectionId> {
        self.followers.iter().copied().collect()
    }

    /// The most speakers that any of them follows, if any does.
    pub(crate) fn most_followed(&self) -> Option<usize> {
        let speakers = |key| self.by_connection.get(key)?.subscriber.seating.speakers();
        self.followers.iter().filter_map(speakers).max()
    }

    /// Somebody leaves: their subscriptions are nobody's, and given back.
    pub(crate) fn disown(&mut self, owner: &PersonId) -> BTreeSet<ConnectionId> {
        let owned = self.owned.remove(owner).unwrap_or_default();
        for key in &owned {
            if let Some(entry) = self.by_connection.get_mut(key) {
                entry.subscriber.owner = None;
            }
        }
        owned
    }

    /// Nothing of a publisher is received any more; gives the subscriptions where that has to be offered.
    pub(crate) fn remove_feed(&mut self, feed: &PersonId) -> Vec<ConnectionId> {
        let receivers = self.receivers.get(feed).cloned().unwrap_or_default();
        let changed = receivers.into_iter().filter(|key| {
            let removed = self.change(*key, |subscriber| subscriber.remove_feed(feed));
            removed.unwrap_or(false)
        });
        changed.collect()
    }

    /// Makes the routes of one stream what they should be.
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

    /// The clients that receive something of a publisher, with the mids of its streams.
    pub(crate) fn receivers_of<'a>(
        &'a self,
        feed: &'a PersonId,
        media: &'a Publication,
    ) -> impl Iterator<Item = (&'a Arc<dyn Connection>, Mid)> {
        let keys = self.receivers.get(feed).into_iter().flatten();
        let entries = keys.filter_map(|key| self.by_connection.get(key));
        entries.flat_map(move |entry| {
            let subscriber = &entry.subscriber;
            let received = media.streams().iter();
            let received = received.filter(move |stream| subscriber.lines_of(feed, stream) > 0);
            received.map(move |stream| (&subscriber.connection, stream.mid))
        })
    }

    /// How many m-lines receive a stream.
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
