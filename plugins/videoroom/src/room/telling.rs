//! What those who are in a room are told.

use std::sync::{Arc, Weak};

use portunus_core::{Notice, Object};
use portunus_resources::Id;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Room, RoomState};
use crate::news::Announcement;
use crate::publication::published;

impl RoomState {
    /// A message of the room, without what it says.
    pub(crate) fn event(&self) -> Object {
        Object::new()
            .with("videoroom", "event")
            .with("room", self.id.to_json())
    }

    /// What others are told of a publisher whose media is up; `talking` to those who have just come.
    pub(super) fn published(&self, id: &Id, talking: bool) -> Option<Value> {
        let person = self.roster.get(id)?;
        let media = self.publications.up(id)?;
        Some(published(person, media, talking))
    }

    /// Tells everybody.
    pub(crate) fn tell_all(&mut self, event: impl Into<Value>) {
        self.tell_news();
        self.roster.tell(None, &Notice::new(event));
    }

    /// Tells everybody but `subject`.
    pub(crate) fn tell_others(&mut self, subject: &Id, event: impl Into<Value>) {
        self.tell_news();
        self.roster.tell(Some(subject), &Notice::new(event));
    }

    /// Tells others what `id` publishes now, if its media is up.
    pub(super) fn tell_published(&mut self, id: &Id) {
        if let Some(published) = self.published(id, false) {
            self.tell_others(id, self.event().with("publishers", json!([published])));
        }
    }

    /// Tells others, and whoever watches the server, what `id` publishes by now, if its media is up.
    pub(crate) fn tell_updated(&mut self, id: &Id) {
        self.tell_published(id);
        self.notify_published(id, "updated");
    }

    /// Somebody's media is up: others are told, together with those who come within a moment.
    pub(crate) fn announce(&mut self, id: &Id, room: &Arc<Room>) {
        self.notify_published(id, "published");
        match self.news.announce(id, Instant::now()) {
            Announcement::Now => self.tell_published(id),
            Announcement::At(time) => {
                tokio::spawn(tell_news_at(Arc::downgrade(room), time));
            }
            Announcement::Pending => {}
        }
    }

    /// Tells what is pending. It comes before all that is told later.
    pub(crate) fn tell_news(&mut self) {
        let news = self.news.take(Instant::now()).into_iter();
        let published = news.filter_map(|id| {
            let published = self.published(&id, false)?;
            Some((id, published))
        });
        let published: Vec<(Id, Value)> = published.collect();
        if published.is_empty() {
            return;
        }
        let event = |subject: Option<&Id>| {
            let told = published.iter().filter(|(id, _)| Some(id) != subject);
            let told: Vec<&Value> = told.map(|(_, published)| published).collect();
            let event = || self.event().with("publishers", json!(told));
            (!told.is_empty()).then(event)
        };
        // The same for all who are not told of themselves.
        let Some(notice) = event(None).map(Notice::new) else {
            return;
        };
        for person in self.roster.iter() {
            if !published.iter().any(|(id, _)| id == person.id()) {
                person.tell(&notice);
            } else if let Some(event) = event(Some(person.id())) {
                person.push(event);
            }
        }
    }
}

async fn tell_news_at(room: Weak<Room>, time: Instant) {
    tokio::time::sleep_until(time).await;
    if let Some(room) = room.upgrade() {
        room.lock().tell_news();
    }
}
