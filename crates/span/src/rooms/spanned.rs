//! A room that is used on this node.

use std::sync::Arc;
use std::time::Duration;

use portunus_cluster::{HomeKey, NodeId, Place, Unplaced};
use portunus_media::MediaPlane;
use portunus_room::{Room, Unprepared};
use tokio::time::Instant;

use super::data::Data;
use super::gate::Waiting;
use super::ours::{Change, Ours};
use super::sought::DEFINITION;
use super::theirs::Theirs;
use crate::Port;

/// How long a room stays open after a client wanted to join it.
const VISIT: Duration = Duration::from_secs(30);

/// A room that is used on this node.
#[derive(Debug)]
pub(crate) struct Spanned {
    pub(crate) room: Arc<Room>,
    pub(crate) ours: Ours,
    pub(crate) theirs: Theirs,
    pub(crate) data: Data,
    media: MediaPlane,
    /// Where it is at home, once that is known.
    pub(crate) home: Option<Place>,
    /// Whether all participants of the others were shown once.
    is_complete: bool,
    /// Clients that wait for that.
    waiting: Vec<Waiting>,
    /// When a client wanted to join it last.
    visited: Option<Instant>,
    /// The definition that the other nodes have.
    definition: Option<String>,
}

impl Spanned {
    pub(crate) fn new(room: Arc<Room>, port: Port, media: MediaPlane) -> Self {
        Spanned {
            room: room.clone(),
            ours: Ours::default(),
            theirs: Theirs::new(room, port, media.clone()),
            data: Data::default(),
            media,
            home: None,
            is_complete: false,
            waiting: Vec::new(),
            visited: None,
            definition: None,
        }
    }

    /// Tells the other nodes what has changed here.
    pub(crate) async fn look(&mut self, key: &HomeKey, port: &Port) {
        let (changes, messages) = {
            let mut state = self.room.lock();
            let mut changes = self.ours.look(&state, port);
            changes.extend(self.data.look(&state, key, port, &self.media));
            (changes, self.theirs.look(&mut state))
        };
        for change in changes {
            match change {
                Change::Set {
                    item,
                    value,
                    shorter,
                } => {
                    let mut set = port.set(key, &item, value).await;
                    if set.is_err() {
                        set = port.set(key, &item, shorter).await;
                    }
                    if let Err(error) = set {
                        tracing::warn!(%key, id = item, %error, "cluster: a participant is left out");
                    }
                }
                Change::Remove { item } => port.remove(key, &item).await,
            }
        }
        for (node, message) in messages {
            if let Err(error) = port.send(&node, key, message.to_bytes().into()).await {
                tracing::warn!(%key, %error, "cluster: a message about a room is left out");
            }
        }
    }

    /// Lets the other nodes have the room by its definition.
    pub(crate) async fn define(&mut self, key: &HomeKey, definition: Option<String>, port: &Port) {
        if self.definition == definition {
            return;
        }
        let set = match definition.clone() {
            Some(definition) => port.set(key, DEFINITION, definition.into()).await,
            None => {
                port.remove(key, DEFINITION).await;
                Ok(())
            }
        };
        if let Err(error) = set {
            tracing::warn!(%key, %error, "cluster: a room stays at its node");
        }
        self.definition = definition;
    }

    /// A client wanted to join.
    pub(crate) fn visited(&mut self, now: Instant) {
        self.visited = Some(now);
    }

    /// A client wants to join, and waits until the participants of the others are shown.
    pub(crate) fn visit(&mut self, done: Waiting, now: Instant) {
        self.visited(now);
        if let Some(refusal) = self.refusal() {
            // The client may be gone.
            let _ = done.send(Err(refusal));
        } else if !self.is_complete {
            // If all are shown, dropping `done` resolves it.
            self.waiting.push(done);
        }
    }

    /// Returns why nobody can join: a room that is in use nowhere has to have a home first.
    fn refusal(&self) -> Option<Unprepared> {
        match &self.home {
            Some(Place::Nowhere(reason @ Unplaced::NoBus)) if !self.room.lock().is_used() => {
                Some(Unprepared::NoHome(reason.to_string()))
            }
            _ => None,
        }
    }

    /// Returns whether the room is used as far as this node has to care: its home keeps it open for
    /// all nodes.
    pub(crate) fn is_used(&self) -> bool {
        let room = self.room.lock();
        match self.home {
            Some(Place::Here { .. }) => room.is_used(),
            _ => room.is_used_here(),
        }
    }

    /// Returns whether it is at home here.
    pub(crate) const fn is_at_home(&self) -> bool {
        matches!(self.home, Some(Place::Here { .. }))
    }

    /// Returns the home, if it is another node that can be reached.
    pub(crate) fn far_home(&self) -> Option<&NodeId> {
        match &self.home {
            Some(Place::There {
                node,
                is_reachable: true,
                ..
            }) => Some(node),
            _ => None,
        }
    }

    /// Returns whether a client wanted to join a short time ago.
    pub(crate) fn is_visited(&self, now: Instant) -> bool {
        let until = self.visited.map(|visited| visited + VISIT);
        until.is_some_and(|until| now < until)
    }

    /// Notes where it is at home.
    pub(crate) fn at_home(&mut self, place: Place) {
        self.home = Some(place);
        if let Some(refusal) = self.refusal() {
            for client in self.waiting.drain(..) {
                // The client may be gone.
                let _ = client.send(Err(refusal.clone()));
            }
        } else if self.far_home().is_none() {
            // All that others have is registered here, or nobody can be asked.
            self.complete();
        }
    }

    /// All participants of the others are shown.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
        self.waiting.clear();
    }

    /// It is no longer used here.
    pub(crate) fn end(&mut self, port: &Port) {
        self.ours.end(port);
        self.theirs.end();
        self.data.end();
    }
}
