//! Clients that want to join a room: where it comes from if it is not here yet.

use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId};
use tokio::time::{Instant, sleep};

use super::Spanning;
use super::gate::Visit;
use super::message::RoomMessage;
use super::sought::{Item, Sought};

/// How long a node has time to open a room of its own.
const OPENING: Duration = Duration::from_millis(500);

impl Spanning {
    /// A client wants to join a room.
    pub(super) async fn visit(&mut self, visit: Visit) {
        let Ok(key) = self.port.key(&visit.name) else {
            return;
        };
        if let Some(sought) = self.sought.get_mut(&key) {
            sought.waiting.push(visit.done);
            return;
        }
        if let Some(waiting) = self.opening.get_mut(&key) {
            waiting.push(visit.done);
            return;
        }
        if !self.rooms.contains_key(&visit.name) {
            if self.directory.find(&visit.name).is_some() {
                self.list().await;
            } else if let Some(keeper) = self.listing.keeper(&visit.name) {
                if !self.port.has_home(&key).await {
                    return self.open_at(&keeper, key, visit).await;
                }
                self.adopt_listed(&visit.name).await;
            } else if self.port.has_home(&key).await {
                let sought = Sought::new(visit.done, Instant::now());
                self.sought.insert(key.clone(), sought);
                self.port.open(&key).await;
                return;
            }
        }
        self.enter(&key, visit).await;
    }

    /// Lets a node that has a room open it, so that the room has its home there.
    async fn open_at(&mut self, keeper: &NodeId, key: HomeKey, visit: Visit) {
        self.send(keeper, &key, &RoomMessage::Open).await;
        self.opening.insert(key, vec![visit.done]);
        // The node may not answer.
        let changed = self.changed.clone();
        tokio::spawn(async move {
            sleep(OPENING).await;
            // At the end of the server nobody waits.
            let _ = changed.send(visit.name).await;
        });
    }

    /// Ends the wait for a room, as the node that was to open it has not answered.
    pub(super) async fn end_opening(&mut self, name: &str) {
        if let Ok(key) = self.port.key(name) {
            self.opened(&key).await;
        }
    }

    /// A room was opened at the node that has it, or that node does not answer.
    pub(super) async fn opened(&mut self, key: &HomeKey) {
        let Some(waiting) = self.opening.remove(key) else {
            return;
        };
        let name = key.name();
        if !self.rooms.contains_key(&name) {
            self.adopt_listed(&name).await;
        }
        for done in waiting {
            let name = name.clone();
            self.enter(key, Visit { name, done }).await;
        }
    }

    /// Makes a room as another node has it.
    async fn adopt_listed(&mut self, name: &str) {
        self.adopted.insert(name.to_owned());
        for definition in self.listing.definitions(name) {
            if let Err(error) = self.directory.adopt(name, &definition) {
                tracing::warn!(name, %error, "cluster: a room stays at its node");
            }
        }
        self.list().await;
    }

    /// Lets a client wait for a room of this node.
    async fn enter(&mut self, key: &HomeKey, visit: Visit) {
        let Some(watched) = self.rooms.get(&visit.name) else {
            return;
        };
        let room = watched.room.clone();
        if !self.open.contains_key(key) {
            self.open(key, room).await;
        }
        if let Some(spanned) = self.open.get_mut(key) {
            spanned.visit(visit.done, Instant::now());
        }
    }

    /// All that other nodes have of a room that was sought is here: it is made, if one has its
    /// definition.
    pub(super) async fn found(&mut self, key: &HomeKey) {
        let Some(sought) = self.sought.remove(key) else {
            return;
        };
        let name = key.name();
        if let Some(definition) = sought.definition() {
            self.adopted.insert(name.clone());
            match self.directory.adopt(&name, definition) {
                Ok(()) => tracing::info!(%key, "cluster: a room of another node is here, too"),
                Err(error) => tracing::warn!(%key, %error, "cluster: a room stays at its node"),
            }
            self.list().await;
        }
        let Some(room) = self.rooms.get(&name).map(|it| it.room.clone()) else {
            self.port.release(key).await;
            return;
        };
        if !self.open.contains_key(key) {
            self.open(key, room).await;
        }
        for Item { node, name, value } in sought.items {
            self.item(key, node, &name, value);
        }
        if let Some(spanned) = self.open.get_mut(key) {
            spanned.home = sought.home;
            spanned.complete();
            spanned.visited(Instant::now());
        }
    }
}
