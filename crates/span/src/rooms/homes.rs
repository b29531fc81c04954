//! Requests that the homes of rooms decide, and the names of new rooms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portunus_cluster::{HomeKey, NodeId};
use portunus_room::{ClaimError, Whom};
use tokio::time::Instant;

use super::Spanning;
use super::gate::{Ask, Command};
use super::message::RoomMessage;
use crate::PortEvent;

impl Spanning {
    /// Does what a client of this node needs of the other ones.
    pub(super) async fn command(&mut self, command: Command) {
        match command {
            Command::Visit(visit) => self.visit(visit).await,
            Command::Ask(ask) => self.ask(ask).await,
            Command::Claim { name, done } => match self.port.key(&name) {
                Ok(key) if self.open.contains_key(&key) || self.rooms.contains_key(&name) => {
                    // The client may be gone.
                    let _ = done.send(Err(ClaimError::Taken));
                }
                Ok(key) => self.names.claim(key, done, &self.port).await,
                // The room stays at this node.
                Err(_) => drop(done.send(Ok(()))),
            },
            Command::Tell {
                name,
                to,
                message,
                may_be_lost,
            } => self.tell_doors(&name, to, (&message, may_be_lost)).await,
            Command::AskDoor { ask, whom } => self.ask_door(ask, whom).await,
            Command::Destroyed { name, permanently } => {
                self.destroy_elsewhere(&name, permanently).await;
            }
            Command::Kept(name) => self.keep_elsewhere(&name).await,
        }
    }

    /// Asks the home of a room for a client.
    async fn ask(&mut self, ask: Ask) {
        let home = match self.port.key(&ask.name) {
            Ok(key) => self.decider(&key, &ask.name).await.map(|node| (key, node)),
            Err(_) => None,
        };
        let home = home.filter(|(_, node)| self.listing.decides(node));
        let Some((key, node)) = home else {
            // The client may be gone.
            let _ = ask.answer.send(None);
            return;
        };
        // It is set once only.
        let _ = ask.asked.set(node.as_str().to_owned());
        let call = self.questions.add(node.clone(), ask.answer);
        let question = ask.question;
        let message = RoomMessage::Ask { call, question };
        self.send(&node, &key, &message).await;
    }

    /// Asks a door at another node for a client.
    async fn ask_door(&mut self, ask: Ask, whom: Whom) {
        let to = match (self.port.key(&ask.name), whom) {
            (Ok(key), Whom::Home) => {
                let home = self.decider(&key, &ask.name).await;
                // One of an earlier version knows no such questions.
                home.filter(|it| self.listing.answers(it))
                    .map(|it| (key, it))
            }
            (Ok(key), Whom::Node(node)) => NodeId::new(&node).ok().map(|node| (key, node)),
            (Err(_), _) => None,
        };
        let Some((key, node)) = to else {
            // The client may be gone.
            let _ = ask.answer.send(None);
            return;
        };
        // It is set once only.
        let _ = ask.asked.set(node.as_str().to_owned());
        if !self.listing.answers(&node) {
            // It is lost, or its version knows no such questions.
            return;
        }
        let call = self.questions.add(node.clone(), ask.answer);
        let question = ask.question;
        self.send(&node, &key, &RoomMessage::AskDoor { call, question })
            .await;
    }

    /// Lets a door answer the same door of another node.
    pub(super) fn answer_door(&self, key: &HomeKey, from: &NodeId, call: u64, question: &str) {
        let question = STANDARD.decode(question).ok();
        let answer = question.and_then(|question| {
            let door = self.doors.door()?;
            Some(door.answer(&key.name(), from.as_str(), &question))
        });
        let (port, key, to) = (self.port.clone(), key.clone(), from.clone());
        tokio::spawn(async move {
            let answer = match answer {
                Some(answer) => answer.await.map(|it| STANDARD.encode(it)),
                None => None,
            };
            let message = RoomMessage::AnswerDoor { call, answer };
            let sent = port.send(&to, &key, message.to_bytes().into()).await;
            if let Err(error) = sent {
                tracing::warn!(%key, %error, "cluster: an answer about a room is left out");
            }
        });
    }

    /// Returns the node that decides about a room, or `None` if that is this one: the home, or for a
    /// room that nobody uses a node that has it.
    async fn decider(&self, key: &HomeKey, name: &str) -> Option<NodeId> {
        if let Some(spanned) = self.open.get(key) {
            return spanned.far_home().cloned();
        }
        if let Some(home) = self.port.home_of(key).await {
            return (home != *self.port.node()).then_some(home);
        }
        match self.rooms.contains_key(name) {
            true => None,
            false => self.listing.keeper(name),
        }
    }

    /// Answers a client of another node.
    pub(super) async fn answer(&mut self, key: &HomeKey, from: &NodeId, call: u64, question: &str) {
        let name = key.name();
        let answer = self.directory.answer(&name, from.as_str(), question);
        let (port, key, to) = (self.port.clone(), key.clone(), from.clone());
        tokio::spawn(async move {
            let answer = answer.await;
            let message = RoomMessage::Answer { call, answer };
            let sent = port.send(&to, &key, message.to_bytes().into()).await;
            if let Err(error) = sent {
                tracing::warn!(%key, %error, "cluster: an answer about a room is left out");
            }
        });
    }

    /// Opens a room of this node, which another one is about to use.
    pub(super) async fn open_for(&mut self, key: &HomeKey, node: &NodeId) {
        let Some(watched) = self.rooms.get(&key.name()) else {
            return;
        };
        let room = watched.room.clone();
        if !self.open.contains_key(key) {
            self.open(key, room).await;
        }
        let openers = self.openers.entry(key.clone()).or_default();
        if !openers.contains(node) {
            openers.push(node.clone());
        }
        if let Some(spanned) = self.open.get_mut(key) {
            spanned.visited(Instant::now());
            if spanned.home.is_some() {
                self.tell_openers(key).await;
            }
        }
    }

    /// Tells the nodes that wait for it that a room is open.
    pub(super) async fn tell_openers(&mut self, key: &HomeKey) {
        for node in self.openers.remove(key).into_iter().flatten() {
            self.send(&node, key, &RoomMessage::Opened).await;
        }
    }

    /// A room was destroyed at another node: this one is its home, or has the room, too.
    pub(super) async fn destroy(&mut self, key: &HomeKey, from: &NodeId) {
        self.release_ended(key, from).await;
        self.directory.destroy(&key.name());
    }

    /// Releases a room that its home has ended already.
    pub(super) async fn release_ended(&mut self, key: &HomeKey, from: &NodeId) {
        let is_home = |node: &NodeId| node == from;
        let spanned = self.open.get(key);
        if spanned.is_some_and(|it| it.far_home().is_some_and(is_home)) {
            self.close(key);
            self.port.release(key).await;
        }
    }

    /// A client has ended a room for all: nodes that have it without using it, and those that join it
    /// just now, have to know, too.
    async fn destroy_elsewhere(&mut self, name: &str, permanently: bool) {
        let Ok(key) = self.port.key(name) else { return };
        let permanently = permanently.then_some(0);
        for node in self.listing.nodes() {
            self.send(&node, &key, &RoomMessage::Destroy { permanently })
                .await;
        }
    }

    /// Takes an event of the directory of rooms.
    pub(super) async fn listed(&mut self, event: PortEvent) {
        match event {
            PortEvent::Item {
                node, item, value, ..
            } => {
                if let Some(room) = self.listing.take(&item, &node, value.as_ref()) {
                    self.tell_ended(&node, &item).await;
                    self.redefine(&item, Some(room.definition.as_bytes()));
                    if let (Some(door), Some(note)) = (self.doors.door(), &room.note) {
                        door.noted(&item, note);
                    }
                }
            }
            PortEvent::Ended { .. } => {
                // The directory has no end. All is told again.
                self.own.reopen().await;
                for name in self.rooms.keys().cloned().collect::<Vec<_>>() {
                    self.look(&name).await;
                }
            }
            _ => {}
        }
    }
}
