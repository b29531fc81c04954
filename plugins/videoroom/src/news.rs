//! Telling who publishes now: at once, and in a storm of joins of many together, so that their number is not that of the
//! events that everybody gets.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::id::Id;
use crate::room::{Room, RoomState};

/// Those who come within this time of the last news are told of together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Who publishes and is still to be told of.
#[derive(Debug, Default)]
pub(crate) struct News {
    waiting: Vec<Id>,
    last: Option<Instant>,
}

impl RoomState {
    /// Somebody's media is up: others are told, within [`TOGETHER`] if there was news just now.
    pub(crate) fn announce(&mut self, id: &Id, room: &Arc<Room>) {
        let now = Instant::now();
        let due = self.news.last.map(|last| last + TOGETHER);
        let Some(due) = due.filter(|due| *due > now) else {
            self.news.last = Some(now);
            self.tell_published(id);
            return;
        };
        if self.news.waiting.is_empty() {
            tokio::spawn(tell_later(Arc::downgrade(room), due));
        }
        self.news.waiting.push(id.clone());
    }

    /// Tells what waits. It comes before all that is told later.
    pub(crate) fn tell_news(&mut self) {
        if self.news.waiting.is_empty() {
            return;
        }
        self.news.last = Some(Instant::now());
        let waiting = std::mem::take(&mut self.news.waiting);
        let published = waiting.into_iter().filter_map(|id| {
            let published = self.people.get(&id)?.published(false)?;
            Some((id, published))
        });
        let published: Vec<(Id, Value)> = published.collect();
        for person in self.people.values() {
            let of_others = |(id, _): &&(Id, Value)| *id != person.id;
            let others = published.iter().filter(of_others);
            let others: Vec<&Value> = others.map(|(_, published)| published).collect();
            if !others.is_empty() {
                let event = self.event().with("publishers", json!(others));
                person.origin.push(event);
            }
        }
    }
}

async fn tell_later(room: Weak<Room>, due: Instant) {
    tokio::time::sleep_until(due).await;
    if let Some(room) = room.upgrade() {
        room.lock().tell_news();
    }
}
