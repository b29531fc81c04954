//! What reaches a handle's task.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::{Event, PeerEvent};
use portunus_sdp::IceCredentials;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::local::LocalIce;
use crate::counters::add;
use crate::{Client, Counters, Purse, Share};

/// Commands that wait for a handle's task at most; so many events more, messages of data channels, and those without which it
/// cannot go on.
const CAPACITY: usize = 256;
/// Bytes of messages of data channels that wait, their places counted: a channel loses none because many are short.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// What the place of a message takes.
const PLACE: usize = size_of::<Command>();

/// Something for a handle's task to do.
#[derive(Debug)]
pub(crate) enum Command {
    Message {
        transaction: String,
        members: Map<String, Value>,
        /// Whose it is.
        client: Client,
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
    /// Tells whoever watches of the PeerConnections that were closed meanwhile.
    TellClosed,
}

impl Command {
    /// Whether the client loses nothing but a moment's news if this is lost.
    fn is_droppable(&self) -> bool {
        match self {
            Command::Peer(PeerEvent { event, .. }) => {
                matches!(
                    event,
                    Event::SlowLink { .. } | Event::Remb { .. } | Event::Speech { .. }
                )
            }
            Command::Message { .. }
            | Command::Trickle { .. }
            | Command::Hangup { .. }
            | Command::Detach { .. }
            | Command::Query { .. }
            | Command::RestartIce { .. }
            | Command::TellClosed => false,
        }
    }

    /// Of a message of a data channel, the bytes that it takes.
    fn message_size(&self) -> Option<usize> {
        match self {
            Command::Peer(PeerEvent {
                event: Event::Data(message),
                ..
            }) => Some(message.size().saturating_add(PLACE)),
            _ => None,
        }
    }

    /// Whether the handle cannot go on without it. There are few of these.
    fn is_vital(&self) -> bool {
        match self {
            Command::Peer(PeerEvent { event, .. }) => {
                matches!(
                    event,
                    Event::Closed(_) | Event::Connected { .. } | Event::DataChannel { .. }
                )
            }
            Command::Message { .. }
            | Command::Trickle { .. }
            | Command::Hangup { .. }
            | Command::Detach { .. }
            | Command::Query { .. }
            | Command::RestartIce { .. }
            | Command::TellClosed => true,
        }
    }
}

/// The way to a handle's task.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    /// Boxed, since a queue takes 32 places ahead: without that 5 KiB of each handle.
    commands: mpsc::Sender<Box<Command>>,
    counters: Arc<Counters>,
    late: Arc<Mutex<Late>>,
    /// Bytes of messages that wait.
    message_bytes: Arc<AtomicUsize>,
}

/// Where a handle's task takes its commands from.
#[derive(Debug)]
pub(crate) struct Commands {
    queue: mpsc::Receiver<Box<Command>>,
    message_bytes: Arc<AtomicUsize>,
}

impl Commands {
    /// The next command; none once nobody can send one any more.
    pub(crate) async fn recv(&mut self) -> Option<Command> {
        let command = *self.queue.recv().await?;
        let size = command.message_size().unwrap_or(0);
        self.message_bytes.fetch_sub(size, Ordering::Relaxed);
        Some(command)
    }
}

/// What found no room, in its order.
#[derive(Debug, Default)]
struct Late {
    queue: VecDeque<Command>,
    /// Those that are no messages of data channels.
    others: usize,
    /// A task sends it.
    is_sent: bool,
}

impl Inbox {
    pub(crate) fn new(counters: Arc<Counters>) -> (Inbox, Commands) {
        let (commands, queue) = mpsc::channel(CAPACITY);
        let message_bytes = Arc::<AtomicUsize>::default();
        let inbox = Inbox {
            commands,
            counters,
            late: Arc::default(),
            message_bytes: message_bytes.clone(),
        };
        let commands = Commands {
            queue,
            message_bytes,
        };
        (inbox, commands)
    }

    /// Waits for a place; false if the task has ended.
    pub(crate) async fn send(&self, command: Command) -> bool {
        self.commands.send(Box::new(command)).await.is_ok()
    }

    /// Does not wait: without a place, a droppable command is counted and lost, and another is sent later; messages are lost
    /// beyond [`MAX_MESSAGE_BYTES`] only. What is delivered keeps its order.
    pub(crate) fn deliver(&self, mut command: Command) {
        let mut late = self.late();
        let size = command.message_size().unwrap_or(0);
        let waiting = self.message_bytes.load(Ordering::Relaxed);
        if size > 0 && waiting.saturating_add(size) > MAX_MESSAGE_BYTES {
            return add(&self.counters.events_dropped);
        }
        self.message_bytes.fetch_add(size, Ordering::Relaxed);
        if !late.is_sent {
            match self.commands.try_send(Box::new(command)) {
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => return,
                Err(mpsc::error::TrySendError::Full(refused)) => command = *refused,
            }
        }
        let has_room = command.is_vital() || size > 0 || late.others < CAPACITY;
        if command.is_droppable() || !has_room {
            self.message_bytes.fetch_sub(size, Ordering::Relaxed);
            return add(&self.counters.events_dropped);
        }
        late.others += usize::from(size == 0);
        late.queue.push_back(command);
        if !std::mem::replace(&mut late.is_sent, true) {
            tokio::spawn(self.clone().send_late());
        }
    }

    async fn send_late(self) {
        while let Some(command) = self.next_late() {
            // Without a task there is nobody to tell.
            let _ = self.commands.send(Box::new(command)).await;
        }
    }

    fn next_late(&self) -> Option<Command> {
        let mut late = self.late();
        let next = late.queue.pop_front();
        if next
            .as_ref()
            .is_some_and(|next| next.message_size().is_none())
        {
            late.others = late.others.saturating_sub(1);
        }
        late.is_sent = next.is_some();
        next
    }

    fn late(&self) -> MutexGuard<'_, Late> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the reply to a request goes.
#[derive(Debug)]
pub(crate) struct Responder {
    /// A client with a queue of its own gets it there, so that no event overtakes it.
    client: Option<Client>,
    done: oneshot::Sender<Option<Value>>,
    /// What pays for the reply, if that goes into the client's queue.
    purse: Purse,
    /// What was paid for the request.
    _paid: Share,
}

impl Responder {
    /// The receiver gets none if the client has got the reply already. The reply gives `paid` back.
    pub(crate) fn new(
        client: Option<Client>,
        purse: Purse,
        paid: Share,
    ) -> (Self, oneshot::Receiver<Option<Value>>) {
        let (done, reply) = oneshot::channel();
        let responder = Responder {
            client,
            done,
            purse,
            _paid: paid,
        };
        (responder, reply)
    }

    /// Gives the reply; true if it went into the client's queue, where events follow it.
    pub(crate) fn respond(self, reply: Value) -> bool {
        let is_pushed = self.client.is_some();
        let reply = match &self.client {
            Some(client) => {
                client.push_paid(reply, &self.purse);
                None
            }
            None => Some(reply),
        };
        // Nobody waits any more if the transport has given the request up.
        let _ = self.done.send(reply);
        is_pushed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use portunus_media::{DataMessage, DataPayload, IceState, MediaPlane, PeerId, PeerOptions};

    use super::*;

    fn hangup(n: usize) -> Command {
        Command::Hangup {
            reason: n.to_string(),
            responder: None,
        }
    }

    fn peer() -> PeerId {
        let (media, _, _) = MediaPlane::detached();
        media.create_peer(PeerOptions {
            ice: super::super::local::new_credentials(),
            controlling: false,
            worker: None,
        })
    }

    #[tokio::test]
    async fn what_finds_no_room_comes_later_in_its_order() {
        let (inbox, mut commands) = Inbox::new(Arc::default());
        for n in 0..2 * CAPACITY {
            inbox.deliver(hangup(n));
        }
        for n in 0..3 * CAPACITY {
            let Some(Command::Hangup { reason, .. }) = commands.recv().await else {
                panic!("no hangup");
            };
            assert_eq!(reason, n.to_string());
            // As long as something waits, what comes has to wait behind it.
            if n < CAPACITY {
                inbox.deliver(hangup(2 * CAPACITY + n));
            }
        }
    }

    #[tokio::test]
    async fn news_that_find_no_room_are_bounded_and_counted() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let news = |event| Command::Peer(PeerEvent::new(peer, event));
        for _ in 0..3 * CAPACITY {
            inbox.deliver(news(Event::Ice(IceState::Connected)));
        }
        inbox.deliver(news(Event::Remb { bitrate: 1 }));
        inbox.deliver(hangup(0));
        let dropped = counters
            .events_dropped
            .load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(dropped, CAPACITY as u64 + 1);
        for _ in 0..2 * CAPACITY {
            assert!(matches!(commands.recv().await, Some(Command::Peer(_))));
        }
        assert!(matches!(
            commands.recv().await,
            Some(Command::Hangup { .. })
        ));
    }

    #[tokio::test]
    async fn many_short_messages_find_room_in_their_order() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let message = |n: usize| DataMessage {
            label: "chat".to_owned(),
            protocol: String::new(),
            payload: DataPayload::Text(n.to_string()),
        };
        let count = 10 * CAPACITY;
        let news = |event| Command::Peer(PeerEvent::new(peer, event));
        for n in 0..count {
            inbox.deliver(news(Event::Data(message(n))));
        }
        // They take no place from what has changed.
        inbox.deliver(news(Event::Ice(IceState::Connected)));
        for n in 0..count {
            let Some(Command::Peer(event)) = commands.recv().await else {
                panic!("no message");
            };
            assert_eq!(event.event, Event::Data(message(n)));
        }
        assert!(matches!(commands.recv().await, Some(Command::Peer(_))));
        assert_eq!(counters.events_dropped.load(Ordering::Relaxed), 0);
        assert_eq!(inbox.message_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn messages_are_bounded_by_their_bytes() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let message = || {
            let message = DataMessage {
                label: String::new(),
                protocol: String::new(),
                payload: DataPayload::Binary(vec![0; MAX_MESSAGE_BYTES / 4 - PLACE]),
            };
            Command::Peer(PeerEvent::new(peer, Event::Data(message)))
        };
        let dropped = || counters.events_dropped.load(Ordering::Relaxed);
        for _ in 0..5 {
            inbox.deliver(message());
        }
        assert_eq!(dropped(), 1);
        // What is no message has its place, and what is taken makes room.
        inbox.deliver(hangup(0));
        commands.recv().await;
        inbox.deliver(message());
        assert_eq!(dropped(), 1);
        inbox.deliver(message());
        assert_eq!(dropped(), 2);
        for _ in 0..5 {
            commands.recv().await;
        }
        assert_eq!(inbox.message_bytes.load(Ordering::Relaxed), 0);
    }
}
