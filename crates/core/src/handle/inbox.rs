//! What reaches a handle's task.

use std::sync::Arc;

use portunus_media::{Event, PeerEvent};
use portunus_sdp::IceCredentials;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::connection::LocalIce;
use crate::counters::add;
use crate::{Client, Counters};

/// Commands that wait for a handle's task at most.
const CAPACITY: usize = 256;

/// Something for a handle's task to do.
#[derive(Debug)]
pub(crate) enum Command {
    Message {
        transaction: String,
        members: Map<String, Value>,
        responder: Responder,
    },
    Trickle {
        transaction: String,
        members: Map<String, Value>,
        responder: Responder,
    },
    Hangup {
        reason: String,
        responder: Option<(String, Responder)>,
    },
    Detach {
        responder: Option<(String, Responder)>,
    },
    Query {
        reply: oneshot::Sender<Value>,
    },
    RestartIce {
        remote: IceCredentials,
        reply: oneshot::Sender<Option<LocalIce>>,
    },
    Peer(PeerEvent),
}

impl Command {
    /// Whether the client loses nothing but a moment's news if this is lost.
    fn is_droppable(&self) -> bool {
        match self {
            Command::Peer(PeerEvent { event, .. }) => {
                matches!(
                    event,
                    Event::Data(_)
                        | Event::SlowLink { .. }
                        | Event::Remb { .. }
                        | Event::Speech { .. }
                )
            }
            Command::Message { .. }
            | Command::Trickle { .. }
            | Command::Hangup { .. }
            | Command::Detach { .. }
            | Command::Query { .. }
            | Command::RestartIce { .. } => false,
        }
    }
}

/// The way to a handle's task.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    commands: mpsc::Sender<Command>,
    counters: Arc<Counters>,
}

impl Inbox {
    pub(crate) fn new(counters: Arc<Counters>) -> (Inbox, mpsc::Receiver<Command>) {
        let (commands, inbox) = mpsc::channel(CAPACITY);
        (Inbox { commands, counters }, inbox)
    }

    /// Waits for a place; false if the task has ended.
    pub(crate) async fn send(&self, command: Command) -> bool {
        self.commands.send(command).await.is_ok()
    }

    /// Does not wait: without a place, a droppable command is counted and lost, and another is sent later.
    pub(crate) fn deliver(&self, command: Command) {
        match self.commands.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) if command.is_droppable() => {
                add(&self.counters.events_dropped);
            }
            Err(mpsc::error::TrySendError::Full(command)) => {
                let commands = self.commands.clone();
                tokio::spawn(async move { commands.send(command).await });
            }
        }
    }
}

/// Where the reply to a request goes.
#[derive(Debug)]
pub(crate) struct Responder {
    /// A client with a queue of its own gets it there, so that no event overtakes it.
    client: Option<Client>,
    done: oneshot::Sender<Option<Value>>,
}

impl Responder {
    /// The receiver gets none if the client has got the reply already.
    pub(crate) fn new(client: Option<Client>) -> (Self, oneshot::Receiver<Option<Value>>) {
        let (done, reply) = oneshot::channel();
        (Responder { client, done }, reply)
    }

    pub(crate) fn respond(self, reply: Value) {
        let reply = match &self.client {
            Some(client) => {
                client.push(reply);
                None
            }
            None => Some(reply),
        };
        // Nobody waits any more if the transport has given the request up.
        let _ = self.done.send(reply);
    }
}
