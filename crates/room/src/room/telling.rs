//! What those who are in a room are told, and those who watch the server.

use std::sync::{Arc, Weak};

use portunus_rtp::Mid;
use tokio::time::Instant;

use super::{Room, State};
use crate::news::Announcement;
use crate::publication::Publication;
use crate::roster::Participant;
use crate::{Connection, ConnectionId, Event, Notice, PersonId, Told};

impl State {
    /// Tells everybody.
    pub(super) fn tell_all(&mut self, notice: Notice<'_>) {
        self.tell_news();
        self.roster.tell(None, &Told::new(self, notice));
    }

    /// Tells everybody but `subject`.
    pub(super) fn tell_others(&mut self, subject: &PersonId, notice: Notice<'_>) {
        self.tell_news();
        self.roster.tell(Some(subject), &Told::new(self, notice));
    }

    /// Tells the client of a subscription something.
    pub(super) fn tell_subscriber(&self, key: ConnectionId, notice: Notice<'_>) {
        if let Ok(subscriber) = self.subscriptions.get(key) {
            let told = Told::new(self, notice);
            subscriber.connection.tell(&told, None);
        }
    }

    /// Tells others what `id` publishes now, if its media is up.
    pub(super) fn tell_published(&mut self, id: &PersonId) {
        if self.is_shown(id) {
            self.tell_others(id, Notice::Published(&[id]));
        }
    }

    /// Tells others, and whoever watches the server, what `id` publishes by now, if its media is up.
    pub fn tell_updated(&mut self, id: &PersonId) {
        self.tell_published(id);
        self.notify_published(id, &Event::Updated(id));
    }

    /// Somebody's media is up: others are told, together with those who come within a moment.
    pub fn announce(&mut self, id: &PersonId, room: &Arc<Room>) {
        self.notify_published(id, &Event::Published(id));
        match self.news.announce(id, Instant::now()) {
            Announcement::Now => self.tell_published(id),
            Announcement::At(time) => {
                tokio::spawn(tell_news_at(Arc::downgrade(room), time));
            }
            Announcement::Pending => {}
        }
    }

    /// Tells what is pending. It comes before all that is told later.
    pub(super) fn tell_news(&mut self) {
        let news = self.news.take(Instant::now());
        let news: Vec<&PersonId> = news.iter().filter(|id| self.is_shown(id)).collect();
        if news.is_empty() {
            return;
        }
        // The same for all who are not told of themselves.
        let told = Told::new(self, Notice::Published(&news));
        for person in self.roster.iter() {
            if !news.contains(&person.id()) {
                person.tell(&told);
                continue;
            }
            let others = news.iter().copied().filter(|id| *id != person.id());
            let others: Vec<&PersonId> = others.collect();
            if !others.is_empty() {
                person.tell(&Told::new(self, Notice::Published(&others)));
            }
        }
    }

    /// Whether somebody is there whose media is up.
    fn is_shown(&self, id: &PersonId) -> bool {
        self.roster.get(id).is_some() && self.publications.up(id).is_some()
    }

    /// Tells whoever watches the server what has happened: as something that a client did, if one did it.
    pub(super) fn notify(&self, by: Option<&dyn Connection>, event: &Event<'_>) {
        match by {
            Some(client) => client.notify(self, event),
            None => self.watcher.notify(self, event),
        }
    }

    /// The same of something that a participant did.
    pub(super) fn notify_of(&self, person: &Participant, event: &Event<'_>) {
        self.notify(person.connection().map(|client| &**client), event);
    }

    /// The same about what somebody publishes, if its media is up.
    pub(super) fn notify_published(&self, id: &PersonId, event: &Event<'_>) {
        if let Some(person) = self.roster.get(id)
            && self.is_shown(id)
        {
            self.notify_of(person, event);
        }
    }

    /// The same of the client of a subscription.
    pub(super) fn notify_subscription(&self, key: ConnectionId, event: &Event<'_>) {
        if let Ok(subscriber) = self.subscriptions.get(key) {
            subscriber.connection.notify(self, event);
        }
    }

    /// What a subscription receives, as far as somebody is to be told what it does no more.
    pub(super) fn received(&self, key: ConnectionId) -> Vec<(PersonId, Mid)> {
        match self.subscriptions.get(key) {
            Ok(subscriber) if self.watcher.is_watching() => subscriber.received(&self.publications),
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// What a subscription has received `before` and does no more.
    pub(super) fn notify_unsubscribed(&self, client: &dyn Connection, before: &[(PersonId, Mid)]) {
        let after = self.received(client.id());
        for (feed, mid) in before.iter().filter(|track| !after.contains(track)) {
            client.notify(self, &Event::Unsubscribed { feed, mid: *mid });
        }
    }

    /// What is published ends: nobody receives it any more.
    pub(super) fn notify_ended(&self, feed: &PersonId, media: &Publication) {
        if !self.watcher.is_watching() {
            return;
        }
        for (client, mid) in self.subscriptions.receivers_of(feed, media) {
            client.notify(self, &Event::Unsubscribed { feed, mid });
        }
    }
}

async fn tell_news_at(room: Weak<Room>, time: Instant) {
    tokio::time::sleep_until(time).await;
    if let Some(room) = room.upgrade() {
        room.lock().tell_news();
    }
}
