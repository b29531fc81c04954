//! Notices to clients, and events to the observers of the server.

use std::sync::{Arc, Weak};

use portunus_rtp::Mid;
use tokio::time::Instant;

use super::{Client, Room, State, Told};
use crate::announcements::Announcement;
use crate::publication::Publication;
use crate::{ConnectionId, Event, Notice, PersonId};

impl State {
    /// Tells all participants.
    pub(super) fn send_to_all(&mut self, notice: Notice<'_>) {
        self.changes.send_replace(());
        self.send_news();
        self.clients.send(None, &Told::new(self, notice));
    }

    /// Tells all participants but `subject`.
    pub(super) fn send_to_others(&mut self, subject: &PersonId, notice: Notice<'_>) {
        self.changes.send_replace(());
        self.send_news();
        self.clients.send(Some(subject), &Told::new(self, notice));
    }

    /// Tells a join to those who hear of all joins.
    pub(super) fn send_join(&mut self, id: &PersonId) {
        self.changes.send_replace(());
        self.send_news();
        let told = Told::new(self, Notice::Joining(id));
        self.clients.send_join(id, &told);
    }

    /// Tells a join that failed halfway to those who hear of all joins.
    pub(super) fn send_undone(&mut self, id: &PersonId) {
        let told = Told::new(self, Notice::JoinUndone(id));
        self.clients.send_join(id, &told);
    }

    /// Tells the client of a subscription.
    pub(super) fn send_to_subscriber(&self, key: ConnectionId, notice: Notice<'_>) {
        if let Some(client) = self.clients.subscriber(key) {
            client.send(&Told::new(self, notice), None);
        }
    }

    /// Tells the others the publication of `id`, if its media is up.
    pub(super) fn send_published(&mut self, id: &PersonId) {
        if self.is_shown(id) {
            self.send_to_others(id, Notice::Published(&[id]));
        }
    }

    /// Tells the others and the observers the changed publication of `id`, if its media is up.
    pub fn send_updated(&mut self, id: &PersonId) {
        self.send_published(id);
        self.notify_published(id, &Event::Updated(id));
    }

    /// Tells the others that a publisher's media is up, together with those of the next moment.
    pub fn announce(&mut self, id: &PersonId, room: &Arc<Room>) {
        self.notify_published(id, &Event::Published(id));
        match self.announcements.announce(id, Instant::now()) {
            Announcement::Now => self.send_published(id),
            Announcement::At(time) => {
                tokio::spawn(send_news_at(Arc::downgrade(room), time));
            }
            Announcement::Pending => {}
        }
    }

    /// Tells pending announcements, which have to precede all later notices.
    pub(super) fn send_news(&mut self) {
        let news = self.announcements.take(Instant::now());
        let news: Vec<&PersonId> = news.iter().filter(|id| self.is_shown(id)).collect();
        if news.is_empty() {
            return;
        }
        self.changes.send_replace(());
        // One notice for all clients that are not in it themselves.
        let told = Told::new(self, Notice::Published(&news));
        for (own, client) in self.clients.participants() {
            if !news.contains(&own) {
                client.send(&told, None);
                continue;
            }
            let others = news.iter().copied().filter(|id| *id != own);
            let others: Vec<&PersonId> = others.collect();
            if !others.is_empty() {
                client.send(&Told::new(self, Notice::Published(&others)), None);
            }
        }
    }

    /// Returns whether there is a participant `id` whose media is up.
    fn is_shown(&self, id: &PersonId) -> bool {
        self.roster.get(id).is_some() && self.publications.up(id).is_some()
    }

    /// Tells the observers an event that the client `by` has caused, or nobody.
    pub(super) fn notify(&self, by: Option<&dyn Client>, event: &Event<'_>) {
        match by {
            Some(client) => client.notify(self, event),
            None => self.watcher.notify(self, event),
        }
    }

    /// Tells the observers an event that a participant has caused.
    pub(super) fn notify_of(&self, id: &PersonId, event: &Event<'_>) {
        self.notify(self.clients.participant(id), event);
    }

    /// Tells the observers an event of a publication, if its media is up.
    pub(super) fn notify_published(&self, id: &PersonId, event: &Event<'_>) {
        if self.is_shown(id) {
            self.notify_of(id, event);
        }
    }

    /// Tells the observers an event that the client of a subscription has caused.
    pub(super) fn notify_subscription(&self, key: ConnectionId, event: &Event<'_>) {
        if let Some(client) = self.clients.subscriber(key) {
            client.notify(self, event);
        }
    }

    /// Returns the streams that a subscription receives, or none if nobody observes the server.
    pub(super) fn received(&self, key: ConnectionId) -> Vec<(PersonId, Mid)> {
        match self.subscriptions.get(key) {
            Ok(subscriber) if self.watcher.is_watching() => subscriber.received(&self.publications),
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Tells the observers which streams of `before` a subscription does not receive any more.
    pub(super) fn notify_unsubscribed(&self, key: ConnectionId, before: &[(PersonId, Mid)]) {
        let after = self.received(key);
        for (feed, mid) in before.iter().filter(|track| !after.contains(track)) {
            self.notify_subscription(key, &Event::Unsubscribed { feed, mid: *mid });
        }
    }

    /// Tells the observers that nobody receives an ended publication any more.
    pub(super) fn notify_ended(&self, feed: &PersonId, media: &Publication) {
        if !self.watcher.is_watching() {
            return;
        }
        for (key, mid) in self.subscriptions.receivers_of(feed, media) {
            self.notify_subscription(key, &Event::Unsubscribed { feed, mid });
        }
    }
}

async fn send_news_at(room: Weak<Room>, time: Instant) {
    tokio::time::sleep_until(time).await;
    if let Some(room) = room.upgrade() {
        room.lock().send_news();
    }
}
